"""Compare rank fusion with ranx: medians of five in one run.

    python benches/fusion.py

Needs ranx and rageval-spec in the same environment. Each contender starts with tables of its own type, data frames or
ranx's `Run`; the time to create them does not count. ranx compiles its code before it is timed.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rageval_spec import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
QUERIES, DEPTH, CORPUS = 1_000, 1_000, 3_000


def main() -> None:
    if find_spec("ranx") is None:
        sys.exit("install ranx to run this benchmark")
    warnings.simplefilter("ignore")  # numba's, about casts in ranx
    runs = [make_run(seed) for seed in (0, 1)]
    theirs = [to_ranx(run) for run in runs]
    print(f"2 runs of {QUERIES:,} queries x {DEPTH:,} documents: median of {ROUNDS}")
    for name, ours, peer in contenders(runs, theirs):
        print(f"  {name}")
        report(ours, peer)
        print(f"    largest difference of two scores {largest_difference(ours(), peer()):.1e}")


def contenders(
    runs: list[pl.DataFrame], theirs: list[Any]
) -> list[tuple[str, Callable[[], pl.DataFrame], Callable[[], Any]]]:
    from ranx import fuse

    weights = [0.3, 0.7]
    return [
        (
            "reciprocal ranks, k = 60",
            lambda: kernels.fuse_runs(runs, method="rrf", depth=2 * DEPTH),
            lambda: fuse(runs=theirs, norm=None, method="rrf", params={"k": 60}),
        ),
        (
            "weighted sum of min-max scores",
            lambda: kernels.fuse_runs(runs, method="weighted", weights=weights, depth=2 * DEPTH),
            lambda: fuse(runs=theirs, norm="min-max", method="wsum", params={"weights": weights}),
        ),
    ]


def report(ours: Callable[[], object], peer: Callable[[], object]) -> None:
    calls = {"rageval_spec": ours, "ranx": peer}
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(rounds)) for name, rounds in times.items()}
    for name, median in medians.items():
        print(f"    {name:14s} {median * 1000:10.1f} ms {median / medians['rageval_spec']:8.1f}x")


def largest_difference(ours: pl.DataFrame, theirs: Any) -> float:
    """The largest difference over all documents of all queries. Both rankings must have the same documents."""
    rows = [(query, doc, score) for query, of in theirs.to_dict().items() for doc, score in of.items()]
    other = pl.DataFrame(rows, ["query_id", "doc_id", "other"], orient="row")
    both = ours.join(other, on=["query_id", "doc_id"], validate="1:1")
    if not both.height == ours.height == other.height:
        sys.exit("the two did not fuse the same documents")
    return float((both["score"] - both["other"]).abs().to_numpy().max())


def make_run(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    documents = [rng.permutation(CORPUS)[:DEPTH] for _ in range(QUERIES)]
    scores = np.sort(rng.gamma(2.0, size=(QUERIES, DEPTH)), axis=1)[:, ::-1]
    return pl.DataFrame(
        {
            "query_id": np.repeat([f"query-{query}" for query in range(QUERIES)], DEPTH),
            "doc_id": [f"document-{document}" for document in np.concatenate(documents)],
            "score": scores.ravel(),
        }
    )


def to_ranx(run: pl.DataFrame) -> Any:
    from ranx import Run

    rankings: dict[str, dict[str, float]] = {}
    for query, document, score in run.iter_rows():
        rankings.setdefault(query, {})[document] = score
    return Run(rankings)


if __name__ == "__main__":
    main()
