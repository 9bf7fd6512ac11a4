"""The README's commands, figures and lists are those of the repository."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from tests.command_line import invoke

ROOT = Path(__file__).parents[2]
README: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "readme.py"))


def test_the_lists_and_counts_of_the_readme_are_those_of_the_plugins() -> None:
    assert README["main"](["--check"]) == 0, "python docs/readme.py --write"


def test_every_region_that_can_be_filled_is_there() -> None:
    text, overview = (path.read_text(encoding="utf-8") for path in (README["README"], README["EXCHANGE"]))
    assert all(f"<!-- generated: {name} -->" in text + overview for name in README["REGIONS"])
    assert all(f"`{word}`" in text for section in registry.SECTIONS[:4] for word in registry.words(section))


def test_check_tells_what_to_run_and_write_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "README.md"
    path.write_text("All <!-- generated: count of metrics -->1<!-- /generated --> metrics.\n")
    assert README["main"](["--check", str(path)]) == 1
    assert "run: python docs/readme.py --write" in capsys.readouterr().err
    assert README["main"](["--write", str(path)]) == 0
    count = len(registry.builtin_words("metrics"))
    assert path.read_text() == f"All <!-- generated: count of metrics -->{count}<!-- /generated --> metrics.\n"
    assert README["main"](["--check", str(path)]) == 0
    assert README["main"](["--fix"]) == 2


def test_the_first_screen_installs_the_package_and_has_a_spec_for_files_of_ones_own(tmp_path: Path) -> None:
    """With the commands of a clone at its top. What the spec names is a golden set and a service of the reader's."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:45]
    assert "pip install uv && uv run rageval-spec run specs/quickstart.yaml" in lines[:10]
    screen = "\n".join(lines)
    assert "pip install 'rageval-spec" in screen
    assert "rageval-spec init golden.xlsx --url http://localhost:8000/ask" in screen
    written = screen.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "golden.csv").write_text("question,reference\nWho?,Ada\nWhen?,1843\n", encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(written.replace(".xlsx", ".csv"), encoding="utf-8")
    result = invoke("validate", tmp_path / "spec.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
