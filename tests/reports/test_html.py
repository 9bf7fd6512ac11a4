"""The page of `html`, in a real Chromium."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import yaml

from rageval_spec.data.bands import BandScale, Level
from rageval_spec.data.evaluation import Evaluation, SliceResult, Stability
from rageval_spec.data.outcomes import BaselineChange, Interval, RankCounts
from rageval_spec.data.tables import SampleTable
from rageval_spec.drawing import html_shell
from rageval_spec.drawing.cards import list_first
from rageval_spec.drawing.page.page import write_files
from rageval_spec.plugin import Context
from rageval_spec.reports.html import HtmlNode, HtmlReport
from rageval_spec.reports.terminal import TerminalNode, TerminalReport
from tests.browser import Opened, open_page
from tests.command_line import invoke
from tests.reports.page import ARABIC, ATTACK, make_full_evaluation, make_page_evaluation
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

MANY = 5_000


def expect(locator: Locator) -> Any:
    """Waits for a condition; `wait_for_function` would need the policy to allow `eval`."""
    from playwright.sync_api import expect as wait

    return wait(locator)


def render(evaluation: Evaluation, **keys: Any) -> bytes:
    return HtmlReport(HtmlNode(use="html", **keys), Context("html")).render(evaluation)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    (made / "page.html").write_bytes(render(make_page_evaluation()))
    (made / "full.html").write_bytes(render(make_full_evaluation()))
    (made / "long.html").write_bytes(render(make_page_evaluation(MANY)))
    return made


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Opened]:
    """The questions of the small page, which must do nothing forbidden."""
    with open_page(browser, folder / "page.html", "#view=questions") as made:
        yield made
        assert made.seen == []
        assert len(made.requests) == 1


def listed(opened: Opened) -> list[str]:
    return opened.page.locator(".line .under bdi").all_inner_texts()


def read(locator: Locator) -> str:
    return re.sub(r"\s+", " ", locator.inner_text()).strip()


def marks(opened: Opened) -> list[str]:
    return opened.page.locator(".claim").all_inner_texts()


def title(opened: Opened) -> str:
    return opened.page.locator("#card-title").inner_text()


def test_the_same_evaluation_gives_the_same_bytes() -> None:
    assert render(make_full_evaluation()) == render(make_full_evaluation())


def test_the_page_says_what_the_evaluation_came_to(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "page.html") as opened:
        main = opened.page.locator("#overview")
        assert main.locator("h1").inner_text() == "Not ready: 1 of 3 gates failed, 1 warned."
        assert main.locator(".lead").inner_text() == "faithfulness fell from 0.800 (v1) to 0.600 (v2)."
        assert opened.page.title() == "support-bot"
        forest = main.locator(".forest tbody tr")
        assert (
            re.sub(r"\s+", " ", forest.nth(0).inner_text())
            == "faithfulness v2 against v1 −0.200 ▼ worse [−0.300, −0.100] p = 0.0020"
        )
        assert "no clear difference" in forest.nth(1).inner_text()
        gates = main.locator(".gates tbody tr")
        assert gates.count() == 3
        assert "failed" in gates.nth(0).inner_text()
        assert gates.nth(0).locator("rect.allowed").count() == 1
        assert "0.600 ▼" in main.locator("table.results").inner_text()
        assert "Warning: golden, v2: 1 of 6 questions" in main.inner_text()


def test_an_inconclusive_gate_bears_its_own_sign(browser: Browser, tmp_path: Path) -> None:
    whole = make_page_evaluation()
    gate = replace(whole.gates[0], outcome="inconclusive", bound="whole interval ≥ 0.75", reason="too few questions")
    (tmp_path / "page.html").write_bytes(render(replace(whole, gates=(whole.gates[0], gate))))
    with open_page(browser, tmp_path / "page.html") as opened:
        main = opened.page.locator("#overview")
        assert main.locator("h1").inner_text() == "Undecided: 1 of 2 gates is inconclusive, none failed."
        first = main.locator(".gates tbody tr").nth(0)
        assert "?" in first.locator(".badge").inner_text()
        assert "inconclusive" in first.inner_text()
        assert "too few questions" in first.inner_text()
        assert first.locator("rect.allowed").count() == 1
        assert "?" in main.locator("table.results tbody tr").nth(0).inner_text()


def test_changes_are_drawn_against_each_earlier_evaluation_that_a_gate_names(browser: Browser, tmp_path: Path) -> None:
    evaluation = make_page_evaluation()
    (of_v2,) = [one for one in evaluation.comparisons if one.metric == "faithfulness"]
    earlier = replace(of_v2, baseline="last week", system="v1", difference=0.1, interval=Interval(0.05, 0.15))
    compared = replace(evaluation, baselines=(of_v2, earlier, replace(earlier, slice="difficulty=hard")))
    (tmp_path / "page.html").write_bytes(render(compared))
    with open_page(browser, tmp_path / "page.html") as opened:
        titles = opened.page.locator("#overview h2").all_inner_texts()
        assert titles[:4] == ["Gates", "Change against last week", "Change against v1", "Results"]
        plots = opened.page.locator(".forest")
        assert plots.count() == 2
        assert (
            re.sub(r"\s+", " ", plots.nth(0).locator("tbody tr").inner_text())
            == "faithfulness v1 against last week +0.100 ▲ better [+0.050, +0.150] p = 0.0020"
        )
        assert plots.nth(1).locator("tbody tr").count() == 2
    changes = (BaselineChange("references", "the references of 3 queries changed"),)
    unlike = replace(evaluation, baselines=(replace(earlier, changes=changes),))
    (tmp_path / "page.html").write_bytes(render(unlike))
    with open_page(browser, tmp_path / "page.html") as opened:
        section = opened.page.locator("#overview section").nth(1)
        assert "≠ is not comparable: the references of 3 queries changed." in section.inner_text()
        assert "+0.100 ≠ not comparable" in re.sub(r"\s+", " ", section.locator("tbody tr").inner_text())


def test_the_ranks_of_first_relevant_documents_are_a_table(browser: Browser, tmp_path: Path) -> None:
    ranks = RankCounts("golden", "v1", "rr", 30, {"1": 20, "2-3": 5, "4-10": 3, "11-": 0, "none": 2})
    (tmp_path / "page.html").write_bytes(render(replace(make_page_evaluation(), target_ranks=(ranks,))))
    with open_page(browser, tmp_path / "page.html") as opened:
        table = opened.page.get_by_role("table", name="rank of the first relevant document")
        assert read(table) == "metric queries rank 1 2–3 4–10 not found rr of v1 30 20 5 3 2"
        assert opened.seen == []


def test_stability_over_repeats_is_a_table(browser: Browser, tmp_path: Path) -> None:
    one = Stability("golden", "v1", "rr", 30, 12, 0.04, None)
    (tmp_path / "page.html").write_bytes(render(replace(make_page_evaluation(), stability=(one,))))
    with open_page(browser, tmp_path / "page.html") as opened:
        table = opened.page.get_by_role("table", name="stability over repeats")
        assert read(table) == "metric questions differ sd within sd between rr of v1 30 12 0.200 –"
        assert opened.seen == []


def test_a_share_is_shown_as_a_percentage_everywhere_on_the_page(browser: Browser, tmp_path: Path) -> None:
    whole = make_page_evaluation()
    gate = replace(whole.gates[0], bound="≥ 50%", reason="faithfulness of v1 is 80%")
    shown = replace(whole, gates=(gate, *whole.gates[1:]), show_as={"faithfulness": "percent"})
    (tmp_path / "page.html").write_bytes(render(shown))
    with open_page(browser, tmp_path / "page.html") as opened:
        main = opened.page.locator("#overview")
        gates = [read(one) for one in main.locator(".gates tbody tr").all()]
        assert gates[0].endswith("−20 pp")
        assert gates[-1].endswith("≥ 50% 80%")
        assert "100%" in main.locator(".gates tfoot").last.inner_text()
        rows = [read(one) for one in main.locator(".forest tbody tr").all()]
        assert "−20 pp ▼ worse [−30, −10 pp]" in rows[0]
        assert "+0.010" in rows[1]
        assert re.match(r"faithfulness 80% .*\[\d+(\.\d)?%, ", read(main.locator("table.results tbody tr").nth(0)))
        assert "%" in main.locator(".spread").nth(0).inner_text()
        assert "%" not in main.locator(".spread").nth(1).inner_text()
    with open_page(browser, tmp_path / "page.html", "#q=q2&system=v2") as opened:
        opened.page.wait_for_selector(".values")
        value = read(opened.page.locator(".values tbody tr").nth(0))
        assert re.fullmatch(r"faithfulness \d+(\.\d)?% ▼ \d+(\.\d)? pp v1 has \d+(\.\d)?%", value)
        assert opened.seen == []


def test_nothing_is_asked_for_and_nothing_is_blocked(browser: Browser, folder: Path) -> None:
    for name in ("page.html", "full.html"):
        for address in ("", "#q=q0&system=v2&with=v1", "#q=q3&system=v2", "#view=provenance"):
            with open_page(browser, folder / name, address) as opened:
                opened.page.wait_for_timeout(100)
                assert opened.seen == []
                assert len(opened.requests) == 1


def test_the_policy_blocks_other_scripts(browser: Browser, folder: Path, tmp_path: Path) -> None:
    changed = (folder / "page.html").read_bytes().replace(b"</main>", b"<script>document.title = 'run'</script></main>")
    (tmp_path / "changed.html").write_bytes(changed)
    with open_page(browser, tmp_path / "changed.html") as opened:
        assert opened.page.title() == "support-bot"
        assert "Content Security Policy" in opened.seen[0]


def test_hostile_texts_stay_texts(browser: Browser, folder: Path, tmp_path: Path) -> None:
    with open_page(browser, folder / "full.html", "#q=q3&system=v2") as opened:
        page = opened.page
        page.wait_for_selector(".answer")
        assert title(opened) == ATTACK
        assert ATTACK in page.locator(".answer").inner_text()
        assert page.locator("main img").count() == 0
        assert page.locator("main script").count() == 0
        assert opened.seen == []
    (tmp_path / "hostile.html").write_bytes(render(make_hostile_evaluation()))
    with open_page(browser, tmp_path / "hostile.html") as opened:
        for view in ("questions", "provenance"):
            opened.page.locator(f"nav [data-view={view}]").click()
        assert opened.seen == []


def test_a_question_is_read_by_clicking(opened: Opened) -> None:
    opened.page.locator(".line", has_text="q1").click()
    opened.page.wait_for_selector("#card-title")
    assert title(opened) == ARABIC
    assert opened.page.locator("#card-title").get_attribute("dir") == "auto"
    assert opened.page.url.endswith("#q=q1&system=v2")
    assert marks(opened)[1].startswith("✗")


def test_claims_bear_signs_and_show_their_evidence(opened: Opened) -> None:
    page = opened.page
    page.locator(".line", has_text="q0").click()
    page.wait_for_selector(".claim")
    assert marks(opened) == ["✓Refunds take 14 days 😀.", "✗Annual plans are never refunded.", "?Call us at night."]
    page.locator(".claim").nth(1).hover()
    assert page.locator("mark.evidence").all_inner_texts() == ["annual plans within 30 days"]
    assert "The document allows it within 30 days." in page.locator(".finding").inner_text()
    page.locator(".claim").nth(0).focus()
    assert page.locator("mark.evidence").all_inner_texts() == ["refunded within 14 days"]


def test_a_card_shows_documents_grades_and_what_is_missing(opened: Opened) -> None:
    page = opened.page
    page.locator(".line", has_text="q0").click()
    page.wait_for_selector(".documents")
    assert (
        re.sub(r"\s+", " ", page.locator(".documents ol .about").nth(0).inner_text())
        == "1 refunds ✓ relevant 2 score 9.500"
    )
    assert "✗ not relevant 0" in page.locator(".documents ol .about").nth(1).inner_text()
    assert page.locator(".missing .about").inner_text().split("\n") == ["elsewhere", "✓ relevant 1", "not retrieved"]
    text = page.locator(".documents ol .document").nth(1)
    assert text.locator(".text").evaluate("one => one.scrollHeight > one.clientHeight")
    text.get_by_role("button", name="Show all").click()
    assert not text.locator(".text").evaluate("one => one.scrollHeight > one.clientHeight")


def test_evidence_is_in_view_even_in_a_long_document(browser: Browser, tmp_path: Path) -> None:
    evaluation = make_page_evaluation()
    later = pl.col("contexts").list.eval("Nothing about it. " * 60 + pl.element())
    long = evaluation.samples.with_columns(later)
    (tmp_path / "page.html").write_bytes(render(replace(evaluation, sample_table=SampleTable(lambda: [long]))))
    with open_page(browser, tmp_path / "page.html", "#q=q0&system=v2") as opened:
        page = opened.page
        page.locator(".claim").nth(1).hover()
        text = page.locator(".document.source .text")
        assert text.evaluate("one => one.scrollHeight === one.clientHeight")
        page.locator(".claim").nth(2).hover()
        assert page.locator(".document.source").count() == 0
        assert page.locator(".documents .text").first.evaluate("one => one.scrollHeight > one.clientHeight")
        page.locator(".claim").nth(1).focus()
        expect(page.locator("mark.evidence")).to_be_in_viewport()


def test_a_value_bears_the_word_of_its_scale(browser: Browser, tmp_path: Path) -> None:
    levels = (Level("good", 0.85), Level("poor", 0.7, "look at its claims"), Level("critical", None))
    scales = {
        "faithfulness": BandScale("custom", levels),
        "latency": BandScale("custom", levels[:1] + levels[2:], True),
    }
    (tmp_path / "page.html").write_bytes(render(replace(make_page_evaluation(), bands=scales)))
    with open_page(browser, tmp_path / "page.html") as opened:
        page = opened.page
        cells = page.locator("table.results tbody tr").nth(0).locator("td")
        assert cells.locator(".band").all_inner_texts() == ["poor", "critical"]
        assert page.locator("table.results tbody tr").nth(2).locator(".band").all_inner_texts() == ["critical"] * 2
        assert "poor from 0.7: look at its claims" in page.locator(".meanings").inner_text()
        page.goto(page.url + "#q=q1&system=v1")
        expect(page.locator(".values .band").first).to_have_text("good")


def test_what_the_judge_said_is_behind_a_fold(opened: Opened) -> None:
    page = opened.page
    page.locator(".line", has_text="q0").click()
    fold = page.locator(".told details")
    fold.wait_for()
    assert not fold.locator("pre").count()
    fold.locator("summary").click()
    assert ATTACK in fold.locator("pre").first.inner_text()


def test_a_failed_answer_says_why(opened: Opened) -> None:
    opened.page.get_by_role("button", name="✗ failed").click()
    assert listed(opened) == ["q4"]
    opened.page.locator(".line").click()
    opened.page.wait_for_selector(".failure")
    assert "HTTP 500" in opened.page.locator(".failure").inner_text()


def test_filters_compose(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "full.html", "#view=questions") as opened:
        page = opened.page
        assert set(listed(opened)) == {"q0", "q1", "q2", "q3", "q4", "q5"}
        page.get_by_role("button", name="▼ regressed").click()
        assert listed(opened) == ["q2", "q0"]
        page.get_by_label("Below").fill("0.64")
        assert listed(opened) == ["q2"]
        page.get_by_label("Below").fill("")
        page.get_by_label("Cause").select_option("fine")
        assert page.locator(".list .blank").is_visible()
        page.get_by_role("button", name="▼ regressed").click()
        page.get_by_label("Slice").select_option("difficulty=hard")
        assert set(listed(opened)) == {"q1", "q3", "q5"}
        page.get_by_label("Slice").select_option("all")
        page.get_by_label("Cause").select_option("generation")
        assert set(listed(opened)) == {"q0", "q2", "q4"}
        page.get_by_label("System").select_option("v1")
        assert page.locator(".list .blank").is_visible()
        assert "cause=generation" in page.url


def test_the_list_is_sorted_by_value_and_by_change(opened: Opened) -> None:
    page = opened.page
    assert listed(opened)[:2] == ["q2", "q0"]
    page.get_by_label("Sort").select_option("Best first")
    assert listed(opened)[0] == "q1"
    page.get_by_label("Sort").select_option("Largest drop first")
    assert listed(opened)[:2] == ["q0", "q2"]
    page.get_by_label("Metric").select_option("latency")
    page.get_by_label("Sort").select_option("Worst first")
    assert listed(opened)[0] == "q5"


def test_the_search_finds_questions_ids_and_answers(opened: Opened) -> None:
    page = opened.page
    search = page.get_by_label("Search questions and answers")
    search.fill("INVOICES")
    expect(page.locator(".line")).to_have_count(1)
    assert listed(opened) == ["q5"]
    search.fill("never refunded")
    expect(page.locator(".line")).to_have_count(5)
    search.fill("nowhere to be found")
    page.wait_for_selector(".list .blank")


def address(page: Page) -> str:
    """The address as the page has it now; `page.url` follows a moment later."""
    found: str = page.evaluate("location.href")
    return found


def test_the_keyboard_does_it_all(opened: Opened) -> None:
    page = opened.page
    page.keyboard.press("j")
    first = address(page)
    page.keyboard.press("j")
    assert address(page) != first
    page.keyboard.press("k")
    assert address(page) == first
    page.keyboard.press("/")
    page.keyboard.type("export")
    expect(page.locator(".line")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.locator(".list").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "card-title"
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    page.keyboard.press("Escape")
    assert "q=" not in address(page)


def test_a_deep_link_opens_two_systems_side_by_side(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "page.html", "#q=q2&system=v2&with=v1") as opened:
        opened.page.wait_for_selector(".side")
        assert [text.split()[0] for text in opened.page.locator(".side .system").all_inner_texts()] == ["v2", "v1"]
        lefts = opened.page.locator(".side").evaluate_all("all => all.map((one) => one.getBoundingClientRect().left)")
        assert lefts[0] < lefts[1] or opened.page.viewport_size == {"width": 1280, "height": 800}
    with open_page(browser, folder / "page.html", "#q=unknown&system=v9") as opened:
        assert opened.page.locator(".line").count() == 6
        assert opened.seen == []


def test_a_link_to_a_question_that_is_not_there_says_so(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "full.html", "#q=q999&system=v2") as opened:
        reader = opened.page.locator("#reader")
        expect(reader).to_have_text("This evaluation has no question q999.")
        opened.page.keyboard.press("j")
        opened.page.wait_for_selector("#card-title")
        assert opened.seen == []


def test_thousands_of_questions_need_few_elements(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "long.html", "#view=questions") as opened:
        page = opened.page
        assert page.locator(".total").inner_text() == "5,000 questions"
        assert page.locator(".line").count() < 60
        page.locator(".list").evaluate("one => { one.scrollTop = one.scrollHeight; }")
        page.wait_for_selector(f".line[aria-posinset='{MANY}']")
        page.get_by_label("Search questions and answers").fill("Question 4876")
        expect(page.locator(".line")).to_have_count(1)
        page.locator(".line").click()
        page.wait_for_selector("#card-title")
        assert title(opened) == "Question 4876 about plan 14?"
        assert opened.seen == []


def test_optional_parts_are_shown_when_there_are_any(browser: Browser, folder: Path) -> None:
    for name, count in (("page.html", 0), ("full.html", 1)):
        with open_page(browser, folder / name) as opened:
            for heading in ("Weakest slices", "Slices", "Why answers go wrong", "What the numbers mean"):
                assert opened.page.get_by_role("heading", name=heading, exact=True).count() == count, heading
    with open_page(browser, folder / "full.html", "#view=provenance") as opened:
        text = opened.page.locator("#provenance").inner_text()
        for fact in ("0123456789abcdef", "rageval-spec", "llama", "strict.verdicts", "abab", "3,400", "20240601"):
            assert fact in text
        judging = re.sub(r"\s+", " ", opened.page.get_by_role("table", name="What judging cost").inner_text())
        assert judging.endswith("never more calls judge 12 3,400 560 $0.0123 70% 20% 10% 5")
        opened.page.locator("details summary").click()
        assert 'api_key: "${secret:JUDGE_KEY}"' in opened.page.locator("#provenance").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it(browser: Browser, folder: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for address in ("", "#q=q0&system=v2&with=v1", "#q=q4&system=v2", "#view=provenance"):
        with open_page(browser, folder / "full.html", address, color_scheme=scheme) as opened:
            if "q=" in address:
                opened.page.wait_for_selector(".card")
                opened.page.locator(".told details summary").evaluate_all("all => all.forEach((one) => one.click())")
            found = axe.run(opened.page)
            told = [
                (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
                for one in found.response["violations"]
            ]
            assert told == [], address


@pytest.mark.parametrize("name", ["page.html", "full.html", "retrieval.html"])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, folder: Path, name: str) -> None:
    (folder / "retrieval.html").write_bytes(render(make_evaluation(("golden", "scifact"))))
    for address in ("", "#view=questions", "#q=q0&system=v2&with=v1", "#view=provenance"):
        with open_page(browser, folder / name, address, viewport={"width": 390, "height": 844}) as opened:
            opened.page.wait_for_timeout(50)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390, address


def test_a_phone_shows_the_list_or_a_card(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "page.html", "#view=questions", viewport={"width": 390, "height": 844}) as opened:
        page = opened.page
        page.locator(".line").first.click()
        page.wait_for_selector(".card")
        assert not page.locator(".list").is_visible()
        page.get_by_role("button", name="All questions").click()
        assert page.locator(".list").is_visible()


def test_the_theme_can_be_changed(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "page.html", color_scheme="light") as opened:
        page = opened.page
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.locator("#theme").click()
        assert page.evaluate(ground) == light
        page.locator("#theme").click()
        assert page.evaluate(ground) != light
        assert page.locator("#theme").get_attribute("aria-label") == "Dark theme; change"


def test_print_shows_the_overview_and_how_it_was_made(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "page.html", "#q=q0&system=v2") as opened:
        page = opened.page
        page.wait_for_selector(".card")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator("#overview h1").is_visible()
        assert page.locator("#provenance h1").is_visible()
        assert page.locator(".card").is_visible()
        assert not page.locator(".list").is_visible()
        assert len(page.pdf()) > 10_000


def test_large_data_are_a_folder_that_opens_from_its_file(browser: Browser, tmp_path: Path) -> None:
    files = dict(write_files(make_page_evaluation(600), 3, None, largest=20_000))
    assert list(files)[-1] == "index.html"
    assert {"parts/cards-0.js", "parts/cards-2.js", "parts/documents-0.js"} <= set(files)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with open_page(browser, tmp_path / "index.html", "#q=q599&system=v2") as opened:
        page = opened.page
        page.wait_for_selector(".claim")
        assert title(opened) == "Question 599 about plan 4?"
        assert [request.rpartition("/")[2] for request in opened.requests[1:]] == ["cards-2.js", "documents-0.js"]
        page.get_by_label("Search questions and answers").fill("never refunded")
        expect(page.locator(".total")).to_have_text("599 of 600 questions")
        assert opened.seen == []


def test_the_title_and_digits_can_be_chosen(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(render(make_page_evaluation(), title=f"Nightly {ATTACK}", digits=5))
    with open_page(browser, tmp_path / "page.html") as opened:
        assert opened.page.title() == f"Nightly {ATTACK}"
        assert "0.80000" in opened.page.locator("table.results").inner_text()
        assert opened.seen == []


def test_the_shell_is_small_and_a_thousand_questions_are_too() -> None:
    empty = render(make_evaluation())
    assert len(empty) < 120_000
    assert len(render(make_page_evaluation(1000))) < 2_000_000


def test_functions_of_the_pages_scripts_have_names_of_their_own() -> None:
    """They share one scope, in which the last function of a name replaces the others without a word."""
    assets = Path(html_shell.__file__).parent / "assets"
    scripts = [path.read_text() for path in assets.glob("*.js")]
    names = [name for script in scripts for name in re.findall(r"(?m)^(?:async )?function (\w+)", script)]
    assert names
    assert sorted(names) == sorted({*names})


@pytest.mark.parametrize("count", [3, 6, 40])
def test_page_terminal_and_markdown_list_the_same_questions_first(browser: Browser, tmp_path: Path, count: int) -> None:
    """Failed questions come first in all of them."""
    evaluation = make_page_evaluation(count)
    first = [
        (card.query_id, card.system, "✗ failed" if card.status == "failed" else str(metric))
        for card, metric in list_first(evaluation)
    ]
    assert (first[0] == ("q4", "v2", "✗ failed")) == (count > 4), "one question failed"
    (tmp_path / "page.html").write_bytes(render(evaluation))
    with open_page(browser, tmp_path / "page.html") as opened:
        shown = opened.page.locator(".first li").all_inner_texts()
        opened.page.locator(".first li a").first.click()
        assert f"q={first[0][0]}" in opened.page.url and f"system={first[0][1]}" in opened.page.url
    assert len(shown) == len(first)
    for text, (query_id, system, told) in zip(shown, first, strict=True):
        assert query_id in text and system in text and told in text
    console = TerminalReport(TerminalNode(use="terminal", width=120), Context("terminal")).render(evaluation).decode()
    listed = console[console.index("Look at first") :]
    places = [listed.index(f"{query_id} · {system}") for query_id, system, _ in first]
    assert places == sorted(places)


def test_a_percentile_stands_beside_its_own_distribution(browser: Browser, tmp_path: Path) -> None:
    """The line and the number are the percentile of the results, not the mean of the values."""
    made = make_page_evaluation(40)
    cells = (replace(one, mean=3.25, statistic="p95") if one.metric == "latency" else one for one in made.aggregates)
    (tmp_path / "page.html").write_bytes(render(replace(made, aggregates=tuple(cells))))
    with open_page(browser, tmp_path / "page.html") as opened:
        strips = opened.page.locator(".spread", has_text="latency").locator("tbody td.number")
        assert strips.all_inner_texts() == ["p95 3.250", "p95 3.250"]
        assert "percentile" in opened.page.locator(".block", has_text="How values are spread").inner_text()
        means = opened.page.locator(".spread", has_text="token_f1").locator("tbody td.number").all_inner_texts()
        assert not any("p95" in one for one in means)


@pytest.mark.parametrize(("count", "told"), [(12, None), (13, "1 other slice"), (60, "48 other slices")])
def test_many_slices_are_folded(browser: Browser, tmp_path: Path, count: int, told: str | None) -> None:
    made = make_page_evaluation()
    slices = [
        SliceResult(
            "golden", f"topic={at}", "topic", "the topic", at + 2,
            tuple(replace(one, slice=f"topic={at}") for one in made.aggregates), (),
        )
        for at in range(count)
    ]  # fmt: skip
    (tmp_path / "page.html").write_bytes(render(replace(made, slices=tuple(slices))))
    with open_page(browser, tmp_path / "page.html") as opened:
        block = opened.page.locator(".block", has_text="Slices").last
        assert block.locator("tbody tr:visible").count() == 12
        assert block.locator("summary").all_inner_texts() == ([] if told is None else [told])
        if told is not None:
            block.locator("summary").click()
            assert block.locator("tbody tr:visible").count() == count
            block.get_by_label("Metric").select_option("token_f1")
            assert block.locator("tbody tr:visible").count() == count, "it stays open"


PROTOTYPE = ("toString", "__proto__", "constructor", "hasOwnProperty", "valueOf")


@pytest.mark.parametrize("name", PROTOTYPE)
def test_names_that_objects_of_the_page_have_themselves_break_nothing(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    rows = [{"query_id": f"{name}{number}", "question": f"Who is {number}?", "reference": "Ada"} for number in range(4)]
    (tmp_path / "golden.jsonl").write_text("".join(f"{json.dumps({**row, name: name})}\n" for row in rows))
    answers = [{"query_id": row["query_id"], "answer": "Ada" if at else "Bob"} for at, row in enumerate(rows)]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers))
    content = {
        "version": 1,
        "name": name,
        "datasets": {name: {"use": "golden", "path": "golden.jsonl"}},
        "systems": {system: {"use": "file", "path": "answers.jsonl"} for system in (name, "other")},
        "metrics": [{"use": "token_f1", "as": name}],
        "slices": [name],
        "gates": [{"metric": name, "min": 0.2}, {"metric": name, "system": "other", "baseline": name, "max_drop": 0.5}],
        "statistics": {"resamples": 100, "permutations": 100},
        "reports": [{"use": "html", "path": "page.html"}],
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(content))
    ended = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path, "--no-store")
    assert ended.exit_code == 0, ended.stderr
    for view in ("", "#view=questions"):
        with open_page(browser, tmp_path / "page.html", view) as opened:
            assert opened.seen == []
            text = opened.page.locator("body").inner_text()
            assert text.count(name) > 1
            assert "undefined" not in text
            assert "native code" not in text
            assert "[object" not in text
    with open_page(browser, tmp_path / "page.html") as opened:
        assert "0.750" in opened.page.locator("table.results").first.inner_text()
