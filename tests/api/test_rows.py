from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pydantic import BaseModel

from rageval_spec.api.rows import write_rows
from rageval_spec.errors import UsageError

ROW = {"question": "Who?", "answer": "Ada.", "contexts": ["a", "b"], "score": 0.5}
WRITTEN = {"question": "Who?", "response": "Ada.", "contexts": ["a", "b"], "score": 0.5}


@dataclass
class Case:
    question: str = "Who?"
    answer: str = "Ada."
    contexts: tuple[str, ...] = ("a", "b")
    score: float = 0.5


class Model(BaseModel):
    question: str = "Who?"
    answer: str = "Ada."
    contexts: list[str] = ["a", "b"]
    score: float = 0.5


def written(rows: Any, folder: Path) -> list[Any]:
    path = folder / "rows.jsonl"
    count = write_rows(rows, path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == count
    return lines


@pytest.mark.parametrize(
    "rows",
    [
        [ROW],
        (row for row in [ROW]),
        pl.DataFrame([ROW]),
        pd.DataFrame([ROW]),
        pa.Table.from_pylist([ROW]),
        [Case()],
        [Model()],
        [SimpleNamespace(**ROW, _hidden=1)],
        [{**ROW, "contexts": np.array(["a", "b"]), "score": np.float64(0.5)}],
        [{**ROW, "contexts": pl.Series(["a", "b"])}],
    ],
)
def test_every_form_gives_the_same_rows(rows: Any, tmp_path: Path) -> None:
    assert written(rows, tmp_path) == [WRITTEN]


def test_an_answer_keeps_its_name_if_another_column_is_the_systems(tmp_path: Path) -> None:
    row = {"question": "Who?", "answer": "gold", "response": "Ada."}
    assert written([row], tmp_path) == [row]


def test_missing_values_of_frames_are_null(tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": ["a", "b", "c"], "x": [1.0, float("nan"), 2.0], "y": ["", None, pd.NA]})
    assert [(row["x"], row["y"]) for row in written(frame, tmp_path)] == [(1.0, ""), (None, None), (2.0, None)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows: there are none; an evaluation needs at least one question with its answer"),
        ("a.jsonl", "rows: write a list of dicts, a polars or pandas frame, or objects such as test cases, not str"),
        (ROW, "rows: write a list of dicts, .* not dict"),
        (3, "rows: write a list of dicts, .* not int"),
        ([ROW, 3], r"rows\[1\]: write a dict with texts as keys, not int"),
        ([{3: 4}], r"rows\[0\]: write a dict with texts as keys, not dict"),
    ],
)
def test_what_are_no_rows(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        write_rows(rows, tmp_path / "rows.jsonl")
