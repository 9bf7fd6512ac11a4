"""Time run files and tables of runs: this tree, an earlier one, and peers, on the same work in one run.

    python benches/runs.py [--before OTHER_TREE/python] [--peers PEERS/bin/python] [--rows 200] [MODE...]

MODE is any of file, ids, scale, scattered (all by default).

- file: a run of 250 MB (6,980 queries x 1,000 documents, made by `benches/ranking.py`'s generator) by path.
- ids: the same run as polars frames with texts and with whole numbers as ids, and as dicts.
- scale: runs of an eighth, a quarter, half and all of `--rows` million rows by path (1,000 for each query), and the
  slope of the time. A file of 200 million rows takes 9 GB under `--work`, and is deleted at the end.
- scattered: a run of 12 million rows in which no two rows of a query are adjacent, within a table of 512 MB.

Contenders take turns in fresh processes. `cpu` is user and system time. `RssAnon` is sampled every 20 ms: memory that a
process has for itself; `RssFile` is what it maps from files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ranking
from machine import name_processor

PER_QUERY = 1000
#: So many queries have rankings of their own; those after them repeat one of these under another id.
RANKINGS = 500

WORKER = f"""
import json, resource, sys, threading, time
contender, mode, qrels, run = sys.argv[1:]
MEASURES, TREC, RANX = {ranking.MEASURES!r}, {ranking.TREC!r}, {ranking.RANX!r}
peak = {{"RssAnon": 0, "RssFile": 0}}
def look():
    for line in open("/proc/self/status"):
        name, _, rest = line.partition(":")
        if name in peak:
            peak[name] = max(peak[name], int(rest.split()[0]) / 1000)
def watch():
    while True:
        look(); time.sleep(0.02)
def ours(qrels, run):
    import rageval_spec
    return rageval_spec.evaluate(qrels, run, MEASURES).means
def pytrec_eval(qrels, run):
    import pytrec_eval
    with open(qrels) as q, open(run) as r:
        qrels, run = pytrec_eval.parse_qrel(q), pytrec_eval.parse_run(r)
    return pytrec_eval.RelevanceEvaluator(qrels, set(TREC)).evaluate(run)
def ranx(qrels, run):
    from ranx import Qrels, Run, evaluate
    return evaluate(Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec"), RANX)
def ir_measures(qrels, run):
    import ir_measures as irm
    measures = [irm.nDCG @ 10, irm.AP, irm.RR, irm.R @ 100, irm.P @ 5]
    return irm.calc(measures, irm.read_trec_qrels(qrels), irm.read_trec_run(run)).aggregated
def frames(whole):
    import polars as pl
    from rageval_spec import kernels
    tables = [pl.DataFrame(kernels.read_qrels(qrels)), pl.DataFrame(kernels.read_run(run))]
    cast = pl.col("query_id", "doc_id").cast(pl.Int64)
    return [table.with_columns(cast) for table in tables] if whole else tables
def dicts():
    tables = ({{}}, {{}})
    for table, path, column, number in zip(tables, (qrels, run), (3, 4), (int, float)):
        for line in open(path):
            fields = line.split()
            table.setdefault(fields[0], {{}})[fields[2]] = number(fields[column])
    return tables
__import__("rageval_spec.api.rankings" if contender == "ours" else contender)
prepare = {{"file": lambda: (qrels, run), "text": lambda: frames(False), "whole": lambda: frames(True), "dicts": dicts}}
arguments, work = prepare[mode](), globals()[contender]
rounds = 9 if contender == "ours" and mode in ("text", "whole", "dicts") else 1
threading.Thread(target=watch, daemon=True).start()
rows = []
for _ in range(rounds):
    used = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    cpu, start = used(), time.perf_counter()
    means = work(*arguments)
    rows.append((time.perf_counter() - start, used() - cpu)); look()
means = {{str(k): float(v) for k, v in means.items()}} if contender == "ours" else None
print(json.dumps(dict(wall=min(r[0] for r in rows), cpu=min(r[1] for r in rows), means=means, **peak)))
"""


def run_worker(python: str, path: str | None, contender: str, mode: str, files: tuple[Path, Path]) -> dict[str, Any]:
    """One contender's seconds and megabytes."""
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    command = [python, "-c", WORKER, contender, mode, *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ModuleNotFoundError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def race(title: str, contenders: list[tuple[str, str, str | None, str, str]], files: tuple[Path, Path], n: int) -> None:
    """Print the medians of contenders (label, python, PYTHONPATH, name, mode) that take turns `n` times."""
    rows: dict[str, list[dict[str, float]]] = {}
    for _ in range(n):
        for label, python, path, name, mode in contenders:
            try:
                rows.setdefault(label, []).append(run_worker(python, path, name, mode, files))
            except ModuleNotFoundError as error:
                rows.pop(label)
                print(f"  {label}: {error}")
    print(f"\n{title}\n\n| | wall s | cpu s | x the first's cpu | RssAnon MB | RssFile MB |\n|---|---|---|---|---|---|")
    first = None
    for label, results in rows.items():
        wall, cpu, anon, mapped = (
            statistics.median(result[key] for result in results) for key in ("wall", "cpu", "RssAnon", "RssFile")
        )
        first = first or cpu
        print(f"| {label} | {wall:.3f} | {cpu:.3f} | {cpu / first:.2f} | {anon:.0f} | {mapped:.0f} |", flush=True)


def make_rankings() -> list[tuple[bytes, list[str]]]:
    """Seeded rankings of `PER_QUERY` documents: their lines without the query id, and their documents."""
    rng = random.Random(27)
    rankings = []
    for _ in range(RANKINGS):
        docs = [str(doc) for doc in rng.sample(range(100_000, 9_000_000), PER_QUERY)]
        scores = sorted((rng.gammavariate(9.0, 1.6) for _ in docs), reverse=True)
        lines = [
            f" Q0 {doc} {at} {score:.6f} synthetic\n"
            for at, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
        ]
        rankings.append(("".join(lines).encode(), docs))
    return rankings


def query_blocks(rankings: list[tuple[bytes, list[str]]], queries: int) -> Iterator[tuple[str, bytes, str]]:
    """Each query's id, its lines, and the document that is relevant to it."""
    rng = random.Random(28)
    for number in range(queries):
        query = str(1_000_000 + 7 * number)
        lines, docs = rankings[number % RANKINGS]
        block = query.encode() + lines[:-1].replace(b"\n", b"\n" + query.encode()) + b"\n"
        yield query, block, docs[min(PER_QUERY - 1, int(rng.paretovariate(0.55)) - 1)]


def scale(work: Path, rows: int, tree: str | None) -> None:
    """Time prefixes of one run, and print the slope."""
    rankings, sizes = make_rankings(), [rows // 8, rows // 4, rows // 2, rows]
    qrels, run = work / "scale.qrels", work / "scale.run"
    print(
        f"\n{rows / 1e6:.0f} million rows by path\n\n"
        "| million rows | GB | wall s | cpu s | RssAnon MB | RssFile MB | rr |"
    )
    print("|---|---|---|---|---|---|---|")
    points, written = [], 0
    blocks = query_blocks(rankings, rows // PER_QUERY)
    try:
        for size in sizes:
            with qrels.open("a") as judged, run.open("ab", buffering=1 << 24) as lines:
                while written < size:
                    query, block, doc = next(blocks)
                    lines.write(block)
                    judged.write(f"{query} 0 {doc} 1\n")
                    written += PER_QUERY
            row = run_worker(sys.executable, tree, "ours", "file", (qrels, run))
            points.append((size / 1e6, row["wall"], row["cpu"]))
            print(
                f"| {size / 1e6:.0f} | {run.stat().st_size / 1e9:.2f} | {row['wall']:.2f} | {row['cpu']:.2f} | "
                f"{row['RssAnon']:.0f} | {row['RssFile']:.0f} | {row['means']['rr']:.6f} |",
                flush=True,
            )
    finally:
        qrels.unlink(missing_ok=True)
        run.unlink(missing_ok=True)
    for name, at in (("wall", 1), ("cpu", 2)):
        slope, start = statistics.linear_regression([p[0] for p in points], [p[at] for p in points])
        billion = start + 1000 * slope
        print(f"{name}: {start:.2f} s + {1000 * slope:.1f} ms for each million rows; a billion rows: {billion:.0f} s")


def scattered(work: Path, rows: int, paths: list[tuple[str, str | None]]) -> None:
    """Time a run that lists the first documents of all queries, then the second ones, and so on."""
    qrels, run = work / "scattered.qrels", work / "scattered.run"
    blocks = [
        (query, block.splitlines(keepends=True), doc)
        for query, block, doc in query_blocks(make_rankings(), rows // PER_QUERY)
    ]
    try:
        run.write_bytes(b"".join(lines[at] for at in range(PER_QUERY) for _, lines, _ in blocks))
        qrels.write_text("".join(f"{query} 0 {doc} 1\n" for query, _, doc in blocks))
        size = len(blocks)
        del blocks
        contenders = [(label, sys.executable, path, "ours", "file") for label, path in paths]
        race(f"{rows / 1e6:.0f} million rows of {size} queries, none adjacent", contenders, (qrels, run), 1)
    finally:
        qrels.unlink(missing_ok=True)
        run.unlink(missing_ok=True)


def main() -> None:
    """Read the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modes", nargs="*", default=["file", "ids", "scale", "scattered"])
    parser.add_argument("--before", help="the folder `python` of an earlier tree, built")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--bench", type=Path, default=ranking.HERE.parents[1] / "shared" / "bench" / "ir")
    parser.add_argument("--work", type=Path, default=ranking.HERE / "work")
    parser.add_argument("--rows", type=int, default=200, help="million rows of the longest run")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"Processor: {name_processor()}, {os.cpu_count()} cores")
    here = str(ranking.HERE.parent / "python")
    paths: list[tuple[str, str | None]] = [("this tree", here)]
    paths += [("before", options.before)] if options.before else []
    options.work.mkdir(parents=True, exist_ok=True)
    files = (ranking.WORK / "work" / "marco.qrels", ranking.WORK / "work" / "marco.run")
    if {"file", "ids"} & set(options.modes):
        ranking.prepare(options.bench, ["marco"])
    if "file" in options.modes:
        contenders = [(label, sys.executable, path, "ours", "file") for label, path in paths]
        race("A run of 250 MB by path", contenders, files, 3 * options.rounds)
        peers = [(name, options.peers, None, name, "file") for name in ("pytrec_eval", "ir_measures", "ranx")]
        race("The same and peers", [*contenders[:1], *peers], files, 1)
    if "ids" in options.modes:
        for label, path in paths:
            contenders = [(mode, sys.executable, path, "ours", mode) for mode in ("text", "whole", "dicts")]
            race(f"Ids, {label}", contenders, files, options.rounds)
    if "scale" in options.modes:
        scale(options.work, options.rows * 1_000_000, here)
    if "scattered" in options.modes:
        scattered(options.work, 12_000_000, paths)


if __name__ == "__main__":
    main()
