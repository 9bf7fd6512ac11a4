"""The README's commands, figures and lists are those of the repository."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry

ROOT = Path(__file__).parents[2]
README: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "readme.py"))


def test_the_lists_and_counts_of_the_readme_are_those_of_the_plugins() -> None:
    assert README["main"](["--check"]) == 0, "python docs/readme.py --write"


def test_every_region_that_can_be_filled_is_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"<!-- generated: {name} -->" in text for name in README["REGIONS"])
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
