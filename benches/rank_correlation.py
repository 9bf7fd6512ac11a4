"""How often the interval of a rank correlation holds the coefficient of endless topics, and a bootstrap's alone.

    python benches/rank_correlation.py

Planted: systems whose true means are known. Real: values that trec_eval gave for runs of TREC, from the folder
`RAGEVAL_TREC_EVAL_REFERENCE` where it is there; samples of 40 topics are drawn from its topics.
"""

from __future__ import annotations

import gzip
import os
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rageval_spec.statistics.intervals import bootstrap_interval
from rageval_spec.statistics.raters.rank_correlation import (
    RankCorrelation,
    compute_intervals,
    correlate_means,
)

Floats = NDArray[np.float64]
Case = Callable[[np.random.Generator], tuple[Floats, Floats]]
NAMES: tuple[RankCorrelation, ...] = ("tau_b", "tau_ap", "tau_gap", "spearman")
SAMPLES = 100


def plant(systems: int, topics: int, noise: float) -> Case:
    def draw(random: np.random.Generator) -> tuple[Floats, Floats]:
        true = np.linspace(0.2, 0.6, systems)
        both = np.stack([true, true + random.normal(size=systems) * 0.06])
        shared = random.normal(size=(topics, 1)) * 0.15
        return both[:, None, :] + shared + random.normal(size=(2, topics, systems)) * noise, both

    return draw


def read(folder: Path, measure: str) -> Floats:
    values: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("*.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            name, topic, value = line.split()
            if name == measure and topic != "all":
                values.setdefault(path.name, {})[topic] = float(value)
    topics = sorted(set.intersection(*({*one} for one in values.values())))
    return np.array([[one[topic] for one in values.values()] for topic in topics])


def resample(population: Floats) -> Case:
    return lambda random: (population[:, random.integers(0, population.shape[1], 40)], population.mean(axis=1))


def list_cases() -> Iterator[tuple[str, Case]]:
    for shape in ((12, 60, 0.1), (30, 50, 0.25), (12, 25, 0.25), (6, 50, 0.2)):
        yield "planted: {} systems, {} topics, noise {}".format(*shape), plant(*shape)
    reference = Path(os.environ.get("RAGEVAL_TREC_EVAL_REFERENCE", "")) / "expected"
    for track in ("covid5", "robust03") if reference.is_dir() else ():
        for pair in (("ndcg_cut_10", "P_5"), ("map", "recip_rank")):
            population = np.stack([read(reference / track, measure) for measure in pair])
            yield f"{track}: {pair[0]} and {pair[1]}, {population.shape[2]} runs", resample(population)


def bootstrap(name: RankCorrelation, values: Floats) -> tuple[float, float]:
    def statistic(weights: Floats) -> Floats:
        means = np.stack([weights @ one / weights.sum(axis=1, keepdims=True) for one in values])
        return correlate_means(name, np.round(means, 12))

    found = bootstrap_interval(statistic, values.shape[1], resamples=500)
    return (found.low, found.high) if found else (np.nan, np.nan)


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {SAMPLES} samples: share held, mean width\n")
    print(f"{'case':60}{'':10}{'ours':>14}{'bootstrap':>14}")
    for label, draw in list_cases():
        for name in NAMES:
            found: list[tuple[bool, float, bool, float]] = []
            for seed in range(SAMPLES):
                values, true = draw(np.random.default_rng(seed))
                wanted = float(correlate_means(name, true[:, None, :])[0])
                interval = compute_intervals(values, 500)(name, None)
                assert interval is not None
                low, high = bootstrap(name, values)
                holds = interval.low - 1e-9 <= wanted <= interval.high + 1e-9
                found.append((holds, interval.high - interval.low, low <= wanted <= high, high - low))
            ours, width, theirs, other = np.mean(found, axis=0)
            print(f"{label:60}{name:10}{ours:8.2f}{width:6.2f}{theirs:8.2f}{other:6.2f}", flush=True)
            label = ""


if __name__ == "__main__":
    main()
