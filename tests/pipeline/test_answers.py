"""A system's answers become samples and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.tables import Collection, answers_table
from rageval_spec.errors import DataError
from rageval_spec.pipeline.answers import NOT_ANSWERED, answer_queries, describe_answers
from rageval_spec.pipeline.materials import Materials
from rageval_spec.pipeline.parts import build_parts
from rageval_spec.pipeline.plan import make_plan
from rageval_spec.pipeline.task import Made, Task
from rageval_spec.plugin import Answering
from rageval_spec.spec import load
from rageval_spec.store.memory import MemoryStore
from tests.answering import Canned
from tests.tiny import Install, install, write_spec

__all__ = ["install"]

QUERIES = pl.DataFrame({"query_id": ["q2", "q1"], "text": ["two", "one"]})


def collection() -> Collection:
    return Collection("golden", load_queries=lambda: QUERIES)


def test_contexts_become_a_ranking_with_each_document_at_its_first_place() -> None:
    rows: list[dict[str, Any]] = [
        {"query_id": "q1", "answer": "yes", "context_ids": ["d3", "d1", "d3"]},
        {"query_id": "q2", "answer": "no"},
    ]
    answered = describe_answers(answers_table(rows), collection())
    assert answered.run is not None
    assert answered.run.rows() == [("q1", "d3", 2.0), ("q1", "d1", 1.0)]
    assert describe_answers(answers_table(rows[1:]), collection()).run is None


def test_a_query_without_an_answer_has_an_error_and_a_note_counts_them() -> None:
    answered = describe_answers(answers_table([{"query_id": "q1", "answer": "yes"}]), collection())
    assert [(sample.query_id, sample.error) for sample in answered.samples] == [("q2", NOT_ANSWERED), ("q1", None)]
    (note,) = answered.notes
    assert (note.code, note.count) == ("unanswered", 1)


def test_samples_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"q{number}" for number in range(5)]
    queries = pl.DataFrame({"query_id": ids, "text": [f"What is {name}?" for name in ids]})
    gold = pl.DataFrame({"query_id": ["q4", "q1"], "references": [["four"], ["one", "1"]], "text": ["x", "y"]})
    rows: list[dict[str, Any]] = [
        {"query_id": name, "answer": name.upper(), "contexts": [name]} for name in ("q3", "q0", "q1")
    ]
    asked = Collection("golden", load_queries=lambda: queries, load_references=lambda: gold)
    answers = answers_table(rows).with_columns(question=pl.lit("a column of the system's own"))
    whole = describe_answers(answers, asked).samples
    monkeypatch.setattr("rageval_spec.data.tables._ROWS_AT_ONCE", 2)
    assert describe_answers(answers, asked).samples == whole
    assert [(one.query_id, one.question, one.answer, one.contexts, one.references) for one in whole] == [
        ("q0", "What is q0?", "Q0", ("q0",), ()),
        ("q1", "What is q1?", "Q1", ("q1",), ("one", "1")),
        ("q2", "What is q2?", None, None, ()),
        ("q3", "What is q3?", "Q3", ("q3",), ()),
        ("q4", "What is q4?", None, None, ("four",)),
    ]


def answer(folder: Path, table: pl.DataFrame, install: Install) -> Made:
    class Given(Canned):
        def answer(self, collection: Collection) -> Answering:
            return Answering(table)

    install("systems", "given", Given)
    spec = load(write_spec(folder, systems={"bot": {"use": "given"}}, metrics=["error_rate"]))
    parts = build_parts(spec)
    plan = make_plan(spec, parts, MemoryStore().fingerprint)
    return answer_queries(Materials(spec, parts), Task(plan.retrieval("fruit", "bot")))


def test_answers_are_passed_on_unchanged(tmp_path: Path, install: Install) -> None:
    table = answers_table([{"query_id": "q1", "answer": "yes"}])
    made = answer(tmp_path, table, install)
    assert made.table is not None
    assert made.table.equals(table)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query_id": "q1", "answer": "yes"}, {"query_id": "q1", "answer": "no"}], "the query 'q1' is answered twice"),
        (None, "the answers have no column 'answer'"),
    ],
)
def test_invalid_answers_are_refused(
    tmp_path: Path, install: Install, rows: list[dict[str, Any]] | None, message: str
) -> None:
    table = answers_table([]).drop("answer") if rows is None else answers_table(rows)
    with pytest.raises(DataError, match=message):
        answer(tmp_path, table, install)


def test_samples_leave_out_contexts_but_keep_their_ids() -> None:
    rows = [{"query_id": "q1", "answer": "yes", "contexts": ["a", "b"], "context_ids": ["d1", "d2"]}]
    answered = describe_answers(answers_table(rows), collection(), with_contexts=False)
    (sample,) = (one for one in answered.samples if one.query_id == "q1")
    assert (sample.contexts, sample.context_ids) == (None, ("d1", "d2"))
    assert answered.run is not None and answered.run.height == 2
