from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import UsageError
from rageval_spec.plugin import Context
from rageval_spec.reports.samples import SamplesNode, SamplesReport
from tests.answered_evaluation import BRIDGE, answered, sample, value


def report(path: str | None = None) -> SamplesReport:
    return SamplesReport(SamplesNode(use="samples", path=path), Context("samples"))


def one_system() -> Evaluation:
    values = [
        value("q1", "faithfulness", 0.5, reason="it says 1911"),
        value("q1", "token_f1", 0.25),
        value("=q2", "token_f1", None, reason="there is no answer"),
    ]
    hostile = sample("=q2", answer="=cmd()|' /C calc'!A0\n-2", contexts=["+1", "two"], question="\x1b[31mWhy?")
    return answered(values, [BRIDGE, hostile])


def two_systems() -> Evaluation:
    rows = [value("q1", "token_f1", number, system) for system, number in (("v1", 0.25), ("v2", 1.0))]
    return answered(rows, [BRIDGE, {**BRIDGE, "system": "v2", "answer": "120 m"}])


def test_a_question_is_a_row_with_its_texts_values_and_reasons() -> None:
    first, second = csv.DictReader(StringIO(report().render(one_system()).decode(), newline=""))
    assert (first["query_id"], first["question"], first["answer"]) == ("q1", "Question q1?", BRIDGE["answer"])
    assert first["contexts"] == "The bridge is 120 m long.\n\nIt opened in 1909."
    assert (first["faithfulness"], first["faithfulness reason"], first["token_f1"]) == ("0.5", "it says 1911", "0.25")
    assert (second["token_f1"], second["token_f1 reason"], second["faithfulness"]) == ("", "there is no answer", "")


def test_no_cell_of_a_spreadsheet_is_a_formula_or_has_control_characters() -> None:
    rows = [*csv.DictReader(StringIO(report().render(one_system()).decode(), newline=""))]
    assert rows[1]["query_id"] == "'=q2"
    assert rows[1]["answer"] == "'=cmd()|' /C calc'!A0\n-2"
    assert rows[1]["contexts"] == "'+1\n\ntwo"
    assert rows[1]["question"] == r"\x1b[31mWhy?"


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_data_formats_keep_lists_and_texts_as_they_are(form: str) -> None:
    content = report(f"questions.{form}").render(one_system())
    rows = (
        [json.loads(line) for line in content.splitlines()]
        if form == "jsonl"
        else pl.read_parquet(BytesIO(content)).to_dicts()
    )
    assert rows[1]["question"] == "\x1b[31mWhy?"
    assert (rows[1]["contexts"], rows[1]["answer"]) == (["+1", "two"], "=cmd()|' /C calc'!A0\n-2")
    assert (rows[0]["faithfulness"], rows[1]["faithfulness"]) == (0.5, None)
    assert b"\x1b" not in content or form == "parquet"


def test_several_systems_have_a_file_each() -> None:
    files = dict(report("all/q.jsonl").render_files(two_systems()))
    assert {name: [json.loads(line)["answer"] for line in content.splitlines()] for name, content in files.items()} == {
        "v2.jsonl": ["120 m"], "v1.jsonl": [BRIDGE["answer"]],
    }  # fmt: skip
    assert [name for name, _ in report().render_files(one_system())] == [""]


def test_a_metric_named_like_another_column_has_a_name_of_its_own() -> None:
    named = answered([value("q1", "status", 0.5)], [{**BRIDGE, "status": "answered"}])
    (row,) = pl.read_parquet(BytesIO(report("q.parquet").render(named))).to_dicts()
    assert (row["status value"], row["status"]) == (0.5, "answered")


def test_without_samples_there_are_still_values() -> None:
    table = pl.read_parquet(BytesIO(report("q.parquet").render(answered([value("q1", "token_f1", 0.5)]))))
    assert table.select("query_id", "question", "token_f1").rows() == [("q1", None, 0.5)]


def test_an_unknown_suffix_is_refused() -> None:
    with pytest.raises(ValidationError):
        SamplesNode(use="samples", path="questions.xls")


def test_a_missing_library_is_named_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.drawing.question_tables.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'rageval-spec\[xlsx\]'"):
        report("questions.xlsx")
    report("questions.csv")


def test_equal_evaluations_give_equal_workbooks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xlsxwriter")
    first = report("q.xlsx").render(one_system())
    later: Any = lambda *_: 2_000_000_000.0  # noqa: E731
    monkeypatch.setattr("time.time", later)
    assert report("q.xlsx").render(one_system()) == first
