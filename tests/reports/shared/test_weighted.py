"""Clusters and weights in every report: which number is the headline, the plain one beside it, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.reports.shared.legend import describe_legend
from rageval_spec.reports.shared.weighted import HEADER, TITLE, explain_weights, list_weighted
from rageval_spec.runner import Options, run
from tests.browser import open_page
from tests.command_line import invoke
from tests.pipeline.test_designs import QUESTIONS, RIGHT, evaluate, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SYSTEMS = {"bot": RIGHT, "other": (1, 1, 1, 1, 1, 0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weighted")
    reports = ["markdown", "html", "json", "junit", "csv", "openmetrics"]
    rows = [*QUESTIONS[:5], {"kind": "hard"}]
    gates = [{"metric": "token_f1", "min": 0.1}]
    path = write(folder, rows, SYSTEMS, weights="mix.csv", cluster="source", reports=reports, gates=gates)
    run(path, Options(output=folder / "out"))
    return folder


@pytest.fixture(scope="module")
def evaluation(folder: Path) -> Evaluation:
    return run(folder / "spec.yaml", Options(output=None)).evaluation


def test_a_row_for_each_mean_and_each_difference(evaluation: Evaluation) -> None:
    rows = list_weighted(evaluation, 3)
    assert [row[0] for row in rows] == ["token_f1 of bot", "token_f1 of other", "token_f1 of other vs bot"]
    assert rows[0][1].startswith("0.550 [")
    assert rows[0][2:] == ("0.667", "6", "3")
    assert rows[2][1].startswith("+0.050 [") and rows[2][2] == "+0.167"
    [sentence] = explain_weights(evaluation)
    assert sentence.startswith("The weighted means are the numbers of the tables above, of gates and of comparisons.")


def test_the_legend_says_what_is_drawn_together_and_what_weights_it(evaluation: Evaluation) -> None:
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["[ ]"] == "95% bootstrap interval of whole clusters"
    assert legend["n"] == (
        "intervals and tests: 6 questions in 4 clusters (source), 1 of them on their own, because they have no value"
    )
    assert legend["w"] == (
        "weighted by the mix of production in mix.csv, and so are gates and comparisons; "
        "'Weighted and plain means' shows both"
    )


def test_a_column_of_weights_is_named(tmp_path: Path) -> None:
    legend = dict(describe_legend(evaluate(tmp_path, weight="traffic"), "golden"))
    assert legend["w"].startswith("weighted by the column traffic, and so are gates")
    assert "n" not in legend


def test_a_dataset_without_a_design_has_no_such_lines(tmp_path: Path) -> None:
    plain = evaluate(tmp_path)
    assert not {"n", "w"} & dict(describe_legend(plain, "golden")).keys()
    assert list_weighted(plain, 3) == []


def test_what_the_means_leave_out_is_told(tmp_path: Path) -> None:
    limited = evaluate(tmp_path, limit=3, weights="mix.csv")
    assert list(explain_weights(limited))[1] == "golden has no evaluated question for 80% of production: kind=hard."
    rows = [{**row, "reference": None if row["kind"] == "hard" else "yes"} for row in QUESTIONS]
    lacking = evaluate(tmp_path / "lacking", questions=rows, weights="mix.csv")
    assert list(explain_weights(lacking))[1] == (
        "token_f1 of bot leaves out 80% of production, which has no scored question."
    )


def test_the_terminal_markdown_and_junit_show_both_numbers(folder: Path) -> None:
    done = invoke("run", folder / "spec.yaml", "-o", folder / "again", "--set", "reports=[terminal]")
    assert TITLE in done.stdout and "token_f1 of other vs bot" in done.stdout
    text = (folder / "out" / "report.md").read_text()
    assert f"**{TITLE}**" in text and "| `token_f1 of bot` |" in text
    assert "weighted, 0.667 if all questions count the same" in (folder / "out" / "junit.xml").read_text()


def test_csv_has_the_cluster_and_the_weight_of_each_question(folder: Path) -> None:
    rows = pl.read_csv(folder / "out" / "values.csv").filter(system="bot").sort("query_id")
    assert rows["cluster"].cast(pl.String).to_list() == ["0", "0", "1", "1", "2", "q5"]
    assert rows["weight"].to_list() == pytest.approx([0.05] * 4 + [0.4] * 2)


def test_the_page_shows_the_table(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#weighted-title")
        section = opened.page.locator("section[aria-labelledby=weighted-title]")
        assert section.locator("thead th").all_inner_texts() == list(HEADER)
        assert section.locator("tbody th").all_inner_texts()[0] == "token_f1 of bot"
        assert opened.seen == []
