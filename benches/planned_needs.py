"""Compare what `plan` says that an evaluation takes with what it takes: memory, and disk for results and the store.

    python benches/planned_needs.py [--only answers judged page dense] [--scale 1.0]

Each kind is run at two sizes, from a small process, with a store of its own. `peak` is the most resident memory that
`resource.getrusage` tells of the run; mapped pages of files are part of it. The estimate of `plan` should be at least
what is measured, and at most 1.5 times as much. `dense` embeds with minilm, which must be in the cache.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

import large_answers
from large_answers import JUDGED, LOCAL, write_files
from machine import name_processor

KINDS = {"answers": (10_000, 60_000), "judged": (10_000, 40_000), "page": (10_000, 60_000), "dense": (5_000, 20_000)}
REPORTS = ["terminal", "json"]
VOCABULARY = ["".join(random.Random(rank).choices("aeiounrstlmd", k=2 + len(str(rank)))) for rank in range(1, 20_001)]
FREQUENCIES = list(accumulate(1 / rank for rank in range(1, 20_001)))
"""Zipf's, so that texts are compressed about as well as English."""
MEASURING = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def sentence(words: int) -> str:
    return " ".join(random.choices(VOCABULARY, cum_weights=FREQUENCIES, k=words)).capitalize() + "."


def main() -> None:
    large_answers.sentence = sentence
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    print(name_processor())
    told = f"{'planned':>9}{'took':>7}{'ratio':>7}"
    print(f"{'MB':<18}{'files':>6}{told} in memory{told} of results{told} in the store")
    for kind in options.only:
        for rows in KINDS[kind]:
            with tempfile.TemporaryDirectory() as folder:
                measure(kind, int(rows * options.scale), Path(folder))


def measure(kind: str, rows: int, folder: Path) -> None:
    if kind == "dense":
        write_corpus(folder, rows)
    else:
        write_files(
            folder, rows, JUDGED if kind == "judged" else LOCAL, [*REPORTS, "html"] if kind == "page" else REPORTS
        )
    size = measure_files(folder)
    spec = [str(folder / "spec.yaml"), "--store", str(folder / "store")]
    command = [sys.executable, "-m", "rageval_spec"]
    planned = subprocess.run([*command, "plan", *spec, "--format", "json"], capture_output=True, check=True).stdout
    needs = json.loads(planned)["needs"]
    run = [*command, "run", *spec, "-o", str(folder / "out"), "--no-history"]
    told = subprocess.run([sys.executable, "-c", MEASURING, *run], capture_output=True, text=True, check=True).stdout
    code, units = map(int, told.split()[-2:])
    assert code in (0, 1), f"{kind}: exit code {code}"
    peak = units * (1 if sys.platform == "darwin" else 1024)
    print(f"{f'{kind} x {rows:,}':<18}{size / 1e6:>6.0f}{compare(needs['memory']['likely'], peak)}", end=" " * 10)
    print(compare(needs["results"]["likely"], measure_files(folder / "out")), end=" " * 11)
    print(compare(needs["store"]["likely"], measure_files(folder / "store")), flush=True)


def compare(planned: int, measured: int) -> str:
    return f"{planned / 1e6:>9,.1f}{measured / 1e6:>7,.1f}{planned / max(1, measured):>7.2f}"


def measure_files(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_corpus(folder: Path, documents: int) -> None:
    random.seed(7)
    (folder / "qrels").mkdir()
    with (folder / "corpus.jsonl").open("w") as corpus:
        for number in range(documents):
            print(json.dumps({"_id": f"d{number}", "text": f"{number} {sentence(12)}"}), file=corpus)
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "time of the world"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td7\t1\n")
    spec = {
        "version": 1,
        "datasets": {"golden": {"use": "beir", "path": "."}},
        "systems": {"s": {"use": "dense", "model": "minilm"}},
        "models": {"minilm": {"use": "onnx", "model": "minilm"}},
        "metrics": ["rr"],
        "reports": REPORTS,
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))


if __name__ == "__main__":
    main()
