"""The samples of labelled items: their questions, answers, contexts and slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.calibration.joining import Item, Joined
from rageval_spec.calibration.samples import find_rows

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation

_COLUMNS = ("question", "answer", "contexts", "slices", "columns")


def read_samples(evaluation: Evaluation, joined: Joined) -> dict[Item, Mapping[str, Any]]:
    """The sample of each labelled item; empty for results without samples."""
    rows = find_rows(evaluation, (item[:3] for item in joined.items), _COLUMNS)
    return {item: rows.get(item[:3], {}) for item in joined.items}
