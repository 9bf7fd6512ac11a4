"""The queries that a reader should look at first."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.pipeline import ranking_values as values
from rageval_spec.plugin import Context
from rageval_spec.reports.markdown import PLUGIN
from rageval_spec.reports.shared.highlights import list_failed, list_worst
from tests.sample_evaluation import make_evaluation

RIGHT = {"text": "It is red.", "score": 1.0}
WRONG = {"text": "It | flies.", "score": 0.0, "verdict": "not_enough_info"}
CLAIMS = {"claims": [RIGHT, WRONG]}
Row = tuple[str, float | None, str, str | None, object]


def evaluation(*rows: Row) -> Evaluation:
    columns = ["query_id", "value", "status", "reason", "details"]
    data = [(*row[:4], None if row[4] is None else json.dumps(row[4])) for row in rows]
    schema = dict.fromkeys(columns, pl.String) | {"value": pl.Float64}
    table = pl.DataFrame(data, schema=schema, orient="row")
    return replace(
        make_evaluation(),
        values=values.label(table, "golden", "bot", "faithfulness"),
        failures=(),
    )


def test_the_worst_come_first_with_their_worst_claims() -> None:
    found = list(list_worst(evaluation(
        ("q1", 1.0, "scored", None, {"claims": []}),
        ("q2", 0.5, "scored", None, CLAIMS),
        ("q3", 0.0, "scored", "no contexts", {}),
    )))  # fmt: skip
    assert [(one.query_id, one.reason) for one in found] == [
        ("q3", "no contexts"),
        ("q2", "“It | flies.” (not enough info)"),
    ]


def test_nothing_stands_out_if_all_are_equally_good() -> None:
    assert list(list_worst(evaluation(("q1", 1.0, "scored", None, CLAIMS), ("q2", 1.0, "scored", None, CLAIMS)))) == []


def test_if_lower_is_better_the_highest_are_the_worst() -> None:
    rows: list[Row] = [("q1", 0.1, "scored", None, {}), ("q2", 0.9, "scored", None, {})]
    found = list_worst(replace(evaluation(*rows), lower_is_better=("faithfulness",)))
    assert [one.query_id for one in found] == ["q2"]


def test_failed_queries_are_few_and_say_why() -> None:
    rows: list[Row] = [(f"q{number}", None, "error", "no JSON", None) for number in range(5)]
    assert [one.query_id for one in list_failed(evaluation(*rows))] == ["q0", "q1", "q2"]


def test_the_markdown_report_folds_them_away_and_escapes_them() -> None:
    node = PLUGIN.node_type(use="markdown")
    failed: Row = ("q1", None, "error", "<b>no</b> JSON", None)
    scored: list[Row] = [("q2", 0.5, "scored", None, CLAIMS), ("q3", 1.0, "scored", None, {})]
    text = PLUGIN(node, Context("markdown")).render(evaluation(failed, *scored)).decode()
    assert "<summary>Failed queries</summary>" in text
    assert "&lt;b&gt;no&lt;/b&gt; JSON" in text
    assert "“It \\| flies.” (not enough info)" in text
