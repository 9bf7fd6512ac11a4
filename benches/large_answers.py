"""Measure the memory and processor time of an evaluation of 100,000 answers with three local metrics.

    python benches/large_answers.py [--rows 100000] [--judge] [--reports json html]

Writes the golden set and the answers (92 MB together) to a temporary folder, evaluates them in a separate process and
prints its peak memory and processor time. `--judge` replaces rouge_l with faithfulness by the judge `overlap`.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = (
    *("time", "person", "year", "way", "day", "thing", "man", "world", "life", "hand", "part", "child"),
    *("eye", "woman", "place", "work", "week", "case", "point", "company"),
)
LOCAL: list[object] = ["exact_match", "token_f1", "rouge_l"]
JUDGED: list[object] = ["exact_match", "token_f1", {"use": "faithfulness", "judge": "overlap"}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--reports", nargs="+", default=["terminal", "json"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size = write_files(Path(folder), options.rows, JUDGED if options.judge else LOCAL, options.reports)
        print(f"{options.rows:,} rows, {size / 1e6:.0f} MB")
        measure(Path(folder), options.limit)


def write_files(folder: Path, rows: int, metrics: list[object], reports: list[str]) -> int:
    """Write the spec, the golden set and the answers; return their size in bytes."""
    random.seed(7)
    with (folder / "golden.jsonl").open("w") as golden, (folder / "answers.jsonl").open("w") as answers:
        for number in range(rows):
            reference = sentence(16)
            contexts = [" ".join(sentence(12) for _ in range(4)) for _ in range(2)]
            question = f"What of number {number} {sentence(6)}?"
            print(json.dumps({"id": f"q{number}", "question": question, "reference": reference}), file=golden)
            answer = reference if number % 3 == 0 else f"{reference[: len(reference) // 2]} {sentence(8)}"
            row = {"id": f"q{number}", "question": question, "answer": answer, "contexts": contexts}
            print(json.dumps(row), file=answers)
    spec = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "answers.jsonl"}},
        "metrics": metrics,
        "reports": reports,
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))
    return sum(path.stat().st_size for path in folder.iterdir())


def sentence(words: int) -> str:
    return " ".join(random.choices(WORDS, k=words)).capitalize() + "."


def measure(folder: Path, limit: int | None) -> None:
    more = ["--limit", str(limit)] if limit else []
    command = [sys.executable, "-m", "rageval_spec", "run", str(folder / "spec.yaml"), "-o", str(folder / "out"), *more]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(f"peak {peak:,.0f} MiB, processor {used.ru_utime + used.ru_stime:.1f} s, wall {wall:.1f} s")


if __name__ == "__main__":
    main()
