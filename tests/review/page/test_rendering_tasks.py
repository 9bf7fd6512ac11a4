"""The review page in a real Chromium: what it shows, and labelling with the keyboard and with the mouse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rageval_spec.review.criteria import make_criterion
from tests.browser import Opened
from tests.review.page.opening import (
    chosen,
    enter,
    expect,
    expect_progress,
    open_review,
    place,
    press,
    progress,
    write_page,
)
from tests.review.sheets import ARABIC, ATTACK, CHINESE, CRITERIA, make_sheet, make_task

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MANY = 2000


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("review"), make_sheet())


def test_a_name_is_asked_for_once(browser: Browser, page: Path) -> None:
    with open_review(browser, page, annotator=None) as opened:
        assert (
            "Read 6 answers and judge their faithfulness, completeness and fluency."
            in opened.page.locator("main").inner_text()
        )
        press(opened, "Enter")
        assert opened.page.locator("#task-title").count() == 0
        enter(opened, "  Ann   Example ")
        opened.page.reload()
        opened.page.wait_for_selector("#task-title")
        assert opened.page.locator(".person").inner_text() == "Ann Example"
        del opened.requests[1:]


def test_a_task_shows_all_that_a_person_needs(opened: Opened) -> None:
    page = opened.page
    assert page.locator("#task-title").inner_text() == "How do I get my money back?"
    assert page.locator("#answer .claim").all_inner_texts() == [
        "1Refunds take 14 days \U0001f600.",
        "2Annual plans are never refunded [2].",
        "3Call us at night.",
    ]
    assert "Within 14 days of the first payment." in page.locator(".reference").inner_text()
    assert page.locator(".contexts > ol .about").all_inner_texts() == ["Context\n2\nrefunds"]
    assert page.locator(".contexts summary").inner_text() == "4 contexts that the answer does not cite"
    press(opened, "a")
    assert "This context is empty." in page.locator(".contexts details").inner_text()
    assert "assistant" not in page.locator("body").inner_text()


def test_claims_are_judged_one_after_another(opened: Opened) -> None:
    page = opened.page
    press(opened, "1", "2")
    assert page.locator("#answer .claim").all_inner_texts()[:2] == [
        "✓Refunds take 14 days \U0001f600.",
        "✗Annual plans are never refunded [2].",
    ]
    assert page.locator(".current-claim").inner_text() == "Call us at night."
    assert page.locator("#answer .claim.active").inner_text() == "3Call us at night."
    page.locator("#answer .claim").nth(0).click()
    assert page.locator(".current-claim").inner_text() == "Refunds take 14 days \U0001f600."
    press(opened, "3")
    assert page.locator(".chips .step").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))") == [
        "Claim 1: Not enough info",
        "Claim 2: Contradicted",
        "Claim 3: not judged",
    ]


def test_everything_is_labelled_with_the_keyboard_alone(opened: Opened) -> None:
    page = opened.page
    press(opened, "1", "2", "3", "y", "4")
    expect_progress(opened, "1 of 6 labelled")
    for number in range(2, 7):
        press(opened, "Enter")
        expect(page.locator("#crumbs .strong")).to_have_text(f"Task {number} of 6")
        press(opened, "n", "5")
    assert progress(opened).startswith("6 of 6 labelled")
    press(opened, "c")
    page.keyboard.type("Nothing. y1")
    press(opened, "Escape", "Enter")
    assert "You labelled 6 tasks." in page.locator("dialog").inner_text()
    with page.expect_download() as download:
        press(opened, "Enter")
    assert download.value.suggested_filename == "labels-support-bot-Ann.json"


def test_everything_is_labelled_with_the_mouse_alone(opened: Opened) -> None:
    page = opened.page
    for _ in range(3):
        page.get_by_role("button", name="Supported", exact=True).click()
    page.get_by_role("button", name="No", exact=True).click()
    page.get_by_role("button", name="4", exact=True).click()
    expect_progress(opened, "1 of 6 labelled")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    page.get_by_role("button", name="No", exact=True).click()
    press(opened, "3")
    expect_progress(opened, "2 of 6 labelled")


def test_a_click_leaves_the_keyboard_to_the_page(opened: Opened) -> None:
    opened.page.get_by_role("button", name="Contradicted", exact=True).click()
    press(opened, "Enter")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    press(opened, "k")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")
    assert opened.page.locator("#answer .claim.bad").count() == 1


def test_a_judgement_can_be_changed_cleared_and_undone(opened: Opened) -> None:
    press(opened, "1", "2", "3", "y", "4")
    assert chosen(opened)[-2:] == ["1 yes", "2 4"]
    press(opened, "5")
    assert chosen(opened)[-1:] == ["2 5"]
    press(opened, "ArrowLeft", "Backspace")
    assert chosen(opened)[-1:] == ["2 5"]
    assert "1 yes" not in chosen(opened)
    press(opened, "u")
    assert chosen(opened)[-2:] == ["1 yes", "2 5"]
    press(opened, "u", "u", "u", "u", "u", "u", "u")
    expect_progress(opened, "0 of 6 labelled")
    expect(opened.page.locator("#said")).to_have_text("There is nothing to undo.")


def test_undo_goes_back_to_the_task_that_it_changes(opened: Opened) -> None:
    press(opened, "x")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    expect_progress(opened, "0 of 6 labelled · 1 skipped")
    press(opened, "u")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")
    expect_progress(opened, "0 of 6 labelled")


def test_enter_goes_to_the_next_task_that_is_not_labelled(opened: Opened) -> None:
    press(opened, "j", "j", "j", "j", "j")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 6 of 6")
    press(opened, "j")
    expect(opened.page.locator("#said")).to_have_text("This is the last task.")
    press(opened, "y", "1", "Enter")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")


def test_guidelines_follow_what_is_judged(opened: Opened) -> None:
    guidelines = opened.page.locator("#guidelines")
    assert "a context says otherwise." in guidelines.inner_text()
    press(opened, "1", "1", "1", "y")
    assert guidelines.locator("h2").inner_text() == "Guidelines for fluency"
    assert guidelines.locator(".scale dt").all_inner_texts() == ["5", "4", "3", "2", "1"]
    assert "Do not reward length, style or confidence." in guidelines.inner_text()


def test_claims_of_several_metrics_are_told_apart_in_the_judges_opinion(browser: Browser, tmp_path: Path) -> None:
    sheet = make_sheet()
    first = sheet.tasks[0]
    other = replace(first.claims[0], metric="completeness")
    both = replace(sheet, tasks=(replace(first, claims=(*first.claims, other)), *sheet.tasks[1:]))
    with open_review(browser, write_page(tmp_path, both)) as opened:
        press(opened, "o")
        told = opened.page.locator("#told").inner_text()
        assert "faithfulness: ✗ Contradicted Annual plans are never refunded [2]." in told
        assert "completeness: ✓ Supported Refunds take 14 days" in told


def test_the_judge_is_hidden_until_somebody_asks(opened: Opened) -> None:
    page = opened.page
    told = page.locator("#told")
    assert "0.333" not in page.locator("body").inner_text()
    press(opened, "o")
    assert "faithfulness\n0.333" in told.inner_text()
    assert "chosen because\nlow + unsure" in told.inner_text()
    assert "✗ Contradicted Annual plans are never refunded [2]." in told.inner_text()
    press(opened, "o")
    assert "0.333" not in told.inner_text()
    assert "You have seen it" in told.inner_text()


def test_a_sheet_that_shows_the_judge_does_so_from_the_start(browser: Browser, tmp_path: Path) -> None:
    with open_review(browser, write_page(tmp_path, make_sheet(shows_judge=True))) as opened:
        assert "faithfulness\n0.333" in opened.page.locator("#told").inner_text()
        press(opened, "1", "o")
        assert "0.333" not in opened.page.locator("#told").inner_text()
        with opened.page.expect_download() as download:
            press(opened, "s")
        (label,) = json.loads(Path(download.value.path()).read_text())["labels"]
        assert label["saw_judge"] is True


def test_a_sheet_without_tasks_says_so(browser: Browser, tmp_path: Path) -> None:
    with open_review(browser, write_page(tmp_path, make_sheet(0)), annotator=None) as opened:
        expect(opened.page.locator(".lead")).to_have_text("This sheet has no answers to judge.")
        assert opened.page.get_by_label("Your name").count() == 0


def test_an_answer_without_claims_has_nothing_to_judge_claim_by_claim(browser: Browser, tmp_path: Path) -> None:
    sheet = replace(make_sheet(), criteria=CRITERIA[:1])
    with open_review(browser, write_page(tmp_path, sheet)) as opened:
        press(opened, "j")
        expect(opened.page.locator("#panels")).to_contain_text("This answer has no claims to judge.")
        press(opened, "1", "ArrowRight", "Backspace", "Enter")
        expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")
        press(opened, "1", "2", "3", "Enter")
        assert "All tasks are done" in opened.page.locator("dialog").inner_text()


def test_reading_the_contexts_is_not_interrupted(opened: Opened) -> None:
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 500})
    press(opened, "a", "End")
    expect(page.locator("#told")).to_be_in_viewport()
    press(opened, "1", "2")
    expect(page.locator("#told")).to_be_in_viewport()
    expect(page.locator(".current-claim")).to_be_in_viewport()


def test_tasks_are_found_in_the_list(opened: Opened) -> None:
    page = opened.page
    press(opened, "x", "l")
    rows = page.locator("dialog .row")
    assert rows.count() == 6
    page.keyboard.type("export")
    expect(rows).to_have_count(1)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Backspace")
    page.get_by_label("Show").select_option("Not labelled")
    expect(rows).to_have_count(5)
    rows.nth(1).click()
    expect(page.locator("#task-title")).to_have_text(CHINESE)
    assert "filtered" in page.locator("#crumbs").inner_text()
    press(opened, "k", "k")
    expect(page.locator("#said")).to_have_text("This is the first task.")
    assert place(opened) == "Task 2 of 6"
    page.get_by_role("button", name="show all").click()
    press(opened, "k")
    expect(page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")


def test_texts_in_all_scripts_stay_texts(opened: Opened) -> None:
    page = opened.page
    seen = []
    for number in range(2, 7):
        press(opened, "j")
        expect(page.locator("#crumbs .strong")).to_have_text(f"Task {number} of 6")
        seen.append(page.locator("#task-title").inner_text())
    assert seen[:2] == [ARABIC, CHINESE]
    assert seen[2].startswith(ATTACK.split("\u2028")[0])
    assert page.locator("main img").count() == page.locator("main script").count() == 0
    assert "The answer is empty." in page.locator(".answer").inner_text()


def test_a_long_answer_is_folded_and_opens(opened: Opened) -> None:
    page = opened.page
    press(opened, "j", "j", "j", "j")
    toggle = page.locator(".answer").get_by_role("button", name="Show all 51,000 characters")
    assert page.locator("#answer").bounding_box()["height"] > 2000  # type: ignore[index]
    assert page.locator(".answer").bounding_box()["height"] < 600  # type: ignore[index]
    toggle.click()
    assert page.locator(".answer").bounding_box()["height"] > 2000  # type: ignore[index]


def test_the_order_of_ones_own_depends_on_the_name_alone(browser: Browser, tmp_path: Path) -> None:
    path = write_page(tmp_path, make_sheet(40))
    orders = []
    for annotator in ("Ann", "Ann", "Bob"):
        with open_review(browser, path, annotator=None) as opened:
            opened.page.get_by_label("Show the tasks in an order of my own").check()
            enter(opened, annotator)
            press(opened, "l")
            orders.append(opened.page.locator("dialog .row").all_text_contents())
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])


def test_two_thousand_tasks_are_no_burden(browser: Browser, tmp_path: Path) -> None:
    with open_review(browser, write_page(tmp_path, make_sheet(MANY))) as opened:
        page = opened.page
        press(opened, "l")
        assert page.locator("dialog .row").count() == MANY
        page.keyboard.type("question 1999")
        expect(page.locator("dialog .row")).to_have_count(1)
        press(opened, "Tab", "Tab", "Enter")
        expect(page.locator("#crumbs .strong")).to_have_text("Task 2,000 of 2,000")
        press(opened, "1", "1", "1", "y", "5")
        expect_progress(opened, "1 of 2,000 labelled")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, page: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with open_review(browser, page, annotator=None, color_scheme=scheme) as opened:
        found = [axe.run(opened.page)]
        enter(opened, "Ann")
        found.append(axe.run(opened.page))
        press(opened, "1", "2", "3", "y", "o")
        found.append(axe.run(opened.page))
        press(opened, "l")
        found.append(axe.run(opened.page))
        assert [one.generate_report() for one in found if one.violations_count] == []


def test_a_narrow_screen_needs_no_sideways_scrolling(browser: Browser, page: Path) -> None:
    with open_review(browser, page, annotator=None, viewport={"width": 390, "height": 844}) as opened:
        widths = [opened.page.evaluate("document.documentElement.scrollWidth")]
        enter(opened, "Ann of the very long name")
        for _ in range(6):
            press(opened, "o")
            widths.append(opened.page.evaluate("document.documentElement.scrollWidth"))
            press(opened, "j")
        press(opened, "l")
        widths.append(opened.page.evaluate("document.documentElement.scrollWidth"))
        assert max(widths) <= 390


def test_the_list_is_used_with_the_keyboard_alone(opened: Opened) -> None:
    press(opened, "l")
    opened.page.keyboard.type("q")
    press(opened, "ArrowDown", "ArrowDown", "ArrowDown", "Enter")
    expect(opened.page.locator("#task-title")).to_have_text(CHINESE)
    press(opened, "l")
    press(opened, "ControlOrMeta+a")
    opened.page.keyboard.type("invoices")
    press(opened, "Enter")
    expect(opened.page.locator("#task-title")).to_have_text("Who can see invoices?")


def test_the_page_goes_on_by_itself_if_it_is_told_to(opened: Opened) -> None:
    opened.page.locator(".person").click()
    opened.page.get_by_label("Go on by itself when a task is labelled").check()
    press(opened, "Escape", "j")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    press(opened, "y", "4")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 3 of 6")
    press(opened, "u")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    assert chosen(opened) == ["1 yes"]


def test_single_keys_can_be_turned_off(opened: Opened) -> None:
    opened.page.locator(".person").click()
    opened.page.get_by_label("Answer and move with single keys").uncheck()
    press(opened, "Escape", "1", "x", "j")
    expect_progress(opened, "0 of 6 labelled")
    assert place(opened) == "Task 1 of 6"
    press(opened, "Control+Enter")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")


def test_a_comment_is_left_for_the_next_task(opened: Opened) -> None:
    press(opened, "c")
    opened.page.keyboard.type("one\n")
    press(opened, "Enter", "Control+Enter")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    press(opened, "k")
    expect(opened.page.locator("#comment")).to_have_value("one")


def test_every_scale_has_keys(browser: Browser, tmp_path: Path) -> None:
    scales = ("0..10", "-2..2", "1..10")
    sheet = replace(make_sheet(), criteria=tuple(make_criterion(f"c{at}", scale) for at, scale in enumerate(scales)))
    with open_review(browser, write_page(tmp_path, sheet), viewport={"width": 390, "height": 844}) as opened:
        press(opened, "t", "1", "0")
        assert chosen(opened) == ["0 10", "1 -2", "2 10"]
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
        press(opened, "ArrowLeft", "ArrowLeft", "0", "ArrowRight", "ArrowRight", "5")
        assert chosen(opened) == ["0 0", "1 -2", "2 5"]


def test_contexts_that_an_answer_cites_by_id_come_first(browser: Browser, tmp_path: Path) -> None:
    task = make_task("q0", answer="Invoices are monthly [invoices; refunds], see [99] and [x].", claims=())
    with open_review(browser, write_page(tmp_path, replace(make_sheet(), tasks=(task,)))) as opened:
        assert opened.page.locator(".contexts > ol .about .name").all_inner_texts() == ["invoices", "refunds"]
        assert opened.page.locator(".contexts summary").inner_text() == "3 contexts that the answer does not cite"


def test_words_of_the_claim_are_tinted_in_the_contexts(opened: Opened) -> None:
    tinted = "[...(CSS.highlights.get('words') ?? [])].map((range) => range.toString())"
    press(opened, "ArrowRight")
    assert set(opened.page.evaluate(tinted)) >= {"annual", "plans", "refunded"}
    expect(opened.page.locator("#tinted")).to_be_visible()
    press(opened, "ArrowRight", "ArrowRight")
    assert opened.page.evaluate(tinted) == []
    expect(opened.page.locator("#tinted")).to_be_hidden()
