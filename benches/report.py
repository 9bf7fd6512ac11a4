"""Measure the page of `html`: its size, how fast it opens and searches in Chromium, and what all reports cost.

    python benches/report.py [--questions 40 1000 20000] [--answers 2000] [--documents 10]

Makes questions, documents and the answers of two systems, evaluates them, and opens the page from its file, three times
each. "opened" is the time until the page has drawn itself, "list" until the list of questions has, "search" the longest
of ten keystrokes until the list shows what they find.

Then it evaluates that many answers with JSON alone, with all reports and with a workbook: once with metrics that only
compare strings, where reports weigh most, and once with those of `specs/quickstart.yaml`, which also embed sentences.
`--answers 0` leaves this out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SYSTEMS = ("v1", "v2")
SEARCH = "the quota of"
TIMES = 3
ROUNDS = 7
METRICS: list[Any] = ["token_f1", "latency", {"use": "faithfulness", "judge": "overlap"}]
EMBEDDED: list[Any] = [
    {"use": "faithfulness", "judge": "embedding", "as": "grounding"},
    {"use": "completeness", "judge": "embedding"},
]
"""The other metrics of answers of `specs/quickstart.yaml`."""
REPORTS: dict[str, list[Any]] = {
    "only JSON": ["json"],
    "all reports": ["json", "html", "markdown", "junit", "csv", "parquet", "samples", "openmetrics", "codequality"],
    "with a workbook": ["json", {"use": "samples", "path": "samples.xlsx"}],
}

KEYSTROKE = """(text) => new Promise((done) => {
  const search = document.getElementById("search");
  const start = performance.now();
  search.value = text;
  search.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, nargs="*", default=[40, 1000, 20_000])
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--documents", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("questions       size   written    opened      list    search")
        for count in options.questions:
            measure_page(Path(folder) / str(count), count, options.documents)
        if options.answers:
            compare_reports(Path(folder) / "strings", options.answers, options.documents, METRICS, ROUNDS)
            compare_reports(Path(folder) / "models", options.answers, options.documents, [*METRICS, *EMBEDDED], 3)


def measure_page(folder: Path, count: int, documents: int) -> None:
    from rageval_spec.reports.html import HtmlReport
    from rageval_spec.runner import Options, run

    write_files(folder, count, documents, ["json"])
    evaluation = run(folder / "spec.yaml", Options(output=folder / "out", no_store=True)).evaluation
    report = HtmlReport.node_type.model_validate({"use": "html"})
    from rageval_spec.plugin import Context

    start = time.perf_counter()
    files = dict(HtmlReport(report, Context("html")).render_files(evaluation))
    written = time.perf_counter() - start
    for name, content in files.items():
        path = folder / "page" / (name or "index.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    size = sum(map(len, files.values()))
    opened, listed, search = open_page(folder / "page" / "index.html")
    print(
        f"{count:>9,}{size / 1e6:>8.2f} MB{written:>8.2f} s{opened:>7.0f} ms{listed:>7.0f} ms{search:>7.0f} ms",
        flush=True,
    )


def open_page(path: Path) -> tuple[float, float, float]:
    """The best of `TIMES` tries, in milliseconds: opened, list drawn, and the longest keystroke."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("google-chrome")
    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=unconfined)
        tries = [try_page(browser, path) for _ in range(TIMES)]
        browser.close()
    opened, listed, search = (min(column) for column in zip(*tries, strict=True))
    return opened, listed, search


def try_page(browser: Browser, path: Path) -> tuple[float, float, float]:
    from playwright.sync_api import expect

    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(path.absolute().as_uri())
    page.wait_for_selector("body[data-ready]")
    opened: float = page.evaluate("performance.getEntriesByName('rageval-drawn')[0].startTime")
    page.goto("about:blank")
    page.goto(f"{path.absolute().as_uri()}#view=questions")
    page.wait_for_selector(".line")
    listed: float = page.evaluate("performance.getEntriesByName('rageval-drawn')[0].startTime")
    page.evaluate(KEYSTROKE, "t")
    expect(page.locator(".total")).not_to_contain_text("reading answers", timeout=120_000)
    longest = max(page.evaluate(KEYSTROKE, SEARCH[: length + 1]) for length in range(len(SEARCH)))
    page.close()
    return opened, listed, longest


def compare_reports(folder: Path, count: int, documents: int, metrics: Sequence[Any], rounds: int) -> None:
    """An evaluation with all reports, or with a workbook, and the same with JSON alone: medians, taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in REPORTS}
    for name, reports in REPORTS.items():
        write_files(folder / name, count // len(SYSTEMS), documents, reports, metrics)
    for _ in range(rounds):
        for name, times in found.items():
            command = [sys.executable, "-m", "rageval_spec", "run", "spec.yaml", "--quiet", "--no-store", "-o", "out"]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder / name)
            times.append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in found.items()}
    alone = medians["only JSON"]
    print(f"\n{count:,} answers of {len(SYSTEMS)} systems, {len(metrics)} metrics, medians of {rounds}")
    for name, median in medians.items():
        print(f"{name:<15}{median:>6.2f} s  {median / alone - 1:+.1%}", flush=True)


def write_files(
    folder: Path, count: int, documents: int, reports: Sequence[Any], metrics: Sequence[Any] = METRICS
) -> None:
    """A spec with its data: `count` questions, a corpus of as many documents, and the answers of two systems."""
    folder.mkdir(parents=True)
    random.seed(7)
    words, weights = make_vocabulary()
    corpus = [make_text(words, weights, random.randint(40, 90)) for _ in range(max(count, 40))]
    golden, answers = [], {system: list[Any]() for system in SYSTEMS}
    for number in range(count):
        chosen = random.sample(range(len(corpus)), documents)
        sentences = corpus[chosen[0]].split(". ")
        question = make_text(words, weights, 9).rstrip(".") + "?"
        golden.append({"id": f"q{number}", "question": question, "answer": sentences[0]})
        for system in SYSTEMS:
            answer = ". ".join([*random.sample(sentences, min(2, len(sentences))), make_text(words, weights, 12)])
            answers[system].append(
                {
                    "id": f"q{number}",
                    "answer": answer,
                    "contexts": [corpus[one] for one in chosen],
                    "context_ids": [f"document-{one}" for one in chosen],
                    "seconds": round(random.lognormvariate(0, 0.5), 3),
                }
            )
    write_rows(folder / "golden.jsonl", golden)
    for system, rows in answers.items():
        write_rows(folder / f"{system}.jsonl", rows)
    spec = {
        "version": 1,
        "name": "bench",
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {system: {"use": "file", "path": f"{system}.jsonl"} for system in SYSTEMS},
        "metrics": list(metrics),
        "gates": [{"metric": "faithfulness", "min": 0.1}],
        "reports": list(reports),
    }
    (folder / "spec.yaml").write_text(json.dumps(spec))


def write_rows(path: Path, rows: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_vocabulary() -> tuple[list[str], list[float]]:
    """4,000 made-up words, used as often as words of a language are."""
    syllables = [a + b for a in "bcdfghlmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    words = ["the", "quota", "of"] + ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(4000)]
    return words, [1 / (rank + 2) for rank in range(len(words))]


def make_text(words: Sequence[str], weights: Sequence[float], length: int) -> str:
    chosen = random.choices(words, weights, k=length)
    parts = (" ".join(chosen[start : start + 12]).capitalize() for start in range(0, length, 12))
    return ". ".join(parts) + "."


if __name__ == "__main__":
    main()
