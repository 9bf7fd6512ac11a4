"""Compare exact top-k with numpy and faiss: medians of five in one run, and the memory that each needs.

    python benches/top_k.py            everything
    python benches/top_k.py million    only a million vectors: time, and the peak memory of the whole process

Needs faiss-cpu and rageval-spec in the same environment. Every contender can use two threads.
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
MILLION, FEW = 1_000_000, 100


def main() -> None:
    if sys.argv[1:] == ["million"]:
        search_a_million()
        return
    if find_spec("faiss") is None:
        sys.exit("install faiss-cpu to run this benchmark")
    if len(sys.argv) == 2:
        report_memory(sys.argv[1])
        return
    print(f"top-{K} of {ROWS:,} x {DIMENSION} for {QUERIES:,} queries, {THREADS} threads: median of {ROUNDS}")
    medians, indices = race(contenders())
    ours = next(iter(medians))
    for name, median in medians.items():
        memory = float(subprocess.check_output([sys.executable, __file__, name], text=True))
        common = [len(np.intersect1d(*pair)) for pair in zip(indices[name], indices[ours], strict=True)]
        print(
            f"  {name:32s} {median * 1000:9.1f} ms {median / medians[ours]:6.2f}x"
            f" {memory:9.1f} MB extra   {np.mean(common) / K:.3%} of the same neighbours"
        )
    subprocess.run([sys.executable, __file__, "million"], check=True)


def race(searches: dict[str, Search]) -> tuple[dict[str, float], dict[str, NDArray[np.int64]]]:
    """The median time of each search over interleaved rounds, and the rows that it found."""
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
    half, small = (queries.astype(np.float16), corpus.astype(np.float16)), (to_int8(queries), to_int8(corpus))
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
        "rageval_spec, float16": lambda: kernels.top_k(*half, K, threads=THREADS),
        "rageval_spec, int8": lambda: kernels.top_k(*small, K, threads=THREADS),
        "numpy matmul, argpartition, sort": search_numpy,
        "faiss.IndexFlatIP": search_faiss,
    }


def random_directions(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Vectors of length 1, as from most embedding models. Generated a few at a time, to need no extra memory."""
    vectors = np.empty((count, DIMENSION), dtype=np.float32)
    for start in range(0, count, ROWS // 10):
        part = vectors[start : start + ROWS // 10]
        rng.standard_normal(part.shape, dtype=np.float32, out=part)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def to_int8(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Quantise with one scale for all values, as is usual for embeddings. Clips values beyond 5 deviations."""
    scale = 127 * np.sqrt(DIMENSION) / 5
    small: NDArray[np.int8] = np.rint(vectors * scale).clip(-127, 127).astype(np.int8)
    return small


def search_a_million() -> None:
    """Print time and memory of the whole process: interpreter, numpy, vectors, search."""
    rng = np.random.default_rng(0)
    corpus, queries = random_directions(rng, MILLION), random_directions(rng, FEW)
    start = time.perf_counter()
    kernels.top_k(queries, corpus, K, threads=THREADS)
    seconds = time.perf_counter() - start
    print(
        f"top-{K} of {MILLION:,} x {DIMENSION} float32 for {FEW} queries: {seconds:.2f} s,"
        f" the vectors {corpus.nbytes / 1e6:.0f} MB, the whole process at most {peak_memory():.0f} MB"
    )


def report_memory(name: str) -> None:
    """Print by how many MB one search raises the peak memory of this process."""
    search = contenders()[name]
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, which includes making the data
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
