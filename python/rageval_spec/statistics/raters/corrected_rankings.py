"""Ranking measures over a judge's grades, corrected by people's grades of some pairs of a query and a document.

First, the grades of pairs without labels are drawn: a pair gets a grade as often as people gave it to labelled pairs
of the same grade and stratum. Then each labelled pair says how far this is off: the measure with people's grade, minus
that with a drawn one, counts for all pairs that it stands for (augmented inverse probability weighting: Robins,
Rotnitzky and Zhao, 1994). So errors that go with rank, system or query are corrected too, as far as the measure is
linear in the grades. If all pairs have labels, the estimate is the measure over people's grades.

The variance is that of the queries, of the draws, whose chances differ as in the Bayesian bootstrap over queries
(Rubin, 1981), and of the labels' corrections. A judge without an error on the labels can err all the same, so each
chance also counts `_WRONG` errors that nobody saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, Ints, np
from rageval_spec.statistics.weighted_clusters import Layout, add_up

_DRAWS = 20
_RIGHT, _WRONG = 0.5, 0.25
"""How many pairs of each grade the judge is taken to have graded rightly and wrongly, beside those with labels."""
_ALIKE = 1.0
"""As how many labels of a stratum the chances of all strata together count."""


class GradedPairs(NamedTuple):
    """Pairs of a query and a document, in the order of `queries`, which numbers the queries from 0.

    The judge is taken to err alike on the pairs of a stratum. `people` is not a number (NaN) for pairs without labels,
    `weights` one over the probability of being labelled. `has_relevant`: each query has a pair that people grade above
    0, and draws keep to it.
    """

    queries: Ints
    judged: Ints
    strata: Ints
    people: Floats
    weights: Floats
    has_relevant: bool = False


class CorrectedCell(NamedTuple):
    """A measure of a system: the place of each query's id, and by place its numbers and how many labels it has.

    The rows of the numbers are the draws, and last what the labels move the measure by.
    """

    places: Mapping[str, int]
    numbers: Floats
    labels: Ints


def correct_queries(pairs: GradedPairs, measure: Callable[[Ints, Ints], Floats], seed: int) -> Floats:
    """The numbers of each measure, shape (measures, draws + 1, queries), as in `CorrectedCell`.

    `measure` gets the grades of all pairs, and the rows of the pairs whose queries it is to compute; it returns an
    array (measures, queries). The chances for a query come from the labels of other queries: by its own, the judge
    would look better on it than it is.
    """
    rows = np.flatnonzero(~np.isnan(pairs.people))
    owner, draw = pairs.queries[rows], _prepare_drawing(pairs, rows, np.random.default_rng(seed))
    turns = np.arange(len(rows)) - np.searchsorted(owner, owner)
    draws, moves = [], []
    for _ in range(_DRAWS):
        grades, others = draw()
        draws.append(measure(grades, np.arange(len(grades))))
        moves.append(np.zeros_like(draws[-1]))
        for turn in range(int(turns.max(initial=-1)) + 1):  # a label of each query at a time
            chosen = np.flatnonzero((turns == turn) & (others != grades[rows]))
            if len(chosen):
                changed, of = grades.copy(), owner[chosen]
                changed[rows[chosen]] = others[chosen]
                found = measure(changed, np.flatnonzero(np.isin(pairs.queries, of)))
                moves[-1][:, of] += (pairs.weights[rows[chosen]] - 1) * (draws[-1] - found)[:, of]
    return np.stack([*draws, np.mean(moves, axis=0)], axis=1)


def average_queries(numbers: Floats, layout: Layout, confidence: float) -> tuple[float, Interval, float]:
    """The corrected mean of the numbers of a cell, its interval, and the p-value of 0, by a layout of several clusters.

    The degrees of freedom are Satterthwaite's. The corrections have one more than there are queries that carry them
    (Kish): if few labels differ from the judge's grades, the interval is wide.
    """
    shares, own = layout.weights, numbers[:, layout.rows]
    means = own @ shares
    scale = layout.clusters / (layout.clusters - 1)
    apart = np.stack(
        [add_up(layout.members, shares * (row - mean), layout.clusters) for row, mean in zip(own, means, strict=True)]
    )
    squares = scale * apart**2
    between, of_labels = float(squares[:-1].sum(axis=1).mean()), squares[-1]
    labels = float(of_labels.sum()) + float(means[:-1].var(ddof=1)) * (1 + 1 / _DRAWS)
    carrying = float(of_labels.sum()) ** 2 / float((of_labels**2).sum()) if of_labels.any() else 1.0
    value, error = float(means[:-1].mean() + means[-1]), math.sqrt(between + labels)
    divisor = between**2 / layout.degrees + labels**2 / (1 + carrying)
    degrees = max(1, math.floor(error**4 / divisor)) if divisor else 1
    half = kernels.student_quantile((1 + confidence) / 2, degrees) * error
    t = abs(value) / error if error else math.inf if value else 0.0
    return (
        value,
        Interval(value - half, value + half, confidence, "imputed-grades"),
        kernels.student_p_value(t, degrees),
    )


def _prepare_drawing(pairs: GradedPairs, rows: Ints, random: np.random.Generator) -> Callable[[], tuple[Ints, Ints]]:
    """What draws a grade for each pair, or takes people's, and another for each labelled pair."""
    queries, people = pairs.queries, pairs.people[rows].astype(np.int64)
    levels, index = np.unique(np.concatenate([pairs.judged, people]), return_inverse=True)
    judged, told = np.split(index, [len(pairs.judged)])
    size, is_good = len(levels), levels > 0
    labelled, owner = np.unique(queries[rows], return_inverse=True)
    places = np.full(int(queries.max()) + 1, len(labelled))  # a place beyond them for queries without labels
    places[labelled] = np.arange(len(labelled))
    prior = np.where(np.eye(size) == 1, _RIGHT, _WRONG / max(1, size - 1))

    def draw_chances() -> Floats:
        seen = np.zeros((len(labelled) + 1, int(pairs.strata.max()) + 1, size, size))
        counts = random.exponential(size=len(labelled))[owner]
        np.add.at(seen, (owner, pairs.strata[rows], judged[rows], told), counts)
        others = np.maximum(seen.sum(axis=0) - seen, 0.0)
        of_all = others.sum(axis=1) + random.gamma(prior)
        others += _ALIKE * (of_all / of_all.sum(axis=-1, keepdims=True))[:, None]
        found: Floats = others[places[queries], pairs.strata, judged]
        return found

    def take(chances: Floats) -> Ints:
        upto = np.cumsum(chances, axis=1)
        found: Ints = (random.random((len(chances), 1)) * upto[:, -1:] > upto[:, :-1]).sum(axis=1)
        return found

    def fill(made: Ints, chances: Floats) -> Ints:
        """Give each query without a relevant pair one, by its odds: the largest of Gumbel's variables."""
        yes, no = chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1)
        lacking = np.flatnonzero((np.bincount(queries, is_good[made]) == 0)[queries] & (yes > 0) & (no > 0))
        keys = np.log(yes[lacking] / no[lacking]) + random.gumbel(size=len(lacking))
        ordered = lacking[np.lexsort((keys, queries[lacking]))]
        last = ordered[np.diff(queries[ordered], append=-1) != 0]
        made[last] = np.flatnonzero(is_good)[take(chances[np.ix_(last, is_good)])]
        return made

    def draw() -> tuple[Ints, Ints]:
        chances = draw_chances()
        if pairs.has_relevant:
            yes, no = chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1)
            chances[:, is_good] *= _balance(queries, yes, no)
        made = take(chances)
        known = fill(made, chances) if pairs.has_relevant else made
        others = known[rows]
        known[rows] = told
        if pairs.has_relevant:
            chances[np.ix_(rows, is_good)] = 0.0  # people's grades stay
            known = fill(known, chances)
            is_only = np.bincount(queries, is_good[known])[queries[rows]] == is_good[told]
            others = np.where(is_only & ~is_good[others], told, others)
        return levels[known], levels[others]

    return draw


def _balance(queries: Ints, yes: Floats, no: Floats) -> float:
    """The factor of the odds with which there are as many relevant pairs as likely, with one more where none is."""
    wanted, low, high = float((yes / (yes + no)).sum()), -12.0, 0.0
    for _ in range(20):
        middle = (low + high) / 2
        not_relevant = no / (yes * math.exp(middle) + no)
        nothing = np.exp(np.bincount(queries, np.log(np.maximum(not_relevant, 1e-300))))
        too_many = float((1 - not_relevant).sum() + nothing.sum()) > wanted
        low, high = (low, middle) if too_many else (middle, high)
    return math.exp(high)
