"""The review page in a real Chromium: what it keeps, saves and loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rageval_spec.reading.label_files import read_labels
from rageval_spec.review.label_import import check_entries, read_form
from tests.browser import Opened
from tests.review.page.opening import (
    NO_STORAGE,
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
from tests.review.sheets import make_sheet

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SHEET = make_sheet()
FULL = "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }"
DAMAGE = "() => { for (const key of Object.keys(localStorage)) if (key.endsWith(' 0')) localStorage[key] = '{'; }"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("review"), SHEET)


def save(opened: Opened, folder: Path, *keys: str) -> Path:
    with opened.page.expect_download() as download:
        press(opened, *(keys or ("s",)))
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def load(opened: Opened, path: Path) -> None:
    opened.page.locator(".person").click()
    opened.page.locator('dialog input[type="file"]').set_input_files(path)


def write_labels(folder: Path, *labels: dict[str, Any], **changes: Any) -> Path:
    whole = {"format": "rageval-labels", "version": 1, "sheet": SHEET.digest, "annotator": "Ann", "labels": [*labels]}
    path = folder / "given.json"
    path.write_text(json.dumps({**whole, **changes}))
    return path


def make_label(**changes: Any) -> dict[str, Any]:
    task = SHEET.tasks[0]
    named = {name: getattr(task, name) for name in ("dataset", "system", "query_id", "answer_digest")}
    made = {"metric": "fluency", "claim": None, "value": 2, "comment": "", "time": "2026-03-01T10:00:00Z"}
    return {**named, **made, "saw_judge": False, **changes}


def reload(opened: Opened) -> None:
    opened.page.reload()
    opened.page.wait_for_selector("#task-title")
    del opened.requests[1:]


def test_a_saved_file_has_the_labels_and_where_they_belong(opened: Opened, tmp_path: Path) -> None:
    press(opened, "1", "2", "c")
    opened.page.keyboard.type("the second is wrong \U0001f600")
    press(opened, "Escape", "o", "3", "y", "4", "Enter", "x")
    path = save(opened, tmp_path, "Control+s")
    assert path.name == "labels-support-bot-Ann.json"
    saved = json.loads(path.read_text())
    labels = saved.pop("labels")
    skipped = {
        "dataset": "golden",
        "system": "assistant",
        "query_id": "q1",
        "answer_digest": SHEET.tasks[1].answer_digest,
    }
    assert saved == {
        "format": "rageval-labels",
        "version": 1,
        "sheet": SHEET.digest,
        "annotator": "Ann",
        "criteria": [{"name": one.name, "scale": one.scale} for one in SHEET.criteria],
        "skipped": [{**skipped, "comment": ""}],
    }
    assert [(one["metric"], one["claim"], one["value"], one["saw_judge"]) for one in labels] == [
        ("faithfulness", 0, "supported", False),
        ("faithfulness", 1, "contradicted", False),
        ("faithfulness", 2, "not_enough_info", True),
        ("completeness", None, "yes", True),
        ("fluency", None, 4, True),
    ]
    assert {one["answer_digest"] for one in labels} == {SHEET.tasks[0].answer_digest}
    assert {one["comment"] for one in labels} == {"the second is wrong \U0001f600"}
    read = read_labels([path])
    assert [(one.query_id, one.metric, one.claim, one.value, one.annotator) for one in read] == [
        ("q0", "faithfulness", 0, "supported", "Ann"),
        ("q0", "faithfulness", 1, "contradicted", "Ann"),
        ("q0", "faithfulness", 2, "not_enough_info", "Ann"),
        ("q0", "completeness", None, 1.0, "Ann"),
        ("q0", "fluency", None, 4.0, "Ann"),
    ]
    assert {(one.reason, one.probability) for one in read} == {("low + unsure", 0.25)}
    checked = check_entries(read_form(path).entries)
    assert (checked.written, checked.problems) == (("supported", "contradicted", "not_enough_info", "yes", "4"), ())


def test_nothing_is_saved_before_there_is_something(opened: Opened) -> None:
    press(opened, "s")
    expect(opened.page.locator("#said")).to_have_text("There is nothing to save yet.")


def test_ones_work_is_deleted_by_two_clicks(opened: Opened) -> None:
    press(opened, "1", "2")
    opened.page.locator(".person").click()
    opened.page.get_by_role("button", name="Delete my work from this browser").click()
    opened.page.get_by_role("button", name="Really delete 2 labels? Files that you saved stay.").click()
    assert opened.page.get_by_role("button", name="Go on as Ann").count() == 0
    assert opened.page.evaluate("Object.keys(localStorage).filter((key) => key.includes('Ann'))") == []
    enter(opened, "Ann")
    assert opened.page.locator("#answer .claim.good").count() == 0


def test_work_is_kept_when_the_page_is_loaded_again(opened: Opened) -> None:
    press(opened, "1", "2", "3", "y", "4", "Enter", "n", "c")
    opened.page.keyboard.type("half done")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 2 of 6")
    reload(opened)
    assert place(opened) == "Task 2 of 6"
    assert chosen(opened) == ["1 no"]
    assert opened.page.locator("#comment").input_value() == "half done"
    expect_progress(opened, "1 of 6 labelled")
    press(opened, "k")
    expect(opened.page.locator("#crumbs .strong")).to_have_text("Task 1 of 6")
    assert chosen(opened)[-2:] == ["1 yes", "2 4"]


def test_people_in_one_browser_do_not_see_each_others_labels(opened: Opened) -> None:
    press(opened, "1", "2", "3", "y", "4")
    opened.page.locator(".person").click()
    opened.page.get_by_role("button", name="Let another person label").click()
    enter(opened, "Bob")
    expect_progress(opened, "0 of 6 labelled")
    opened.page.locator(".person").click()
    opened.page.get_by_role("button", name="Let another person label").click()
    opened.page.get_by_role("button", name="Go on as Ann").click()
    expect_progress(opened, "1 of 6 labelled")


def test_another_tab_of_the_same_person_is_followed(browser: Browser, page: Path) -> None:
    with open_review(browser, page) as opened:
        other = opened.page.context.new_page()
        other.goto(page.absolute().as_uri())
        other.wait_for_selector("#task-title")
        other.keyboard.press("1")
        expect(opened.page.locator("#answer .claim.good")).to_have_count(1)


def test_a_file_goes_on_in_another_browser(browser: Browser, page: Path, tmp_path: Path) -> None:
    with open_review(browser, page) as opened:
        press(opened, "1", "2", "3", "y", "4", "Enter", "x")
        path = save(opened, tmp_path)
    with open_review(browser, page, annotator=None) as opened:
        opened.page.locator('input[type="file"]').set_input_files(path)
        expect(opened.page.locator("#said")).to_have_text("5 labels read.")
        expect_progress(opened, "1 of 6 labelled · 1 skipped")
        assert opened.page.locator(".person").inner_text() == "Ann"
        again = save(opened, tmp_path / "again")
        assert json.loads(again.read_text()) == json.loads(path.read_text())


def test_of_two_labels_of_the_same_thing_the_newer_stays(opened: Opened, tmp_path: Path) -> None:
    press(opened, "1", "2", "3", "y", "4")
    old = make_label(value=2, time="2001-01-01T00:00:00Z")
    new = make_label(metric="completeness", value="no", time="2101-01-01T00:00:00Z", comment="later")
    load(opened, write_labels(tmp_path, old, new))
    expect(opened.page.locator("#said")).to_have_text(
        "1 label read; 1 label in the file is older than yours and was left out."
    )
    assert chosen(opened)[-2:] == ["1 no", "2 4"]
    assert opened.page.locator("#comment").input_value() == "later"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sheet": "f" * 16}, f"Its labels belong to another sheet ({'f' * 16}). This page is sheet {SHEET.digest}."),
        ({"annotator": "Bob"}, "Its labels are by Bob, and you are Ann."),
        ({"format": "other"}, "It is not a file of labels that a review page saved."),
        ({"version": 2}, "It has version 2; this page reads version 1."),
        ({"labels": [make_label(query_id="q9")]}, "Label 1 is for an answer that this sheet does not have."),
        ({"labels": [make_label(value=6)]}, "Label 1 has the value 6, which is not on the scale."),
        ({"labels": [make_label(metric="a")]}, "Label 1 judges a, which this sheet does not ask about that answer."),
        ({"labels": [None]}, "Label 1 is for an answer that this sheet does not have."),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_refused_with_the_reason(
    opened: Opened, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    load(opened, write_labels(tmp_path, **changes))
    expect(opened.page.locator("dialog .failure")).to_have_text(f"given.json was not loaded. {reason}")
    assert chosen(opened) == []


def test_a_file_that_is_not_json_is_refused_on_the_first_view(browser: Browser, page: Path, tmp_path: Path) -> None:
    (tmp_path / "<b>labels.csv").write_text("query_id,value\n")
    with open_review(browser, page, annotator=None) as opened:
        opened.page.locator('input[type="file"]').set_input_files(tmp_path / "<b>labels.csv")
        expect(opened.page.locator(".failure")).to_have_text("<b>labels.csv was not loaded. It is not JSON.")


def test_a_browser_that_keeps_nothing_is_told_and_asks_before_closing(browser: Browser, page: Path) -> None:
    with open_review(browser, page, annotator=None) as opened:
        opened.page.context.add_init_script(NO_STORAGE)
        opened.page.reload()
        expect(opened.page.locator("#not-kept")).to_contain_text("This browser keeps nothing for this page.")
        enter(opened, "Ann")
        expect(opened.page.locator("#not-kept")).to_be_visible()
        press(opened, "1")
        with opened.page.expect_event("dialog") as asked:
            opened.page.close(run_before_unload=True)
        assert asked.value.type == "beforeunload"
        asked.value.accept()
        opened.seen.clear()
        del opened.requests[1:]


def test_nobody_is_asked_before_closing_what_the_browser_keeps(opened: Opened) -> None:
    press(opened, "1")
    reload(opened)
    assert opened.page.locator("#answer .claim.good").count() == 1


def test_a_browser_that_is_full_says_so(opened: Opened) -> None:
    assert opened.page.locator("#not-kept").count() == 0
    opened.page.evaluate(FULL)
    press(opened, "1")
    expect(opened.page.locator("#not-kept")).to_be_visible()


def test_what_is_kept_but_damaged_is_left_out(opened: Opened) -> None:
    press(opened, "1", "2", "3", "y", "4")
    opened.page.evaluate(DAMAGE)
    reload(opened)
    expect_progress(opened, "0 of 6 labelled")


def test_the_time_left_follows_ones_own_pace(browser: Browser, tmp_path: Path) -> None:
    with open_review(browser, write_page(tmp_path, make_sheet(63)), annotator=None) as opened:
        opened.page.clock.install()
        enter(opened, "Ann")
        for number in range(1, 4):
            assert "left" not in progress(opened)
            opened.page.clock.run_for(60_000)
            press(opened, *("123" if number == 1 else ""), "y", "4", "Enter")
            expect(opened.page.locator("#crumbs .strong")).to_have_text(f"Task {number + 1} of 63")
        expect_progress(opened, "3 of 63 labelled · about 1 h left")
