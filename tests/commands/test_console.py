from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import start


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_3(spec: Path) -> None:
    command = f"{sys.executable} -m rageval_spec validate {spec}"
    for target, reason in ((">/dev/full", "cannot be written: No space left on device"), (">&-", "is closed")):
        ended = subprocess.run(["sh", "-c", f"{command} {target}"], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (3, f"rageval-spec: standard output {reason}\n")


def test_a_reader_that_goes_away_is_no_error(spec: Path, tmp_path: Path) -> None:
    for arguments in (["metrics"], ["schema"], ["run", spec, "-o", tmp_path / "out"], ["plan", spec]):
        with start(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 0
        assert [line for line in errors.splitlines() if not line.startswith("wrote ")] == []
