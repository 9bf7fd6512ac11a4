"""Means, intervals and tests of questions that belong together or count differently.

Each cluster of questions contributes a part to the mean, and the parts are resampled or have their signs flipped as a
whole. The parts are those of the mean's linearisation (Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
1992, section 5.5): the weighted distances of a cluster's values from the means of their strata. So the variance is that
of the weighted, stratified and clustered mean, and the same kernels serve as for independent questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from rageval_spec.statistics.corrected import find_t
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rageval_spec.data.design import Design
    from rageval_spec.statistics.resampling import Floats

    Places: TypeAlias = NDArray[np.int64]

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

    rows: Places
    weights: Floats
    members: Places
    strata: Places
    inside: Floats
    uncovered: float
    is_weighted: bool
    is_clustered: bool

    @cached_property
    def clusters(self) -> int:
        """The number of clusters."""
        return int(self.members.max()) + 1 if len(self.members) else 0

    @cached_property
    def effective(self) -> float:
        """How many questions of equal weight are worth as much (Kish)."""
        return 1 / float((self.weights**2).sum()) if len(self.weights) else 0.0

    @cached_property
    def is_plain(self) -> bool:
        """Whether the questions are like a simple draw: of one stratum, on their own, with equal weights."""
        equal = not len(self.weights) or float(self.weights.max() - self.weights.min()) <= _ROUNDING
        return equal and not self.is_clustered and len(self.inside) <= 1 and bool((self.inside == 1).all())

    @cached_property
    def _clusters_in(self) -> Places:
        """The number of clusters that each stratum has."""
        import numpy as np

        pairs = np.unique(self.strata * self.clusters + self.members)
        return np.bincount(pairs // self.clusters, minlength=len(self.inside))

    @cached_property
    def _of_strata(self) -> Floats:
        """The weight of each stratum."""
        return add_up(self.strata, self.weights, len(self.inside))

    def take(self, values: Sequence[float] | Floats) -> Floats:
        """The values of the questions that count."""
        import numpy as np

        return np.asarray(values, dtype=np.float64)[self.rows]

    def average(self, values: Sequence[float] | Floats) -> float:
        """The weighted mean."""
        return math.fsum(self.weights * self.take(values))

    def split(self, values: Sequence[float] | Floats) -> Floats:
        """The parts that the clusters contribute to the mean, whose own mean is the weighted mean.

        Their standard error is that of the weighted mean. In one stratum, the distances of the values from the mean are
        scaled by the square root of n / (n - 1) for n clusters. In several, each stratum counts as if it had one
        further degree of freedom, in which it varies as much as all values do. Otherwise a small stratum in which all
        values happen to be equal, or which has only one cluster, would seem to be known exactly.
        """
        import numpy as np

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
        import numpy as np

        if len(self.inside) < 2:
            return np.empty(0)
        spread = math.sqrt(float((self.weights * (own - mean) ** 2).sum()) * len(own) / max(1, len(own) - 1))
        sizes = spread / math.sqrt(2) * self._of_strata / self._clusters_in
        sizes = sizes[sizes > _ROUNDING * np.abs(own).max(initial=0.0)]
        return np.concatenate([sizes, -sizes])

    def total(self, values: Sequence[float] | Floats) -> Floats:
        """The weighted sum of each cluster, times their number, so that their mean is the weighted mean."""
        return self.clusters * add_up(self.members, self.weights * self.take(values), self.clusters)

    def find_variance(self, values: Sequence[float] | Floats) -> float:
        """The variance of the weighted mean; not a number for fewer than two clusters."""
        parts = self.split(values)
        return float(((parts - parts.mean()) ** 2).sum()) / len(parts) ** 2 if self.clusters > 1 else math.nan

    @cached_property
    def degrees(self) -> int:
        """The degrees of freedom of the variance (Satterthwaite), if a stratum's clusters vary with their weights.

        n - 1 for n clusters of equal weight in one stratum; fewer if a few clusters have most of the weight. In several
        strata, n for n clusters of equal weight in one, because of the further degree of freedom.
        """
        import numpy as np

        pairs, places = np.unique(self.strata * self.clusters + self.members, return_inverse=True)
        squares = np.bincount(places, self.weights) ** 2
        strata = pairs // self.clusters
        first, second = (np.bincount(strata, squares**power, minlength=len(self.inside)) for power in (1, 2))
        effective = first**2 / second - (len(self.inside) == 1)
        sum_of_squares = float((first**2 / np.maximum(effective, _ROUNDING)).sum())
        return max(1, math.floor(float(first.sum()) ** 2 / sum_of_squares + _ROUNDING))

    def widen(self, low: float, high: float, mean: float, confidence: float) -> tuple[float, float]:
        """The ends of a bootstrap interval, as far from the mean as few clusters require.

        A bootstrap of few clusters is too narrow, as the normal distribution is beside Student's t (T. Hesterberg,
        "What teachers should know about the bootstrap", The American Statistician 69, 2015).
        """
        share = (1 + confidence) / 2
        factor = find_t(share, self.degrees) / NormalDist().inv_cdf(share)
        return mean - (mean - low) * factor, mean + (high - mean) * factor


def lay_out(design: Design, scored: Sequence[str], asked: Sequence[str]) -> Layout:
    """The layout of the `scored` questions, which stand for all that were `asked`.

    In each stratum, the scored questions share the weight of all that were asked, in proportion to their own weights.
    If none of those that were asked counts, as in a slice that production does not have, all count the same.
    """
    import numpy as np

    clusters = number_clusters(design.list_clusters(scored), len(scored))
    weights = design.list_weights(scored)
    intended = _weigh_strata(design, asked)
    if weights is None or not intended:
        count = len(scored)
        one = np.zeros(count, dtype=np.int64)
        equal = np.full(count, 1 / max(count, 1))
        return Layout(np.arange(count), equal, clusters, one, np.ones(1), 0.0, False, design.is_clustered)
    own = np.array(weights)
    rows = np.flatnonzero(own > 0)
    places = _list_strata(design, scored)[rows]
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


def add_up(places: Places, numbers: Floats, count: int) -> Floats:
    """The sum of the numbers at each of `count` places."""
    import numpy as np

    return np.bincount(places, numbers, minlength=count).astype(np.float64)


def _list_strata(design: Design, query_ids: Sequence[str]) -> Places:
    import numpy as np

    return np.array([design.strata.get(query_id, 0) for query_id in query_ids], dtype=np.int64)


def _weigh_strata(design: Design, query_ids: Sequence[str]) -> dict[int, float]:
    """The weight of the questions of each stratum."""
    weights: dict[int, float] = {}
    for query_id in query_ids:
        weight = (design.weights or {}).get(query_id, 0.0)
        if weight > 0:
            stratum = design.strata.get(query_id, 0)
            weights[stratum] = weights.get(stratum, 0.0) + weight
    return weights
