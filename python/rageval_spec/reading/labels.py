"""Labels from CSV, TSV, JSON and Parquet files: a row for each judgement of each person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.data.labels import Label
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.reading.mapping import guess_names, list_names
from rageval_spec.reading.rows import read_rows

KNOWN_AS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query_id", "id", "qid", "question_id", "item", "sample"),
    "value": ("value", "label", "rating", "score", "grade", "verdict"),
    "annotator": ("annotator", "rater", "reviewer", "labeler", "labeller", "worker", "user"),
    "metric": ("metric", "criterion", "aspect"),
    "dataset": ("dataset",),
    "system": ("system", "model"),
    "answer": ("answer_digest",),
    "claim": ("claim",),
    "time": ("time", "created_at", "timestamp"),
    "comment": ("comment", "note"),
    "reason": ("reason",),
    "probability": ("probability", "selection_probability"),
}
"""The columns that each part of a label is read from: the first that a file has."""
_NEEDED = ("query_id", "value")
_YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}


def read_columns(columns: Sequence[str]) -> dict[str, str]:
    """The columns that a command line names as `part=name`.

    Raises:
        UsageError: there is no such part, or no name.
    """
    named: dict[str, str] = {}
    for column in columns:
        part, equals, name = column.partition("=")
        if not equals or not name:
            raise UsageError(f"--column {column}: write PART=NAME, such as value=rating")
        if part not in KNOWN_AS:
            hint = suggest(part, [*KNOWN_AS]) or f"write one of {', '.join(KNOWN_AS)}"
            raise UsageError(f"--column {column}: a label has no '{part}'; {hint}")
        named[part] = name
    return named


def read_labels(paths: Sequence[Path], columns: Mapping[str, str] | None = None) -> list[Label]:
    """The labels of all files, in their order. Rows without a value are skipped: nobody judged them yet.

    Args:
        paths: CSV, TSV, JSON, JSON lines or Parquet files, plain, `.gz` or `.zst`.
        columns: the file's column for a part of a label, where it is not among `KNOWN_AS`.

    Raises:
        DataError: a file cannot be read or has no labels; a column is missing; a person judged one item twice.
    """
    labels: list[Label] = []
    for path in paths:
        found = [*_read(path, dict(columns or {}))]
        if not found:
            raise DataError(f"{path}: no row has a value, so there are no labels")
        labels += found
    _refuse_duplicates(labels)
    return labels


def _read(path: Path, columns: Mapping[str, str]) -> Iterator[Label]:
    rows = [*read_rows(path)]
    names = _find_columns(path, [*dict.fromkeys(name for _, row in rows for name in row)], columns)
    for place, row in rows:
        value = _read_value(row.get(names["value"]), place)
        if value is not None:
            yield _make(row, names, value, place)


def _find_columns(path: Path, present: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    for part, name in columns.items():
        if name not in present:
            raise DataError(f"{path}: there is no column '{name}' for {part}; the columns are {list_names(present)}")
    known = {
        part: next(name for name in names if name in present)
        for part, names in KNOWN_AS.items()
        if any(name in present for name in names)
    }
    absent = next((part for part in _NEEDED if part not in known and part not in columns), None)
    if absent is not None:
        raise DataError(_explain_absence(path, absent, present))
    return {**known, **columns}


def _explain_absence(path: Path, part: str, present: Sequence[str]) -> str:
    guess = guess_names([part], present).get(part, present[0] if present else "COLUMN")
    known = " or ".join(f"'{name}'" for name in KNOWN_AS[part][:2])
    return (
        f"{path}: no column has the {part.replace('_', ' ')} (it is read from {known}, among others); the columns are "
        f"{list_names(present)}. Name it: --column {part}={guess}"
    )


def _make(row: Mapping[str, Any], names: Mapping[str, str], value: float | str, place: str) -> Label:
    def text(part: str) -> str:
        found = row.get(names[part]) if part in names else None
        return "" if found is None else str(found).strip()

    query_id, claim = text("query_id"), text("claim")
    if not query_id:
        raise DataError(f"{place}: the label has a value and no {names['query_id']}")
    if claim and not claim.isdecimal():
        raise DataError(f"{place}: {names['claim']} is '{claim}'; a claim is a number from 0")
    parts = ("metric", "annotator", "dataset", "system", "answer", "time", "comment", "reason")
    return Label(
        query_id=query_id,
        value=value,
        claim=int(claim) if claim else None,
        probability=_read_probability(text("probability"), place),
        place=place,
        **{part: text(part) for part in parts},
    )


def _read_probability(text: str, place: str) -> float | None:
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= 1:
        raise DataError(
            f"{place}: the probability is '{text}'; it must be above 0 and at most 1. It says how likely the answer "
            "was to be chosen for labelling; rename the column if it means something else"
        )
    return found


def _read_value(found: object, place: str) -> float | str | None:
    """A number, a class, or None for an empty field."""
    if isinstance(found, bool):
        return float(found)
    if found is None or (isinstance(found, str) and not found.strip()):
        return None
    if not isinstance(found, str | int | float):
        raise DataError(f"{place}: the value is {type(found).__name__}; it must be a number or a text")
    text = str(found).strip()
    try:
        number = _YES_NO.get(text.casefold(), None)
        number = float(text) if number is None else number
    except ValueError:
        return text
    if not math.isfinite(number):
        raise DataError(f"{place}: the value is {text}; it must be a finite number or the name of a class")
    return number


def _refuse_duplicates(labels: Sequence[Label]) -> None:
    first: dict[tuple[object, ...], Label] = {}
    for label in labels:
        known = first.setdefault((label.item, label.metric, label.annotator), label)
        if known is not label:
            who = f"'{label.annotator}'" if label.annotator else "the same annotator"
            what = f" on {label.metric}" if label.metric else ""
            raise DataError(
                f"{label.place}: {who} judged {label.query_id}{what} already at {known.place}; keep one of the two"
            )
