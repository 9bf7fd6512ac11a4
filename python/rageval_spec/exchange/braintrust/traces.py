"""Makes a trace of the rows of one root span in Braintrust, and questions of the rows of its datasets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.data.trace import Document, Feedback, Step, StepKind, Trace, TraceLink
from rageval_spec.exchange.shared.payloads import (
    clean,
    find_contexts,
    find_documents,
    list_messages,
    parse_text,
    read_count,
    read_number,
    read_text,
    read_time,
    write_text,
    write_time,
)
from rageval_spec.exchange.shared.places import Places, read_relevant

TOOL = "braintrust"
Row = Mapping[str, Any]
_KINDS: Mapping[str, StepKind] = {"llm": "model", "tool": "tool"}
_RETRIEVAL = re.compile(r"retriev|search|lookup|rerank", re.IGNORECASE)


def make_trace(rows: Sequence[Row], places: Places, link: Mapping[str, str], project: str | None) -> Trace | None:
    """The trace of some rows; None if its root has no question, or is not among them.

    `link` says in which experiment or log the rows are.
    """
    root = next((row for row in rows if is_root(row)), None)
    question = None if root is None else places.question(root.get("input"))
    if root is None or not question:
        return None
    steps = [row for row in rows if row is not root and _kind(row) not in ("score", "scorer", "task", "eval")]
    answer = None if root.get("output") is None else places.answer(root.get("output"))
    metadata = parse_text(root.get("metadata"))
    about: dict[str, Any] = clean(metadata) if isinstance(metadata, Mapping) else {}
    started = write_time(read_time(root.get("created")))
    others = {**link, "row_id": str(root["id"]), **({"started": started} if started else {})}
    return Trace(
        TraceLink(TOOL, read_text(root.get("root_span_id")) or str(root["id"]), project=project, others=others),
        question,
        query_id=str(root["id"]),
        answer=answer,
        documents=_list_documents(steps, root),
        references=places.references(root.get("expected")),
        relevant=read_relevant(parse_text(root.get("expected")), about),
        error=None if answer is not None else _find_error(root),
        seconds=_measure(root),
        input_tokens=_add(rows, root, "prompt_tokens", read_count),
        output_tokens=_add(rows, root, "completion_tokens", read_count),
        cost=_add(rows, root, "estimated_cost", read_number),
        session=read_text(about.get("session_id")),
        user=read_text(about.get("user_id")),
        model=_find_model(rows),
        started=started,
        messages=list_messages(root.get("input")),
        steps=tuple(map(_make_step, steps)),
        feedback=tuple(_list_scores(root)),
        metadata={**about, **({"tags": clean(tags)} if (tags := parse_text(root.get("tags"))) else {})},
    )


def read_row(row: Row, places: Places, dataset: str, project: str | None) -> Trace | None:
    """The question of a row of a dataset, under the row's id; None without a question."""
    question = places.question(row.get("input"))
    if not question or read_text(row.get("id")) is None:
        return None
    metadata = parse_text(row.get("metadata"))
    return Trace(
        TraceLink(TOOL, str(row["id"]), project=project, others={"dataset": dataset}),
        question,
        query_id=str(row["id"]),
        documents=find_contexts(row.get("input")),
        references=places.references(row.get("expected")),
        relevant=read_relevant(parse_text(row.get("expected")), metadata),
        messages=list_messages(row.get("input")),
        metadata=clean(metadata) if isinstance(metadata, Mapping) else {},
    )


def is_root(row: Row) -> bool:
    """Whether all other rows of a trace belong to this one; a row of a plain export always is."""
    parents = parse_text(row.get("span_parents"))
    marked = row.get("is_root")
    return marked in (True, "true", "True") if marked is not None else not parents


def _kind(row: Row) -> str:
    attributes = parse_text(row.get("span_attributes"))
    return str(attributes.get("type", "")) if isinstance(attributes, Mapping) else ""


def _name(row: Row) -> str:
    attributes = parse_text(row.get("span_attributes"))
    return read_text(attributes.get("name")) or "" if isinstance(attributes, Mapping) else ""


def _metrics(row: Row) -> Mapping[str, Any]:
    found = parse_text(row.get("metrics"))
    return found if isinstance(found, Mapping) else {}


def _list_documents(steps: Sequence[Row], root: Row) -> tuple[Document, ...] | None:
    """The documents that the answer names, else those of the steps that retrieve, by their names."""
    if (found := find_contexts(root.get("output"))) is not None:
        return found
    retrieved = [find_documents(row.get("output")) for row in steps if _retrieves(row)]
    known = [documents for documents in retrieved if documents is not None]
    if known:
        every = {(one.doc_id, one.text): one for documents in reversed(known) for one in reversed(documents)}
        return tuple(reversed(every.values()))
    return find_contexts(root.get("metadata")) or find_contexts(root.get("input"))


def _retrieves(row: Row) -> bool:
    return _kind(row) != "llm" and _RETRIEVAL.search(_name(row)) is not None


def _make_step(row: Row) -> Step:
    retrieves = _retrieves(row)
    return Step(
        "retrieval" if retrieves else _KINDS.get(_kind(row), "other"),
        _name(row),
        write_text(parse_text(row.get("input"))),
        write_text(parse_text(row.get("output"))),
        find_documents(row.get("output")) if retrieves else None,
        _measure(row),
        _find_error(row),
    )


def _measure(row: Row) -> float | None:
    metrics = _metrics(row)
    start, end = read_number(metrics.get("start")), read_number(metrics.get("end"))
    if start is None or end is None or end < start:
        return None
    return round(end - start, 6)


def _add(rows: Sequence[Row], root: Row, name: str, read: Any) -> Any:
    """The sum over the calls of models; the root's own number if no call has any."""
    known = [number for row in rows if _kind(row) == "llm" and (number := read(_metrics(row).get(name))) is not None]
    return round(sum(known), 12) if known else read(_metrics(root).get(name))


def _find_model(rows: Sequence[Row]) -> str | None:
    found = None
    for row in rows:
        metadata = parse_text(row.get("metadata"))
        if isinstance(metadata, Mapping) and (_kind(row) == "llm" or found is None):
            found = read_text(metadata.get("model")) or found
    return found


def _find_error(row: Row) -> str | None:
    error = row.get("error")
    return None if error in (None, "", {}) else write_text(error)


def _list_scores(root: Row) -> Iterator[Feedback]:
    """The scores of a row: in one mapping, or, in CSV, each in a column such as `scores.Factuality`."""
    scores = parse_text(root.get("scores"))
    named = dict(scores) if isinstance(scores, Mapping) else {}
    named |= {key.removeprefix("scores."): value for key, value in root.items() if key.startswith("scores.")}
    for name, value in named.items():
        if (number := read_number(value)) is not None:
            yield Feedback(str(name), number, source="program")
