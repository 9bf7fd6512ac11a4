"""The samples of labelled items: their questions, answers, contexts and slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.calibration.joining import Item, Joined

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_KEY = ("dataset", "system", "query_id")


def read_samples(evaluation: Evaluation, joined: Joined) -> dict[Item, Mapping[str, Any]]:
    """The sample of each labelled item; empty for results without samples."""
    import polars as pl

    wanted = pl.DataFrame([item[:3] for item in joined.items], schema=[*_KEY], orient="row").unique()
    columns = (*_KEY, "question", "answer", "contexts", "slices", "columns")
    rows = evaluation.find_samples(wanted)
    found = rows.select(name for name in columns if name in rows.columns).iter_rows(named=True)
    by_key = {tuple(row[name] for name in _KEY): row for row in found}
    return {item: by_key.get(item[:3], {}) for item in joined.items}
