"""Combines the vectors of a text's tokens into one, as sentence-transformers' `Pooling` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hidden = NDArray[np.float32]
    Mask = NDArray[np.int64]
    Vectors = NDArray[np.float32]

_SMALLEST_COUNT = 1e-9
"""What a count of tokens is divided by at least, so that a text without tokens gets zeros."""


def pool(hidden: Hidden, mask: Mask, method: str) -> Vectors:
    """A vector of each text: [texts, hidden].

    Args:
        hidden: the vectors of the tokens, float32 [texts, tokens, hidden].
        mask: [texts, tokens], 0 for tokens that do not count.
        method: `mean`; `mean_sqrt_len_tokens`, the sum over the root of the count; `weightedmean`, weights growing
            1, 2, 3, ... along the text; `max`; `cls`, the first token that counts; `lasttoken`, the last one.

    Raises:
        UsageError: there is no such method.
    """
    if method not in _METHODS:
        raise UsageError(f"there is no pooling '{method}'; the poolings are: {', '.join(sorted(_METHODS))}")
    return _METHODS[method](hidden, mask)


def _sum(hidden: Hidden, weights: Vectors) -> Vectors:
    """Weighted sums over the tokens, in their order: in a BLAS the order would depend on the number of threads."""
    added: Vectors = (hidden * weights[:, :, None]).sum(axis=1)
    return added


def _count(weights: Vectors) -> Vectors:
    counted: Vectors = np.maximum(weights.sum(axis=1, keepdims=True), np.float32(_SMALLEST_COUNT))
    return counted


def _mean(hidden: Hidden, mask: Mask) -> Vectors:
    weights = mask.astype(np.float32)
    return np.divide(_sum(hidden, weights), _count(weights))


def _mean_sqrt(hidden: Hidden, mask: Mask) -> Vectors:
    weights = mask.astype(np.float32)
    return np.divide(_sum(hidden, weights), np.sqrt(_count(weights)))


def _weighted_mean(hidden: Hidden, mask: Mask) -> Vectors:
    weights = mask.astype(np.float32) * np.arange(1, mask.shape[1] + 1, dtype=np.float32)
    return np.divide(_sum(hidden, weights), _count(weights))


def _max(hidden: Hidden, mask: Mask) -> Vectors:
    highest: Vectors = np.where(mask[:, :, None] != 0, hidden, np.float32(-np.inf)).max(axis=1)
    return highest


def _first(hidden: Hidden, mask: Mask) -> Vectors:
    taken: Vectors = hidden[np.arange(len(hidden)), (mask != 0).argmax(axis=1)]
    return taken


def _last(hidden: Hidden, mask: Mask) -> Vectors:
    taken: Vectors = hidden[np.arange(len(hidden)), mask.shape[1] - 1 - (mask[:, ::-1] != 0).argmax(axis=1)]
    return taken


_METHODS: Mapping[str, Callable[[Hidden, Mask], Vectors]] = {
    "cls": _first,
    "lasttoken": _last,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
}
