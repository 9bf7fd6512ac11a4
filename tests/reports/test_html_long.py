"""Long texts and old links on the page of `html`, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from rageval_spec.data.tables import SampleTable
from rageval_spec.plugin import Context
from rageval_spec.reports.html import HtmlNode, HtmlReport
from tests.browser import Opened, open_page
from tests.reports.page import ANSWER, make_full_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

LONG = " Every plan can be refunded." * 1800


def expect(locator: Locator) -> Any:
    from playwright.sync_api import expect as wait

    return wait(locator)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    evaluation = make_full_evaluation()
    longer = pl.col("answer").str.replace(ANSWER, ANSWER + LONG, literal=True)
    samples = evaluation.samples.with_columns(longer, references=pl.concat_list(pl.lit("Yes." + "\nNo." * 40)))
    content = HtmlReport(HtmlNode(use="html"), Context("html")).render(
        replace(evaluation, sample_table=SampleTable(lambda: [samples]))
    )
    path = tmp_path_factory.mktemp("long") / "page.html"
    path.write_bytes(content)
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Opened]:
    with open_page(browser, page, "#q=q0&system=v2") as made:
        made.page.wait_for_selector(".answer .fold")
        yield made
        assert made.seen == []


def height(locator: Locator) -> float:
    box = locator.bounding_box()
    assert box is not None
    return box["height"]


def test_a_long_answer_is_folded_and_a_button_shows_all_of_it(opened: Opened) -> None:
    answer = opened.page.locator(".answer")
    assert height(answer.locator(".fold")) < 300
    button = answer.get_by_role("button", name=f"Show all {len(ANSWER + LONG):,} characters of the answer")
    assert button.get_attribute("aria-expanded") == "false"
    button.focus()
    opened.page.keyboard.press("Enter")
    assert height(answer.locator(".fold")) > 3000
    button = answer.get_by_role("button", name="Show less of the answer")
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert height(answer.locator(".fold")) < 300


def test_the_focus_opens_a_fold(opened: Opened) -> None:
    opened.page.locator(".answer .claim").first.focus()
    assert height(opened.page.locator(".answer .fold")) > 3000


def test_many_short_lines_are_folded_too_and_short_texts_are_not(opened: Opened) -> None:
    reference = opened.page.locator(".reference")
    assert height(reference.locator(".fold")) < 300
    assert reference.get_by_role("button").inner_text().startswith("Show all 164 characters")
    assert opened.page.locator("header .fold").count() == 0


def test_print_shows_all_of_a_long_text(opened: Opened) -> None:
    opened.page.emulate_media(media="print")
    assert height(opened.page.locator(".answer .fold")) > 3000


def test_a_link_that_names_an_unknown_system_says_so(browser: Browser, page: Path) -> None:
    told = "The link names the system v9, the slice level=1, which this evaluation does not have."
    with open_page(browser, page, "#q=q0&system=v9&slice=level=1&cause=fine") as opened:
        notice = opened.page.locator("#reader .notice")
        expect(notice).to_have_text(told)
        expect(opened.page.locator("#live")).to_have_text(f"{told} How do I get my money back?")
        assert opened.page.locator("#card-title").inner_text() == "How do I get my money back?"
        opened.page.keyboard.press("j")
        expect(notice).to_have_count(0)
        assert opened.seen == []


@pytest.mark.parametrize("width", [390, 1280])
def test_an_unknown_system_is_named_above_the_list_too(browser: Browser, page: Path, width: int) -> None:
    size = {"width": width, "height": 844}
    with open_page(browser, page, "#view=questions&with=v8&cause=bad", viewport=size) as opened:
        notice = opened.page.locator(".notice:visible")
        expect(notice).to_have_text("The link names the system v8, the cause bad, which this evaluation does not have.")
        assert opened.page.locator(".line").count() > 0
        opened.page.get_by_label("Sort").select_option("Best first")
        expect(notice).to_have_count(0)


def test_an_unknown_question_is_announced(browser: Browser, page: Path) -> None:
    with open_page(browser, page, "#q=q999") as opened:
        expect(opened.page.locator("#live")).to_have_text("This evaluation has no question q999.")
