"""Makes questions with gold answers of the items of a Langfuse dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.data.trace import Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.langfuse.rows import normalise, read_mapping
from rageval_spec.exchange.shared.payloads import (
    clean,
    find_contexts,
    list_messages,
    parse_text,
    read_text,
    write_text,
)

if TYPE_CHECKING:
    from rageval_spec.exchange.langfuse.traces import Places

_RELEVANT = ("relevant_doc_ids", "relevant_ids", "relevant", "doc_ids", "reference_context_ids")


def read_item(found: Any, dataset: str, places: Places, where: str) -> Trace | None:
    """The question of an item, under the item's id; None if it has none or is archived.

    Raises:
        DataError: the item is not an object, or has no id.
    """
    if not isinstance(found, Mapping):
        raise DataError(f"{where}: dataset '{dataset}': an item is not an object")
    row = normalise(found, f"{where}: dataset '{dataset}'")
    question = places.question(row.get("input"))
    if question is None or row.get("status") == "ARCHIVED":
        return None
    expected = parse_text(row.get("expectedoutput"))
    return Trace(
        TraceLink("langfuse", read_text(row.get("sourcetraceid")) or row["id"], others={"dataset": dataset}),
        question,
        query_id=row["id"],
        documents=find_contexts(row.get("input")),
        references=_read_references(expected, places),
        relevant=_read_relevant(expected, read_mapping(row.get("metadata"))),
        messages=list_messages(row.get("input")),
        metadata=clean(read_mapping(row.get("metadata"))),
    )


def _read_references(expected: Any, places: Places) -> tuple[str, ...]:
    if expected is None:
        return ()
    if isinstance(expected, list) and expected and all(isinstance(one, str) for one in expected):
        return tuple(expected)
    if isinstance(expected, Mapping):
        for key in ("reference", "ground_truth", "expected_answer", "expected_output"):
            if (text := read_text(expected.get(key))) is not None:
                return (text,)
    found = places.answer(expected)
    text = found if found is not None else write_text(expected)
    return () if text is None else (text,)


def _read_relevant(expected: Any, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The ids of relevant documents, where the expected output or the metadata names them."""
    for place in (expected, metadata):
        for key in _RELEVANT if isinstance(place, Mapping) else ():
            if isinstance(place.get(key), list):
                return tuple(str(one) for one in place[key])
    return None
