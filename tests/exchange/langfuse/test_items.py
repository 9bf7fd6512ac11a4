from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.trace import Trace
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.items import read_item
from rageval_spec.exchange.shared.places import Places


def read(**item: Any) -> Trace | None:
    return read_item({"id": "i1", "status": "ACTIVE", "input": "Why?", **item}, "golden", Places(), "langfuse")


@pytest.mark.parametrize(
    ("expected", "references"),
    [
        ("So.", ("So.",)),
        ({"answer": "So."}, ("So.",)),
        ({"ground_truth": "So.", "answer": "old"}, ("So.",)),
        (["So.", "Thus."], ("So.", "Thus.")),
        ('{"text": "So."}', ("So.",)),
        (42, ("42",)),
        ({"steps": [1, 2]}, ('{"steps": [1, 2]}',)),
        (None, ()),
    ],
)
def test_expected_outputs_are_gold_answers(expected: Any, references: tuple[str, ...]) -> None:
    item = read(expectedOutput=expected)
    assert item is not None
    assert item.references == references


def test_an_item_names_relevant_documents_in_its_output_or_metadata() -> None:
    first, second = (
        read(expectedOutput={"answer": "a", "relevant_doc_ids": [1, "b"]}),
        read(metadata={"relevant": ["c"]}),
    )
    assert first is not None
    assert second is not None
    assert (first.relevant, second.relevant) == (("1", "b"), ("c",))


def test_archived_items_and_items_without_a_question_are_none() -> None:
    assert read(status="ARCHIVED") is None
    assert read(input=None) is None
    with pytest.raises(DataError, match="dataset 'golden': an item is not an object"):
        read_item("x", "golden", Places(), "langfuse")
