"""Turns what a caller has (dicts, a frame, objects of other libraries) into the rows of a question file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from rageval_spec.errors import UsageError
from rageval_spec.reading.questions import ANSWERS

_ANSWER = ANSWERS[0]
_ABSENT = ("NAType", "NaTType")
"""pandas' types of missing values, besides NaN."""
_TYPES = "dicts, a polars or pandas frame, or objects such as test cases"


def write_rows(rows: Any, path: Path) -> int:
    """Write rows as JSON Lines, and return how many there are.

    A column `answer` is a system's answer here, so it gets a name that no reader takes for a gold answer.

    Args:
        rows: dicts, objects with attributes (dataclasses, pydantic models, test cases), a frame (polars, pandas,
            pyarrow), or a data set that is iterated as dicts.
        path: the file.

    Raises:
        UsageError: there are no rows, or one of them has no parts.
    """
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in _iterate(rows):
            file.write(json.dumps(_name_answer(row), default=_simplify) + "\n")
            count += 1
    if not count:
        raise UsageError("rows: there are none; an evaluation needs at least one question with its answer")
    return count


def _iterate(rows: Any) -> Iterator[dict[str, Any]]:
    if isinstance(rows, (str, bytes, Mapping)):
        raise UsageError(f"rows: write a list of {_TYPES}, not {type(rows).__name__}")
    if hasattr(rows, "iter_rows"):
        yield from rows.iter_rows(named=True)
        return
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    elif hasattr(rows, "to_pylist"):
        rows = rows.to_pylist()
    if not isinstance(rows, Iterable):
        raise UsageError(f"rows: write a list of {_TYPES}, not {type(rows).__name__}")
    for index, row in enumerate(rows):
        yield _as_dict(row, index)


def _as_dict(row: Any, index: int) -> dict[str, Any]:
    if isinstance(row, Mapping):
        content = dict(row)
    elif is_dataclass(row) and not isinstance(row, type):
        content = {field.name: getattr(row, field.name) for field in fields(row)}
    elif hasattr(row, "model_dump"):
        content = row.model_dump()
    else:
        content = {name: value for name, value in getattr(row, "__dict__", {}).items() if not name.startswith("_")}
    if not content or not all(isinstance(key, str) for key in content):
        raise UsageError(f"rows[{index}]: write a dict with texts as keys, not {type(row).__name__}")
    return content


def _name_answer(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: None if _is_nan(value) else value for name, value in row.items()}
    if "answer" not in row or any(name in row for name in ANSWERS):
        return row
    return {_ANSWER if name == "answer" else name: value for name, value in row.items()}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _simplify(value: Any) -> Any:
    """Arrays, series and other sequences as lists, numpy's scalars as numbers; anything else as text."""
    if type(value).__name__ in _ABSENT:
        return None
    for convert in ("tolist", "to_list", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return list(value)
    return str(value)
