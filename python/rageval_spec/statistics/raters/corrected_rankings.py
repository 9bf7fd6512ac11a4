"""Ranking measures over a judge's grades, corrected by people's grades of some pairs of a query and a document.

The estimate has two parts. First, the grades of pairs without labels are drawn: a pair gets a grade as often as people
gave it to labelled pairs of the same grade and stratum. Over many draws, this is the measure that people's grades
would give if the judge erred on all alike pairs alike. Second, each labelled pair says how far this is off: the
measure with people's grade, minus that with a drawn one, counts for all pairs that the label stands for (a one-step
correction, as in augmented inverse probability weighting: Robins, Rotnitzky and Zhao, 1994). So errors that go with
the rank, the system or the query are corrected as well, as far as the measure is linear in the grades. If all pairs
have labels, the estimate is the measure over people's grades.

The variance has three parts: of the queries, of the draws, whose chances differ as the Bayesian bootstrap over
queries says (Rubin, 1981), and of the corrections. A judge without an error on the labels can err, so each chance also
counts `_WRONG` errors that nobody saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Bools, Floats, Ints, np
from rageval_spec.statistics.weighted_clusters import Layout, add_up

DRAWS = 20
_RIGHT, _WRONG = 0.5, 0.25
"""How many pairs the judge is taken to have graded rightly and wrongly, beside those with labels, for each grade."""
_ALIKE = 1.0
"""How many pairs of its stratum the chances of all strata together count as."""
_HALVINGS, _LEAST = 20, -12.0
"""The steps of the bisection in `_balance`, and the logarithm of the smallest factor that it finds."""

IMPUTATION = "imputed-grades"
"""The value of `Interval.method`."""


@dataclass(frozen=True, slots=True)
class GradedPairs:
    """Pairs of a query and a document, the pairs of a query one after the other.

    Attributes:
        queries: the number of each pair's query, from 0, in ascending order; each has at least one pair.
        judged: the judge's grades.
        strata: the number of the group of pairs on which the judge is taken to err alike.
        people: people's grades, whole numbers; not a number (NaN) for a pair without a label.
        weights: for each labelled pair, one over the probability with which it was chosen, at least 1.
        has_relevant: whether each query has a pair that people find relevant (a grade above 0). Draws then keep to it.
    """

    queries: Ints
    judged: Ints
    strata: Ints
    people: Floats
    weights: Floats
    has_relevant: bool = False


@dataclass(frozen=True, slots=True)
class CorrectedQueries:
    """A measure on each query: `draws`, of the shape (draws, queries), and what the labels move it by."""

    draws: Floats
    moves: Floats

    def __sub__(self, other: CorrectedQueries) -> CorrectedQueries:
        """The differences of two systems, from the same draws."""
        return CorrectedQueries(self.draws - other.draws, self.moves - other.moves)

    def take(self, places: Ints) -> CorrectedQueries:
        return CorrectedQueries(self.draws[:, places], self.moves[places])


@dataclass(frozen=True, slots=True)
class CorrectedCell:
    """A measure of one system on one dataset: the place of each query's id, its numbers, and how many labels it has."""

    places: Mapping[str, int]
    found: CorrectedQueries
    labels: Ints


@dataclass(frozen=True, slots=True)
class CorrectedRanking:
    """A corrected mean, its interval, and the p-value of 0."""

    value: float
    interval: Interval
    p_value: float


def correct_queries(
    pairs: GradedPairs, measure: Callable[[Ints, Ints], Floats], seed: int, count: int = DRAWS
) -> list[CorrectedQueries]:
    """What people's grades would give on each query, for each measure of each system.

    `measure` gets the grades of all pairs and the rows of the pairs whose queries it is to compute. It returns an array
    (measures, queries), of which the other queries do not count. The chances for a query come from the labels of the
    other queries: its own labels would make the judge look better on it than it is.
    """
    rows = np.flatnonzero(~np.isnan(pairs.people))
    owner = pairs.queries[rows]
    turns = _number_turns(owner)
    draw, draws, moves = _Drawing(pairs, rows, seed), [], []
    for _ in range(count):
        grades, others = draw.draw()
        draws.append(measure(grades, np.arange(len(grades))))
        moved = np.zeros_like(draws[-1])
        for turn in range(int(turns.max(initial=-1)) + 1):  # a label of each query at a time
            chosen = np.flatnonzero((turns == turn) & (others != grades[rows]))
            changed = grades.copy()
            changed[rows[chosen]] = others[chosen]
            if len(chosen):
                found = measure(changed, np.flatnonzero(np.isin(pairs.queries, owner[chosen])))
                stands_for = pairs.weights[rows[chosen]] - 1
                moved[:, owner[chosen]] += stands_for * (draws[-1] - found)[:, owner[chosen]]
        moves.append(moved)
    return [CorrectedQueries(*of) for of in zip(np.stack(draws, axis=1), np.mean(moves, axis=0), strict=True)]


def average_queries(found: CorrectedQueries, layout: Layout, confidence: float) -> CorrectedRanking:
    """The corrected mean over queries; the variance adds up over the layout's clusters, of which there are at least 2.

    The degrees of freedom are those of the three parts together (Satterthwaite). The corrections have as many as there
    are queries that carry them (Kish): if few labels differ from the judge's grades, the interval is wide.
    """
    draws, moves, shares = found.draws[:, layout.rows], found.moves[layout.rows], layout.weights
    means, move = draws @ shares, float(shares @ moves)
    scale = layout.clusters / (layout.clusters - 1)
    apart = np.stack([add_up(layout.members, shares * (one - one @ shares), layout.clusters) for one in draws])
    between = float((apart**2).sum(axis=1).mean()) * scale
    squares = add_up(layout.members, shares * (moves - move), layout.clusters) ** 2
    labels = float(squares.sum()) * scale + float(means.var(ddof=1)) * (1 + 1 / len(means))
    carrying = float(squares.sum()) ** 2 / float((squares**2).sum()) if squares.any() else 1.0
    value, variance = float(means.mean()) + move, between + labels
    divisor = between**2 / layout.degrees + labels**2 / (1 + carrying)
    degrees = max(1, math.floor(variance**2 / divisor)) if divisor else 1
    error = math.sqrt(variance)
    half = kernels.student_quantile((1 + confidence) / 2, degrees) * error
    t = abs(value) / error if error else math.inf if value else 0.0
    interval = Interval(value - half, value + half, confidence, IMPUTATION)
    return CorrectedRanking(value, interval, kernels.student_p_value(t, degrees))


def _number_turns(owner: Ints) -> Ints:
    """The number of each label among those of its query, from 0; `owner` is in ascending order."""
    starts = np.searchsorted(owner, owner)
    return np.arange(len(owner)) - starts


class _Drawing:
    """Draws grades; each draw has chances of its own."""

    def __init__(self, pairs: GradedPairs, rows: Ints, seed: int) -> None:
        self.random, self.rows, self.pairs = np.random.default_rng(seed), rows, pairs
        grades = np.concatenate([pairs.judged, pairs.people[rows].astype(np.int64)])
        self.levels, places = np.unique(grades, return_inverse=True)
        self.judged, self.told = np.split(places, [len(pairs.judged)])
        self.is_good: Bools = self.levels > 0
        owners, self.owner = np.unique(pairs.queries[rows], return_inverse=True)
        self.owners = len(owners)
        of_query = np.full(int(pairs.queries.max()) + 1, self.owners)  # one more, for queries without labels
        of_query[owners] = np.arange(self.owners)
        self.places = of_query[pairs.queries]
        size = len(self.levels)
        wrong = _WRONG / max(1, size - 1)
        self.prior = np.where(np.eye(size) == 1, _RIGHT, wrong)
        # Labels of one grade together count as much as equally likely ones that tell as much (Kish).
        weights, of_grade = pairs.weights[rows], self.judged[rows]
        sums, squares = (np.bincount(of_grade, weights**power, minlength=size) for power in (1, 2))
        self.weights = weights * (sums[of_grade] / squares[of_grade])

    def draw(self) -> tuple[Ints, Ints]:
        """The grade of each pair, people's where they gave one, and a drawn grade for each labelled pair."""
        chances, is_good, rows = self._draw_chances(), self.is_good, self.rows
        if self.pairs.has_relevant:
            yes, no = chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1)
            chances[:, is_good] *= _balance(self.pairs.queries, yes, no)
        made = self._take(chances)
        known = self._fill(made, chances)
        others = known[rows]
        known[rows] = self.told
        if self.pairs.has_relevant:
            chances[np.ix_(rows, is_good)] = 0.0  # labels stay
            known = self._fill(known, chances)
            relevant = np.bincount(self.pairs.queries, is_good[known])[self.pairs.queries[rows]]
            is_only = (relevant == 1) & is_good[self.told] & ~is_good[others]
            others = np.where(is_only, self.told, others)
        return self.levels[known], self.levels[others]

    def _draw_chances(self) -> Floats:
        """How likely each grade is for each pair, as rows of any sum."""
        size, rows = len(self.levels), self.rows
        mass = self.weights * self.random.exponential(size=self.owners)[self.owner]
        seen = np.zeros((self.owners + 1, int(self.pairs.strata.max()) + 1, size, size))
        np.add.at(seen, (self.owner, self.pairs.strata[rows], self.judged[rows], self.told), mass)
        others = np.maximum(seen.sum(axis=0) - seen, 0.0)
        everywhere = others.sum(axis=1) + self.random.gamma(self.prior)
        chances = others + _ALIKE * (everywhere / everywhere.sum(axis=-1, keepdims=True))[:, None]
        found: Floats = chances[self.places, self.pairs.strata, self.judged]
        return found

    def _take(self, chances: Floats) -> Ints:
        upto = np.cumsum(chances, axis=1)
        found: Ints = (self.random.random((len(chances), 1)) * upto[:, -1:] > upto[:, :-1]).sum(axis=1)
        return found

    def _fill(self, made: Ints, chances: Floats) -> Ints:
        """The grades with a relevant pair in each query that must have one, drawn by its odds (Gumbel's maximum)."""
        made, queries, is_good = made.copy(), self.pairs.queries, self.is_good
        if not self.pairs.has_relevant:
            return made
        yes, no = chances[:, is_good].sum(axis=1), chances[:, ~is_good].sum(axis=1)
        lacking = np.flatnonzero((np.bincount(queries, is_good[made]) == 0)[queries] & (yes > 0) & (no > 0))
        keys = np.log(yes[lacking] / no[lacking]) + self.random.gumbel(size=len(lacking))
        ordered = lacking[np.lexsort((keys, queries[lacking]))]
        last = ordered[np.append(queries[ordered][1:] != queries[ordered][:-1], True)[: len(ordered)]]
        made[last] = np.flatnonzero(is_good)[self._take(chances[np.ix_(last, is_good)])]
        return made


def _balance(queries: Ints, yes: Floats, no: Floats) -> float:
    """The factor for the odds of relevance with which a draw has as many relevant pairs as the chances say.

    A query without any gets one afterwards, so that without the factor there would be too many.
    """
    wanted, low, high = float((yes / (yes + no)).sum()), _LEAST, 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        missing = no / (yes * math.exp(middle) + no)
        nothing = np.exp(np.bincount(queries, np.log(np.maximum(missing, np.finfo(float).tiny))))
        too_many = float((1 - missing).sum() + nothing.sum()) > wanted
        low, high = (low, middle) if too_many else (middle, high)
    return math.exp(high)
