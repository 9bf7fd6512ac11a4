"""Bootstrap intervals of any statistic that counts rows, and intervals of proportions.

The bootstrap is BCa. A resample is a row of weights: how often each row of the data was drawn. A statistic takes a
matrix of such rows and returns a number for each, so that thousands of resamples are a few products of matrices.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, Ints, np

if TYPE_CHECKING:
    Statistic: TypeAlias = Callable[[Floats], Floats]


BOOTSTRAP_BCA = "bootstrap-bca"
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


class Resampling(NamedTuple):
    """The settings where there is no spec."""

    confidence: float = 0.95
    resamples: int = 10_000
    permutations: int = 10_000
    seed: int = 42


def bootstrap_interval(
    statistic: Statistic,
    rows: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 42,
) -> Interval | None:
    """The BCa interval (Efron, 1987) of a statistic of so many rows.

    `statistic` maps weights of shape (resamples, rows) to one number for each resample; not a number where it is
    undefined. `clusters` has what each row belongs to, and whole clusters are drawn; by default each row is its own.

    None for fewer than two clusters, or if the statistic is undefined for all rows or in more than a tenth of the
    resamples. If all resamples give the same number, the interval is that number.
    """
    members = number_clusters(clusters, rows)
    found = _resample(statistic, rows, members, resamples, seed)
    if found is None:
        return None
    value, defined = found
    if defined.min() == defined.max():
        return Interval(value, value, confidence, BOOTSTRAP_BCA)
    left_out = np.concatenate([statistic(block) for block in _leave_out(members, int(members.max()) + 1)])
    ends = _correct_ends(value, defined, left_out[np.isfinite(left_out)], confidence)
    low, high = np.quantile(defined, ends)
    return Interval(float(low), float(high), confidence, BOOTSTRAP_BCA)


def compute_p_value(
    statistic: Statistic,
    rows: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 42,
) -> float | None:
    """The probability that a difference at least this far from 0 arises by chance, if it really is 0.

    Resamples are moved so that their centre is 0: it is the share of them that are at least as far from it as the
    difference is. Counting the difference itself, it is never below `1 / (resamples + 1)`. The arguments are those of
    `bootstrap_interval`; where that has no interval, it is None.
    """
    found = _resample(statistic, rows, number_clusters(clusters, rows), resamples, seed)
    if found is None:
        return None
    value, defined = found
    farther = int((abs(defined - value) >= abs(value) * (1 - _ROUNDING) - _ROUNDING).sum())
    return (farther + 1) / (len(defined) + 1)


def _resample(statistic: Statistic, rows: int, members: Ints, resamples: int, seed: int) -> tuple[float, Floats] | None:
    """The statistic of all rows, and of the resamples in which it is defined; None if they are too few."""
    count = int(members.max()) + 1 if rows else 0
    if count < 2 or resamples < 1:
        return None
    value = float(statistic(np.ones((1, rows)))[0])
    drawn = np.concatenate([statistic(block) for block in _draw(members, count, resamples, seed)])
    defined = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(defined) < _LEAST_DEFINED * resamples:
        return None
    return value, defined


def number_clusters(clusters: Sequence[Hashable] | None, rows: int) -> Ints:
    """The number of each row's cluster, from 0, in the order in which clusters first appear."""
    if clusters is None:
        return np.arange(rows)
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(cluster, len(places)) for cluster in clusters], dtype=np.int64)


def _draw(members: Ints, count: int, resamples: int, seed: int) -> Iterable[Floats]:
    """Weights of resamples in blocks. What is drawn does not depend on the size of the blocks.

    The last draw is kept, if it is not too large, because the statistics of one set of rows share it.
    """
    if len(members) * resamples > _MOST_KEPT:
        return _draw_blocks(members, count, resamples, seed)
    return _draw_and_keep(members.tobytes(), count, resamples, seed)


@lru_cache(maxsize=1)
def _draw_and_keep(members: bytes, count: int, resamples: int, seed: int) -> tuple[Floats, ...]:
    blocks = tuple(_draw_blocks(np.frombuffer(members, dtype=np.int64), count, resamples, seed))
    for block in blocks:
        block.setflags(write=False)
    return blocks


def _draw_blocks(members: Ints, count: int, resamples: int, seed: int) -> Iterator[Floats]:
    random = np.random.Generator(np.random.PCG64(seed))
    at_once = max(1, _AT_ONCE // max(len(members), count))
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        places = random.integers(0, count, size=(size, count)) + np.arange(size)[:, None] * count
        weights = np.bincount(places.ravel(), minlength=size * count).reshape(size, count)
        yield weights[:, members].astype(float)


def _leave_out(members: Ints, count: int) -> Iterator[Floats]:
    """Weights without one cluster each; without one of `_MOST_GROUPS` groups of clusters each if there are more."""
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


def divide(part: Floats, whole: Floats, least: float = 0.0) -> Floats:
    """A statistic that is a ratio; not a number in resamples in which the whole is not above `least`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > least, part / whole, np.nan)


def widen(
    ends: tuple[float, float], mean: float, degrees: int, confidence: float, scale: float = 1.0
) -> tuple[float, float]:
    """The ends of a bootstrap interval, as far from the mean as few values require.

    A bootstrap of few values is too narrow, as the normal distribution is beside Student's t (T. Hesterberg, "What
    teachers should know about the bootstrap", The American Statistician 69, 2015).
    """
    share = (1 + confidence) / 2
    factor = kernels.student_quantile(share, degrees) / NormalDist().inv_cdf(share) * scale
    return mean - (mean - ends[0]) * factor, mean + (ends[1] - mean) * factor


EXACT = "clopper-pearson"
"""The value of `Interval.method` for proportions."""


def compute_p_of_excess(count: int, total: int, whole_count: int, whole_total: int) -> float:
    """Fisher's exact test, one-sided: the probability that a part has so many hits if it is a random part of the whole.

    The whole includes the part: of it are `count` of the `whole_count` hits.
    """
    most = min(total, whole_count)
    ways = _log_choose(whole_total, total)
    logs = [
        _log_choose(whole_count, hits) + _log_choose(whole_total - whole_count, total - hits) - ways
        for hits in range(max(count, total - (whole_total - whole_count)), most + 1)
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))


def _log_choose(among: int, chosen: int) -> float:
    return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)


def compute_unseen_share(count: float, confidence: float) -> float:
    """The share of others that so many equal ones do not rule out (Clopper and Pearson, 1934)."""
    return -math.expm1(math.log((1 - confidence) / 2) / count)


def compute_binomial(hits: int, total: int, share: float) -> float:
    """The binomial probability of exactly this many hits, for a share between 0 and 1."""
    return math.exp(_log_choose(total, hits) + hits * math.log(share) + (total - hits) * math.log1p(-share))


_NOTHING = 1e-6
"""An effective number below this is one of rounding."""


def compute_exact_interval(count: float, total: float, confidence: float = 0.95) -> Interval | None:
    """The exact interval of Clopper and Pearson (1934) of the proportion `count / total`; None if `total` is 0.

    It covers its confidence at least, whatever the proportion. The numbers can be effective ones, which are not whole
    (E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data", Survey Methodology 24, 1998).
    """
    if total <= 0:
        return None
    seen = [(value, number) for value, number in ((0.0, total - count), (1.0, count)) if number > _NOTHING]
    values, counts = (array("d", of) for of in zip(*seen, strict=True))
    (ends,) = kernels.bound_means([values], [(0.0, 1.0)], counts=[counts], confidence=confidence, threads=1)
    return Interval(*ends, confidence, EXACT)


def compute_p_of_signs(count: int, total: int) -> float:
    """The two-sided exact sign test: the probability of a count at least as far from half of the total.

    With the numbers of pairs that changed one way and the other, this is McNemar's exact test.
    """
    least = min(count, total - count)
    return min(1.0, 2 * math.fsum(compute_binomial(hits, total, 0.5) for hits in range(least + 1)))


def compute_tail(wrong: int, sent: int, limit: float) -> float:
    """The probability of at most this many wrong answers if the share of wrong ones is `limit`; 1 if none was sent."""
    if not sent or wrong >= sent:
        return 1.0
    return min(1.0, math.fsum(compute_binomial(hits, sent, limit) for hits in range(wrong + 1)))


def compute_upper(wrong: int, sent: int, confidence: float) -> float:
    """The largest share of wrong answers that this many of them do not rule out (one-sided, Clopper and Pearson)."""
    if wrong >= sent:
        return 1.0
    low, high = wrong / sent, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if compute_tail(wrong, sent, middle) > 1 - confidence else (low, middle)
    return high
