"""`rageval-spec compare --html`, in a real Chromium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rageval_spec.data.evaluation import Evaluation
from tests.answered_evaluation import answered, sample, save, value
from tests.browser import open_page
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ATTACK = '</p><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}'


def write(before: Evaluation, after: Evaluation, folder: Path, *options: str) -> Path:
    save(before, folder / "before")
    save(after, folder / "after")
    path = folder / "pages" / "compare.html"
    result = invoke("compare", folder / "before", folder / "after", "--html", path, *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wrote " in result.stderr
    return path


def test_earlier_answers_stand_beside_todays(browser: Browser, tmp_path: Path) -> None:
    with open_page(browser, write(evaluation(BEFORE), evaluation(AFTER), tmp_path)) as opened:
        page = opened.page
        assert page.locator("thead th").all_inner_texts()[:4] == ["metric", "before", "after", "difference"]
        first = page.locator(".change").first
        assert "broken" in first.inner_text() and "0.900 → 0.100" in first.inner_text()
        before, after = first.locator(".answers > div").all()
        assert before.locator(".prose").inner_text() == "It is red."
        assert after.locator(".prose").inner_text() == "It is blue."
        assert before.locator("del").inner_text().strip() == "red"
        assert after.locator("ins").inner_text().strip() == "blue"
        places = [one.bounding_box() for one in (before, after)]
        assert places[0] is not None and places[1] is not None and places[0]["y"] == places[1]["y"], "beside each other"
        assert (opened.seen, len(opened.requests)) == ([], 1)
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_texts_stay_texts_and_a_lost_answer_says_why(browser: Browser, tmp_path: Path) -> None:
    def make(answer: str | None, error: str | None, number: float | None) -> Evaluation:
        rows = [value(ATTACK, "token_f1", number), value("q2", "token_f1", 1.0)]
        asked = sample(ATTACK, answer=answer, error=error, question=ATTACK, status="failed" if error else "answered")
        return replace(answered(rows, [asked, sample("q2", status="answered")]), name=ATTACK)

    path = write(make(ATTACK, None, 1.0), make(None, ATTACK, None), tmp_path)
    with open_page(browser, path) as opened:
        told = opened.page.locator(".change").inner_text()
        assert told.count(ATTACK) == 4, "its id, its question, its answer and the error"
        assert (opened.seen, len(opened.requests)) == ([], 1)


@pytest.mark.parametrize("form", ["json", "markdown", "text"])
def test_the_page_is_written_whatever_the_format_is(tmp_path: Path, form: str) -> None:
    path = write(evaluation(BEFORE), evaluation(AFTER), tmp_path, "--format", form)
    assert path.read_bytes().startswith(b"<!doctype html>")
