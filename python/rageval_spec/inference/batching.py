"""Groups texts of equal length into batches, so that nothing is padded.

Without padding no work is wasted, and a text's numbers cannot depend on the other texts in its batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKEN_BUDGET = 256
"""The most tokens in a batch: enough for matrix products at full speed, few enough for a core's cache."""


def make_batches(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> Iterator[NDArray[np.intp]]:
    """Positions of texts of equal length, at most `budget` tokens together; the longest texts come first.

    A text that is longer than the budget is a batch of its own. Among equal lengths the order of the texts is kept.

    Args:
        lengths: the number of tokens of each text.
        budget: at least 1.

    Raises:
        UsageError: the budget is less than 1.
    """
    if budget < 1:
        raise UsageError(f"the budget of a batch must be at least 1 token, not {budget}")
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    for length, equals in groupby(order, key=lambda position: lengths[position]):
        positions = np.fromiter(equals, np.intp)
        rows = max(1, budget // max(1, length))
        for start in range(0, len(positions), rows):
            yield positions[start : start + rows]
