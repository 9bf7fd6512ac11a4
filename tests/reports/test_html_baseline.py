"""The page of an evaluation whose gates name a baseline, in a real Chromium."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import BASE_ANSWERS, collect_base_values, empty_base_answers
from rageval_spec.drawing.page.question_data import collect_questions
from rageval_spec.plugin import Context
from rageval_spec.reports.html import HtmlNode, HtmlReport
from tests.browser import Opened, open_page
from tests.reports.page import ANSWER, ATTACK, make_page_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser
from tests.sample_evaluation import alter


def compared(*gates: dict[str, Any], count: int = 6) -> Evaluation:
    """Both systems fell since `main`, by 0.05 more from question to question, and there is no latency in it."""
    now = make_page_evaluation(count)
    number = pl.col("query_id").str.slice(1).cast(pl.Int64)
    main = now.values.filter(pl.col("metric") != "latency").with_columns(value=pl.col("value") + 0.05 * (number % 6))
    return alter(
        now, spec={"gates": [*gates]}, load_base_values=lambda: collect_base_values(now.values, {"main": main})
    )


def write(evaluation: Evaluation, path: Path) -> int:
    content = HtmlReport(HtmlNode(use="html"), Context("html")).render(evaluation)
    path.write_bytes(content)
    return len(content)


def read_values(opened: Opened) -> list[str]:
    opened.page.wait_for_selector(".values")
    return [re.sub(r"\s+", " ", row).strip() for row in opened.page.locator(".values tbody tr").all_inner_texts()]


def test_a_card_says_what_the_values_were_in_the_baseline(browser: Browser, tmp_path: Path) -> None:
    write(compared({"metric": "faithfulness", "baseline": "main"}), tmp_path / "page.html")
    with open_page(browser, tmp_path / "page.html", "#q=q3&system=v1") as opened:
        assert read_values(opened) == [
            "faithfulness 0.870 ▼ 0.150 was 1.020 (main)",
            "token_f1 0.500 ▼ 0.150 was 0.650 (main)",
            "latency 1.300",
        ]
    with open_page(browser, tmp_path / "page.html", "#q=q3&system=v2") as opened:
        assert read_values(opened)[2] == "latency 1.300 same v1 has 1.300"
    with open_page(browser, tmp_path / "page.html", "#q=q3&system=v2&with=v1") as opened:
        assert read_values(opened)[0] == "faithfulness 0.870 same v1 has 0.870"
        assert opened.seen == []


def test_the_list_is_sorted_and_filtered_by_the_change_from_the_baseline(browser: Browser, tmp_path: Path) -> None:
    write(compared({"metric": "faithfulness", "baseline": "main"}), tmp_path / "page.html")
    address = "#view=questions&system=v1&metric=token_f1&sort=drop&regressed=1"
    with open_page(browser, tmp_path / "page.html", address) as opened:
        page = opened.page
        assert page.locator(".line .under bdi").all_inner_texts() == ["q5", "q4", "q3", "q2", "q1"]
        assert page.locator(".line .change").nth(0).inner_text() == "▼ 0.250"
        assert page.locator(".total").inner_text() == "5 of 6 questions · changes against main"


def test_a_gate_can_name_another_system_than_the_first(browser: Browser, tmp_path: Path) -> None:
    write(alter(make_page_evaluation(), spec={"gates": [{"metric": "faithfulness", "baseline": "v2"}]}),
          tmp_path / "page.html")  # fmt: skip
    with open_page(browser, tmp_path / "page.html", "#q=q0&system=v1") as opened:
        assert read_values(opened)[0] == "faithfulness 0.900 ▲ 0.250 v2 has 0.650"


def test_a_thousand_questions_with_a_baseline_stay_small(tmp_path: Path) -> None:
    gate = {"metric": "faithfulness", "baseline": "main"}
    assert write(compared(gate, count=1000), tmp_path / "page.html") < 2_000_000


def answered_before(**answers: str) -> Evaluation:
    """The evaluation with these answers of v1 in `main`, by question."""
    rows = [("main", "golden", "v1", query, answer) for query, answer in answers.items()]
    table = pl.DataFrame(rows, schema=BASE_ANSWERS, orient="row")
    return replace(
        compared({"metric": "faithfulness", "baseline": "main"}),
        load_base_answers=lambda: pl.concat([empty_base_answers(), table]),
    )


def test_the_earlier_answer_stands_beside_todays(browser: Browser, tmp_path: Path) -> None:
    evaluation = answered_before(q1=f"Earlier. {ATTACK}", q2=ANSWER, q3="  ")
    write(evaluation, tmp_path / "page.html")
    with open_page(browser, tmp_path / "page.html", "#q=q1&system=v1") as opened:
        page = opened.page
        page.wait_for_selector(".earlier")
        assert page.locator(".answers h4").all_inner_texts() == ["Answer", "Answer in main"]
        assert page.locator(".earlier p").inner_text().startswith("Earlier. </script><script>alert(1)")
        assert opened.seen == []
    for query, told in (("q2", "The same answer."), ("q3", "The answer is empty.")):
        with open_page(browser, tmp_path / "page.html", f"#q={query}&system=v1") as opened:
            opened.page.wait_for_selector(".earlier")
            assert opened.page.locator(".earlier p").inner_text() == told
    for place in ("#q=q4&system=v1", "#q=q1&system=v2"):
        with open_page(browser, tmp_path / "page.html", place) as opened:
            opened.page.wait_for_selector(".answer")
            assert opened.page.locator(".earlier").count() == 0


def test_a_page_without_earlier_answers_has_the_bytes_that_it_had() -> None:
    evaluation = compared({"metric": "faithfulness", "baseline": "main"})
    (block,) = collect_questions(evaluation).blocks()
    assert b'"earlier"' not in block
    (block,) = collect_questions(answered_before(q1="Earlier.")).blocks()
    assert block.count(b'"earlier":"main"') == 1
