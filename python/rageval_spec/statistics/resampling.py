"""BCa bootstrap intervals of any statistic that can be computed from how often each row was drawn.

A resample is a row of weights: how often each row of the data was drawn. A statistic takes a matrix of such rows and
returns a number for each, so that thousands of resamples are a few products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rageval_spec.data.interval import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Statistic: TypeAlias = Callable[[Floats], Floats]

METHOD = "bootstrap-bca"
"""The value of `Interval.method`."""
RESAMPLES = 2000
_AT_ONCE = 4_000_000
"""The most weights of a block of resamples."""
_MOST_KEPT = 8_000_000
"""The most weights that are kept for the next statistic of the same rows: 64 MB."""
_MOST_GROUPS = 1000
"""The most groups of rows that are left out in turn."""
_ROUNDING = 1e-12
_LEAST_DEFINED = 0.9
"""The least share of resamples in which a statistic must be defined."""


class ResamplingSettings(Protocol):
    """How intervals and tests are computed; the spec's block `statistics:` has these keys."""

    @property
    def confidence(self) -> float:
        """The confidence level of every interval."""

    @property
    def resamples(self) -> int:
        """How many bootstrap resamples each interval is based on."""

    @property
    def permutations(self) -> int:
        """How many sign flips each paired permutation test uses."""

    @property
    def seed(self) -> int:
        """The seed for all resampling. Equal seeds give equal results."""


def find_interval(
    statistic: Statistic,
    rows: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 42,
) -> Interval | None:
    """The BCa interval (Efron, 1987) of a statistic.

    Args:
        statistic: maps weights of shape (resamples, rows) to one number for each resample; not a number where it is
            undefined.
        rows: the number of rows of the data.
        clusters: what each row belongs to; whole clusters are drawn. By default each row is its own.
        confidence: the level.
        resamples: the number of resamples.
        seed: equal seeds give equal intervals.

    Returns:
        The interval. None for fewer than two clusters, or if the statistic is undefined for all rows or in more than a
        tenth of the resamples. If all resamples give the same number, the interval is that number.
    """
    import numpy as np

    members = number_clusters(clusters, rows)
    found = _resample(statistic, rows, members, resamples, seed)
    if found is None:
        return None
    value, defined = found
    if defined.min() == defined.max():
        return Interval(value, value, confidence, METHOD)
    left_out = np.concatenate([statistic(block) for block in _leave_out(members, int(members.max()) + 1)])
    ends = _correct_ends(value, defined, left_out[np.isfinite(left_out)], confidence)
    low, high = np.quantile(defined, ends)
    return Interval(float(low), float(high), confidence, METHOD)


def find_p_value(
    statistic: Statistic,
    rows: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 42,
) -> float | None:
    """The probability that a difference at least this far from 0 arises by chance, if it really is 0.

    Resamples are moved so that their centre is 0: it is the share of them that are at least as far from it as the
    difference is. Counting the difference itself, it is never below `1 / (resamples + 1)`.

    Args:
        statistic, rows, clusters, resamples, seed: as in `find_interval`.

    Returns:
        The two-sided p-value; None where `find_interval` has no interval.
    """
    found = _resample(statistic, rows, number_clusters(clusters, rows), resamples, seed)
    if found is None:
        return None
    value, defined = found
    farther = int((abs(defined - value) >= abs(value) * (1 - _ROUNDING)).sum())
    return (farther + 1) / (len(defined) + 1)


def _resample(
    statistic: Statistic, rows: int, members: NDArray[np.int64], resamples: int, seed: int
) -> tuple[float, Floats] | None:
    """The statistic of all rows, and of the resamples in which it is defined; None if they are too few."""
    import numpy as np

    count = int(members.max()) + 1 if rows else 0
    if count < 2 or resamples < 1:
        return None
    value = float(statistic(np.ones((1, rows)))[0])
    drawn = np.concatenate([statistic(block) for block in _draw(members, count, resamples, seed)])
    defined = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(defined) < _LEAST_DEFINED * resamples:
        return None
    return value, defined


def number_clusters(clusters: Sequence[Hashable] | None, rows: int) -> NDArray[np.int64]:
    """The number of each row's cluster, from 0, in the order in which clusters first appear."""
    import numpy as np

    if clusters is None:
        return np.arange(rows)
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(cluster, len(places)) for cluster in clusters], dtype=np.int64)


def _draw(members: NDArray[np.int64], count: int, resamples: int, seed: int) -> Iterable[Floats]:
    """Weights of resamples in blocks. What is drawn does not depend on the size of the blocks.

    The last draw is kept, if it is not too large, because the statistics of one set of rows share it.
    """
    if len(members) * resamples > _MOST_KEPT:
        return _draw_blocks(members, count, resamples, seed)
    return _draw_and_keep(members.tobytes(), count, resamples, seed)


@lru_cache(maxsize=1)
def _draw_and_keep(members: bytes, count: int, resamples: int, seed: int) -> tuple[Floats, ...]:
    import numpy as np

    blocks = tuple(_draw_blocks(np.frombuffer(members, dtype=np.int64), count, resamples, seed))
    for block in blocks:
        block.setflags(write=False)
    return blocks


def _draw_blocks(members: NDArray[np.int64], count: int, resamples: int, seed: int) -> Iterator[Floats]:
    import numpy as np

    random = np.random.Generator(np.random.PCG64(seed))
    at_once = max(1, _AT_ONCE // max(len(members), count))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        places = random.integers(0, count, size=(size, count)) + np.arange(size)[:, None] * count
        weights = np.bincount(places.ravel(), minlength=size * count).reshape(size, count)
        yield weights[:, members].astype(float)


def _leave_out(members: NDArray[np.int64], count: int) -> Iterator[Floats]:
    """Weights without one cluster each; without one of `_MOST_GROUPS` groups of clusters each if there are more."""
    import numpy as np

    groups = members % _MOST_GROUPS
    total = min(count, _MOST_GROUPS)
    at_once = max(1, _AT_ONCE // len(members))
    for start in range(0, total, at_once):
        out = np.arange(start, min(start + at_once, total))
        yield (groups[None, :] != out[:, None]).astype(float)


def _correct_ends(value: float, drawn: Floats, left_out: Floats, confidence: float) -> tuple[float, float]:
    """The shares of the resamples at which the interval ends, corrected for bias and skewness."""
    normal = NormalDist()
    below = float(((drawn < value).sum() + (drawn == value).sum() / 2) / len(drawn))
    bias = normal.inv_cdf(min(max(below, 0.5 / len(drawn)), 1 - 0.5 / len(drawn)))
    apart = left_out.mean() - left_out
    spread = float((apart**2).sum())
    acceleration = float((apart**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    low, high = (bias + normal.inv_cdf(share) for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    first, last = (normal.cdf(bias + end / (1 - acceleration * end)) for end in (low, high))
    return min(first, last), max(first, last)
