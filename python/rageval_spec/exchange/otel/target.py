"""Sends the values of an evaluation over OTLP/HTTP as log records, spans and metrics.

As OpenTelemetry's conventions have it, each value is an event `gen_ai.evaluation.result`: a log record that belongs to
the span that holds the answer, and that says which evaluator decided it. For tools that show no log records, the values
of an answer can be events of one span of the kind `EVALUATOR` instead, a child of that span; an answer that was not
read from a trace then becomes a trace of its own. Ids depend only on what is sent, so sending the same again changes
nothing.

The endpoint and its headers come from the node or from OpenTelemetry's own environment variables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel, Field, field_validator

from rageval_spec.data.traces import Document, Trace, TraceLink
from rageval_spec.endpoints.service import LIMITS, Service, ServiceError
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.connections import check_url, choose_url, describe_url
from rageval_spec.exchange.shared.contracts import PARTLY, Moment, Parcel, Target, TargetNode, parse_moment
from rageval_spec.exchange.shared.scores import EvaluationScores, Judgements, Score, drop_unknown
from rageval_spec.exchange.shared.spans.protobuf import (
    Gauge,
    LogEvent,
    Scope,
    WireError,
    encode_events,
    encode_gauges,
    encode_spans,
    read_rejection,
)
from rageval_spec.exchange.shared.spans.span_traces import make_id, write_spans
from rageval_spec.exchange.shared.spans.spans import OK, SECOND, Link, Span, SpanEvent
from rageval_spec.plugin.secrets import Secret
from rageval_spec.recorded.span_attributes import EVALUATION, EVALUATION_EVENT, EVALUATOR
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.outcomes import Cell
    from rageval_spec.plugin import Context


LOCAL = "http://localhost:4318"
_ENDPOINT, _HEADERS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"


class OtelConnection(BaseModel):
    endpoint: str | None = describe_url(
        "a collector or tool, without `/v1/traces`; OTLP is sent there over HTTP as protobuf", [_ENDPOINT], LOCAL
    )
    _check_endpoint = field_validator("endpoint")(check_url)
    headers: dict[str, Secret] | None = Field(
        default=None,
        description=f"Headers of each request; secrets as `${{secret:VAR}}`. Default: those in `${_HEADERS}`.",
    )
    requests_per_minute: float | None = Field(
        default=None, gt=0, description="The most requests a minute, retries included. Default: no limit."
    )


def find_endpoint(node: OtelConnection) -> str:
    """The endpoint without a slash or the path of a signal at its end."""
    return choose_url(node.endpoint, (_ENDPOINT,), LOCAL).removesuffix("/v1/traces").rstrip("/")


def find_headers(node: OtelConnection) -> dict[str, Secret]:
    """The headers of the node, or of the environment: `key=value` pairs with commas between them, percent-encoded."""
    if node.headers is not None:
        return dict(node.headers)
    pairs = (pair.partition("=") for pair in os.environ.get(_HEADERS, "").split(","))
    return {name.strip(): Secret(unquote(text.strip()), f"${{{_HEADERS}}}") for name, sign, text in pairs if sign}


Signal = Literal["traces", "logs", "metrics"]
PROTOBUF = "application/x-protobuf"
RESOURCE = {"service.name": "rageval-spec"}
_SPAN, _EVENT, _METRIC = "span", "log record", "metric"
KINDS: Mapping[str, Signal] = {_SPAN: "traces", _EVENT: "logs", _METRIC: "metrics"}
"""The kinds of parcels, each with its signal."""
_SHOWN_ID = 8


class OtelTargetNode(OtelConnection, TargetNode):
    signals: tuple[Signal, ...] = Field(
        default=("logs",),
        min_length=1,
        description=(
            "What to send. `logs`: a log record for each value, which belongs to the span of the answer. `traces`: a "
            "span for the values of each answer, with an event for each value, in the trace of the answer, for tools "
            "that show no log records. `metrics`: the means, intervals and gates."
        ),
    )
    time: Moment = Field(
        default=None,
        description=(
            "When the values were made, for metrics and for answers without a trace: an ISO 8601 time. Default: now."
        ),
    )


class OtelTarget(Target[OtelTargetNode]):
    node_type = OtelTargetNode
    known_as = ("opentelemetry", "otlp", "collector")
    summary = "Send values over OTLP: as log records or spans in the traces of the answers, and as metrics."
    examples = (
        "export otel --endpoint http://localhost:4318",
        "export otel rageval-results --signals logs --signals metrics --dry-run",
    )
    batch = 200
    takes: Sequence[Literal["values", "numbers"]] = ("values", "numbers")
    api: Service
    _without_trace = 0

    def __init__(self, node: OtelTargetNode, context: Context) -> None:
        super().__init__(node, context)
        kinds = {"numbers" if signal == "metrics" else "values": None for signal in node.signals}
        self.takes = tuple(kinds)  # type: ignore[arg-type]

    @property
    def destination(self) -> str:
        return find_endpoint(self.node)

    def connect(self) -> Service:
        limits = replace(LIMITS, requests_per_minute=self.node.requests_per_minute)
        return Service(
            self.destination, self.context.name, headers=find_headers(self.node), limits=limits, url_key="endpoint"
        )

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """A log record for each value, a span for the values of each answer, and a metric for each number, as asked."""
        if {"traces", "logs"} & set(self.node.signals):
            yield from self._list_answers(evaluation)
        if "metrics" in self.node.signals:
            yield from list_metrics(evaluation)

    def send(self, parcels: Sequence[Parcel]) -> None:
        for kind, signal in KINDS.items():
            if bodies := [parcel.body for parcel in parcels if parcel.kind == kind]:
                self._send(signal, encode_bodies(kind, bodies, find_time(self.node.time)))

    def send_numbers(self, numbers: Sequence[Gauge]) -> None:
        self._send("metrics", encode_gauges(numbers, RESOURCE, _make_scope()))

    def remarks(self) -> Sequence[str]:
        if not self._without_trace:
            return []
        some = count_noun(self._without_trace, "answer")
        if "traces" in self.node.signals:
            return [f"{some} without a trace became traces of their own"]
        told = "the records of their values name only the question; --signals traces sends them as traces of their own"
        return [f"{some} without a trace: {told}"]

    def _list_answers(self, evaluation: Evaluation) -> Iterator[Parcel]:
        judgements = Judgements(evaluation)
        self._without_trace = 0
        for scores in EvaluationScores(evaluation, None).answers():
            place = find_place(scores[0].link)
            if place is None:
                self._without_trace += 1
            if "traces" in self.node.signals:
                yield _make_span(scores, place, place or place_answer(scores[0]), judgements)
            if "logs" in self.node.signals:
                own = place or (place_answer(scores[0]) if "traces" in self.node.signals else _NOWHERE)
                yield from (_make_event(score, own, judgements) for score in scores)

    def _send(self, signal: Signal, content: bytes) -> None:
        where = f"{self.destination}/v1/{signal}"
        try:
            reply = self.api.send(f"/v1/{signal}", content, PROTOBUF)
        except ServiceError as error:
            if signal != "traces" and error.status in (200, 404, 405, 415, 501):
                instead = ", or send events of spans: --signals traces" if signal == "logs" else ""
                raise RagevalError(
                    f"{error}; the endpoint may take no {signal}: leave {signal} out of signals{instead}"
                ) from error
            raise
        try:
            rejected, message = (0, "") if reply[:1] == b"{" else read_rejection(reply)
        except WireError as error:
            raise RagevalError(f"{where}: answered with something that is not OTLP: {error}") from None
        if rejected:
            raise ServiceError(f"{where}: rejected {rejected:,} of what was sent: {message}", PARTLY)


def find_time(moment: str | None) -> int:
    """A moment, or now, in nanoseconds since 1970, as whole milliseconds."""
    now = datetime.now(UTC)
    return round((now if moment is None else parse_moment(moment, now)).timestamp() * 1000) * (SECOND // 1000)


def encode_bodies(kind: str, bodies: Sequence[Mapping[str, Any]], now: int) -> bytes:
    scope = _make_scope()
    if kind == _SPAN:
        return encode_spans((span for body in bodies for span in make_spans(body, now, RESOURCE)), scope)
    if kind == _EVENT:
        return encode_events((make_event(body, now) for body in bodies), RESOURCE, scope)
    return encode_gauges((Gauge(**body, time=now) for body in bodies), RESOURCE, scope)


def _make_scope() -> Scope:
    from rageval_spec.kernels import version

    return Scope("rageval-spec", version())


def _describe(score: Score, judgements: Judgements) -> dict[str, Any]:
    told = {"label": judgements.label(score), "comment": judgements.explain(score), "status": score.status}
    evaluator = asdict(judgements.find_evaluator(score.metric))
    return {"name": score.metric, "value": score.value, **told, "evaluator": evaluator}


def _locate(score: Score, place: ValueSpan) -> dict[str, Any]:
    return {**place._asdict(), "dataset": score.dataset, "system": score.system, "query_id": score.query_id}


def _make_span(scores: Sequence[Score], place: ValueSpan | None, own: ValueSpan, judgements: Judgements) -> Parcel:
    first = scores[0]
    body = {**_locate(first, own), "values": [_describe(score, judgements) for score in scores]}
    if place is None:
        body["answer"] = describe_answer(first.sample)
    shown = ", ".join(_show(score) for score in scores)
    where = f"trace {own.trace_id[:_SHOWN_ID]}" + ("" if place is not None else ", a new one")
    return Parcel(f"span/{'/'.join(first.answer)}", body, f"{shown} -> {where}", _SPAN)


def _make_event(score: Score, place: ValueSpan, judgements: Judgements) -> Parcel:
    body = {**_locate(score, place), "value": _describe(score, judgements)}
    where = f"trace {place.trace_id[:_SHOWN_ID]}" if place.trace_id else "no trace"
    return Parcel(f"event/{score.key}", body, f"{_show(score)} -> {where}", _EVENT)


def _show(score: Score) -> str:
    return f"{score.metric} {score.status if score.value is None else format(score.value, '.3f')}"


def list_metrics(evaluation: Evaluation) -> Iterator[Parcel]:
    for gauge in list_gauges(evaluation, 0):
        body = {key: value for key, value in gauge._asdict().items() if key not in ("time", "is_total")}
        key = "/".join((gauge.name, *(str(gauge.attributes[name]) for name in sorted(gauge.attributes))))
        shown = ", ".join(str(value) for name, value in gauge.attributes.items() if name != "spec")
        yield Parcel(key, body, f"{gauge.name} {gauge.value:.3f} ({shown})", _METRIC)


_HEX = frozenset("0123456789abcdef")
_OUTCOMES = ("pass", "warn", "fail", "inconclusive")
_DETAILS = ("dataset", "system", "query_id")


class ValueSpan(NamedTuple):
    """The span that values belong to, and when it ended, in nanoseconds since 1970; 0 if that is not known."""

    trace_id: str
    span_id: str
    ended: int


_NOWHERE = ValueSpan("", "", 0)


def find_place(link: TraceLink | None) -> ValueSpan | None:
    """The span of a trace that any tool keeps with ids of OpenTelemetry; None if there is none."""
    if link is None or link.span_id is None:
        return None
    trace_id = link.trace_id.lower().removeprefix("tr-")
    if not (_is_id(trace_id, 32) and _is_id(link.span_id.lower(), 16)):
        return None
    ended = link.others.get("ended", "")
    known = ended.isascii() and ended.isdecimal() and len(ended) < 20
    return ValueSpan(trace_id, link.span_id.lower(), int(ended) if known else 0)


def _is_id(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text) and bool(text.strip("0"))


def describe_answer(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What of a row of the samples table a trace can hold, as JSON types."""
    kept = ("question", "answer", "contexts", "context_ids", "scores", "error", "seconds", "input_tokens",
            "output_tokens", "cost")  # fmt: skip
    return {name: sample[name] for name in kept if sample.get(name) is not None}


def make_spans(body: Mapping[str, Any], now: int, resource: Mapping[str, Any]) -> list[Span]:
    """The spans of one answer's values, and of the answer itself if it was not read from a trace."""
    place = _find_own_place(body)
    written: list[Span] = []
    if "answer" in body:
        written = write_spans(_read_trace(body), place.trace_id, now, resource)
        place = ValueSpan(written[0].trace_id, written[0].span_id, written[0].end)
    time = place.ended or now
    own = make_id(place.trace_id, place.span_id, json.dumps(body, sort_keys=True), digits=16)
    attributes = {"openinference.span.kind": "EVALUATOR", **{f"rageval.{name}": body[name] for name in _DETAILS}}
    events = tuple(SpanEvent(EVALUATION_EVENT, time, describe_event(value)) for value in body["values"])
    links = (Link(place.trace_id, place.span_id),)
    evaluated = Span(
        place.trace_id, own, place.span_id, "evaluate", time, time, attributes, events, links, OK,
        resource=resource, kind=1,
    )  # fmt: skip
    return [*written, evaluated]


def make_event(body: Mapping[str, Any], now: int) -> LogEvent:
    place = _find_own_place(body)
    attributes = {**describe_event(body["value"]), **{f"rageval.{name}": body[name] for name in _DETAILS}}
    return LogEvent(EVALUATION_EVENT, place.ended or now, attributes, place.trace_id, place.span_id)


def _find_own_place(body: Mapping[str, Any]) -> ValueSpan:
    return ValueSpan(body["trace_id"], body["span_id"], body["ended"])


def describe_event(value: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the event; without a number, `error.type` says why there is none."""
    found = drop_unknown({key: value[part] for part, key in EVALUATION.items()})
    found |= drop_unknown({key: value["evaluator"][part] for part, key in EVALUATOR.items()})
    return found if value["status"] == "scored" else {**found, "error.type": value["status"]}


def place_answer(score: Score) -> ValueSpan:
    """The span of an answer without a trace: its ids depend on the answer's place in the evaluation and its text."""
    said = json.dumps(describe_answer(score.sample), sort_keys=True)
    trace_id = make_id("answer", *score.answer, said, digits=32)
    return ValueSpan(trace_id, make_id(trace_id, "root", digits=16), 0)


def _read_trace(body: Mapping[str, Any]) -> Trace:
    answer = body["answer"]
    texts, ids, scores = (answer.get(name) for name in ("contexts", "context_ids", "scores"))
    parts = zip_longest(texts or (), ids or (), scores or ())
    documents = None if texts is None and ids is None else tuple(Document(*part) for part in parts)
    numbers = {name: answer.get(name) for name in ("seconds", "input_tokens", "output_tokens", "cost")}
    link = TraceLink("otel", body["trace_id"])
    return Trace(
        link, answer["question"], answer=answer.get("answer"), documents=documents, error=answer.get("error"), **numbers
    )


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
    for taken in evaluation.provenance.taken_over:
        named = {"spec": evaluation.name, "dataset": taken.dataset, "system": taken.system}
        named |= drop_unknown({"first": taken.first, "last": taken.last})
        text = "Answers that were not asked in this evaluation."
        yield Gauge("rageval.answers.taken_over", taken.answers, named, time, text, "{answer}")
    text = "The outcome of a gate: 1 for its outcome and 0 for the others."
    for gate in evaluation.gates:
        named = {**_name(evaluation, gate.cell), "bound": gate.bound}
        for outcome in _OUTCOMES:
            yield Gauge("rageval.gate.outcome", outcome == gate.outcome, {**named, "outcome": outcome}, time, text)


def _name(evaluation: Evaluation, cell: Cell) -> dict[str, str]:
    """The attributes of a cell; without `slice` it is about all queries."""
    named = {"spec": evaluation.name, "dataset": cell.dataset, "system": cell.system, "metric": cell.metric}
    return named if cell.slice is None else {**named, "slice": cell.slice}
