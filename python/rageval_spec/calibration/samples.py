"""The samples of labelled answers, as judges read them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rageval_spec.data.sample import Sample
from rageval_spec.errors import DataError

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

Answered = tuple[str, str, str]
"""Dataset, system and query."""
_PARTS = (
    "query_id", "question", "answer", "contexts", "context_ids", "references", "reference_contexts", "answerable",
    "group", "condition", "error", "columns",
)  # fmt: skip


def find_rows(
    evaluation: Evaluation, wanted: Iterable[Answered], columns: Sequence[str]
) -> dict[Answered, Mapping[str, Any]]:
    """The rows of the samples table of these answers, with those of the columns that the results have.

    In the order of the results; empty for results without samples.
    """
    import polars as pl

    keys = ("dataset", "system", "query_id")
    table = pl.DataFrame([*wanted], schema=dict.fromkeys(keys, pl.String), orient="row").unique()
    rows = evaluation.find_samples(table)
    chosen = rows.select(name for name in dict.fromkeys((*keys, *columns)) if name in rows.columns)
    return {(row["dataset"], row["system"], row["query_id"]): row for row in chosen.iter_rows(named=True)}


def read_samples(evaluation: Evaluation, wanted: Collection[Answered]) -> dict[Answered, Sample]:
    """The samples of these answers, in the order of the results.

    Raises:
        DataError: the results do not have the texts of some.
    """
    rows = find_rows(evaluation, wanted, _PARTS)
    found = {key: _build(row) for key, row in rows.items() if row["answer"] is not None}
    if lacking := len({*wanted} - found.keys()):
        raise DataError(
            f"the results lack the texts of {lacking} of {len(wanted)} answers, so no judge can read them; "
            "write 'samples: full' in the spec, without 'redact', and run it again"
        )
    return found


def _build(row: Mapping[str, Any]) -> Sample:
    values: dict[str, Any] = {name: row.get(name) for name in _PARTS}
    for name in ("contexts", "context_ids", "reference_contexts"):
        values[name] = None if values[name] is None else tuple(values[name])
    values["references"] = tuple(values["references"] or ())
    values["columns"] = json.loads(values["columns"]) if values["columns"] else None
    return Sample(**values)
