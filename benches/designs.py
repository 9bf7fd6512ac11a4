"""Intervals of questions that belong together or count differently: how often they cover the mean of the population.

    python benches/designs.py [--draws 2000] [--resamples 2000]

Each draw takes clusters of questions at random from an endless population. The questions of a cluster share a part of
their value, as questions on one source document do. The strata are kinds of question whose shares in the drawn set are
not those in production. Two intervals are compared in the same draws:

- `design`: this package, with `cluster:`, `weights:` or `weight:` as the scenario needs.
- `naive`: this package without them, as if every question were drawn on its own and counted the same.

Coverage is of the mean in production. Differences are those of two systems on the same questions; `p < 0.05` is how
often a true difference of 0 is called significant. In the corrected scenarios, a judge that errs gives a value to every
question and people label 40% of them; coverage is of what people would say, by `correct_mean` with and without the
design. Exits with 1 if the design intervals cover less than 94% of all draws, or less than 92% in one scenario, or if a
test rejects in more than 6%.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rageval_spec import kernels
from rageval_spec.data.datasets import Design, DesignSummary
from rageval_spec.data.outcomes import Interval
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.mean_intervals import MeanValues, compute_mean_intervals
from rageval_spec.statistics.raters.corrected_means import correct_mean, respect_bounds
from rageval_spec.statistics.weighted_clusters import Placed, lay_out

Floats = NDArray[np.float64]
Random = np.random.Generator
NEAR = 0.01
MOST_REJECTED = 0.06
LABELLED = 0.4
"""The share of questions with a label, where there is a judge."""
BOUNDS = (0.0, 1.0)


class Drawn(NamedTuple):
    """The questions of one draw."""

    values: Floats
    design: Design


class Scenario(NamedTuple):
    """How questions are drawn, and the mean in production."""

    name: str
    draw: Callable[[Random], Drawn]
    truth: float
    is_difference: bool = False
    has_judge: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=2000)
    options = parser.parse_args()
    statistics = StatisticsNode(resamples=options.resamples, permutations=options.resamples)
    print(f"{'scenario':<46}{'design':>16}{'naive':>16}{'p < 0.05':>10}{'naive':>8}")
    good, covered = True, []
    for scenario in SCENARIOS:
        covers, rejected = report(scenario, options.draws, statistics)
        covered.append(covers)
        good &= covers >= 0.95 - 3 * NEAR and rejected <= MOST_REJECTED
    overall = float(np.mean(covered))
    print(f"\ndesign, all scenarios: {overall:.1%} covered")
    sys.exit(0 if good and overall >= 0.95 - NEAR else 1)


def report(scenario: Scenario, draws: int, statistics: StatisticsNode) -> tuple[float, float]:
    """Print how often the intervals cover and the tests reject; returns both of the design's."""
    random = np.random.default_rng(11)
    placed = []
    for _ in range(draws):
        drawn = scenario.draw(random)
        every = name(len(drawn.values))
        placed.append(Placed(drawn.values, lay_out(drawn.design, every, every)))
    bounds = (-1.0, 1.0) if scenario.is_difference else BOUNDS
    if scenario.has_judge:
        drawn_judges = [draw_judge(np.asarray(one.values), random) for one in placed]
        found = {
            kind: [
                correct(one if kind == "design" else None, *judge)
                for one, judge in zip(placed, drawn_judges, strict=True)
            ]
            for kind in ("design", "naive")
        }
    else:
        found = {
            "design": compute_mean_intervals(
                [MeanValues(one.values, bounds, one.layout) for one in placed], statistics
            ),
            "naive": compute_mean_intervals([MeanValues(one.values, bounds) for one in placed], statistics),
        }
    told, covers = "", 0.0
    for kind, intervals in found.items():
        known = [one for one in intervals if one is not None]
        share = sum(one.low <= scenario.truth <= one.high for one in known) / draws
        covers = share if kind == "design" else covers
        told += f"{share:>8.1%}, {np.mean([one.high - one.low for one in known]):.3f} "
    rejected = 0.0
    if scenario.is_difference:
        parts = [one.layout.total(one.values) for one in placed], [np.asarray(one.values) for one in placed]
        rejected, naive = (
            float(
                np.mean(
                    [test.p_value < 0.05 for test in kernels.permutation_test_paired(of, permutations=1000, seed=3)]
                )
            )
            for of in parts
        )
        told += f"{rejected:>10.1%}{naive:>8.1%}"
    print(f"{scenario.name:<46}{told}", flush=True)
    return covers, float(rejected)


def draw_judge(truth: Floats, random: Random) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The values of a judge that is too generous, the labels, and which questions have one."""
    is_right = random.random(len(truth)) < 0.85
    judged = np.where(is_right, 0.2 + 0.8 * truth, 0.9)
    return judged, truth, random.random(len(truth)) < LABELLED


def correct(placed: Placed | None, judged: Floats, truth: Floats, has_label: NDArray[np.bool_]) -> Interval | None:
    """The corrected interval, with the layout of the questions or without."""
    clusters, others, shares = None, None, None
    if placed is not None:
        layout = placed.layout
        clusters, others = layout.members[has_label].tolist(), layout.members[~has_label].tolist()
        shares = np.concatenate([layout.weights[has_label], layout.weights[~has_label]]) if layout.is_weighted else None
    mean = correct_mean(
        judged[has_label],
        truth[has_label],
        judged[~has_label],
        clusters=clusters,
        other_clusters=others,
        shares=shares,
    )
    return respect_bounds(mean, truth[has_label], (0.0, 1.0), 0.95).interval


def name(count: int) -> list[str]:
    return [f"q{number:05}" for number in range(count)]


def make_design(clusters: NDArray[np.int64] | None, weights: Floats | None, strata: NDArray[np.int64] | None) -> Design:
    count = len(next(one for one in (clusters, weights) if one is not None))
    every = name(count)

    def by_name(numbers: NDArray[np.int64] | Floats | None) -> dict[str, float]:
        return {} if numbers is None else dict(zip(every, numbers.tolist(), strict=True))

    summary = DesignSummary(count, cluster=None if clusters is None else "source")
    return Design(
        {query: int(of) for query, of in by_name(clusters).items()},
        None if weights is None else by_name(weights),
        {query: int(of) for query, of in by_name(strata).items()},
        summary,
    )


def draw_clusters(
    random: Random, count: int, largest: int, spread: float, mean: float
) -> tuple[Floats, NDArray[np.int64]]:
    """Yes or no for each question; the questions of a cluster share their probability of yes."""
    sizes = random.integers(1, largest + 1, count)
    shared = random.beta(mean * spread, (1 - mean) * spread, count)
    members = np.repeat(np.arange(count), sizes)
    return (random.random(len(members)) < shared[members]).astype(float), members


def clusters_only(count: int, largest: int, mean: float, spread: float = 2.0) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        values, members = draw_clusters(random, count, largest, spread, mean)
        return Drawn(values, make_design(members, None, None))

    return draw


KINDS, PRODUCTION = np.array([0.5, 0.7, 0.95]), np.array([0.1, 0.3, 0.6])
"""The rate of yes of three kinds of question, and their shares in production."""


def mix(strata: NDArray[np.int64]) -> Floats:
    counts = np.bincount(strata, minlength=len(PRODUCTION))
    return PRODUCTION[strata] / counts[strata]


def strata_only(counts: tuple[int, int, int]) -> Callable[[Random], Drawn]:
    def draw(random: Random) -> Drawn:
        strata = np.repeat(np.arange(3), counts)
        values = (random.random(len(strata)) < KINDS[strata]).astype(float)
        return Drawn(values, make_design(None, mix(strata), strata))

    return draw


def traffic(count: int) -> Callable[[Random], Drawn]:
    """Each question's own weight; those of frequent questions are answered better. The mean is of production."""

    def draw(random: Random) -> Drawn:
        weights = random.gamma(2.0, size=count)
        rate = 0.5 + 0.4 * weights / (weights + 2)
        return Drawn((random.random(count) < rate).astype(float), make_design(None, weights, None))

    return draw


def traffic_truth() -> float:
    weights = np.random.default_rng(1).gamma(2.0, size=4_000_000)
    return float(np.average(0.5 + 0.4 * weights / (weights + 2), weights=weights))


def both(count: int, largest: int) -> Callable[[Random], Drawn]:
    """Clusters whose questions are of all kinds, reweighted to production."""

    def draw(random: Random) -> Drawn:
        sizes = random.integers(1, largest + 1, count)
        members = np.repeat(np.arange(count), sizes)
        strata = random.choice(3, len(members), p=[0.5, 0.3, 0.2])
        shift = random.normal(0, 1.2, count)[members]
        hidden = random.normal(0, 1, len(members)) + shift
        levels = np.array([THRESHOLDS[kind] for kind in strata])
        return Drawn((hidden < levels).astype(float), make_design(members, mix(strata), strata))

    return draw


def find_thresholds() -> Floats:
    """Where to cut a normal variable of the variance 1 + 1.2², so that each kind has its rate of yes."""
    from statistics import NormalDist

    wide = NormalDist(0, float(np.sqrt(1 + 1.2**2)))
    return np.array([wide.inv_cdf(float(rate)) for rate in KINDS])


THRESHOLDS = find_thresholds()


def differences(count: int, largest: int) -> Callable[[Random], Drawn]:
    """Differences of two equally good systems; whole documents suit one or the other."""

    def draw(random: Random) -> Drawn:
        first, members = draw_clusters(random, count, largest, 2.0, 0.7)
        shared = random.beta(1.4, 0.6, count)
        second = (random.random(len(members)) < shared[members]).astype(float)
        return Drawn(first - second, make_design(members, None, None))

    return draw


MIXED = float(PRODUCTION @ KINDS)
SCENARIOS = (
    Scenario("34 clusters of 1 to 6 questions, mean 0.7", clusters_only(34, 6, 0.7), 0.7),
    Scenario("34 clusters of 1 to 6 questions, mean 0.9", clusters_only(34, 6, 0.9), 0.9),
    Scenario("12 clusters of 1 to 20 questions, mean 0.6", clusters_only(12, 20, 0.6), 0.6),
    Scenario("100 clusters of 1 to 3 questions, mean 0.8", clusters_only(100, 3, 0.8), 0.8),
    Scenario("a mix of 60, 40 and 20 questions", strata_only((60, 40, 20)), MIXED),
    Scenario("a mix of 200, 200 and 200 questions", strata_only((200, 200, 200)), MIXED),
    Scenario("traffic of 150 questions", traffic(150), traffic_truth()),
    Scenario("a mix of 40 clusters of 1 to 6 questions", both(40, 6), MIXED),
    Scenario("a mix of 100 clusters of 1 to 8 questions", both(100, 8), MIXED),
    Scenario("corrected, 60 clusters of 1 to 6 questions", clusters_only(60, 6, 0.7), 0.7, has_judge=True),
    Scenario("corrected, a mix of 100 clusters of 1 to 8", both(100, 8), MIXED, has_judge=True),
    Scenario("difference, 34 clusters of 1 to 6 questions", differences(34, 6), 0.0, True),
    Scenario("difference, 15 clusters of 1 to 12 questions", differences(15, 12), 0.0, True),
)

if __name__ == "__main__":
    main()
