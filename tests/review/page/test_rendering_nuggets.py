"""Nuggets and documents on the review page, with the keyboard alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rageval_spec.review.document_grades import build_document_sheet
from rageval_spec.review.nugget_edits import build_bank_sheet
from tests.command_line import invoke
from tests.review.page.opening import chosen, expect, expect_progress, open_review, press, write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BANK = {
    "qid": "q1",
    "query": "How long?",
    "nuggets": ["30 days with receipt", "in a shop", {"text": "free", "importance": "okay"}],
}


def test_nuggets_are_split_merged_added_and_deleted_and_come_back(browser: Browser, tmp_path: Path) -> None:
    bank = tmp_path / "nuggets.jsonl"
    bank.write_text(json.dumps(BANK))
    with open_review(browser, write_page(tmp_path, build_bank_sheet(bank))) as opened:
        page, keys = opened.page, opened.page.keyboard
        press(opened, "ArrowDown", "e", "Home", *["ArrowRight"] * len("30 days"), "Enter", "Escape")
        press(opened, "ArrowDown", "m", "ArrowDown", "m", "Escape", "v", "u", "d", "u")
        press(opened, "n")
        keys.type("Who pays?")
        press(opened, "Escape", "g")
        keys.type("the buyer")
        press(opened, "Escape")
        expect(page.locator(".changes li")).to_have_count(5)
        expect_progress(opened, "1 of 1 checked")
        with page.expect_download() as download:
            press(opened, "s")
        download.value.save_as(tmp_path / "ann.json")
    done = invoke("review", "import", str(tmp_path / "ann.json"), "--into", str(bank))
    assert done.exit_code == 0, done.output
    edited = json.loads(bank.read_text())
    assert [(one["text"], one["importance"]) for one in edited["nuggets"]] == [
        ("30 days", "vital"), ("with receipt", "vital"), ("in a shop; free", "vital"), ("Who pays?", "vital"),
    ]  # fmt: skip
    assert edited["nuggets"][3]["answers"] == ["the buyer"]


def test_a_judges_grade_is_told_after_ones_own(browser: Browser, tmp_path: Path) -> None:
    pairs = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [3], "probability": [0.5]})
    sheet = build_document_sheet("set", pairs, {"d": "A text."}, {"q": "What?"}, "0..3", "")
    with open_review(browser, write_page(tmp_path, sheet)) as opened:
        press(opened, "o")
        expect(opened.page.locator("#told .opinion")).to_have_count(0)
        press(opened, "2", "o")
        expect(opened.page.locator("#told .opinion")).to_contain_text("3")
        assert chosen(opened) == ["0 2"]
