"""Choices between two answers from tables: a row for each choice, with both answers in the order shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.data.preferences import Choice, Preference
from rageval_spec.errors import DataError
from rageval_spec.reading.mapping import list_names
from rageval_spec.reading.part_columns import read_parts, require_columns
from rageval_spec.reading.rows import read_rows

KNOWN_AS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "id", "qid", "question_id", "question", "instruction", "prompt"),
    "first": ("first", "response_a", "answer_a", "response_1", "answer_1", "a"),
    "second": ("second", "response_b", "answer_b", "response_2", "answer_2", "b"),
    "verdict": ("verdict", "choice", "winner", "preference", "label", "value"),
    "annotator": ("annotator", "rater", "reviewer", "judge", "worker"),
    "metric": ("metric", "criterion", "aspect"),
}
"""The columns that each part of a choice is read from: the first that a file has."""
_MEANINGS = {"query_id": "query id", "first": "first answer", "second": "second answer", "verdict": "verdict"}
_NEEDED = ("query_id", "first", "second", "verdict")
_CHOICES: Mapping[str, Choice] = {
    **dict.fromkeys(("first", "1", "a", "answer_a", "response_a", "model_a"), "first"),
    **dict.fromkeys(("second", "2", "b", "answer_b", "response_b", "model_b"), "second"),
    **dict.fromkeys(("tie", "0", "draw", "equal", "both", "neither", "same", "n"), "tie"),
}  # fmt: skip


def read_preferences(paths: Sequence[Path], columns: Sequence[str] = ()) -> list[Preference]:
    """The choices of all files, in their order. Rows without a verdict are skipped: nobody judged them yet.

    Args:
        paths: CSV, TSV, JSON, JSON lines or Parquet files, plain, `.gz` or `.zst`.
        columns: the file's column for a part of a choice, as `part=name`, where it is not among `KNOWN_AS`.

    Raises:
        DataError: a file cannot be read or has no choices; a column is missing; a verdict says neither first, second
            nor tie.
        UsageError: a column is not `part=name`.
    """
    named = read_parts(columns, KNOWN_AS, "a choice", "verdict=winner")
    return [preference for path in paths for preference in _read_file(path, named)]


def _read_file(path: Path, columns: Mapping[str, str]) -> list[Preference]:
    rows = [*read_rows(path)]
    names = _find_columns(path, [*dict.fromkeys(name for _, row in rows for name in row)], columns)
    found = [one for place, row in rows if (one := _read_row(row, names, place)) is not None]
    if not found:
        raise DataError(f"{path}: no row has a verdict")
    return found


def _find_columns(path: Path, present: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    require_columns(path, columns, present)
    known = {part: next((name for name in names if name in present), None) for part, names in KNOWN_AS.items()}
    chosen = {part: name for part, name in {**known, **columns}.items() if name is not None}
    absent = next((part for part in _NEEDED if part not in chosen), None)
    if absent is not None:
        raise DataError(
            f"{path}: no column has the {_MEANINGS[absent]} (it is read from "
            f"{' or '.join(repr(name) for name in KNOWN_AS[absent][:2])}, among others); the columns are "
            f"{list_names(present)}. Name it: --column {absent}=COLUMN"
        )
    return chosen


def _read_row(row: Mapping[str, Any], names: Mapping[str, str], place: str) -> Preference | None:
    verdict = row.get(names["verdict"])
    if verdict is None or not str(verdict).strip():
        return None
    texts = {part: "" if (value := row.get(name)) is None else str(value) for part, name in names.items()}
    if not texts["query_id"].strip():
        raise DataError(f"{place}: the query id is empty")
    return Preference(
        texts["query_id"], texts["first"], texts["second"], _read_choice(verdict, place),
        texts.get("annotator", ""), texts.get("metric", ""), place,
    )  # fmt: skip


def _read_choice(verdict: object, place: str) -> Choice:
    said = str(int(verdict)) if isinstance(verdict, float) and verdict.is_integer() else str(verdict)
    choice = _CHOICES.get(said.strip().lower())
    if choice is None:
        raise DataError(f"{place}: the verdict is {said!r}; write 'first', 'second' or 'tie'")
    return choice
