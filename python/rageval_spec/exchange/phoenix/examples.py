"""Examples of Phoenix's datasets as traces without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rageval_spec.data.trace import Trace, TraceLink
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.texts import ANSWER_KEYS, QUESTION_KEYS, dump_text, pick_text

REFERENCE_KEYS = ("reference", "expected", "expected_output", "expected_answer", "ground_truth", *ANSWER_KEYS)


def read_example(found: Any, dataset: str, version: str, place: str) -> Trace:
    """The question of an example: the usual keys of its input, and the reference from those of its output.

    Raises:
        DataError: it has no id, or no input.
    """
    node_id = found.get("node_id", found.get("id")) if isinstance(found, Mapping) else None
    if not isinstance(node_id, str):
        raise DataError(f"{place}: it has no id")
    question = pick_text(_drop_empty(found.get("input")), QUESTION_KEYS, ("user",))
    if question is None:
        raise DataError(f"{place}: it has no input")
    reference = pick_text(_drop_empty(found.get("output")), REFERENCE_KEYS, ("assistant",))
    metadata = found.get("metadata")
    others = {key: value for key, value in {"dataset": dataset, "version": version}.items() if value}
    return Trace(
        TraceLink("phoenix", node_id, others=others),
        question,
        query_id=str(found.get("id") or node_id),
        references=() if reference is None else (reference,),
        metadata={
            **_list_others(found.get("input"), question),
            **(dict(metadata) if isinstance(metadata, dict) else {}),
        },
    )


def _drop_empty(value: Any) -> Any:
    return None if value in ({}, [], "") else value


def _list_others(value: Any, question: str) -> dict[str, Any]:
    """The keys of an input that do not hold the question."""
    if not isinstance(value, Mapping):
        return {}
    return {f"input.{key}": inner for key, inner in value.items() if inner != question and dump_text(inner) is not None}
