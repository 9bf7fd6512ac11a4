"""Exact top-k beside numpy and faiss: medians of five in one run, and the memory each needs.

    python benches/top_k.py

Needs faiss-cpu beside rageval-spec in the environment. Every contender may use two threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

THREADS = 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)  # read when numpy and faiss are imported

import numpy as np  # noqa: E402

from rageval_spec import kernels  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Search = Callable[[], tuple[NDArray[np.int64], NDArray[np.float32]]]

ROUNDS = 5
ROWS, DIMENSION, QUERIES, K = 100_000, 384, 1_000, 100


def main() -> None:
    if find_spec("faiss") is None:
        sys.exit("install faiss-cpu beside rageval-spec to run this benchmark")
    if len(sys.argv) == 2:
        report_memory(sys.argv[1])
        return
    print(f"top-{K} of {ROWS:,} x {DIMENSION} for {QUERIES:,} queries, {THREADS} threads: median of {ROUNDS}")
    medians, indices = race(contenders())
    ours = next(iter(medians))
    for name, median in medians.items():
        memory = float(subprocess.check_output([sys.executable, __file__, name], text=True))
        agreement = np.mean(indices[name] == indices[ours])
        print(
            f"  {name:32s} {median * 1000:9.1f} ms {median / medians[ours]:6.2f}x"
            f" {memory:9.1f} MB extra   {agreement:.4%} of neighbours the same"
        )


def race(searches: dict[str, Search]) -> tuple[dict[str, float], dict[str, NDArray[np.int64]]]:
    """The median time of each search, the rounds interleaved, and the rows that it found."""
    indices = {name: search()[0] for name, search in searches.items()}
    times: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(ROUNDS):
        for name, search in searches.items():
            start = time.perf_counter()
            search()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(rounds)) for name, rounds in times.items()}, indices


def contenders() -> dict[str, Search]:
    import faiss

    rng = np.random.default_rng(0)
    corpus = random_directions(rng, ROWS)
    queries = random_directions(rng, QUERIES)
    faiss.omp_set_num_threads(THREADS)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(corpus)

    def search_faiss() -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        scores, indices = index.search(queries, K)
        return indices, scores

    def search_numpy() -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        scores = queries @ corpus.T
        best = np.argpartition(scores, -K, axis=1)[:, -K:]
        best_scores = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-best_scores, axis=1, kind="stable")
        return np.take_along_axis(best, order, axis=1), np.take_along_axis(best_scores, order, axis=1)

    return {
        "rageval_spec": lambda: kernels.top_k(queries, corpus, K, threads=THREADS),
        "rageval_spec, cosine": lambda: kernels.top_k(queries, corpus, K, metric="cosine", threads=THREADS),
        "numpy matmul, argpartition, sort": search_numpy,
        "faiss.IndexFlatIP": search_faiss,
    }


def random_directions(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Vectors of length 1, as most embedding models give them."""
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def report_memory(name: str) -> None:
    """Prints by how many MB one search raises the peak of this process."""
    search = contenders()[name]
    Path("/proc/self/clear_refs").write_text("5")  # what it took to make the data is forgotten
    before = peak_memory()
    search()
    print(peak_memory() - before)


def peak_memory() -> float:
    """The peak resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    sys.exit("this system does not tell a process's peak memory in /proc/self/status")


if __name__ == "__main__":
    main()
