"""Intervals of means: how often they hold the mean, and how often a gate passes for certain that should not.

    python benches/intervals.py [--draws 2000] [--data ../shared/data] [--advice]

Prints the tables of `benches/intervals.md`. Each cell draws sets of questions from a population whose mean is known:

- `yes/no`: right or wrong answers. Every possible count is taken with its probability, so nothing is drawn.
- `graded`: labels of the labelled sets in `--data` (people's grades from 1 to 5, shares of supported claims, shares of
  covered facts), drawn with replacement.
- `skewed`: values near 1 with rare failures, values that are mostly 0, and values of which nearly all are equal.
- `clustered`: questions of a document share the probability of a right answer; documents are drawn whole.
- `differences`: paired values of two systems, most of them equal.
- `ratings`: whole numbers on a short scale, once with the metric's `range` and once without it.
- `unbounded`: seconds, of which no highest value is known.

`holds` is the share of sets whose interval holds the population's mean. `false pass` is the share whose lower end lies
above it: a gate with `min` just above the mean and `decide: certain` passes there. Contenders:

- `rule`: this package, the interval that reports and gates have.
- `BCa`: the bootstrap, 2,000 resamples. `t`: Student's. `Wilson`: only for yes and no. `betting`: the confidence
  sequence of this package, which also holds while one watches; on the first 200 sets.

With `--advice`: for gates that are undecided, how many questions the advice says would decide, beside the number at
which half of the sets of that size do decide.

Exits with 1 if the rule holds the mean in less than 93% of a cell with bounds, or passes falsely in more than 2.5%, but
for what chance does to so many draws (three standard errors).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rageval_spec import kernels
from rageval_spec.data.outcomes import Interval
from rageval_spec.pipeline.gating.gate_bounds import GateEstimate, count_more
from rageval_spec.statistics.intervals import Resampling, compute_exact_interval
from rageval_spec.statistics.mean_intervals import MeanValues, compute_mean_intervals, compute_range
from rageval_spec.statistics.sequential_analysis import compute_sequence_interval
from rageval_spec.statistics.weighted_clusters import lay_out_clusters

Floats = NDArray[np.float64]
Random = np.random.Generator
Draw = Callable[[Random, int], tuple[Floats, list[int] | None]]

HERE = Path(__file__).resolve().parent
SIZES = (5, 10, 20, 30, 50, 100, 200)
SHARES = (0.5, 0.7, 0.9, 0.95, 0.98, 0.99)
LEAST_COVERED, MOST_FALSE = 0.93, 0.025
SETTINGS = Resampling(resamples=2000, seed=7)
WATCHED = 200
"""The sets on which the betting interval is computed."""


class Population(NamedTuple):
    """Where values are drawn from: `draw` gives values and their clusters; `range` is their lowest and highest."""

    name: str
    draw: Draw
    mean: float
    range: tuple[float, float | None] = (0.0, 1.0)
    sizes: Sequence[int] = SIZES


class Found(NamedTuple):
    """What a contender came to: shares of the sets, and the average width."""

    holds: float
    false_pass: float
    width: float

    def __str__(self) -> str:
        return f"{100 * self.holds:.1f}, {100 * self.false_pass:.1f}, {self.width:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--advice", action="store_true")
    options = parser.parse_args()
    if options.advice:
        report_advice(options.draws)
        return
    good = report_shares()
    for title, populations in list_populations(options.data):
        print(f"\n### {title}\n\n| population | mean | questions | rule | BCa | t | betting |")
        print("|---|---|---|---|---|---|---|")
        for population in populations:
            for size in population.sizes:
                found = measure(population, size, options.draws)
                told = " | ".join(str(found[name]) for name in ("rule", "BCa", "t", "betting"))
                print(f"| {population.name} | {population.mean:.3f} | {size} | {told} |", flush=True)
                good &= population.range[1] is None or is_good(found["rule"], options.draws)
    sys.exit(0 if good else 1)


def is_good(found: Found, draws: int | None) -> bool:
    """Whether the rule keeps its promise; `draws` is None where nothing was drawn."""
    slack = [0.0 if draws is None else 3 * math.sqrt(p * (1 - p) / draws) for p in (LEAST_COVERED, MOST_FALSE)]
    return found.holds >= LEAST_COVERED - slack[0] and found.false_pass <= MOST_FALSE + slack[1] + 1e-12


def report_shares() -> bool:
    """The table of yes and no, and whether the rule is good in all of it."""
    print("### Yes or no\n\n| share | questions | rule | BCa | t | Wilson |\n|---|---|---|---|---|---|")
    good = True
    for share in SHARES:
        for size in SIZES:
            found = {name: weigh(of, share, size) for name, of in CONTENDERS.items()}
            print(f"| {share} | {size} | {' | '.join(map(str, found.values()))} |", flush=True)
            good &= is_good(found["rule"], None)
    return good


def weigh(intervals: Callable[[int], list[Interval]], share: float, size: int) -> Found:
    """What a contender comes to, over all possible counts."""
    logs = [
        math.lgamma(size + 1) - math.lgamma(hits + 1) - math.lgamma(size - hits + 1)
        + hits * math.log(share) + (size - hits) * math.log1p(-share)
        for hits in range(size + 1)
    ]  # fmt: skip
    return sum_up(intervals(size), share, np.exp(logs))


def sum_up(intervals: Sequence[Interval], mean: float, weights: Floats | None = None) -> Found:
    rows = np.array([(one.low, one.high) for one in intervals])
    tolerance = 1e-9
    counts = np.full(len(rows), 1 / len(rows)) if weights is None else weights
    holds = (rows[:, 0] <= mean + tolerance) & (mean <= rows[:, 1] + tolerance)
    return Found(
        float(counts @ holds),
        float(counts @ (rows[:, 0] > mean + tolerance)),
        float(np.nansum(counts * (rows[:, 1] - rows[:, 0])) / counts[~np.isnan(rows[:, 0])].sum()),
    )


def every_count(size: int) -> list[Floats]:
    return [(np.arange(size) < hits).astype(float) for hits in range(size + 1)]


def find_rule(sets: Sequence[MeanValues]) -> list[Interval]:
    """The rule's intervals; NaN for a set without one, whose interval holds nothing and passes no gate."""
    return [one or Interval(math.nan, math.nan) for one in compute_mean_intervals(sets, SETTINGS)]


def find_bca(sets: Sequence[Floats]) -> list[Interval]:
    found = kernels.bootstrap_means(sets, resamples=SETTINGS.resamples, seed=SETTINGS.seed)
    return [Interval(one.low, one.high) for one in found if one is not None]


def find_student(sets: Sequence[Floats]) -> list[Interval]:
    reach = [kernels.student_quantile(0.975, len(one) - 1) * one.std(ddof=1) / math.sqrt(len(one)) for one in sets]
    return [Interval(float(one.mean() - by), float(one.mean() + by)) for one, by in zip(sets, reach, strict=True)]


def find_wilson(size: int) -> list[Interval]:
    z = NormalDist().inv_cdf(0.975)
    found = []
    for hits in range(size + 1):
        share, spread = hits / size, z * z / size
        centre = (share + spread / 2) / (1 + spread)
        half = z / (1 + spread) * math.sqrt(share * (1 - share) / size + spread / (4 * size))
        found.append(Interval(centre - half, centre + half))
    return found


CONTENDERS: dict[str, Callable[[int], list[Interval]]] = {
    "rule": lambda size: find_rule([MeanValues(one, (0.0, 1.0)) for one in every_count(size)]),
    "BCa": lambda size: find_bca(every_count(size)),
    "t": lambda size: find_student(every_count(size)),
    "Wilson": find_wilson,
}


def measure(population: Population, size: int, draws: int) -> dict[str, Found]:
    random = np.random.default_rng([size, len(population.name)])
    drawn = [population.draw(random, size) for _ in range(draws)]
    sets = [values for values, _ in drawn]
    rule = [
        MeanValues(
            values,
            compute_range(population.range, "mean", values),
            None if clusters is None else lay_out_clusters(clusters),
        )
        for values, clusters in drawn
    ]
    low, high = population.range
    watched = []
    if high is not None:
        watched = [compute_sequence_interval(one, bounds=(low, high)) for one in sets[:WATCHED]]
    contenders = {"rule": find_rule(rule), "BCa": find_bca(sets), "t": find_student(sets), "betting": watched}
    return {
        name: sum_up(found, population.mean) if found else Found(math.nan, math.nan, math.nan)
        for name, found in contenders.items()
    }


def list_populations(data: Path) -> Iterator[tuple[str, list[Population]]]:
    yield "Graded values of the labelled sets", [*list_graded(data)]
    yield (
        "Skewed values and rare failures",
        [
            Population("0.9 ± 0.05, 2% fail", fail(lambda r, n: r.beta(31.5, 3.5, n), 0.02), 0.98 * 0.9),
            Population("0.8 ± 0.1, 5% fail", fail(lambda r, n: r.beta(12, 3, n), 0.05), 0.95 * 0.8),
            Population("all 1, but 10% in between", mix(0.1), 0.95),
            Population("mostly near 0", lambda r, n: (r.beta(0.3, 4, n), None), 0.3 / 4.3),
            Population("at both ends", lambda r, n: (r.beta(0.2, 0.2, n), None), 0.5),
            Population("even", lambda r, n: (r.random(n), None), 0.5),
            Population("reciprocal ranks", ranks, float(np.mean(RANKS))),
        ],
    )
    yield (
        "Clustered right and wrong answers (questions are those of 1 to 6 a document)",
        [Population(f"share {share}", cluster(share), share, sizes=(10, 20, 50, 100, 200)) for share in SHARES],
    )
    yield (
        "Differences of paired values",
        [
            Population("yes/no, 10% differ", differ(0.05, 0.05), 0.0, (-1.0, 1.0)),
            Population("yes/no, 3% drop", differ(0.0, 0.03), -0.03, (-1.0, 1.0)),
            Population("graded, ± 0.15", lambda r, n: (np.clip(r.normal(0, 0.15, n), -1, 1), None), 0.0, (-1.0, 1.0)),
        ],
    )
    yield "Ratings, with and without `range` (which no gate passes by)", [*list_ratings()]
    yield (
        "Seconds, without a highest value",
        [
            Population("log-normal, 0.5", lambda r, n: (r.lognormal(0, 0.5, n), None), math.exp(0.125), (0.0, None)),
            Population("log-normal, 1", lambda r, n: (r.lognormal(0, 1, n), None), math.exp(0.5), (0.0, None)),
        ],
    )


RATINGS = (((5, 4, 1), (0.8, 0.15, 0.05)), ((5, 1), (0.98, 0.02)), ((5, 4, 3, 2, 1), (0.6, 0.2, 0.1, 0.05, 0.05)),
           ((1, 0, -1), (0.85, 0.1, 0.05)), ((1, -1), (0.9, 0.1)))  # fmt: skip


def list_ratings() -> Iterator[Population]:
    for values, shares in RATINGS:
        name = ", ".join(f"{100 * share:g}% {value}" for value, share in zip(values, shares, strict=True))
        mean = float(np.dot(values, shares))
        draw = partial(draw_ratings, np.array(values, float), np.array(shares))
        yield Population(name, draw, mean, (min(values), max(values)))
        yield Population(f"{name}; no range", draw, mean, (-math.inf, None))


def draw_ratings(values: Floats, shares: Floats, random: Random, size: int) -> tuple[Floats, None]:
    return random.choice(values, size, p=shares), None


def fail(draw: Callable[[Random, int], Floats], share: float) -> Draw:
    return lambda random, size: (np.where(random.random(size) < share, 0.0, draw(random, size)), None)


def mix(share: float) -> Draw:
    return lambda random, size: (np.where(random.random(size) < share, random.random(size), 1.0), None)


RANKS = np.array([1.0] * 60 + [0.5] * 15 + [1 / 3] * 8 + [0.25] * 4 + [0.2] * 3 + [0.0] * 10)


def ranks(random: Random, size: int) -> tuple[Floats, None]:
    return random.choice(RANKS, size), None


def differ(better: float, worse: float) -> Draw:
    def draw(random: Random, size: int) -> tuple[Floats, None]:
        chance = random.random(size)
        return np.where(chance < better, 1.0, np.where(chance < better + worse, -1.0, 0.0)), None

    return draw


def cluster(share: float) -> Draw:
    """Whole documents of 1 to 6 questions, about `size` questions in all; a document has its own share of right
    ones."""

    def draw(random: Random, size: int) -> tuple[Floats, list[int]]:
        counts = random.integers(1, 7, max(2, round(size / 3.5)))
        rates = random.beta(2 * share, 2 * (1 - share), len(counts))
        members = np.repeat(np.arange(len(counts)), counts)
        return (random.random(len(members)) < rates[members]).astype(float), members.tolist()

    return draw


def list_graded(data: Path) -> Iterator[Population]:
    for name, values in read_labels(data):
        if values:
            drawn = np.array(values)
            mean = float(drawn.mean())
            yield Population(name, draw_again(drawn), mean)


def draw_again(values: Floats) -> Draw:
    return lambda random, size: (random.choice(values, size), None)


def read_labels(data: Path) -> Iterator[tuple[str, list[float]]]:
    """The name of each set of labels, and its values between 0 and 1."""
    utility = [(row["utility"] - 1) / 4 for row in read(data / "human" / "alce_utility.jsonl") if row.get("utility")]
    yield "utility, 1 to 5 (ALCE)", utility
    claims = [
        [claim["label"] == "Entailment" for claim in row["claims"]]
        for row in read(data / "faithfulness" / "refchecker_claims.jsonl.gz")
        if row["claims"]
    ]
    fluency = [row["ratings"]["fluency"].values() for row in read(data / "human" / "summeval_op.jsonl.gz")]
    yield "fluency, 1 to 5, three people (SummEval)", [(sum(of) / len(of) - 1) / 4 for of in fluency]
    correct = [row["ratings"]["correctness"].values() for row in read(data / "human" / "squality_human_eval.jsonl.gz")]
    yield "correctness, 0 to 100 (SQuALITY)", [sum(of) / len(of) / 100 for of in correct]
    yield "supported claims (RefChecker)", [sum(of) / len(of) for of in claims]


def read(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


ADVISED = ((0.98, 0.95), (1.0, 0.95), (0.95, 0.9), (0.9, 0.8), (0.8, 0.7), (0.7, 0.65))


def report_advice(draws: int) -> None:
    """How many questions the advice says a gate would take in all, beside how many it takes."""
    print("| share | min | questions asked | says, in all (median, middle half) | half are decided from |")
    print("|---|---|---|---|---|")
    random = np.random.default_rng(3)
    for share, bound in ADVISED:
        needed = next(size for size in range(2, 5000) if decides(share, bound, size, random))
        for size in (5, 10, 20, 40):
            advised = []
            for hits in random.binomial(size, share, draws):
                interval = compute_exact_interval(int(hits), size)
                if interval is not None and interval.low < bound < interval.high and hits / size > bound:
                    estimate = GateEstimate(hits / size, interval.low, interval.high, size, range=(0.0, 1.0))
                    advised.append(size + (count_more(estimate, bound) or 10**6))
            if advised:
                quarter, half, rest = (int(np.percentile(advised, of)) for of in (25, 50, 75))
                print(f"| {share} | {bound} | {size} | {half} ({quarter} to {rest}) | {needed} |", flush=True)


def decides(share: float, bound: float, size: int, random: Random) -> bool:
    """Whether at least half of the sets of this size have an interval above the bound."""
    interval = compute_exact_interval(int(np.percentile(random.binomial(size, share, 999), 50)), size)
    return interval is not None and interval.low >= bound


if __name__ == "__main__":
    main()
