"""Measure the review page: its size, and how fast it opens and answers keys in Chromium.

    python benches/review_page.py [--tasks 60 2000] [--contexts 8]

Makes answers with three claims and contexts of 1,500 characters, and opens the page from its file. "opened" is the time
until it asks for a name, "first" from the name to the first task, "key" the longest of the keys that label a task and
go to the next one, and "list" the time until the list of all tasks is there.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.page.rendering import render_page
from rageval_spec.review.tasks import ReviewClaim, ReviewContext, ReviewSheet, ReviewTask, to_payload

if TYPE_CHECKING:
    from playwright.sync_api import Page

CRITERIA = (make_criterion("faithfulness", "claims"), make_criterion("completeness"), make_criterion("fluency", "1..5"))
KEYS = ("1", "2", "3", "y", "4", "Enter")
LENGTH = 1500
PRESS = """(key) => new Promise((done) => {
  const start = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, nargs="*", default=[60, 2000])
    parser.add_argument("--contexts", type=int, default=8)
    options = parser.parse_args()
    print("    tasks       size   written    opened     first      key      list")
    with tempfile.TemporaryDirectory() as folder:
        for count in options.tasks:
            measure(Path(folder) / f"{count}.html", count, options.contexts)


def measure(path: Path, count: int, contexts: int) -> None:
    payload = to_payload(make_sheet(count, contexts))
    start = time.perf_counter()
    content = render_page(payload)
    written = time.perf_counter() - start
    path.write_bytes(content)
    figures = "".join(f"{figure:>7.0f} ms" for figure in use_page(path))
    print(f"{count:>9,}{len(content) / 1e6:>8.2f} MB{written:>8.2f} s{figures}", flush=True)


def use_page(path: Path) -> tuple[float, float, float, float]:
    """Opens the page, labels a few tasks, and opens the list of all; milliseconds."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium") or shutil.which("google-chrome")
    unconfined = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=unconfined)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.absolute().as_uri())
        page.wait_for_selector("body[data-ready]")
        opened: float = page.evaluate("performance.now()")
        first = begin(page)
        key = max(float(page.evaluate(PRESS, key)) for _ in range(5) for key in KEYS)
        listed: float = page.evaluate(PRESS, "l")
        browser.close()
    return opened, first, key, listed


def begin(page: Page) -> float:
    """Gives a name; the milliseconds until the first task is there."""
    page.get_by_label("Your name").fill("Ann")
    start = time.perf_counter()
    page.keyboard.press("Enter")
    page.wait_for_selector("#task-title")
    return 1000 * (time.perf_counter() - start)


def make_sheet(count: int, contexts: int) -> ReviewSheet:
    random.seed(7)
    words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=random.randint(2, 10))) for _ in range(4000)]
    tasks = tuple(make_task(number, contexts, words) for number in range(count))
    return ReviewSheet("bench", "results", "0" * 16, tasks, CRITERIA)


def make_task(number: int, contexts: int, words: list[str]) -> ReviewTask:
    sentences = [f"{make_text(words, 80).capitalize()}." for _ in range(3)]
    answer = " ".join(sentences)
    claims = tuple(
        ReviewClaim("faithfulness", at, text, start=answer.index(text), end=answer.index(text) + len(text))
        for at, text in enumerate(sentences)
    )
    texts = tuple(ReviewContext(make_text(words, LENGTH), f"document-{at}") for at in range(contexts))
    question = f"{make_text(words, 60)}?"
    return ReviewTask("golden", "v1", f"q{number}", question, answer, texts, (sentences[0],), claims)


def make_text(words: list[str], length: int) -> str:
    return " ".join(random.choices(words, k=length // 6))


if __name__ == "__main__":
    main()
