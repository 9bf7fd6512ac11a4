"""Ranking measures over a judge's grades, corrected by people's grades of some pairs of a query and a document.

First, the grades of pairs without labels are drawn: a pair gets a grade as often as people gave it to labelled pairs
of the same grade and stratum. Then each labelled pair says how far this is off: the measure with people's grade, minus
that with a drawn one, counts for all pairs that it stands for (augmented inverse probability weighting: Robins,
Rotnitzky and Zhao, 1994). So errors that go with rank, system or query are corrected too, as far as the measure is
linear in the grades. The variance is that of the queries, of the labels' corrections, and of the draws, whose chances
differ as in the Bayesian bootstrap over queries (Rubin, 1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, Ints, np
from rageval_spec.statistics.weighted_clusters import Layout, add_up

_DRAWS, _ALIKE, _RIGHT, _WRONG = 20, 1.0, 1.0, 1.0
"""`_ALIKE`: as how many labels the chances in all strata count; right and wrong grades are added to these."""


class GradedPairs(NamedTuple):
    """Pairs of a query and a document, in ascending order of `queries` (numbers from 0).

    `people` is NaN without a label, `weights` one over the probability of one. `has_relevant`: people grade a pair of
    each query above 0.
    """

    queries: Ints
    judged: Ints
    strata: Ints
    people: Floats
    weights: Floats
    has_relevant: bool = False


class CorrectedCell(NamedTuple):
    """A measure of a system: the place of each query; by place its draws, then what labels move it by; the labels."""

    places: Mapping[str, int]
    numbers: Floats
    labels: Ints


def correct_queries(pairs: GradedPairs, measure: Callable[[Ints, Ints], Floats], seed: int) -> Floats:
    """The numbers of each measure, shape (measures, draws + 1, queries), as in `CorrectedCell`.

    `measure` gets the grades of all pairs and the rows of queries to compute, and returns an array (measures, queries).
    A query's own labels do not count for its chances: they would flatter the judge.
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
            if len(chosen := np.flatnonzero((turns == turn) & (others != grades[rows]))):
                changed, of = grades.copy(), owner[chosen]
                changed[rows[chosen]] = others[chosen]
                found = measure(changed, np.flatnonzero(np.isin(pairs.queries, of)))
                moves[-1][:, of] += (pairs.weights[rows[chosen]] - 1) * (draws[-1] - found)[:, of]
    return np.stack([*draws, np.mean(moves, axis=0)], axis=1)


def average_queries(numbers: Floats, layout: Layout, confidence: float) -> tuple[float, Interval, float]:
    """The corrected mean of a cell's numbers, its interval and the p-value of 0, for two clusters or more.

    The degrees of freedom are Satterthwaite's; the corrections have one more than queries that carry them (Kish).
    """
    shares, own, scale = layout.weights, numbers[:, layout.rows], layout.clusters / (layout.clusters - 1)
    means = own @ shares
    apart = np.stack([add_up(layout.members, row, layout.clusters) for row in shares * (own - means[:, None])])
    between, of_labels = scale * float((apart[:-1] ** 2).sum(axis=1).mean()), scale * apart[-1] ** 2
    labels = float(of_labels.sum()) + float(means[:-1].var(ddof=1)) * (1 + 1 / _DRAWS)
    carrying = 1 + float(of_labels.sum()) ** 2 / max(float((of_labels**2).sum()), 1e-300)
    value, error = float(means[:-1].mean() + means[-1]), math.sqrt(between + labels)
    degrees = max(1, math.floor(error**4 / max(between**2 / layout.degrees + labels**2 / carrying, 1e-300) + 1e-9))
    half = kernels.student_quantile((1 + confidence) / 2, degrees) * error
    t = abs(value) / error if error else math.inf if value else 0.0
    return value, Interval(value - half, value + half, confidence, "imputation"), kernels.student_p_value(t, degrees)


def _prepare_drawing(pairs: GradedPairs, rows: Ints, random: np.random.Generator) -> Callable[[], tuple[Ints, Ints]]:
    """What draws a grade for each pair, or takes people's, and another for each labelled pair."""
    queries, people = pairs.queries, pairs.people[rows].astype(np.int64)
    levels, index = np.unique(np.concatenate([pairs.judged, people]), return_inverse=True)
    judged, told = np.split(index, [len(pairs.judged)])
    size, is_good = len(levels), levels > 0
    labelled, owner = np.unique(queries[rows], return_inverse=True)
    places = np.full(int(queries.max()) + 1, len(labelled))  # beyond the others for queries without labels
    places[labelled] = np.arange(len(labelled))
    prior = np.where(np.eye(size) == 1, _RIGHT, _WRONG / max(1, size - 1))

    def take(chances: Floats) -> Ints:
        upto = np.cumsum(chances, axis=1)
        return np.asarray((random.random((len(chances), 1)) * upto[:, -1:] > upto[:, :-1]).sum(axis=1))

    def fill(made: Ints, chances: Floats) -> Ints:
        """Give each query one relevant pair, if it must have one, by its odds: the largest of Gumbel's variables."""
        if not pairs.has_relevant:
            return made
        yes, no = chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1)
        lacking = np.flatnonzero((np.bincount(queries, is_good[made]) == 0)[queries] & (yes > 0) & (no > 0))
        keys = np.log(yes[lacking] / no[lacking]) + random.gumbel(size=len(lacking))
        ordered = lacking[np.lexsort((keys, queries[lacking]))]
        last = ordered[np.diff(queries[ordered], append=-1) != 0]
        made[last] = np.flatnonzero(is_good)[take(chances[np.ix_(last, is_good)])]
        return made

    def draw() -> tuple[Ints, Ints]:
        seen = np.zeros((len(labelled) + 1, int(pairs.strata.max()) + 1, size, size))
        counts = random.exponential(size=len(labelled))[owner]
        np.add.at(seen, (owner, pairs.strata[rows], judged[rows], told), counts)
        others = np.maximum(seen.sum(axis=0) - seen, 0.0)
        unseen, of_all = random.gamma(prior), others.sum(axis=1, keepdims=True)
        shares = others.sum(axis=-1, keepdims=True) / np.maximum(of_all.sum(axis=-1, keepdims=True), 1e-300)
        of_all += unseen
        others += shares * unseen + _ALIKE * of_all / of_all.sum(axis=-1, keepdims=True)
        chances = others[places[queries], pairs.strata, judged]
        if pairs.has_relevant:
            chances[:, is_good] *= _balance(queries, chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1))
        made = fill(take(chances), chances)
        drawn, made[rows] = made[rows], told
        chances[np.ix_(rows, is_good)] = 0.0  # people's grades stay
        made = fill(made, chances)
        is_only = (np.bincount(queries, is_good[made])[queries[rows]] == 1) & is_good[told] & ~is_good[drawn]
        return levels[made], levels[np.where(is_only & pairs.has_relevant, told, drawn)]

    return draw


def _balance(queries: Ints, yes: Floats, no: Floats) -> float:
    """The factor of the odds with which there are as many relevant pairs as likely, with one more where none is."""
    wanted, low, high = (yes / (yes + no)).sum(), -12.0, 0.0
    for _ in range(20):
        middle = (low + high) / 2
        not_relevant = no / (yes * math.exp(middle) + no)
        nothing = np.exp(np.bincount(queries, np.log(np.maximum(not_relevant, 1e-300))))
        low, high = (low, middle) if (1 - not_relevant).sum() + nothing.sum() > wanted else (middle, high)
    return math.exp(high)
