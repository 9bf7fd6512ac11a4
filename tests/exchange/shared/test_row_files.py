"""Rows of files in the layouts of tools become traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.traces import Document, TraceLink
from rageval_spec.exchange.shared.row_files import build_trace
from rageval_spec.recorded.answers_and_steps import UnusableReplyError
from tests.command_line import invoke


def build(**row: Any) -> Any:
    return build_trace("toy", "file:1", "1", {"question": "Why?", **row})


def test_texts_numbers_and_lists_of_a_row() -> None:
    trace = build(
        id=7, answer="So.", contexts="['a', 'b']", context_ids=["1", "2"], reference=["x", "y"], relevant="[\"1\"]",
        seconds="0.5", input_tokens=3, metadata={"a": 1, "b": None, "c": float("nan")},
    )  # fmt: skip
    assert (trace.link, trace.id) == (TraceLink("toy", "7"), "7")
    assert trace.documents == (Document("a", "1"), Document("b", "2"))
    assert (trace.references, trace.relevant) == (("x", "y"), ("1",))
    assert (trace.seconds, trace.input_tokens, trace.metadata) == (0.5, 3, {"a": 1})


def test_an_empty_answer_is_an_answer_and_an_absent_one_is_not() -> None:
    assert (build(answer="").answer, build(answer=None).answer, build().documents) == ("", None, None)
    assert build(contexts=[]).documents == ()


def test_without_an_id_the_number_of_the_row_is_the_id() -> None:
    assert build().id == "1"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": ""}, "the row has no question"),
        ({"question": {"a": 1}}, "'question' must be text"),
        ({"contexts": ["a"], "context_ids": ["1", "2"]}, "the row has 1 contexts and 2 ids of contexts"),
        ({"contexts": 5}, "'contexts' must be a list"),
        ({"seconds": "soon"}, "'seconds'"),
        ({"input_tokens": -1}, "'input_tokens'"),
    ],
)
def test_what_cannot_be_read_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableReplyError, match=message):
        build(**row)


@pytest.mark.parametrize("gold", ["groundTruthAnswer", "Ground Truth", "expected_response"])
def test_the_gold_answer_of_a_row_is_known_in_any_spelling_and_answer_is_the_systems(tmp_path: Path, gold: str) -> None:
    row = {"question": "Who?", gold: "A", "answer": "X", "retrievedContexts": ["c"]}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    assert invoke("import", "huggingface", tmp_path / "log.jsonl", "-o", tmp_path / "out.jsonl").exit_code == 0
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert (found["answer"], found["contexts"], found["reference"]) == ("X", [{"text": "c"}], "A")
