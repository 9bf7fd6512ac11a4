"""The values of an evaluation as spans, events and metrics of OpenTelemetry.

The values of an answer become one span of the kind `EVALUATOR` with an event `gen_ai.evaluation.result` for each. If
the answer was read from a trace, the span is a child of the span that holds the answer. Otherwise the answer becomes a
trace of its own. Ids depend only on what is sent, so sending the same again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.trace import Document, Trace, TraceLink
from rageval_spec.exchange.shared.conventions import EVALUATION, EVALUATION_EVENT
from rageval_spec.exchange.shared.otlp.records import Gauge, LogEvent
from rageval_spec.exchange.shared.spans import OK, SECOND, Event, Link, Span
from rageval_spec.exchange.shared.trace_spans import make_id, write_spans

if TYPE_CHECKING:
    from rageval_spec.data.cell import Cell
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.exchange.shared.scores import Score

_HEX = frozenset("0123456789abcdef")
_OUTCOMES = ("pass", "warn", "fail", "inconclusive")
_DETAILS = ("dataset", "system", "query_id")


class Place(NamedTuple):
    """The span that values belong to, and when it ended, in nanoseconds since 1970; 0 if that is not known."""

    trace_id: str
    span_id: str
    ended: int


def find_place(link: TraceLink | None) -> Place | None:
    """The span of a trace that any tool keeps with ids of OpenTelemetry; None if there is none."""
    if link is None or link.span_id is None:
        return None
    trace_id = link.trace_id.lower().removeprefix("tr-")
    if not (_is_id(trace_id, 32) and _is_id(link.span_id.lower(), 16)):
        return None
    ended = link.others.get("ended", "")
    known = ended.isascii() and ended.isdecimal() and len(ended) < 20
    return Place(trace_id, link.span_id.lower(), int(ended) if known else 0)


def _is_id(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text) and bool(text.strip("0"))


def describe_value(score: Score, label: str | None, explanation: str | None) -> dict[str, Any]:
    """A value as JSON types."""
    return {"name": score.metric, "value": score.value, "label": label, "comment": explanation, "status": score.status}


def describe_answer(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What of a row of the samples table a trace can hold, as JSON types."""
    kept = ("question", "answer", "contexts", "context_ids", "scores", "error", "seconds", "input_tokens",
            "output_tokens", "cost")  # fmt: skip
    return {name: sample[name] for name in kept if sample.get(name) is not None}


def make_spans(body: Mapping[str, Any], now: int, resource: Mapping[str, Any]) -> list[Span]:
    """The spans of one answer's values, and of the answer itself if it was not read from a trace."""
    place = find_own_place(body)
    written: list[Span] = []
    if "answer" in body:
        written = write_spans(_read_trace(body), place.trace_id, now, resource)
        place = Place(written[0].trace_id, written[0].span_id, written[0].end)
    time = place.ended or now
    own = make_id(place.trace_id, place.span_id, json.dumps(body, sort_keys=True), digits=16)
    attributes = {
        "openinference.span.kind": "EVALUATOR",
        **{f"rageval.{name}": body[name] for name in _DETAILS},
    }
    events = tuple(Event(EVALUATION_EVENT, time, describe_event(value)) for value in body["values"])
    links = (Link(place.trace_id, place.span_id),)
    evaluated = Span(
        place.trace_id, own, place.span_id, "evaluate", time, time, attributes, events, links, OK,
        resource=resource, kind=1,
    )  # fmt: skip
    return [*written, evaluated]


def make_event(body: Mapping[str, Any], now: int) -> LogEvent:
    """One value as an event of its own."""
    place = find_own_place(body)
    attributes = {**describe_event(body["value"]), **{f"rageval.{name}": body[name] for name in _DETAILS}}
    return LogEvent(EVALUATION_EVENT, place.ended or now, attributes, place.trace_id, place.span_id)


def find_own_place(body: Mapping[str, Any]) -> Place:
    """The span that a body names."""
    return Place(body["trace_id"], body["span_id"], body["ended"])


def describe_event(value: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the event; without a number, `error.type` says why there is none."""
    found = {key: value[part] for part, key in EVALUATION.items() if value[part] is not None}
    return found if value["status"] == "scored" else {**found, "error.type": value["status"]}


def place_answer(score: Score) -> Place:
    """The span of an answer without a trace: its ids depend on the answer's place in the evaluation and its text."""
    parts = (score.dataset, score.system, score.query_id, json.dumps(describe_answer(score.sample), sort_keys=True))
    trace_id = make_id("answer", *parts, digits=32)
    return Place(trace_id, make_id(trace_id, "root", digits=16), 0)


def _read_trace(body: Mapping[str, Any]) -> Trace:
    answer = body["answer"]
    texts, ids, scores = (answer.get(name) for name in ("contexts", "context_ids", "scores"))
    documents = None
    if texts is not None or ids is not None:
        documents = tuple(Document(*parts) for parts in _zip(texts, ids, scores))
    numbers = {name: answer.get(name) for name in ("seconds", "input_tokens", "output_tokens", "cost")}
    link = TraceLink("otel", body["trace_id"])
    return Trace(
        link, answer["question"], answer=answer.get("answer"), documents=documents, error=answer.get("error"), **numbers
    )


def _zip(*lists: Sequence[Any] | None) -> Iterator[tuple[Any, ...]]:
    length = max(len(one) for one in lists if one is not None)
    padded = ([*(one or ()), *[None] * (length - len(one or ()))] for one in lists)
    return zip(*padded, strict=True)


def list_gauges(evaluation: Evaluation, time: int) -> Iterator[Gauge]:
    """The aggregates, their intervals and counts, and the gates' outcomes; what could not be computed is left out."""
    sliced = (aggregate for one in evaluation.slices for aggregate in one.aggregates)
    cells = [(_name(evaluation, one.cell), one) for one in (*evaluation.aggregates, *sliced)]
    text = "The mean of a metric, or the statistic that its attribute names."
    for named, one in cells:
        if one.mean is not None:
            yield Gauge("rageval.metric.value", one.mean, {**named, "statistic": one.statistic}, time, text)
    for end in ("low", "high"):
        for named, one in cells:
            if one.interval is not None:
                bound = float(getattr(one.interval, end))
                yield Gauge(f"rageval.metric.interval.{end}", bound, named, time, f"The {end} end of the interval.")
    for named, one in cells:
        yield Gauge("rageval.metric.queries.scored", one.scored, named, time, "Queries that have a value.", "{query}")
    for named, one in cells:
        yield Gauge("rageval.metric.queries.total", one.total, named, time, "All queries.", "{query}")
    text = "The outcome of a gate: 1 for its outcome and 0 for the others."
    for gate in evaluation.gates:
        named = {**_name(evaluation, gate.cell), "bound": gate.bound}
        for outcome in _OUTCOMES:
            yield Gauge("rageval.gate.outcome", outcome == gate.outcome, {**named, "outcome": outcome}, time, text)


def _name(evaluation: Evaluation, cell: Cell) -> dict[str, str]:
    """The attributes of a cell; without `slice` it is about all queries."""
    named = {"spec": evaluation.name, "dataset": cell.dataset, "system": cell.system, "metric": cell.metric}
    return named if cell.slice is None else {**named, "slice": cell.slice}


def group_answers(scores: Iterator[Score]) -> Iterator[list[Score]]:
    """The values of each answer; those of an answer stand together."""
    for _, group in groupby(scores, key=lambda score: (score.dataset, score.system, score.query_id)):
        yield list(group)


def now_in(seconds: float) -> int:
    """Seconds since 1970 as nanoseconds."""
    return round(seconds * 1000) * (SECOND // 1000)
