"""The Python examples in README.md and docs/calibration.md that need no data of the reader run."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]


def read_example(heading: str, page: str = "README.md") -> str:
    """The Python block below a heading of a page."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"# {heading}\n")[2].partition("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def run_example(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The values of an example's expressions, beside a copy of the specs."""
    shutil.copytree(ROOT / "specs", folder / "specs", ignore=shutil.ignore_patterns(".rageval"))
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    results: list[Any] = []
    for statement in ast.parse(example).body:
        source = ast.unparse(statement)
        if isinstance(statement, ast.Expr):
            results.append(eval(source, names))
        else:
            exec(source, names)
    return results


def test_the_example_of_evaluating_from_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed, aggregates, card, report, judged = run_example(read_example("From Python"), tmp_path, monkeypatch)
    assert passed is True
    assert isinstance(aggregates, pl.DataFrame)
    assert (card.query_id, card.system) == ("q07", "assistant")
    assert report.startswith("<!-- rageval-spec: quickstart -->")
    assert judged.aggregates["mean"].to_list() == [pytest.approx(5 / 7), 1.0]


def test_the_example_of_calibrating_from_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = read_example("From Python", "docs/calibration.md")
    interval, text, path = run_example(example, tmp_path, monkeypatch)
    assert (round(interval.low, 3), round(interval.high, 3)) == (0.787, 0.980)
    assert text.startswith("completeness: 24 labelled items, 24 labels by 1 person")
    assert (tmp_path / path).is_file()
