"""BM25: build and search beside bm25s (numba), and what a corpus larger than memory takes.

    python benches/bm25.py versus [PASSAGES] [--peer PYTHON]    300,000 by default; PYTHON has bm25s and numba
    python benches/bm25.py large [PASSAGES] [--folder FOLDER]   10,000,000 by default: 4 GB as JSON Lines, and the index

Passages have 60 words on average (log-normal), queries 2 to 9. The nth of 2 million words is about 1 / n times as
frequent as the first; the first 33 are the English stop words. Everything is seeded. `large` reads the passages as a
BEIR folder, evaluates twice with the index in the store (build, then open), and deletes both at the end. Each phase is
a process of its own; `cpu` is user and system time, `peak` the most memory that was resident, mapped pages included.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

WORDS, LENGTH, AT_ONCE, QUERIES, DEPTH = 2_000_000, 60, 50_000, 6_980, 1000
STOP_WORDS = (
    "the of and a to in is for that it as was with on by be are at this not or an but into they then there their such"
    " these no if will"
)


def main() -> None:
    """Run a comparison, or one phase of it in this process."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=("versus", "large", "phase"))
    options.add_argument("passages", nargs="?", type=int)
    options.add_argument("--peer", default=sys.executable)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "bm25-bench"))
    options.add_argument("--phase", choices=PHASES)
    options.add_argument("--keep", action="store_true", help="keep the passages and the index")
    given = options.parse_args()
    if given.what == "phase":
        PHASES[given.phase](given.folder, given.passages)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}))
        return
    from machine import name_processor

    passages = given.passages or (300_000 if given.what == "versus" else 10_000_000)
    print(f"{passages:,} passages, {QUERIES:,} queries, {DEPTH} hits, {name_processor()}")
    phase = partial(run_phase, given.folder, passages)
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        if not (given.folder / "beir" / "queries.jsonl").exists():
            phase("generate")
        if given.what == "versus":
            phase("ours")
            phase("bm25s", given.peer)
        else:
            phase("first")
            index = max((given.folder / "store" / "indexes").iterdir(), key=lambda path: path.stat().st_size)
            print(f"index: {index.stat().st_size / 1e9:.2f} GB")
            phase("open")
            phase("search")
    finally:
        if not given.keep:
            shutil.rmtree(given.folder)


def run_phase(folder: Path, passages: int, phase: str, python: str = sys.executable) -> None:
    """Run a phase in a process of its own, and print what it took."""
    command = [python, __file__, "phase", str(passages), "--folder", str(folder), "--phase", phase]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    *lines, last = done.stdout.splitlines()
    used = json.loads(last)
    wall = time.perf_counter() - start
    print(f"{phase}: {wall:.1f} s, cpu {used['cpu']:.1f} s, peak {used['peak'] / 1e6:,.0f} MB", flush=True)
    for line in lines:
        print(f"  {line}", flush=True)


def timed(name: str, run: Callable[[], Any]) -> Any:
    """Run and print the wall-clock and CPU time, and the memory at its end."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    made = run()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name}: {wall:.2f} s, cpu {cpu:.2f} s, peak so far {after.ru_maxrss / 1e3:,.0f} MB", flush=True)
    return made


def print_nothing(done: int, total: int) -> None:
    """Take progress and show none."""


def name_words() -> list[str]:
    """Distinct words for all ranks, frequent ones first and short."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    names = STOP_WORDS.split()
    taken = set(names)
    rank = 0
    while len(names) < WORDS:
        rank, text, rest = rank + 1, "", rank + 26
        while rest:
            rest, letter = divmod(rest, 26)
            text += letters[letter]
        if text not in taken:
            names.append(text)
    return names


def draw_ranks(random: np.random.Generator, count: int) -> np.ndarray:
    """Ranks from 0 whose logarithms are evenly distributed, as in Zipf's law with the exponent 1."""
    ranks: np.ndarray = (np.exp(random.random(count) * np.log(WORDS)) - 1).astype(np.uint32)
    return ranks


def generate(folder: Path, passages: int) -> None:
    """Write a BEIR folder: corpus, queries, and a judgement for each query."""
    import polars as pl

    (folder / "beir" / "qrels").mkdir(parents=True, exist_ok=True)
    names, random = pl.Series(name_words()), np.random.default_rng(1)

    def write(lengths: np.ndarray) -> pl.Series:
        texts = names.gather(draw_ranks(random, int(lengths.sum())))
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        table = pl.DataFrame({"number": numbers, "text": texts})
        return table.group_by("number", maintain_order=True).agg(pl.col("text").str.join(" "))["text"]

    with (folder / "beir" / "corpus.jsonl").open("wb") as file:
        for start in range(0, passages, AT_ONCE):
            count = min(AT_ONCE, passages - start)
            lengths = np.clip(random.lognormal(np.log(LENGTH) - 0.08, 0.4, count), 5, 300).astype(int)
            ids = pl.int_range(start, start + count, eager=True).cast(pl.String)
            pl.DataFrame({"_id": ids, "text": write(lengths)}).write_ndjson(file)
    ids = pl.int_range(QUERIES, eager=True).cast(pl.String)
    numbers = pl.DataFrame({"query-id": ids, "corpus-id": ids, "score": 1})
    numbers.write_csv(folder / "beir" / "qrels" / "test.tsv", separator="\t")
    pl.DataFrame({"_id": ids, "text": write(random.integers(2, 10, QUERIES))}).write_ndjson(
        folder / "beir" / "queries.jsonl"
    )


def read_texts(path: Path) -> list[str]:
    """The texts of a file of JSON Lines."""
    with path.open("rb") as file:
        return [json.loads(line)["text"] for line in file]


def run_ours(folder: Path, passages: int) -> None:  # noqa: ARG001 - as the other phases
    """Build and search with the core, in memory."""
    import polars as pl

    from rageval_spec import kernels
    from rageval_spec.systems.shared.lexical_tokens import Words, read_stop_words

    texts = pl.Series(read_texts(folder / "beir" / "corpus.jsonl"))
    queries = read_texts(folder / "beir" / "queries.jsonl")
    words = Words("words", read_stop_words("english"))
    ids = pl.int_range(len(texts), eager=True).cast(pl.String)

    def build() -> kernels.Bm25Index:
        builder = kernels.Bm25Builder("words", sorted(words.stop_words), words.expand, stems=False)
        for start in range(0, len(texts), 1 << 16):
            builder.add(ids[start : start + (1 << 16)], texts[start : start + (1 << 16)])
        return builder.finish(b"", print_nothing)

    index = timed("build", build)
    found = timed("search", lambda: index.search(words.read(queries), DEPTH))
    print(f"{found.height:,} hits, scores add up to {found['score'].sum():.2f}")


def run_bm25s(folder: Path, passages: int) -> None:  # noqa: ARG001 - as the other phases
    """Build and search with bm25s and numba; compiled before, with a few texts."""
    import bm25s

    texts, queries = (read_texts(folder / "beir" / name) for name in ("corpus.jsonl", "queries.jsonl"))

    def build(some: list[str]) -> tuple[Any, dict[str, int]]:
        tokens = bm25s.tokenize(some, stopwords="en", show_progress=False)
        scorer = bm25s.BM25(method="lucene", backend="numba")
        scorer.index(tokens, show_progress=False)
        return scorer, tokens.vocab

    def search(scorer: Any, vocabulary: dict[str, int], depth: int) -> Any:
        asked = bm25s.tokenize(queries, stopwords="en", return_ids=False, show_progress=False)
        known = [[word for word in query if word in vocabulary] for query in asked]
        return scorer.retrieve(known, k=depth, n_threads=2, show_progress=False, backend_selection="numba")

    search(*build(texts[:2000]), 10)
    built = timed("build", lambda: build(texts))
    scorer, vocabulary = built
    found = timed("search", lambda: search(scorer, vocabulary, DEPTH))
    print(f"{(found.scores > 0).sum():,} hits, scores add up to {found.scores.sum(dtype=float):.2f}")


def retrieve(folder: Path, limit: int) -> Any:
    """Retrieve for the first queries, with the index in the store."""
    from dataclasses import replace

    from rageval_spec import registry
    from rageval_spec.plugin import Context
    from rageval_spec.store.store import open_store

    store = open_store(folder / "store")
    context = Context("bench", folder, fingerprint=store.fingerprint, store=store.folder)
    dataset, system = registry.load("datasets", "beir"), registry.load("systems", "bm25")
    data = dataset(dataset.node_type(use="beir", path="beir"), context)
    whole = replace(data.open(), identify=data.digest)
    queries = whole.queries.head(limit)
    asked = replace(whole, load_queries=lambda: queries)
    made = system(system.node_type(use="bm25", depth=DEPTH), context).retrieve(asked, {})
    print(f"{made.run.height:,} hits, scores add up to {made.run['score'].sum():.2f}")


def run_first(folder: Path, passages: int) -> None:  # noqa: ARG001 - as the other phases
    """Hash the passages, build the index, and answer a query."""
    timed("build and one query", lambda: retrieve(folder, 1))


def run_open(folder: Path, passages: int) -> None:  # noqa: ARG001 - as the other phases
    """Answer one query with the index that is there."""
    timed("open and one query", lambda: retrieve(folder, 1))


def run_search(folder: Path, passages: int) -> None:  # noqa: ARG001 - as the other phases
    """Answer all queries with the index that is there."""
    timed("open and all queries", lambda: retrieve(folder, QUERIES))


PHASES: dict[str, Callable[[Path, int], None]] = {
    "generate": generate, "ours": run_ours, "bm25s": run_bm25s, "first": run_first, "open": run_open,
    "search": run_search,
}  # fmt: skip


if __name__ == "__main__":
    main()
