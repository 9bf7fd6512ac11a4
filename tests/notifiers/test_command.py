"""A program that gets alerts."""

import json
import sys
from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from tests.notifiers.receivers import FIRING, send

SCRIPT = """
import os, pathlib, sys
pathlib.Path("got.json").write_bytes(sys.stdin.buffer.read())
names = sorted(name for name in os.environ if name.startswith("RAGEVAL_ALERT_"))
pathlib.Path("got.txt").write_text("\\n".join(f"{name}={os.environ[name]}" for name in names))
"""


def test_it_gets_alerts_as_json_and_a_text_for_people(tmp_path: Path) -> None:
    send("command", {"run": [sys.executable, "-c", SCRIPT]}, [FIRING], folder=tmp_path)
    content = json.loads((tmp_path / "got.json").read_text())
    assert [one["key"] for one in content["alerts"]] == ["k1"]
    told = (tmp_path / "got.txt").read_text()
    assert "RAGEVAL_ALERT_STATE=firing" in told
    assert "worst answer 1 (0.000), trace t1" in told
    assert "\x1b" not in told


def test_no_shell_reads_its_arguments(tmp_path: Path) -> None:
    script = "import pathlib, sys; pathlib.Path('said').write_text(sys.argv[1])"
    send("command", {"run": [sys.executable, "-c", script, "$(id); *"]}, [FIRING], folder=tmp_path)
    assert (tmp_path / "said").read_text() == "$(id); *"


@pytest.mark.parametrize(
    ("run", "timeout", "told"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no pager today')"], 30, "exit code 1: no pager today"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], 0.2, "did not end within 0.2 s"),
        (["./nothing-here"], 30, "cannot be run: No such file"),
    ],
)
def test_a_program_that_fails_has_not_taken_the_alert(
    tmp_path: Path, run: list[str], timeout: float, told: str
) -> None:
    with pytest.raises(RagevalError, match=told):
        send("command", {"run": run, "timeout": timeout}, [FIRING], folder=tmp_path)
