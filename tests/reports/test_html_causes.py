"""The page of an evaluation with causes in slices, in a real Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rageval_spec.data.outcomes import CauseCount, Interval
from rageval_spec.plugin import Context
from rageval_spec.reports.html import HtmlNode, HtmlReport
from tests.browser import open_page
from tests.reports.page import make_full_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_causes_of_slices_are_behind_a_fold_that_says_where_one_stands_out(browser: Browser, tmp_path: Path) -> None:
    evaluation = make_full_evaluation()
    assert evaluation.diagnosis is not None
    whole = CauseCount("golden", "v2", "generation", 12, 60, 0.2, None)
    hard = CauseCount("golden", "v2", "generation", 9, 10, 0.9, Interval(0.6, 0.98), "difficulty=hard")
    diagnosis = replace(evaluation.diagnosis, counts=(whole, hard, replace(hard, cause="fine", count=1, share=0.1)))
    page = HtmlReport(HtmlNode(use="html"), Context("html")).render(replace(evaluation, diagnosis=diagnosis))
    (tmp_path / "page.html").write_bytes(page)
    with open_page(browser, tmp_path / "page.html") as opened:
        fold = opened.page.locator("details.slice-causes")
        summary = fold.locator("summary")
        assert summary.inner_text() == "By slice · ▲ generation in difficulty=hard"
        summary.click()
        row = re.sub(r"\s+", " ", fold.locator("tbody tr").inner_text())
        assert (
            row == "difficulty=hard 10 9 ▲ more frequent than among the other questions 90% [60%, 98%] 1 10% [60%, 98%]"
        )
        fold.get_by_role("link", name="9").click()
        assert "cause=generation" in opened.page.url
        assert "slice=difficulty%3Dhard" in opened.page.url
        assert opened.seen == []
