"""How alike two leaderboards order the same systems: rank correlations, with intervals over the topics.

A coefficient compares the systems' means over topics. Its interval is for the coefficient that endless topics would
give: the systems are those that there are, the topics a sample. Chance swaps systems that are close, so that the
coefficient of few topics is too low, and a bootstrap alone, whose resamples swap them twice, misses the true one in up
to half of the cases (benches/rank_correlation.py). The interval therefore spans two: the bootstrap's, and that of the
true means in a model in which they are normal over the systems.

| name | |
|---|---|
| `tau` | tau-a (Kendall, 1938): of all pairs, those in the same order less those in the opposite one |
| `tau_b` | the same, divided by the pairs that are not tied (Kendall, 1945) |
| `tau_ap` | tau_AP,b (Urbano and Marrero, SIGIR 2017): the top counts more |
| `tau_gap` | tau_GAP (Gao and Oard, SIGIR 2015): the same, and a pair weighs as much as its systems differ in truth |
| `spearman` | the correlation of the ranks; ties get their mean rank |
| `pearson` | the correlation of the means |
| `tau_b@k` | tau_b of the k systems that are best in truth; ties at the border are broken by the order of the columns |

tau_AP,b is tau_AP (Yilmaz, Aslam and Robertson, SIGIR 2008) made symmetric, and with ties.
Where all systems are tied in one of the two, there is no coefficient: the number is nan. The columns must be in a fixed
order, such as that of the systems' names: `tau_gap` breaks ties of `judged` by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rageval_spec.data.outcomes import Interval
from rageval_spec.libraries import Floats, np
from rageval_spec.statistics.intervals import RESAMPLES, bootstrap_interval, divide

RankCorrelation = Literal["tau", "tau_b", "tau_ap", "tau_gap", "spearman", "pearson"]
COEFFICIENTS: tuple[RankCorrelation, ...] = ("tau", "tau_b", "tau_ap", "tau_gap", "spearman", "pearson")
_SAME = 12
"""Decimals beyond which two means are tied: the order in which topics are added must not part equal systems."""
_PAIRS_AT_ONCE = 4_000_000
METHOD = "bootstrap-bca, hierarchical"
"""The value of `Interval.method` where the interval spans both."""
_FEWEST = 4
_FIRST_DRAWS = 100
"""Draws until those that count do not depend on the start."""
_LEAST = 1e-9
_ROUNDING = 1e-12

_Coefficient = Callable[[Floats, Floats], Floats]


def correlate_means(name: RankCorrelation, means: Floats, top: int | None = None) -> Floats:
    """The coefficient of each row of means, of shape (2, rows, systems): the truth, and the judge's.

    nan where it is undefined. With `top`, only the systems with the highest true means count, in each row.
    """
    if top is not None and top < means.shape[2]:
        best = np.sort(np.argsort(-means[0], axis=1, kind="stable")[:, :top], axis=1)
        means = np.stack([np.take_along_axis(one, best, axis=1) for one in means])
    if means.shape[2] < 2:
        return np.full(means.shape[1], np.nan)
    step = max(1, _PAIRS_AT_ONCE // means.shape[2] ** 2)
    parts = (means[:, start : start + step] for start in range(0, means.shape[1], step))
    return np.concatenate([_COMPUTE[name](*part) for part in parts])


def compute_intervals(
    values: Floats, resamples: int = RESAMPLES
) -> Callable[[RankCorrelation, int | None], Interval | None]:
    """A function that gives the interval over topics of a coefficient, of the best systems if it is told how many.

    `values` has the shape (2, topics, systems). The interval is None for fewer than two topics, or where the
    coefficient is undefined in more than a tenth of the resamples. With fewer than four systems it is the bootstrap's
    alone: three say nothing of their spread. The true means are drawn once for all coefficients.
    """
    drawn: list[Floats] = []

    def find(name: RankCorrelation, top: int | None) -> Interval | None:
        def statistic(weights: Floats) -> Floats:
            totals = weights.sum(axis=1, keepdims=True)
            means = np.stack([weights @ one / totals for one in values])
            return correlate_means(name, np.round(means, _SAME), top)

        found = bootstrap_interval(statistic, values.shape[1], resamples=resamples) if values.shape[1] > 1 else None
        if found is None or values.shape[2] < _FEWEST:
            return found
        if not drawn:
            drawn.append(draw_true_means(values))
        ends = [(1 - found.confidence) / 2, (1 + found.confidence) / 2]
        low, high = np.nanquantile(correlate_means(name, drawn[0], top), ends)
        return Interval(min(found.low, float(low)), max(found.high, float(high)), found.confidence, METHOD)

    return find


def draw_true_means(values: Floats, draws: int = 600, seed: int = 42) -> Floats:
    """Means that endless topics could give, of shape (2, draws, systems), from values of (2, topics, systems).

    Gibbs sampling of a normal hierarchical model (Gelman et al., Bayesian Data Analysis, 3rd edition, chapter 15): a
    system's two true means are normal over the systems, with a flat prior of their covariance, and its two observed
    ones are normal around them, with the covariance over topics. What a topic adds to all systems is taken out first.
    """
    random = np.random.default_rng(seed)
    topics, systems = values.shape[1:]
    centred = values - values.mean(axis=2, keepdims=True)
    means = centred.mean(axis=1).T
    rest = centred - centred.mean(axis=1, keepdims=True)
    scale = means.std(axis=0, ddof=1) + _ROUNDING
    noise = np.einsum("its,jts->sij", rest, rest) / (topics * (topics - 1)) * systems / (systems - 1)
    precision = np.linalg.inv(noise / np.outer(scale, scale) + np.eye(2) * _LEAST)
    pull = np.einsum("sij,sj->si", precision, means / scale)
    true, drawn = means / scale, np.empty((draws, systems, 2))
    for place in range(-_FIRST_DRAWS, draws):
        between = _draw_precision(true - true.mean(axis=0), random)
        spread = np.linalg.cholesky(np.linalg.inv(between) / systems)
        centre = true.mean(axis=0) + spread @ random.normal(size=2)
        covariance = np.linalg.inv(precision + between)
        expected = np.einsum("sij,sj->si", covariance, pull + between @ centre)
        steps = random.normal(size=(systems, 2))
        true = expected + np.einsum("sij,sj->si", np.linalg.cholesky(covariance), steps)
        if place >= 0:
            drawn[place] = true
    scaled: Floats = (drawn * scale).transpose(2, 0, 1)
    return scaled


def _draw_precision(apart: Floats, random: np.random.Generator) -> Floats:
    """A draw of the inverse of the covariance of two columns: Wishart, by Bartlett's decomposition."""
    freedom = max(len(apart) - 4, 2)
    root = np.linalg.cholesky(np.linalg.inv(apart.T @ apart + np.eye(2) * _LEAST))
    factor = root @ np.array(
        [[np.sqrt(random.chisquare(freedom)), 0], [random.normal(), np.sqrt(random.chisquare(freedom - 1))]]
    )
    drawn: Floats = factor @ factor.T
    return drawn


def list_topic_correlations(values: Floats) -> Floats:
    """tau_b within each topic, of values of shape (2, topics, systems); nan where all systems are tied."""
    return correlate_means("tau_b", np.round(values, _SAME))


def _compare(numbers: Floats) -> Floats:
    """Whether one system is above (1), level with (0) or below (-1) another, in each row: (rows, one, another)."""
    signs: Floats = np.sign(numbers[:, :, None] - numbers[:, None, :]).astype(np.int8)
    return signs


def _count_agreeing(truth: Floats, judged: Floats) -> tuple[Floats, Floats, Floats]:
    """Twice the agreeing pairs less the opposite ones, and twice the pairs that each of the two does not tie."""
    first, second = _compare(truth), _compare(judged)
    both = (first * second).sum(axis=(1, 2), dtype=float)
    return both, (first != 0).sum(axis=(1, 2), dtype=float), (second != 0).sum(axis=(1, 2), dtype=float)


def _compute_tau(truth: Floats, judged: Floats) -> Floats:
    same, parted, judged_parted = _count_agreeing(truth, judged)
    pairs = truth.shape[1] * (truth.shape[1] - 1)
    return np.where((parted > 0) & (judged_parted > 0), same / pairs, np.nan)


def _compute_tau_b(truth: Floats, judged: Floats) -> Floats:
    same, parted, judged_parted = _count_agreeing(truth, judged)
    return divide(same, np.sqrt(parted * judged_parted))


def _compute_tau_ap(truth: Floats, judged: Floats) -> Floats:
    first, second = _compare(truth), _compare(judged)
    return (_share_above(first, second) + _share_above(second, first)) / 2


def _share_above(signs: Floats, pivots: Floats) -> Floats:
    """For each system with others above it in `pivots`: the share of these that are above it in `signs` too."""
    above = (pivots < 0).sum(axis=2)
    agreeing = ((pivots < 0) & (signs < 0)).sum(axis=2)
    shares = np.where(above > 0, agreeing / np.maximum(above, 1), 0.0).sum(axis=1)
    return 2 * divide(shares, (above > 0).sum(axis=1).astype(float)) - 1


def _compute_tau_gap(truth: Floats, judged: Floats) -> Floats:
    order = np.argsort(-judged, axis=1, kind="stable")
    listed = np.take_along_axis(truth, order, axis=1)
    gaps = np.tril(listed[:, None, :] - listed[:, :, None], -1)
    whole, right = abs(gaps).sum(axis=2), np.maximum(gaps, 0.0).sum(axis=2)
    shares = np.where(whole > 0, right / np.where(whole > 0, whole, 1.0), 0.0).sum(axis=1)
    return 2 * divide(shares, (whole > 0).sum(axis=1).astype(float)) - 1


def _compute_spearman(truth: Floats, judged: Floats) -> Floats:
    return _compute_pearson(*(_compare(one).sum(axis=2, dtype=float) for one in (truth, judged)))


def _compute_pearson(truth: Floats, judged: Floats) -> Floats:
    first, second = (one - one.mean(axis=1, keepdims=True) for one in (truth, judged))
    spread = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return divide((first * second).sum(axis=1), spread, _ROUNDING)


_COMPUTE: dict[RankCorrelation, _Coefficient] = {
    "tau": _compute_tau,
    "tau_b": _compute_tau_b,
    "tau_ap": _compute_tau_ap,
    "tau_gap": _compute_tau_gap,
    "spearman": _compute_spearman,
    "pearson": _compute_pearson,
}
