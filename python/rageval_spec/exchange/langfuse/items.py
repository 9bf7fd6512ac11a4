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
)
from rageval_spec.exchange.shared.places import read_relevant

if TYPE_CHECKING:
    from rageval_spec.exchange.shared.places import Places


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
        references=places.references(expected),
        relevant=read_relevant(expected, read_mapping(row.get("metadata"))),
        messages=list_messages(row.get("input")),
        metadata=clean(read_mapping(row.get("metadata"))),
    )
