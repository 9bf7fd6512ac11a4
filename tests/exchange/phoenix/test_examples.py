from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.exchange.phoenix.examples import read_example


def test_the_usual_keys_hold_the_question_and_the_reference() -> None:
    found = {"id": "e1", "node_id": "N1", "input": {"query": "Why?"}, "output": {"expected": "So."}, "metadata": None}
    trace = read_example(found, "golden", "v1", "here")
    assert (trace.id, trace.question, trace.references) == ("e1", "Why?", ("So.",))
    assert trace.link.to_dict() == {"tool": "phoenix", "trace_id": "N1", "dataset": "golden", "version": "v1"}


def test_messages_are_questions_too() -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]
    trace = read_example({"id": "e1", "input": {"messages": messages}, "output": {}}, "", "", "here")
    assert (trace.question, trace.references) == ("Why?", ())
    assert dict(trace.metadata) == {"input.messages": messages}


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ({"input": {"question": "x"}}, "here: it has no id"),
        ({"id": "e1", "input": {}}, "here: it has no input"),
        ([], "here: it has no id"),
    ],
)
def test_an_example_that_cannot_be_read_is_named(example: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_example(example, "golden", "v1", "here")
