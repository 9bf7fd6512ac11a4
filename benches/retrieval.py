"""Measure retrieval quality and speed on BEIR folders, and compare with published figures.

    python benches/retrieval.py [FOLDER...] [--system SYSTEM]... [--rounds 3] [--store FOLDER]

The default folders are those in `shared/data/retrieval` next to the repository. `rageval-spec benchmark` computes
everything in fresh processes. The first run fills the store (an empty one unless `--store` names another). Each folder
is then run again by itself and must find everything in the store. The output shows the table, each published figure
with the difference from ours, and the median wall seconds of the second runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data" / "retrieval"
NAMES = ("scifact", "cranfield", "medline", "nq_oracle", "xquad_en", "2wikimultihop", "xquad_de")
BM25, DENSE, HYBRID = "bm25", "dense:minilm", "hybrid"
METRIC = "ndcg@10"
SECONDS = 2.0


class Published(NamedTuple):
    """A published nDCG@10 and the largest difference allowed."""

    dataset: str
    system: str
    value: float
    within: float
    source: str


PUBLISHED = (
    Published("scifact", "bm25", 0.665, 0.01, "Thakur et al. 2021, table 2"),
    Published("scifact", "dense-minilm", 0.645, 0.005, "MTEB, all-MiniLM-L6-v2"),
)


def command(folders: Sequence[Path], systems: Sequence[str], store: Path, form: str) -> list[str]:
    """The command line of a benchmark."""
    options = [word for system in systems for word in ("--system", system)]
    program = [sys.executable, "-m", "rageval_spec", "benchmark"]
    return [*program, *map(str, folders), *options, "--metric", METRIC, "--store", str(store), "--format", form]


def run(arguments: list[str]) -> tuple[float, str]:
    """Wall seconds of a process, and its output."""
    start = time.perf_counter()
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"failed with exit status {done.returncode}")
    return seconds, done.stdout


def compare(report: dict[str, Any]) -> bool:
    """Print each published figure and ours. Return whether all are close enough and the hybrid beats its parts."""
    means = {
        (cell["dataset"], cell["system"]): cell["mean"]
        for cell in report["evaluation"]["aggregates"]
        if cell["metric"] == METRIC
    }
    good = True
    for dataset, system, value, within, source in PUBLISHED:
        if (dataset, system) in means:
            ours = means[dataset, system]
            near = abs(ours - value) <= within
            good &= near
            print(
                f"{dataset} {system}: {ours:.4f}, published {value:.3f} ({ours - value:+.4f}, at most {within}): ",
                end="",
            )
            print(f"{'ok' if near else 'TOO FAR'}; {source}")
    if ("scifact", HYBRID) in means:
        above = all(means["scifact", HYBRID] > means["scifact", part] for part in (BM25, "dense-minilm"))
        good &= above
        print(f"scifact {HYBRID}: {means['scifact', HYBRID]:.4f}, {'above both' if above else 'NOT ABOVE BOTH'}")
    return good


def run_again(folder: Path, systems: Sequence[str], store: Path, rounds: int) -> bool:
    """Print how long a second run takes. Return whether it computed nothing and was fast."""
    runs = [run(command([folder], systems, store, "json")) for _ in range(rounds)]
    seconds = statistics.median(seconds for seconds, _ in runs)
    stored = all(timing["stored"] for _, text in runs for timing in json.loads(text)["timings"])
    print(f"{folder.name}: second run {seconds:.2f} s, {'nothing computed' if stored else 'SOMETHING COMPUTED AGAIN'}")
    return stored and (seconds < SECONDS or folder.name != "scifact")


def main() -> None:
    """Read the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[DATA / name for name in NAMES])
    parser.add_argument("--system", dest="systems", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    systems = options.systems or [BM25, DENSE, HYBRID]
    with tempfile.TemporaryDirectory() as temporary:
        store = options.store or Path(temporary)
        seconds, _ = run(command(options.folders, systems, store, "json"))
        print(f"first run: {seconds:.1f} s on {len(options.folders)} datasets\n")
        print(run(command(options.folders, systems, store, "text"))[1])
        report = json.loads(run(command(options.folders, systems, store, "json"))[1])
        good = compare(report)
        for folder in options.folders:
            good &= run_again(folder, systems, store, options.rounds)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
