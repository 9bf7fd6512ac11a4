"""Means, percentiles, intervals and tests of questions that belong together or count differently.

Each cluster of questions contributes a part to the mean, and the parts are resampled or have their signs flipped as a
whole. The parts are those of the mean's linearisation (Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
1992, section 5.5): the weighted distances of a cluster's values from the means of their strata. So the variance is
that of the weighted, stratified and clustered mean, and the same kernels serve as for independent questions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rageval_spec import kernels
from rageval_spec.data.datasets import CellDesign, Design
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.intervals import compute_exact_interval, number_clusters, widen
from rageval_spec.statistics.percentiles import compute_difference_ends, permute, read_percentile, split_draws

if TYPE_CHECKING:
    from array import array

    from rageval_spec.statistics.intervals import ResamplingSettings


_ROUNDING = 1e-12
"""The size below which a distance from a mean, relative to the values, is a rounding error."""


@dataclass(frozen=True)
class Layout:
    """The questions behind one number, in the order of its values.

    Attributes:
        rows: the places of the questions that count, among all values; the others have the weight 0.
        weights: the weight of each question that counts; they add up to 1.
        members: the number of the cluster of each question that counts.
        strata: the number of the stratum of each question that counts, from 0.
        inside: for each stratum, the share of its weight that these questions are meant to represent: 1 for all
            questions of a dataset, less for a slice that has only a part of the stratum.
        uncovered: the share of the weight whose strata have no value at all.
        is_weighted, is_clustered: whether the weights differ, and whether questions belong together.
    """

    rows: Ints
    weights: Floats
    members: Ints
    strata: Ints
    inside: Floats
    uncovered: float
    is_weighted: bool
    is_clustered: bool

    @cached_property
    def clusters(self) -> int:
        return int(self.members.max()) + 1 if len(self.members) else 0

    @cached_property
    def effective(self) -> float:
        """How many questions of equal weight are worth as much (Kish)."""
        return 1 / float((self.weights**2).sum()) if len(self.weights) else 0.0

    @cached_property
    def concentration(self) -> float:
        """The weight of a cluster, averaged by weight: 1 / n for n clusters of equal weight, more for others."""
        return float((add_up(self.members, self.weights, self.clusters) ** 2).sum())

    @cached_property
    def is_plain(self) -> bool:
        """Whether the questions are like a simple draw: of one stratum, on their own, with equal weights."""
        equal = not len(self.weights) or float(self.weights.max() - self.weights.min()) <= _ROUNDING
        return equal and not self.is_clustered and len(self.inside) <= 1 and bool((self.inside == 1).all())

    @cached_property
    def _of_strata(self) -> Floats:
        return add_up(self.strata, self.weights, len(self.inside))

    def take(self, values: Sequence[float] | Floats) -> Floats:
        return np.asarray(values, dtype=np.float64)[self.rows]

    def average(self, values: Sequence[float] | Floats) -> float:
        return math.fsum(self.weights * self.take(values))

    def split(self, values: Sequence[float] | Floats) -> Floats:
        """The parts that the clusters contribute to the mean, whose own mean is the weighted mean.

        Their standard error is that of the weighted mean. In one stratum, the distances of the values from the mean are
        scaled by the square root of n / (n - 1) for n clusters. In several, each stratum counts as if it had one
        further degree of freedom, in which it varies as much as all values do. Otherwise a small stratum in which all
        values happen to be equal, or which has only one cluster, would seem to be known exactly.
        """
        own = self.take(values)
        mean = math.fsum(self.weights * own)
        means = add_up(self.strata, self.weights * own, len(self.inside)) / self._of_strata
        apart = own - means[self.strata]
        apart[np.abs(apart) <= _ROUNDING * np.abs(own).max(initial=0.0)] = 0.0
        between = np.sqrt(1 - self.inside) * (means - mean)
        scale = math.sqrt(self.clusters / (self.clusters - 1)) if len(self.inside) == 1 < self.clusters else 1.0
        distances = scale * apart + between[self.strata]
        parts = add_up(self.members, self.weights * distances, self.clusters)
        parts = np.concatenate([parts, self._stand_in(own, mean)])
        spread: Floats = mean + len(parts) * (parts - parts.mean())
        return spread

    def _stand_in(self, own: Floats, mean: float) -> Floats:
        """Two opposite parts for each of several strata, for the further degree of freedom."""
        if len(self.inside) < 2:
            return np.empty(0)
        spread = math.sqrt(float((self.weights * (own - mean) ** 2).sum()) * len(own) / max(1, len(own) - 1))
        pairs = np.unique(self.strata * self.clusters + self.members)
        clusters_in = np.bincount(pairs // self.clusters, minlength=len(self.inside))
        sizes = spread / math.sqrt(2) * self._of_strata / clusters_in
        sizes = sizes[sizes > _ROUNDING * np.abs(own).max(initial=0.0)]
        return np.concatenate([sizes, -sizes])

    def total(self, values: Sequence[float] | Floats) -> Floats:
        """The weighted sum of each cluster, times their number, so that their mean is the weighted mean."""
        return self.clusters * add_up(self.members, self.weights * self.take(values), self.clusters)

    def estimate_variance(self, values: Sequence[float] | Floats) -> float:
        """The variance of the weighted mean; not a number for fewer than two clusters."""
        parts = self.split(values)
        return float(((parts - parts.mean()) ** 2).sum()) / len(parts) ** 2 if self.clusters > 1 else math.nan

    @cached_property
    def degrees(self) -> int:
        """The degrees of freedom of the variance (Satterthwaite), if a stratum's clusters vary with their weights.

        n - 1 for n clusters of equal weight in one stratum; fewer if a few clusters have most of the weight. In several
        strata, n for n clusters of equal weight in one, because of the further degree of freedom.
        """
        pairs, places = np.unique(self.strata * self.clusters + self.members, return_inverse=True)
        squares = np.bincount(places, self.weights) ** 2
        strata = pairs // self.clusters
        first, second = (np.bincount(strata, squares**power, minlength=len(self.inside)) for power in (1, 2))
        effective = first**2 / second - (len(self.inside) == 1)
        sum_of_squares = float((first**2 / np.maximum(effective, _ROUNDING)).sum())
        return max(1, math.floor(float(first.sum()) ** 2 / sum_of_squares + _ROUNDING))

    def widen(self, low: float, high: float, mean: float, confidence: float) -> tuple[float, float]:
        return widen((low, high), mean, self.degrees, confidence)


def find_spread(values: Mapping[str, float], design: Design | None = None) -> tuple[float, float]:
    """The standard deviation of as many independent questions whose mean varies as much, and the mean.

    The former is not a number for fewer than two clusters. `values` are by question.
    """
    layout, numbers = (
        lay_out(design, [*values], [*values]) if design else lay_out_clusters([*values]),
        [*values.values()],
    )
    return math.sqrt(layout.estimate_variance(numbers) * len(numbers)), layout.average(numbers)


def lay_out_clusters(clusters: Sequence[Hashable]) -> Layout:
    """The layout of rows that all count the same, with what each of them belongs to."""
    return _lay_out_equal(number_clusters(clusters, len(clusters)), is_clustered=len(set(clusters)) < len(clusters))


def _lay_out_equal(members: Ints, *, is_clustered: bool) -> Layout:
    count = len(members)
    equal, one = np.full(count, 1 / max(count, 1)), np.zeros(count, dtype=np.int64)
    return Layout(np.arange(count), equal, members, one, np.ones(1), 0.0, False, is_clustered)


def lay_out(design: Design, scored: Sequence[str], asked: Sequence[str]) -> Layout:
    """The layout of the `scored` questions, which stand for all that were `asked`.

    In each stratum, the scored questions share the weight of all that were asked, in proportion to their own weights.
    If none of those that were asked counts, as in a slice that production does not have, all count the same.
    """
    clusters = number_clusters(design.list_clusters(scored), len(scored))
    weights = design.list_weights(scored)
    intended = _weigh_strata(design, asked)
    if weights is None or not intended:
        return _lay_out_equal(clusters, is_clustered=design.is_clustered)
    own = np.array(weights)
    rows = np.flatnonzero(own > 0)
    places = np.array([design.strata.get(query_id, 0) for query_id in scored], dtype=np.int64)[rows]
    seen, strata = np.unique(places, return_inverse=True)
    shares = np.array([intended.get(int(stratum), 0.0) for stratum in seen])
    whole = _weigh_strata(design, [*(design.weights or {})])
    inside = np.array([min(1.0, intended[int(at)] / whole[int(at)]) for at in seen])
    within = own[rows] / np.bincount(strata, own[rows], minlength=len(seen))[strata] if len(rows) else own[rows]
    spread = within * shares[strata] if len(rows) else within
    total, every = float(spread.sum()), sum(intended.values())
    return Layout(
        rows,
        spread / total if total else spread,
        number_clusters(clusters[rows].tolist(), len(rows)),
        strata.astype(np.int64),
        inside,
        max(0.0, 1 - total / every) if every else 0.0,
        True,
        design.is_clustered,
    )


def split_variance(groups: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """The variance within groups of values, and that of the groups' expected values, which is at least 0.

    Those of one-way random effects, by the moments of the analysis of variance (Searle, Casella and McCulloch, Variance
    Components, 1992, 3.6). None for fewer than two groups, or if no group has two values.
    """
    sizes = np.array([len(group) for group in groups], dtype=float)
    total = sizes.sum()
    if len(groups) < 2 or total == len(groups):
        return None
    means = np.array([math.fsum(group) / len(group) for group in groups])
    apart = math.fsum((one - mean) ** 2 for group, mean in zip(groups, means, strict=True) for one in group)
    within = apart / (total - len(groups))
    spread = math.fsum(sizes * (means - math.fsum(sizes * means) / total) ** 2) / (len(groups) - 1)
    size = (total - (sizes**2).sum() / total) / (len(groups) - 1)
    return float(within), float(max(0.0, (spread - within) / size))


def add_up(places: Ints, numbers: Floats, count: int) -> Floats:
    return np.bincount(places, numbers, minlength=count).astype(np.float64)


def _weigh_strata(design: Design, query_ids: Sequence[str]) -> dict[int, float]:
    weights: dict[int, float] = {}
    for query_id in query_ids:
        weight = (design.weights or {}).get(query_id, 0.0)
        if weight > 0:
            stratum = design.strata.get(query_id, 0)
            weights[stratum] = weights.get(stratum, 0.0) + weight
    return weights


_MEANS = ("mean", "geometric mean")


@dataclass(frozen=True)
class Placed:
    """Values with the layout of their questions. For a geometric mean, the values are logarithms."""

    values: array[float] | Floats
    layout: Layout
    statistic: str = "mean"

    @property
    def is_mean(self) -> bool:
        return self.statistic in _MEANS

    def summarize(self) -> float | None:
        """The weighted statistic; None if no value counts. A sum is not weighted."""
        if not len(self.layout.rows):
            return None
        percent = read_percentile(self.statistic)
        if percent is not None:
            return compute_percentile(self.layout.take(self.values), percent, self.layout.weights)
        mean = self.layout.average(self.values)
        return math.exp(mean) if self.statistic == "geometric mean" else mean

    def describe(self, plain: float) -> CellDesign:
        """What the design means for this number, whose unweighted form is `plain`."""
        layout = self.layout
        return CellDesign(
            plain if layout.is_weighted else None,
            layout.effective if layout.is_weighted else None,
            layout.clusters if layout.is_clustered else None,
            layout.uncovered,
        )


def estimate_share(hits: Floats, layout: Layout, confidence: float) -> tuple[float, Interval | None]:
    """The weighted share of hits (1 or 0 for each question), and the exact interval for the effective number of them.

    The effective number is what the variance of the share says, and at most that of the questions. If there are only
    hits, or none, it is the number of clusters, or Kish's if that is smaller.
    """
    count = len(layout.rows)
    if not count:
        return 0.0, None
    share = min(1.0, max(0.0, layout.average(hits)))
    variance, effective = layout.estimate_variance(hits), min(layout.clusters, layout.effective)
    if 0 < share < 1 and variance > 0:
        effective = min(count, share * (1 - share) / variance)
    return share, compute_exact_interval(share * effective, effective, confidence) if layout.clusters > 1 else None


def compute_percentile_interval(placed: Placed, confidence: float) -> Interval | None:
    """The interval of a percentile; None for other statistics, and for too few values."""
    percent = read_percentile(placed.statistic)
    if percent is None:
        return None
    ends = compute_woodruff_interval(np.asarray(placed.values), percent, placed.layout, confidence)
    return ends and Interval(*ends, confidence, WOODRUFF)


def compare_percentiles(
    values: array[float], base: array[float], percent: int, layout: Layout, statistics: ResamplingSettings
) -> tuple[float, Interval | None]:
    """The p-value of a difference of percentiles, and its interval; None for too few values."""
    both = (np.asarray(values), np.asarray(base), percent, layout)
    seed, confidence = statistics.seed, statistics.confidence
    p_value = permute_difference(*both, permutations=statistics.permutations, seed=seed)
    ends = bootstrap_difference(*both, resamples=statistics.resamples, confidence=confidence, seed=seed)
    return p_value, ends and Interval(*ends, confidence, DIFFERENCE_METHOD)


def contrast(numbers: Floats, is_inside: Bools, layout: Layout) -> Floats:
    """What each cluster contributes to the difference between the values inside a slice and the others.

    The mean of the contributions is the difference of the two weighted means. They are distances from the mean of all
    values, so that the sign of each is a matter of chance if there is no difference. They are 0 if no value counts on
    one of the sides.
    """
    own, inside = layout.take(numbers), is_inside[layout.rows]
    within, without = (float(layout.weights[side].sum()) for side in (inside, ~inside))
    if not within or not without:
        return np.zeros(max(1, layout.clusters))
    shares = np.where(inside, layout.weights / within, -layout.weights / without)
    apart = own - layout.average(numbers)
    return layout.clusters * add_up(layout.members, shares * apart, layout.clusters)


WOODRUFF = "woodruff"
"""The value of `Interval.method`."""
DIFFERENCE_METHOD = "cluster-bootstrap-percentile"
"""The value of `Interval.method` for differences."""


def compute_percentile(numbers: Floats, percent: float, weights: Floats) -> float:
    """The weighted percentile of at least one number.

    The i-th smallest number is the percentile `(W(i) - w(1)) / (1 - w(1))`, with `W(i)` the weight up to and including
    it and `w(1)` that of the smallest; between them it is interpolated. With equal weights this is definition 7 of
    Hyndman and Fan (1996).
    """
    order = np.argsort(numbers, kind="stable")
    return float(_compute_percentiles(numbers[order], percent, weights[order][None, :])[0])


def _compute_percentiles(ordered: Floats, percent: float, weights: Floats) -> Floats:
    """The percentile for each row of weights, of shape (rows, numbers); a row may have weights of 0."""
    rows = np.arange(len(weights))
    counted = weights > 0
    first = weights[rows, counted.argmax(axis=1)]
    upto = np.cumsum(weights, axis=1)
    wanted = first + (upto[:, -1] - first) * (percent / 100)
    # The number at which the weight reaches what is wanted, and the one that counts before it.
    slack = _ROUNDING * upto[:, -1]
    high = (upto >= (wanted - slack)[:, None]).argmax(axis=1)
    last = weights.shape[1] - 1 - counted[:, ::-1].argmax(axis=1)
    high = np.minimum(high, last)
    before = np.where(counted, np.arange(weights.shape[1]), -1)
    low = np.concatenate([np.full((len(rows), 1), -1), np.maximum.accumulate(before, axis=1)[:, :-1]], axis=1)[
        rows, high
    ]
    low = np.where(low < 0, high, low)
    share = np.clip(1 - (upto[rows, high] - wanted) / np.maximum(weights[rows, high], _ROUNDING), 0.0, 1.0)
    share = np.where(np.abs(upto[rows, high] - wanted) <= slack, 1.0, share)
    found: Floats = np.where(low == high, ordered[high], ordered[low] + share * (ordered[high] - ordered[low]))
    return found


def compute_woodruff_interval(
    numbers: Floats, percent: int, layout: Layout, confidence: float
) -> tuple[float, float] | None:
    """The interval of a weighted percentile (R. S. Woodruff, "Confidence intervals for medians and other position
    measures", Journal of the American Statistical Association 47, 1952).

    The share of values up to the percentile has an interval, of Student's t; its ends are percentiles too. None if one
    of them is not between 0 and 1, because the values are too few, or for a single cluster.
    """
    own = layout.take(numbers)
    if layout.clusters < 2:
        return None
    seen = compute_percentile(own, percent, layout.weights)
    error = math.sqrt(layout.estimate_variance((np.asarray(numbers) <= seen).astype(float)))
    reach = kernels.student_quantile((1 + confidence) / 2, layout.degrees) * error
    low, high = percent / 100 - reach, percent / 100 + reach
    if low <= 0 or high >= 1 or error == 0:
        return None
    ends = (compute_percentile(own, 100 * end, layout.weights) for end in (low, high))
    first, last = ends
    return min(first, seen), max(last, seen)


def bootstrap_difference(
    numbers: Floats, base: Floats, percent: int, layout: Layout, *, resamples: int, confidence: float, seed: int
) -> tuple[float, float] | None:
    """The interval of the difference of two percentiles of paired numbers, the first minus the second.

    Whole clusters are drawn, with all their pairs. None if either percentile has no interval of its own.
    """
    if any(compute_woodruff_interval(of, percent, layout, confidence) is None for of in (numbers, base)):
        return None
    orders = [(own := layout.take(of), np.argsort(own, kind="stable")) for of in (numbers, base)]
    random, drawn = np.random.default_rng(seed), []
    for rows in split_draws(resamples, max(len(layout.weights), layout.clusters)):
        places = random.integers(0, layout.clusters, (rows, layout.clusters)) + (
            np.arange(rows)[:, None] * layout.clusters
        )
        counts = np.bincount(places.ravel(), minlength=rows * layout.clusters).reshape(rows, layout.clusters)
        weights = counts[:, layout.members] * layout.weights
        first, second = (_compute_percentiles(own[order], percent, weights[:, order]) for own, order in orders)
        drawn.append(first - second)
    own, count = layout.take(numbers), min(layout.clusters, layout.effective)
    return compute_difference_ends(
        drawn, lambda at: compute_percentile(own, at, layout.weights), percent, count, confidence
    )


def permute_difference(
    numbers: Floats, base: Floats, percent: int, layout: Layout, *, permutations: int, seed: int
) -> float:
    """The two-sided p-value of the difference of two percentiles of paired numbers.

    The two sides of whole clusters are exchanged with probability 1/2.
    """
    both = np.concatenate([layout.take(numbers), layout.take(base)])
    order = np.argsort(both, kind="stable")
    ordered, weights = both[order], np.tile(layout.weights, 2)
    is_first = np.arange(len(both)) < len(layout.weights)
    members = np.tile(layout.members, 2)

    def find(stays: Bools) -> Floats:
        kept = stays[:, members] == is_first
        above, below = (np.where(side, weights, 0.0)[:, order] for side in (kept, ~kept))
        return np.abs(_compute_percentiles(ordered, percent, above) - _compute_percentiles(ordered, percent, below))

    return permute(find, layout.clusters, len(both), permutations=permutations, seed=seed)
