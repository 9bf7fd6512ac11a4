"""Search a mapped file of int8 vectors, against faiss on the same vectors, each in a process of its own.

    python benches/dense.py --faiss PYTHON [--rows 10000000] [--folder /tmp]
    python benches/dense.py --quality DATA [--sets scifact nq_oracle ...]

PYTHON is the interpreter of an environment with faiss-cpu and numpy. Vectors are seeded directions of 384 dimensions,
kept as the store keeps them (int8, a scale each); 10,000,000 take 4.2 GB here and 3.8 GB as faiss' index, both deleted
at the end. faiss gets the same vectors, which its own 8 bits round a second time. Each contender searches twice and the
second time counts, so that all files are in the page cache; for faiss, reading its index counts too.

With `--quality`, real test sets in BEIR's layout (DATA/scifact, ...) are searched with the embedded model minilm in
every form.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from machine import name_processor

DIMENSION, QUERIES, K, CHUNK, THREADS = 384, 100, 100, 50_000, 2
SETS = ("scifact", "nq_oracle", "cranfield", "medline", "2wikimultihop", "xquad_de")
FORMS: dict[str, dict[str, Any]] = {
    "float32": {},
    "float16": {"vectors": "float16"},
    "int8": {"vectors": "int8"},
    "binary, 1 x depth": {"vectors": "binary", "candidates": 100},
    "binary, 2 x depth": {"vectors": "binary", "candidates": 200},
    "binary, 4 x depth": {"vectors": "binary"},
    "binary, 10 x depth": {"vectors": "binary", "candidates": 1000},
}


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--faiss", default=None)
    parser.add_argument("--quality", default=None)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--part", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        {"search": search, "build": build_index, "faiss": search_faiss}[options.part](Path(options.folder))
    elif options.quality:
        compare_quality(Path(options.quality), options.sets)
    else:
        compare_speed(options)


def compare_speed(options: argparse.Namespace) -> None:
    """Write the vectors, then let each contender search."""
    print(
        f"{options.rows:,} x {DIMENSION}, {QUERIES} queries, top {K}, {THREADS} threads, {name_processor()}", flush=True
    )
    with TemporaryDirectory(dir=options.folder) as name:
        write_vectors(Path(name), options.rows)
        found = {"rageval-spec": ask(sys.executable, "search", name)}
        if options.faiss:
            ask(options.faiss, "build", name)
            found["faiss"] = ask(options.faiss, "faiss", name)
    print(f"{'':14s}{'reading':>9s}{'search':>9s}{'CPU':>9s}{'anonymous':>12s}{'mapped':>10s}")
    for who, one in found.items():
        seconds = f"{one['reading']:8.2f}s{one['search']:8.2f}s{one['cpu']:8.2f}s"
        print(f"{who:14s}{seconds}{one['anonymous'] / 1e6:9.0f} MB{one['mapped'] / 1e6:7.0f} MB")
    if "faiss" in found:
        ours, theirs = found["rageval-spec"], found["faiss"]
        wall = ours["search"] / (theirs["reading"] + theirs["search"])
        cpu = ours["cpu"] / theirs["cpu"]
        common = np.mean([len(set(a) & set(b)) for a, b in zip(ours["indices"], theirs["indices"], strict=True)]) / K
        print(f"rageval-spec takes {wall:.2f} of faiss' time and {cpu:.2f} of its CPU time", end="; ")
        print(f"{common:.1%} of the neighbours are the same")


def ask(interpreter: str, part: str, folder: str) -> dict[str, Any]:
    """What a part prints, run by another interpreter."""
    limits = {"OMP_NUM_THREADS": str(THREADS), "OPENBLAS_NUM_THREADS": str(THREADS)}
    command = [interpreter, __file__, "--part", part, "--folder", folder]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True, env=os.environ | limits) or "{}")
    return found


def draw_queries() -> Any:
    """The queries, the same in every process."""
    return np.random.default_rng(1).standard_normal((QUERIES, DIMENSION), dtype=np.float32)


def write_vectors(folder: Path, rows: int) -> None:
    """A file as the store keeps it."""
    from rageval_spec.store.vectors import VectorFile

    rng = np.random.default_rng(0)
    file = VectorFile(folder / "vectors", "int8", nullcontext)
    for start in range(0, rows, CHUNK):
        vectors = rng.standard_normal((min(CHUNK, rows - start), DIMENSION), dtype=np.float32)
        digests = [hashlib.sha256(b"%d" % row).digest() for row in range(start, start + len(vectors))]
        with file.claimed():
            file.append(digests, vectors, np.zeros(len(vectors), np.bool_))
    file.seal()


def search(folder: Path) -> None:
    """What the system `dense` does once the documents are embedded."""
    from rageval_spec import kernels
    from rageval_spec.store.vectors import VectorFile

    start = time.perf_counter()
    file, queries = VectorFile(folder / "vectors", "int8", nullcontext), draw_queries()
    reading = time.perf_counter() - start
    ranks = np.arange(len(file), dtype=np.uint32)

    def run() -> Any:
        found = kernels.NearestSearch(queries, K, "int8", metric="dot", threads=THREADS)
        for first, values, scales, _ in file.blocks():
            found.scan(values, scales, ranks[first : first + len(values)])
        return found.finish().indices

    measure(reading, run)


def build_index(folder: Path) -> None:
    """The same vectors as an index of faiss."""
    import faiss

    record = np.dtype([("digest", "<u8", 2), ("scale", "<f4"), ("rest", "V12")])
    scales = np.memmap(folder / "vectors" / "rows", record, "r")["scale"]
    values = np.memmap(folder / "vectors" / "values", np.int8, "r").reshape(-1, DIMENSION)
    index = faiss.IndexScalarQuantizer(DIMENSION, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, len(values), CHUNK):
        some = slice(start, start + CHUNK)
        vectors = values[some].astype(np.float32) * scales[some, None]
        if start == 0:
            index.train(vectors)
        index.add(vectors)
    faiss.write_index(index, str(folder / "faiss.index"))


def search_faiss(folder: Path) -> None:
    """Read the index and search it."""
    import faiss

    faiss.read_index(str(folder / "faiss.index"))  # into the page cache
    start = time.perf_counter()
    index, queries = faiss.read_index(str(folder / "faiss.index")), draw_queries()
    measure(time.perf_counter() - start, lambda: index.search(queries, K)[1])


def measure(reading: float, run: Any) -> None:
    """Search twice; print what the second time took, and the most memory."""
    run()
    most, ended = {"RssAnon": 0, "RssFile": 0}, threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
            most.update({name: max(most[name], int(status[name].split()[0]) * 1024) for name in most})

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, cpu = time.perf_counter(), time.process_time()
    indices = run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    ended.set()
    watcher.join()
    found = {"reading": reading, "search": seconds, "cpu": cpu}
    found |= {"anonymous": most["RssAnon"], "mapped": most["RssFile"]}
    print(json.dumps({**found, "indices": indices.tolist()}))


def compare_quality(data: Path, sets: list[str]) -> None:
    """Print nDCG@10, recall@100 and how much of the top 10 is that of float32, for each form on each set."""
    from rageval_spec import kernels, registry
    from rageval_spec.plugin import Context
    from rageval_spec.store.store import MemoryAnswers

    print(f"minilm, {name_processor()}\n")
    print("| set | form | nDCG@10 | recall@100 | top 10 as float32's |\n|---|---|---|---|---|", flush=True)
    dataset, onnx, dense = (
        registry.load(*one) for one in (("datasets", "beir"), ("models", "onnx"), ("systems", "dense"))
    )
    for name in sets:
        collection = dataset(dataset.node_type(use="beir", path=name), Context(name, folder=data)).open()
        answers = MemoryAnswers()
        model = onnx(onnx.node_type(use="onnx", model="minilm"), Context("minilm", answers=answers))
        first: set[Any] = set()
        for form, keys in FORMS.items():
            context = Context(form, models={"minilm": model}, answers=answers)
            run = dense(dense.node_type(use="dense", depth=100, **keys), context).retrieve(collection, {}).run
            measures, options = ["ndcg@10", "recall@100"], kernels.RankingOptions(missing="zero")
            means = [
                kernels.evaluate_ranking(collection.qrels, run, [measure], options).values.mean()
                for measure in measures
            ]
            top = set(run.group_by("query_id").head(10).select("query_id", "doc_id").rows())
            first = first or top
            same = len(top & first) / len(first)
            print(f"| {name} | {form} | {means[0]:.4f} | {means[1]:.4f} | {same:.2%} |", flush=True)


if __name__ == "__main__":
    main()
