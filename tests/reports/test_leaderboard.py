"""Leaderboards as AutoJudge writes them, and as it and `calibrate --leaderboards` read them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.calibration.leaderboards import take_values
from rageval_spec.data.evaluation import Aggregate, Evaluation, Stability
from rageval_spec.errors import DataError
from rageval_spec.plugin import Context
from rageval_spec.reading.leaderboards import read_leaderboard
from rageval_spec.reports.leaderboard import LeaderboardNode, LeaderboardReport
from tests.sample_evaluation import make_hostile_evaluation

VALUES = [
    ("first", "nuggets", "1", 0.5, None),
    ("first", "support", "1", 1 / 3, None),
    ("first", "nuggets", "2", 1.0, None),
    ("second", "nuggets", "1", None, "the query has no vital nuggets"),
    ("second", "support", "1", 0.1 + 0.2, None),
]
MEANS = [
    ("first", "nuggets", 0.75),
    ("first", "support", 1 / 3),
    ("second", "nuggets", None),
    ("second", "support", 0.1 + 0.2),
]
# What `Leaderboard.write` of autojudge-base 1.0.0 writes for these numbers, in its formats jsonl and ir_measures.
AUTOJUDGE = """\
{"run_id": "first", "topic_id": "1", "measure": "nuggets", "value": 0.5}
{"run_id": "first", "topic_id": "1", "measure": "support", "value": 0.3333333333333333}
{"run_id": "first", "topic_id": "2", "measure": "nuggets", "value": 1.0}
{"run_id": "second", "topic_id": "1", "measure": "support", "value": 0.30000000000000004}
{"run_id": "first", "topic_id": "all", "measure": "nuggets", "value": 0.75}
{"run_id": "first", "topic_id": "all", "measure": "support", "value": 0.3333333333333333}
{"run_id": "second", "topic_id": "all", "measure": "support", "value": 0.30000000000000004}
"""
IR_MEASURES = """\
first\t1\tnuggets\t0.5
first\t1\tsupport\t0.3333333333333333
first\t2\tnuggets\t1.0
second\t1\tsupport\t0.30000000000000004
first\tall\tnuggets\t0.75
first\tall\tsupport\t0.3333333333333333
second\tall\tsupport\t0.30000000000000004
"""
# Its format trec_eval has no system; ours has a file for each.
TREC_EVAL = {
    "first": "nuggets\t1\t0.5\nsupport\t1\t0.3333333333333333\nnuggets\t2\t1.0\nnuggets\tall\t0.75\n"
    "support\tall\t0.3333333333333333\n",
    "second": "support\t1\t0.30000000000000004\nsupport\tall\t0.30000000000000004\n",
}


def evaluation(*datasets: str) -> Evaluation:
    datasets = datasets or ("rag",)
    rows = [(dataset, *row) for dataset in datasets for row in VALUES]
    values = pl.DataFrame(rows, schema=["dataset", "system", "metric", "query_id", "value", "reason"], orient="row")
    means = [Aggregate(dataset, *row, None, 1, 1) for dataset in datasets for row in MEANS]
    sliced = replace(means[0], slice="hard", mean=0.125)
    return Evaluation("trec", datasets, ("first", "second"), ("nuggets", "support"), (*means, sliced), values=values)


def render(form: str, found: Evaluation, told: list[str] | None = None) -> dict[str, str]:
    node = LeaderboardNode(use="leaderboard", form=form)
    report = LeaderboardReport(node, Context("leaderboard", tell=(told if told is not None else []).append))
    return {name: content.decode() for name, content in report.render_files(found)}


def test_the_bytes_are_those_of_autojudge() -> None:
    assert render("autojudge", evaluation()) == {"": AUTOJUDGE}
    assert render("ir_measures", evaluation()) == {"": IR_MEASURES}
    assert render("trec_eval", evaluation()) == TREC_EVAL


@pytest.mark.parametrize("form", ["autojudge", "ir_measures", "trec_eval"])
def test_what_is_written_can_be_read(form: str, tmp_path: Path) -> None:
    for name, content in render(form, evaluation()).items():
        (tmp_path / (name or "all.txt")).write_text(content)
    found = read_leaderboard(tmp_path if form == "trec_eval" else tmp_path / "all.txt")
    assert found.values == {
        "nuggets": {"first": {"1": 0.5, "2": 1.0}},
        "support": {"first": {"1": 1 / 3}, "second": {"1": 0.1 + 0.2}},
    }
    assert found.means == {"nuggets": {"first": 0.75}, "support": {"first": 1 / 3, "second": 0.1 + 0.2}}


def test_a_value_without_a_number_is_named_and_not_zero() -> None:
    told: list[str] = []
    assert "0.0\n" not in render("ir_measures", evaluation(), told)[""]
    assert told == [
        "the leaderboard leaves out 1 value without a number, first nuggets of second for 1: the query has no vital "
        "nuggets"
    ]
    lost = evaluation().values.filter(pl.col("value").is_null())
    render("autojudge", replace(evaluation(), values=pl.concat([lost] * 25)), told)
    assert told[1] == told[0].replace("1 value ", "25 values ")  # a system that failed has the same reason everywhere


def test_a_topic_that_was_asked_again_has_the_mean_of_its_repeats() -> None:
    once = evaluation()
    again = [once.values.with_columns(pl.col("query_id") + f"#{number}", pl.col("value") / number) for number in (1, 2)]
    found = replace(once, values=pl.concat(again), stability=(Stability("rag", "first", "nuggets", 2, 2, 0.1, 0.1),))
    lines = render("ir_measures", found)[""].splitlines()
    assert lines[:3] == ["first\t1\tnuggets\t0.375", "first\t1\tsupport\t0.25", "first\t2\tnuggets\t0.75"]
    assert len(lines) == 7
    assert take_values("ours", found).values["nuggets"] == {"first": {"1": 0.375, "2": 0.75}}


def test_each_dataset_has_files_of_its_own() -> None:
    assert render("autojudge", evaluation("rag", "neuclir")) == {"rag.txt": AUTOJUDGE, "neuclir.txt": AUTOJUDGE}
    assert [*render("trec_eval", evaluation("rag", "neuclir"))] == [
        "rag/first", "rag/second", "neuclir/first", "neuclir/second",
    ]  # fmt: skip


def test_names_that_a_form_cannot_hold() -> None:
    hostile = make_hostile_evaluation()
    written = "".join(render("autojudge", hostile).values())
    assert written.count("\n") == len(written.splitlines())
    for form in ("ir_measures", "trec_eval"):
        with pytest.raises(DataError, match="has white space, which the form"):
            render(form, hostile)
    named_all = evaluation().values.with_columns(query_id=pl.lit("all"))
    with pytest.raises(DataError, match="a query of 'rag' is called 'all'"):
        render("autojudge", replace(evaluation(), values=named_all))


def test_autojudge_evaluate_reads_all_forms(tmp_path: Path) -> None:
    try:
        reading: Any = importlib.import_module("autojudge_evaluate.eval_results.io")
    except Exception as error:  # a LookupError without its data of nltk
        pytest.skip(f"autojudge-evaluate cannot be imported: {type(error).__name__}; pip install autojudge-evaluate")
    for form, theirs in (("autojudge", "jsonl"), ("ir_measures", "ir_measures"), ("trec_eval", "trec_eval")):
        folder = tmp_path / form
        folder.mkdir()
        for name, content in render(form, evaluation()).items():
            (folder / (name or "all.txt")).write_text(content)
        found = reading.load(folder, theirs, recompute_aggregates=False, verify=False, on_missing="ignore")
        rows = {(one.run_id, one.topic_id, one.measure): one.value for one in found.entries}
        assert (
            len(rows) == 7 and rows["second", "1", "support"] == 0.1 + 0.2 and rows["first", "all", "nuggets"] == 0.75
        )
