from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.csv import CsvReport, CsvReportNode
from rageval_spec.wording import protect_cell
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation, make_hostile_evaluation


def render(evaluation: Evaluation) -> bytes:
    return CsvReport(CsvReportNode(use="csv"), Context("csv")).render(evaluation)


def test_golden() -> None:
    assert_golden("values.csv", render(make_evaluation(systems=("bm25",), metrics={"map": (0.1,)})))


def test_hostile_names_survive() -> None:
    rows = list(csv.DictReader(io.StringIO(render(make_hostile_evaluation()).decode(), newline="")))
    assert len(rows) == make_hostile_evaluation().values.height
    assert {row["system"] for row in rows} == {protect_cell(HOSTILE), "'=cmd()"}
    assert rows[2]["reason"] == 'no relevant document, "so to say"'


def test_numbers_keep_all_digits_and_no_value_is_empty() -> None:
    evaluation = make_evaluation()
    table = pl.read_csv(io.BytesIO(render(evaluation)), schema=evaluation.values.schema)
    written = evaluation.values.with_columns(pl.col("query_id").str.replace("=q2", "'=q2", literal=True))
    assert_frame_equal(table, written, check_exact=True)
    assert table["value"].null_count() == table.height // 3


@pytest.mark.parametrize("sign", "=+-@\t\r＝＋－＠")
def test_no_reason_begins_as_a_formula(sign: str) -> None:
    evaluation = make_evaluation(systems=("bm25",), metrics={"map": (0.1,)})
    values = evaluation.values.head(1).with_columns(reason=pl.Series([f"{sign}HYPERLINK(1)"]))
    (row,) = csv.DictReader(io.StringIO(render(replace(evaluation, values=values)).decode(), newline=""))
    assert row["reason"].startswith("'")


def test_reasons_and_details_are_visible_and_not_formulas() -> None:
    evaluation = make_evaluation(systems=("bm25",), metrics={"map": (0.1, 0.2)})
    values = evaluation.values.head(2).with_columns(
        reason=pl.Series(["=HYPERLINK(1)\0", "\x1b[2J\u202e"]),
        details=pl.Series(['{"text":"\u202e\x9b é"}', None], dtype=pl.String),
    )
    rows = list(csv.DictReader(io.StringIO(render(replace(evaluation, values=values)).decode(), newline="")))
    assert [row["reason"] for row in rows] == ["'=HYPERLINK(1)\\x00", "\\x1b[2J\\u202e"]
    assert rows[0]["details"] == '{"text":"\\u202e\\u009b é"}'
    assert json.loads(rows[0]["details"]) == {"text": "\u202e\x9b é"}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\N{FULLWIDTH EQUALS SIGN}"])
@pytest.mark.parametrize("column", ["dataset", "system", "metric", "query_id", "reason"])
def test_no_cell_is_a_formula(start: str, column: str) -> None:
    evaluation = make_evaluation()
    values = evaluation.values.with_columns(pl.lit(f"{start}cmd()").alias(column))
    rows = list(csv.DictReader(io.StringIO(render(replace(evaluation, values=values)).decode(), newline="")))
    assert all(row[column].startswith("'") for row in rows)
