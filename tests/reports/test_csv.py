from __future__ import annotations

import csv
import io

import polars as pl
from polars.testing import assert_frame_equal

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.plugin import Context
from rageval_spec.reports.csv import CsvNode, CsvReport
from tests.reports.golden import assert_golden
from tests.sample_evaluation import HOSTILE, make_evaluation, make_hostile_evaluation


def render(evaluation: Evaluation) -> bytes:
    return CsvReport(CsvNode(use="csv"), Context("csv")).render(evaluation)


def test_golden() -> None:
    assert_golden("values.csv", render(make_evaluation(systems=("bm25",), metrics={"map": (0.1,)})))


def test_hostile_names_survive() -> None:
    rows = list(csv.DictReader(io.StringIO(render(make_hostile_evaluation()).decode(), newline="")))
    assert len(rows) == make_hostile_evaluation().values.height
    assert {row["system"] for row in rows} == {HOSTILE, "=cmd()"}
    assert rows[2]["reason"] == 'no relevant document, "so to say"'


def test_numbers_keep_all_digits_and_no_value_is_empty() -> None:
    evaluation = make_evaluation()
    table = pl.read_csv(io.BytesIO(render(evaluation)), schema=evaluation.values.schema)
    assert_frame_equal(table, evaluation.values, check_exact=True)
    assert table["value"].null_count() == table.height // 3
