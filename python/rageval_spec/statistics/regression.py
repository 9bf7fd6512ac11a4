"""Linear regression with robust standard errors, and how closely two series of numbers go together.

Standard errors hold for unequal spread and for rows that belong together. Without clusters, they are HC3 (MacKinnon
and White, 1985). With clusters, they are CV3, the same idea for clusters: the jackknife that leaves out one at a
time. The usual cluster-robust errors (Liang and Zeger, 1986) are too small where clusters are few or differ: with 60
answers to 40 questions, they find an effect that is not there in 12% of the draws instead of 5%.

The two series are a judge's values and what people said, row by row. Coefficients of association take weights of
shape (resamples, rows), how often each row counts, and return a number for each resample: not a number where it is
undefined, because a series does not vary. The bootstrap makes intervals from them. Weights of 1 give the ordinary
coefficient.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import dataclass
from rageval_spec.libraries import Floats, Ints, np
from rageval_spec.statistics.intervals import divide, number_clusters

if TYPE_CHECKING:
    from rageval_spec.statistics.intervals import Statistic


METHOD = "hc3"
CLUSTERED = "cluster jackknife"
_ROUNDING = 1e-12
"""What rounding can leave of a spread that is 0, or, as a share of the outcome, of an effect."""
_ALIKE = 1e-9
"""A predictor whose part that the others do not explain is this small tells nothing of its own."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How the outcome changes with one predictor while the others stay as they are.

    The slope is the change of the outcome for one unit more, with its standard error. The p-value is two-sided, of a
    slope of 0; it is not adjusted for the other predictors.
    """

    name: str
    slope: float
    error: float
    interval: Interval
    p_value: float


def regress(
    outcome: Floats,
    predictors: Mapping[str, Floats],
    clusters: Sequence[Hashable] | None = None,
    weights: Floats | None = None,
) -> tuple[Effect, ...]:
    """The effects of predictors on an outcome, by least squares with a constant, with 95 % intervals.

    A predictor that does not vary, or that the ones before it determine, is left out. By default each row is its own
    cluster, and all rows have the same weight, which is above 0. There are no effects if there are not at least two
    rows, or two clusters, more than coefficients.
    """
    chosen = _choose(predictors, len(outcome))
    columns = [np.ones(len(outcome)), *(predictors[name] for name in chosen)]
    members = number_clusters(clusters, len(outcome))
    groups = int(members.max()) + 1 if len(outcome) else 0
    is_clustered = groups < len(outcome)
    if not chosen or min(groups, len(outcome)) < len(columns) + 2:
        return ()
    root = np.ones(len(outcome)) if weights is None else np.sqrt(weights / weights.mean())
    design, outcome = np.stack(columns, axis=1) * root[:, None], outcome * root
    bread = np.linalg.inv(design.T @ design)
    slopes = bread @ design.T @ outcome
    residuals = outcome - design @ slopes
    if is_clustered:
        covariance = _cluster(design, bread, residuals, members, groups)
        degrees = groups - 1
    else:
        covariance = _spread(design, bread, residuals)
        degrees = len(outcome) - len(columns)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    # Where predictors explain everything, what is left of the others' slopes and errors is rounding.
    least = _ROUNDING * float(np.abs(outcome).max()) / np.abs(design).max(axis=0)
    slopes, errors = (np.where(np.abs(slopes) > least, slopes, 0.0), np.where(errors > least, errors, 0.0))
    half = kernels.student_quantile(0.975, degrees)
    method = CLUSTERED if is_clustered else METHOD
    return tuple(
        Effect(
            name,
            float(slope),
            float(error),
            Interval(float(slope - half * error), float(slope + half * error), 0.95, method),
            _test(float(slope), float(error), degrees),
        )
        for name, slope, error in zip(chosen, slopes[1:], errors[1:], strict=True)
    )


def _test(slope: float, error: float, degrees: int) -> float:
    """The p-value of a slope of 0; 1 for a slope that is 0 exactly, 0 for another one without an error."""
    if error > 0:
        return kernels.student_p_value(abs(slope) / error, degrees)
    return 0.0 if slope else 1.0


def find_determined(predictors: Mapping[str, Floats]) -> dict[str, tuple[str, ...]]:
    """The predictors that `regress` leaves out, each with those before it that determine it; () if it does not vary."""
    rows = len(next(iter(predictors.values()), ()))
    chosen = _choose(predictors, rows)
    determined = {}
    for name in [name for name in predictors if name not in chosen]:
        design = np.column_stack([np.ones(rows), *(predictors[one] for one in chosen)])
        slopes = np.linalg.lstsq(design, predictors[name], rcond=None)[0][1:]
        parts = {one: abs(slope) * predictors[one].std() for one, slope in zip(chosen, slopes, strict=True)}
        least = _ALIKE * max(float(np.abs(predictors[name]).max(initial=0)), 1e-300) * 1e3
        determined[name] = tuple(one for one, part in parts.items() if part > least)
    return determined


def _choose(predictors: Mapping[str, Floats], rows: int) -> list[str]:
    """The predictors that tell something that those before them do not."""
    kept, chosen = [np.ones(rows) / math.sqrt(max(rows, 1))], []
    for name, numbers in predictors.items():
        scale = float(np.abs(numbers).max()) if rows else 0.0
        rest = numbers / scale if scale > 0 else numbers
        for _ in range(2):
            for direction in kept:
                rest = rest - direction * (direction @ rest)
        length = float(np.linalg.norm(rest))
        if length > _ALIKE * math.sqrt(max(rows, 1)):
            kept.append(rest / length)
            chosen.append(name)
    return chosen


def _spread(design: Floats, bread: Floats, residuals: Floats) -> Floats:
    """HC3: each squared residual is enlarged by how much its own row draws the line towards itself."""

    squares = (residuals * _compute_pull(design, bread)) ** 2
    covariance: Floats = bread @ (design.T * squares) @ design @ bread
    return covariance


def _cluster(design: Floats, bread: Floats, residuals: Floats, members: Ints, groups: int) -> Floats:
    """CV3: how far the coefficients move when each cluster in turn is left out.

    What only one cluster determines is met exactly there, and tells nothing about the spread.
    """
    order, counts = np.argsort(members, kind="stable"), np.bincount(members)
    pulled = residuals * _compute_pull(design, bread)
    for rows in np.split(order, np.cumsum(counts)[:-1]):
        if len(rows) > 1:
            rest = np.eye(len(rows)) - design[rows] @ bread @ design[rows].T
            pulled[rows] = np.linalg.pinv(rest, rcond=_ALIKE, hermitian=True) @ residuals[rows]
    moves = np.zeros((groups, design.shape[1]))
    np.add.at(moves, members, design * pulled[:, None])
    covariance: Floats = (groups - 1) / groups * bread @ moves.T @ moves @ bread
    return covariance


def _compute_pull(design: Floats, bread: Floats) -> Floats:
    """By how much each row's residual grows if the row is left out; 0 for a row that alone has some property.

    Such a row is met exactly, so that it tells nothing about the spread.
    """
    left = 1 - np.einsum("ij,jk,ik->i", design, bread, design)
    pull: Floats = np.where(left > _ALIKE, 1 / np.maximum(left, _ALIKE), 0.0)
    return pull


Association = Literal["pearson", "spearman", "kendall", "mae", "bias"]
MOST_PAIRED = 5000
"""The most rows for which Kendall's tau is computed: it compares each row with each other one."""
_ROWS_A_LEVEL = 20
"""From so many rows a level on, comparing levels is faster than comparing rows. Labels have few levels."""


def associate(judged: Floats, labelled: Floats) -> Mapping[Association, Statistic]:
    """The coefficients of two series of equal length, as functions of weights.

    | name | |
    |---|---|
    | `pearson` | the correlation of the numbers |
    | `spearman` | the correlation of their ranks; ties get their mean rank |
    | `kendall` | tau-b (Kendall, 1945): of the pairs of rows, those in the same order less those in the opposite one |
    | `mae` | the mean absolute difference |
    | `bias` | the mean of `judged - labelled`: positive if the judge is more generous than people |
    """
    gap = judged - labelled
    return {
        "pearson": lambda weights: _correlate(judged[None, :], labelled[None, :], weights),
        "spearman": lambda weights: _correlate(rank(judged, weights), rank(labelled, weights), weights),
        "kendall": lambda weights: _compute_tau(judged, labelled, weights),
        "mae": lambda weights: weights @ abs(gap) / weights.sum(axis=1),
        "bias": lambda weights: weights @ gap / weights.sum(axis=1),
    }


def rank(numbers: Floats, weights: Floats) -> Floats:
    """The ranks of the numbers in each resample, from 1; equal numbers, and copies of a row, share their mean rank."""
    _, places = np.unique(numbers, return_inverse=True)
    totals = sum_groups(weights, places)
    before = np.cumsum(totals, axis=1) - totals
    ranks: Floats = (before + (totals + 1) / 2)[:, places]
    return ranks


def sum_groups(weights: Floats, places: Ints) -> Floats:
    """The weight of each group in each resample; `places` has the number of each row's group, from 0."""
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(places[order]) > 0])
    sums: Floats = np.add.reduceat(weights[:, order], starts, axis=1)
    return sums


def _correlate(first: Floats, second: Floats, weights: Floats) -> Floats:
    total = weights.sum(axis=1, keepdims=True)
    first = first - (weights * first).sum(axis=1, keepdims=True) / total
    second = second - (weights * second).sum(axis=1, keepdims=True) / total
    shared = (weights * first * second).sum(axis=1)
    spread = (weights * first**2).sum(axis=1) * (weights * second**2).sum(axis=1)
    return divide(shared, np.sqrt(spread), _ROUNDING)


def _compute_tau(first: Floats, second: Floats, weights: Floats) -> Floats:
    if len(first) > MOST_PAIRED:
        return np.full(len(weights), np.nan)
    places = [np.unique(numbers, return_inverse=True)[1] for numbers in (first, second)]
    few, many = sorted(places, key=lambda one: int(one.max()))
    by_levels = int(few.max()) < max(2, len(few) // _ROWS_A_LEVEL)
    same = _sum_by_levels(many, few, weights) if by_levels else _sum_pairs(many, few, weights)
    # Twice the number of pairs of rows with different numbers.
    differ = [weights.sum(axis=1) ** 2 - (sum_groups(weights, one) ** 2).sum(axis=1) for one in places]
    return divide(same, np.sqrt(differ[0] * differ[1]), _ROUNDING)


def _sum_pairs(first: Ints, second: Ints, weights: Floats) -> Floats:
    """Twice the pairs in the same order less those in the opposite one, pair by pair."""
    orders = [np.sign(one[:, None] - one[None, :]).astype(float) for one in (first, second)]
    sums: Floats = ((weights @ (orders[0] * orders[1])) * weights).sum(axis=1)
    return sums


def _sum_by_levels(first: Ints, second: Ints, weights: Floats) -> Floats:
    """The same, level by level of the second series: each row is compared with all rows of lower levels at once."""
    same, lower = np.zeros(len(weights)), np.zeros((len(weights), int(first.max()) + 1))
    for level in range(int(second.max()) + 1):
        here = sum_groups(weights * (second == level), first)
        upto = np.cumsum(lower, axis=1)
        same += (here * (2 * upto - lower - upto[:, -1:])).sum(axis=1)
        lower += here
    return 2 * same
