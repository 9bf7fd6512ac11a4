"""Divides questions into folds, so that what is chosen on some of them can be judged on the others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDS = 5


def deal_folds(questions: Sequence[Hashable], seed: int) -> NDArray[np.int64] | None:
    """The fold of each row, from 0: all rows of a question have the same one. None for fewer questions than folds."""
    import numpy as np

    members = number_clusters(questions, len(questions))
    count = int(members.max()) + 1 if len(members) else 0
    if count < FOLDS:
        return None
    folds: NDArray[np.int64] = np.random.Generator(np.random.PCG64(seed)).permutation(count)[members] % FOLDS
    return folds
