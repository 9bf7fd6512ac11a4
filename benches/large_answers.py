"""Measure the memory and processor time of an evaluation of many answers with three local metrics, phase by phase.

    python benches/large_answers.py [--rows 100000] [--judge] [--reports terminal json html] [--no-show]

Writes the golden set and the answers (92 MB for 100,000 rows) to a temporary folder, evaluates them in a separate
process and prints its phases: wall time, processor time, and the most memory seen. `--judge` replaces rouge_l with
faithfulness by the judge `overlap`, and also measures how many rows a second the judge alone reads. Then `show` finds
one question in the results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from machine import name_processor

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
    parser.add_argument("--reports", nargs="+", default=["terminal", "json", "html"])
    parser.add_argument("--no-show", action="store_true")
    parser.add_argument("--phases", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--assess", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phases:
        run_in_phases(options.phases)
        return
    if options.assess:
        assess()
        return
    print(name_processor())
    with tempfile.TemporaryDirectory() as folder:
        size = write_files(Path(folder), options.rows, JUDGED if options.judge else LOCAL, options.reports)
        print(f"{options.rows:,} rows, {size / 1e6:.0f} MB, reports: {' '.join(options.reports)}")
        wall = measure("run", [sys.executable, __file__, "--phases", folder])
        print(f"{options.rows / wall:,.0f} rows a second from end to end")
        if options.judge:
            measure("the judge alone", [sys.executable, __file__, "--assess"])
        if not options.no_show:
            show = [sys.executable, "-m", "rageval_spec", "show"]
            measure("show one question", [*show, f"q{options.rows // 2}", f"{folder}/out"], is_quiet=True)
            measure("show the worst", [*show, f"{folder}/out"], is_quiet=True)


def write_files(folder: Path, rows: int, metrics: list[object], reports: list[str]) -> int:
    """Write the spec, the golden set and the answers; return their size in bytes."""
    random.seed(7)
    with (folder / "golden.jsonl").open("w") as golden, (folder / "answers.jsonl").open("w") as answers:
        for number in range(rows):
            question, answer, contexts, reference = make_row(number)
            print(json.dumps({"id": f"q{number}", "question": question, "reference": reference}), file=golden)
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


def make_row(number: int) -> tuple[str, str, list[str], str]:
    """A question, an answer, its contexts, and the reference; every third answer is right."""
    reference = sentence(16)
    contexts = [" ".join(sentence(12) for _ in range(4)) for _ in range(2)]
    question = f"What of number {number} {sentence(6)}?"
    answer = reference if number % 3 == 0 else f"{reference[: len(reference) // 2]} {sentence(8)}"
    return question, answer, contexts, reference


def sentence(words: int) -> str:
    return " ".join(random.choices(WORDS, k=words)).capitalize() + "."


def measure(what: str, command: list[str], *, is_quiet: bool = False) -> float:
    """Run a command and print what it took; return its wall time."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL if is_quiet else None)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)}: exit status {status}")
    peak = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(f"{what}: peak {peak:,.0f} MiB, processor {used.ru_utime + used.ru_stime:.1f} s, wall {wall:.1f} s")
    return wall


def run_in_phases(folder: Path) -> None:
    """Evaluate, and print a line for each thing that the evaluation announces that it does."""
    import threading

    from rageval_spec import progress, runner

    phases: list[tuple[str, float, float]] = [("start", time.perf_counter(), time.process_time())]
    peaks: dict[int, float] = {}

    def announce(_display: object, what: str) -> None:
        phases.append((what, time.perf_counter(), time.process_time()))

    def watch() -> None:
        while True:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            place = len(phases) - 1
            peaks[place] = max(peaks.get(place, 0), pages * resource.getpagesize() / 2**20)
            time.sleep(0.01)

    progress.ProgressDisplay.announce = announce  # type: ignore[method-assign,assignment]
    if sys.platform == "linux":
        threading.Thread(target=watch, daemon=True).start()
    runner.run(folder / "spec.yaml", runner.Options(output=folder / "out", no_history=True))
    announce(None, "end")
    for place, ((what, wall, used), (_, wall_after, used_after)) in enumerate(pairwise(phases)):
        peak = f"{peaks[place]:6,.0f} MiB" if place in peaks else ""
        print(f"  {what:32} wall {wall_after - wall:7.1f} s  processor {used_after - used:7.1f} s  {peak}")


def assess(rows: int = 100_000) -> None:
    """Let the judge `overlap` read samples, and print how many a second."""
    from rageval_spec import registry
    from rageval_spec.data.samples import Sample
    from rageval_spec.metrics.shared.judged_metrics import ANSWER_IN_CONTEXTS
    from rageval_spec.plugin import Context

    random.seed(7)
    made = [make_row(number) for number in range(rows)]
    samples = [
        Sample(f"q{number}", question, answer=answer, contexts=tuple(contexts), references=(reference,))
        for number, (question, answer, contexts, reference) in enumerate(made)
    ]
    plugin = registry.load("judges", "overlap")
    judge = plugin(plugin.node_type(use="overlap"), Context("overlap"))
    judge.assess(ANSWER_IN_CONTEXTS, samples[:1000])
    wall, used = time.perf_counter(), time.process_time()
    for start in range(0, rows, 10_000):
        judge.assess(ANSWER_IN_CONTEXTS, samples[start : start + 10_000])
    wall, used = time.perf_counter() - wall, time.process_time() - used
    print(f"  overlap: {rows / wall:,.0f} rows a second, {used / rows * 1e6:.0f} microseconds of processor time a row")


if __name__ == "__main__":
    main()
