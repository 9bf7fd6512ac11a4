"""The system under evaluation: it looks its answers up."""

from __future__ import annotations

from typing import Any

ANSWERS: dict[str, tuple[str, str, str]] = {
    "q1": ("It is brewed for two minutes.", "c1", "Green tea is brewed for two minutes at eighty degrees."),
    "q2": ("Nine bars.", "c2", "Espresso is pressed through the grounds at nine bars."),
    "q3": ("Into boiling milk. It tastes sweet.", "c3", "Cocoa is stirred into warm milk, never into boiling milk."),
    "q4": ("Water boils at one hundred degrees.", "c5", "Water boils at one hundred degrees at sea level."),
    "q5": ("Once.", "c4", "Mate is poured with hot water several times."),
}


def answer(question: str, query_id: str) -> dict[str, Any]:
    """What is known of the query, with the document that says so."""
    text, doc_id, context = ANSWERS[query_id]
    return {"answer": text, "contexts": [context], "context_ids": [doc_id]}
