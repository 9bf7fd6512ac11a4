"""Compare the bootstrap and the permutation test with scipy, numpy and ranx: medians of five in one run.

    python benches/significance.py

Needs scipy, ranx and rageval-spec in the same environment.
"""

from __future__ import annotations

import itertools
import sys
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from rageval_spec import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    Contenders = dict[str, Callable[[], object]]

ROUNDS = 5
RESAMPLES = 10_000
SYSTEMS, MEASURES, QUERIES = 5, 5, 250


def main() -> None:
    missing = [name for name in ("scipy", "ranx") if find_spec(name) is None]
    if missing:
        sys.exit(f"install {' and '.join(missing)} to run this benchmark")
    values = np.random.default_rng(0).beta(0.5, 0.8, 7_000)
    report("bootstrap, BCa, 10,000 resamples of 7,000 values", bootstrap_contenders(values))
    metric_values = np.random.default_rng(1).beta(0.5, 0.8, (MEASURES, SYSTEMS, QUERIES))
    title = f"permutation test, 10,000 x {MEASURES} measures x 10 pairs of {QUERIES} queries"
    report(title, permutation_contenders(metric_values))


def report(title: str, contenders: Contenders) -> None:
    """Print each contender's median, and its ratio to the first."""
    print(f"{title}: median of {ROUNDS}")
    for call in contenders.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(rounds)) for name, rounds in times.items()}
    ours = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"  {name:44s} {median * 1000:10.2f} ms {median / ours:8.1f}x")


def bootstrap_contenders(values: np.ndarray) -> Contenders:
    import scipy.stats

    def scipy_bootstrap(batch: int | None) -> object:
        return scipy.stats.bootstrap((values,), np.mean, n_resamples=RESAMPLES, batch=batch)

    return {
        "rageval_spec": lambda: kernels.bootstrap_mean(values, resamples=RESAMPLES, seed=0),
        "rageval_spec, one thread": lambda: kernels.bootstrap_mean(values, resamples=RESAMPLES, seed=0, threads=1),
        "scipy.stats.bootstrap": lambda: scipy_bootstrap(None),
        "scipy.stats.bootstrap, batch=100": lambda: scipy_bootstrap(100),
    }


def permutation_contenders(metric_values: np.ndarray) -> Contenders:
    pairs = list(itertools.combinations(range(SYSTEMS), 2))
    differences = np.array([measure[a] - measure[b] for measure in metric_values for a, b in pairs])
    return {
        "rageval_spec": lambda: kernels.permutation_test_paired(differences, permutations=RESAMPLES, seed=0),
        "rageval_spec, one thread": lambda: kernels.permutation_test_paired(
            differences, permutations=RESAMPLES, seed=0, threads=1
        ),
        "numpy, signs drawn once, one matrix product": lambda: numpy_shared_signs(differences),
        "numpy, a sign matrix per comparison": lambda: numpy_per_comparison(differences),
        "ranx.compare's fisher tests alone": ranx_compare(metric_values),
    }


def numpy_shared_signs(differences: np.ndarray) -> list[float]:
    signs = np.random.default_rng(0).integers(0, 2, (RESAMPLES, QUERIES)) * 2.0 - 1.0
    sums = np.abs(signs @ differences.T)
    reaching = (sums >= np.abs(differences.sum(axis=1))).sum(axis=0)
    return [(1 + int(count)) / (1 + RESAMPLES) for count in reaching]


def numpy_per_comparison(differences: np.ndarray) -> list[float]:
    rng = np.random.default_rng(0)
    p_values = []
    for row in differences:
        signs = rng.choice(np.array([-1.0, 1.0]), (RESAMPLES, QUERIES))
        reaching = np.abs(signs @ row) >= abs(row.sum())
        p_values.append((1 + int(reaching.sum())) / (1 + RESAMPLES))
    return p_values


def ranx_compare(metric_values: np.ndarray) -> Callable[[], object]:
    """`ranx.compare` without its evaluation: only the significance tests, on the same values."""
    from ranx.statistical_tests import compute_statistical_significance

    names = [f"system {system}" for system in range(SYSTEMS)]
    scores = {
        name: {f"measure {m}": np.ascontiguousarray(metric_values[m, system]) for m in range(MEASURES)}
        for system, name in enumerate(names)
    }
    return lambda: compute_statistical_significance(
        model_names=names,
        metric_scores=scores,
        stat_test="fisher",
        n_permutations=RESAMPLES,
        max_p=0.01,
        random_seed=0,
    )


if __name__ == "__main__":
    main()
