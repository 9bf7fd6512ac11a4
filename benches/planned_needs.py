"""Compare what `plan` says that an evaluation takes with what it takes: memory, and disk for results and the store.

    python benches/planned_needs.py [--only answers judged dense] [--scale 1.0]

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
from pathlib import Path

from large_answers import JUDGED, LOCAL, sentence, write_files
from machine import name_processor

KINDS = {"answers": (20_000, 120_000), "judged": (20_000, 60_000), "dense": (5_000, 30_000)}
MEASURING = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    print(name_processor())
    print(
        f"{'':<22}{'files':>8}{'planned':>9}{'peak':>7}{'ratio':>7}   results: planned, MB, ratio   store: planned, MB, ratio"
    )
    for kind in options.only:
        for rows in KINDS[kind]:
            with tempfile.TemporaryDirectory() as folder:
                measure(kind, int(rows * options.scale), Path(folder))


def measure(kind: str, rows: int, folder: Path) -> None:
    if kind == "dense":
        write_corpus(folder, rows)
    else:
        write_files(folder, rows, JUDGED if kind == "judged" else LOCAL, ["terminal", "json"])
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
    print(f"{kind + f' x {rows:,}':<22}{size / 1e6:>8.0f}{compare(needs['memory']['likely'], peak)}", end="   ")
    print(compare(needs["results"]["likely"], measure_files(folder / "out")), end="   ")
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
        "reports": ["terminal", "json"],
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))


if __name__ == "__main__":
    main()
