"""Every wrong spec in `tests/diagnostics` gets exactly the diagnostics in the text file of the same name.

Comments at the top of a spec set options: `# --set path=value` and `# env NAME=value`. After an intended change, run
with REGENERATE=1 and review the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import load

FOLDER = Path(__file__).parents[1] / "diagnostics"
SPECS = sorted(FOLDER.glob("*.yaml"))


def read(path: Path) -> str:
    """The diagnostics of a spec as shown to a user in its folder; warnings if there are no errors."""
    text = path.read_text(encoding="utf-8")
    overrides = re.findall(r"^# --set (.*)$", text, re.MULTILINE)
    environment = dict(line.split("=", 1) for line in re.findall(r"^# env (.*)$", text, re.MULTILINE))
    try:
        spec = load(path.name, overrides=overrides, environment=environment)
    except SpecError as error:
        return f"{error}\n"
    return "".join(f"{warning}\n" for warning in spec.warnings)


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_diagnostics_are_as_expected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    expected = path.with_suffix(".txt")
    found = read(path)
    if os.environ.get("REGENERATE"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


@pytest.mark.usefixtures("installation")
def test_a_secret_is_in_no_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    text = (FOLDER / "environment.yaml").read_text(encoding="utf-8")
    assert "TOKEN=hunter2" in text
    assert "hunter2" not in read(FOLDER / "environment.yaml").replace("# env TOKEN=hunter2", "")
