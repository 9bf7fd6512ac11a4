"""The legends of reports.

Sentences on ties: one for each system if there are few, and one for all if there are many.

Clusters and weights in every report: which number is the headline, the plain one beside it, and what is left out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, TieRange
from rageval_spec.data.outcomes import Interval
from rageval_spec.drawing.sections import (
    WEIGHTED_TITLE,
    describe_legend,
    describe_ties,
    show_weighted,
    significance_mark,
)
from rageval_spec.runner import Options, run
from tests.browser import open_page
from tests.command_line import invoke
from tests.pipeline.execution.test_question_clusters import QUESTIONS, RIGHT, evaluate, write
from tests.sample_evaluation import make_evaluation

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_the_legend_says_what_a_percentile_is() -> None:
    cells = [
        Aggregate("golden", "rag", "ndcg@10", 0.5, Interval(0.4, 0.6, 0.9), 100, 100),
        Aggregate("golden", "rag", "slow", 1.5, Interval(1, 2, 0.9, "order-statistics"), 100, 100, "p95"),
        Aggregate("golden", "rag", "latency@p99", 1.5, None, 100, 100, "p99"),
        Aggregate("other", "rag", "latency@p50", 1.5, None, 1, 1, "p50"),
    ]
    evaluation = replace(make_evaluation(systems=("rag",)), aggregates=tuple(cells), comparisons=())
    assert describe_legend(evaluation, "golden") == [
        ("[ ]", "90% confidence interval"),
        ("p95", "slow: 95% of the queries have a value below this one, shown with its 90% order-statistics interval"),
        ("p99", "latency@p99: 99% of the queries have a value below this one; too few queries for an interval"),
    ]
    evaluation = replace(evaluation, aggregates=(cells[1],), units={"cost": "US dollars", "slow": "seconds"})
    assert ("unit", "cost in US dollars; slow in seconds") in describe_legend(evaluation, "golden")
    evaluation = replace(evaluation, units={})
    assert [sign for sign, _ in describe_legend(evaluation, "golden")] == ["p95"]


def test_marks_against_the_baseline_of_a_gate_are_explained() -> None:
    gated = Comparison("golden", "map", "rag", "main", -0.2, None, 0.01, 0.01, 50, 30, 20)
    evaluation = replace(make_evaluation(systems=("rag",)), comparisons=(), baselines=(gated,))
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["▲ ▼"].startswith("significantly higher or lower than main (paired permutation test")
    both = replace(make_evaluation(systems=("bm25", "dense")), baselines=(gated,))
    assert "than bm25 or main (" in dict(describe_legend(both, "golden"))["▲ ▼"]
    sliced = replace(evaluation, baselines=(replace(gated, slice="hard"),))
    assert "▲ ▼" not in dict(describe_legend(sliced, "golden"))


@pytest.mark.parametrize(
    ("difference", "p_adjusted", "mark"), [(0.1, 0.01, "▲"), (-0.1, 0.049, "▼"), (0.1, 0.05, ""), (-0.1, 1.0, "")]
)
def test_a_mark_shows_the_direction_of_a_significant_difference(
    difference: float, p_adjusted: float, mark: str
) -> None:
    comparison = Comparison("golden", "map", "dense", "bm25", difference, None, 0.01, p_adjusted, 50, 30, 20)
    assert significance_mark(comparison) == mark
    assert significance_mark(None) == ""


def tied(systems: int, datasets: tuple[str, ...] = ("golden",)) -> Evaluation:
    """An evaluation in which every system has ties; the last system has the widest range."""
    evaluation = make_evaluation(datasets, [f"s{number}" for number in range(systems)], {"map": (0.5,), "rr": (0.5,)})
    cells = [
        replace(cell, ties=TieRange(0.5 - int(cell.system[1:]) / 100, 0.5, 2 + int(cell.system[1:])))
        for cell in evaluation.aggregates
    ]
    return replace(evaluation, aggregates=tuple(cells))


def test_a_few_systems_have_a_sentence_each() -> None:
    assert describe_ties(tied(2), "golden") == [
        "decide the value of 2 queries of s0: map between 0.500 and 0.500, rr between 0.500 and 0.500",
        "decide the value of 3 queries of s1: map between 0.490 and 0.500, rr between 0.490 and 0.500",
    ]
    assert describe_ties(tied(1), "golden")[0].startswith("decide the value of 2 queries: map ")


def test_many_systems_have_one_sentence_below_the_last_table() -> None:
    evaluation = tied(10, ("golden", "other"))
    assert describe_ties(evaluation, "golden") == []
    assert describe_ties(evaluation, "other") == [
        "decide the value of up to 11 queries of 10 systems; the widest ranges are "
        "map of s9 on golden between 0.410 and 0.500, rr of s9 on golden between 0.410 and 0.500; "
        "the JSON report lists all of them"
    ]


def test_metrics_without_ties_are_not_mentioned() -> None:
    evaluation = tied(2)
    untied = tuple(replace(cell, ties=None) for cell in evaluation.aggregates)
    assert describe_ties(replace(evaluation, aggregates=untied), "golden") == []


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
    (section,) = show_weighted(evaluation, 3)
    rows = section.rows
    assert [row[0] for row in rows] == ["token_f1 of bot", "token_f1 of other", "token_f1 of other vs bot"]
    assert rows[0][1].startswith("0.550 [")
    assert rows[0][2:] == ("0.667", "6", "3")
    assert rows[2][1].startswith("+0.050 [") and rows[2][2] == "+0.167"
    (sentence,) = section.remarks
    assert sentence.startswith("The weighted means are the numbers of the tables above, of gates and of comparisons.")


def test_the_legend_says_what_is_drawn_together_and_what_weights_it(evaluation: Evaluation) -> None:
    legend = dict(describe_legend(evaluation, "golden"))
    assert legend["[ ]"] == "95% confidence interval of whole clusters"
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
    assert list(show_weighted(plain, 3)) == []


def test_what_the_means_leave_out_is_told(tmp_path: Path) -> None:
    limited = evaluate(tmp_path, limit=3, weights="mix.csv")
    (section,) = show_weighted(limited, 3)
    assert section.remarks[1] == "golden has no evaluated question for 80% of production: kind=hard."
    rows = [{**row, "reference": None if row["kind"] == "hard" else "yes"} for row in QUESTIONS]
    lacking = evaluate(tmp_path / "lacking", questions=rows, weights="mix.csv")
    (section,) = show_weighted(lacking, 3)
    assert section.remarks[1] == ("token_f1 of bot leaves out 80% of production, which has no scored question.")


def test_the_terminal_markdown_and_junit_show_both_numbers(folder: Path) -> None:
    done = invoke("run", folder / "spec.yaml", "-o", folder / "again", "--set", "reports=[terminal]")
    assert WEIGHTED_TITLE in done.stdout and "token_f1 of other vs bot" in done.stdout
    text = (folder / "out" / "report.md").read_text()
    assert f"#### {WEIGHTED_TITLE}\n" in text and "| `token_f1 of bot` |" in text
    assert "weighted, 0.667 if all questions count the same" in (folder / "out" / "junit.xml").read_text()


def test_csv_has_the_cluster_and_the_weight_of_each_question(folder: Path) -> None:
    rows = pl.read_csv(folder / "out" / "values.csv").filter(system="bot").sort("query_id")
    assert rows["cluster"].cast(pl.String).to_list() == ["0", "0", "1", "1", "2", "q5"]
    assert rows["weight"].to_list() == pytest.approx([0.05] * 4 + [0.4] * 2)


def test_the_page_shows_the_table(browser: Browser, folder: Path) -> None:
    with open_page(browser, folder / "out" / "report.html") as opened:
        opened.page.wait_for_selector("#weighted-title")
        section = opened.page.locator("section[aria-labelledby=weighted-title]")
        header = ["metric", "weighted", "plain", "scored", "effective n"]
        assert section.locator("thead th").all_inner_texts() == header
        assert section.locator("tbody th").all_inner_texts()[0] == "token_f1 of bot"
        assert opened.seen == []
