"""The Python examples in README.md that need no data of the reader run."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]


def read_example(heading: str) -> str:
    """The Python block below a heading of README.md."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_evaluating_from_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs", ignore=shutil.ignore_patterns(".rageval"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    results: list[Any] = []
    for statement in ast.parse(read_example("From Python")).body:
        source = ast.unparse(statement)
        if isinstance(statement, ast.Expr):
            results.append(eval(source, names))
        else:
            exec(source, names)
    passed, aggregates, card, report, judged = results
    assert passed is True
    assert isinstance(aggregates, pl.DataFrame)
    assert (card.query_id, card.system) == ("q07", "assistant")
    assert report.startswith("<!-- rageval-spec: quickstart -->")
    assert judged.aggregates["mean"].to_list() == [pytest.approx(5 / 7), 1.0]
