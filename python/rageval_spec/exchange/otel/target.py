"""Sends values over OTLP/HTTP: spans with events, events of their own, and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.otel.connection import OtelConnection, connect, find_endpoint
from rageval_spec.exchange.shared.target import Parcel, Target, TargetNode
from rageval_spec.exchange.shared.windows import Moment, parse_moment
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.endpoints.service import Service
    from rageval_spec.exchange.otel.evaluations import Place
    from rageval_spec.exchange.shared.judgements import Judgements
    from rageval_spec.exchange.shared.scores import Score

Signal = Literal["traces", "logs", "metrics"]
PROTOBUF = "application/x-protobuf"
RESOURCE = {"service.name": "rageval-spec"}
_SPAN, _EVENT, _METRIC = "span", "event", "metric"
KINDS: Mapping[str, Signal] = {_SPAN: "traces", _EVENT: "logs", _METRIC: "metrics"}
"""The kinds of parcels, each with its signal."""
_SHOWN_ID = 8


class OtelTargetNode(OtelConnection, TargetNode):
    """Where to send values, and as what."""

    signals: tuple[Signal, ...] = Field(
        default=("traces",),
        min_length=1,
        description=(
            "What to send. `traces`: a span for the values of each answer, with an event for each value, in the trace "
            "of the answer. `logs`: the same events without the span. `metrics`: the means, intervals and gates."
        ),
    )
    time: Moment = Field(
        default=None,
        description=(
            "When the values were made, for metrics and for answers without a trace: an ISO 8601 time. Default: now."
        ),
    )


class OtelTarget(Target[OtelTargetNode]):
    """Sends values to a collector, or to any tool that receives OTLP."""

    node_type = OtelTargetNode
    summary = "Send values over OTLP: as spans and events in the traces of the answers, and as metrics."
    examples = (
        "export otel --endpoint http://localhost:4318",
        "export otel rageval-results --signals traces --signals metrics --dry-run",
    )
    batch = 200

    def __init__(self, node: OtelTargetNode, context: Any) -> None:
        """Keep the node and the context; open nothing."""
        super().__init__(node, context)
        self._service: Service | None = None
        self._rejected: list[str] = []
        self._without_trace = 0

    @property
    def destination(self) -> str:
        """The endpoint."""
        return find_endpoint(self.node)

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """A span for the values of each answer, an event for each value, and a metric for each number, as asked."""
        if {"traces", "logs"} & set(self.node.signals):
            yield from self._list_answers(evaluation)
        if "metrics" in self.node.signals:
            yield from _list_metrics(evaluation)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Send parcels, one request for each signal.

        Raises:
            RagevalError: the endpoint did not take all of them.
        """
        if self._service is None:
            self._service = connect(self.node, self.context.name)
        for kind, signal in KINDS.items():
            bodies = [parcel.body for parcel in parcels if parcel.kind == kind]
            if bodies:
                self._send(signal, encode_bodies(kind, bodies, find_time(self.node.time)))

    def remarks(self) -> Sequence[str]:
        """What became of answers that were not read from a trace."""
        if not self._without_trace:
            return []
        some = count_noun(self._without_trace, "answer")
        if "traces" in self.node.signals:
            return [f"{some} without a trace became traces of their own"]
        return [f"{some} without a trace left out; --signals traces sends them as traces of their own"]

    def close(self) -> None:
        """Close the connections."""
        if self._service is not None:
            self._service.close()

    def _list_answers(self, evaluation: Evaluation) -> Iterator[Parcel]:
        from rageval_spec.exchange.otel.evaluations import find_place, group_answers, place_answer
        from rageval_spec.exchange.shared.judgements import Judgements
        from rageval_spec.exchange.shared.scores import Scores

        judgements = Judgements(evaluation)
        self._without_trace = 0
        for scores in group_answers(iter(Scores(evaluation, None))):
            place = find_place(scores[0].link)
            if place is None:
                self._without_trace += 1
            if "traces" in self.node.signals:
                yield _make_span(scores, place, place or place_answer(scores[0]), judgements)
            if "logs" in self.node.signals and (place is not None or "traces" in self.node.signals):
                yield from (_make_event(score, place or place_answer(score), judgements) for score in scores)

    def _send(self, signal: Signal, content: bytes) -> None:
        from rageval_spec.endpoints.service import ServiceError
        from rageval_spec.exchange.shared.otlp.records import read_rejection
        from rageval_spec.exchange.shared.otlp.wire import WireError

        assert self._service is not None, "connected before"
        try:
            reply = self._service.send(f"/v1/{signal}", content, PROTOBUF)
        except ServiceError as error:
            if signal != "traces" and error.status in (200, 404, 405, 415, 501):
                raise RagevalError(
                    f"{error}; the endpoint may take no {signal}: leave {signal} out of signals"
                ) from error
            raise
        try:
            rejected, message = (0, "") if reply[:1] == b"{" else read_rejection(reply)
        except WireError as error:
            raise RagevalError(
                f"{self.destination}/v1/{signal}: answered with something that is not OTLP: {error}"
            ) from None
        if rejected:
            raise RagevalError(f"{self.destination}/v1/{signal}: rejected {rejected:,} of what was sent: {message}")


def find_time(moment: str | None) -> int:
    """A moment, or now, in nanoseconds since 1970."""
    from rageval_spec.exchange.otel.evaluations import now_in

    now = datetime.now(UTC)
    return now_in((now if moment is None else parse_moment(moment, now)).timestamp())


def encode_bodies(kind: str, bodies: Sequence[Mapping[str, Any]], now: int) -> bytes:
    """The request with these bodies of one kind of parcel."""
    from rageval_spec.exchange.otel.evaluations import make_event, make_spans
    from rageval_spec.exchange.shared.otlp.protobuf_spans import Scope, encode_spans
    from rageval_spec.exchange.shared.otlp.records import Gauge, encode_events, encode_gauges
    from rageval_spec.kernels import version

    scope = Scope("rageval-spec", version())
    if kind == _SPAN:
        return encode_spans((span for body in bodies for span in make_spans(body, now, RESOURCE)), scope)
    if kind == _EVENT:
        return encode_events((make_event(body, now) for body in bodies), RESOURCE, scope)
    gauges = (Gauge(body["name"], body["value"], body["attributes"], now, body["description"], body["unit"])
              for body in bodies)  # fmt: skip
    return encode_gauges(gauges, RESOURCE, scope)


def _describe(score: Score, judgements: Judgements) -> dict[str, Any]:
    from rageval_spec.exchange.otel.evaluations import describe_value

    return describe_value(score, judgements.label(score), judgements.explain(score))


def _locate(score: Score, place: Place) -> dict[str, Any]:
    return {**place._asdict(), "dataset": score.dataset, "system": score.system, "query_id": score.query_id}


def _make_span(scores: Sequence[Score], place: Place | None, own: Place, judgements: Judgements) -> Parcel:
    from rageval_spec.exchange.otel.evaluations import describe_answer

    first = scores[0]
    body = {**_locate(first, own), "values": [_describe(score, judgements) for score in scores]}
    if place is None:
        body["answer"] = describe_answer(first.sample)
    shown = ", ".join(_show(score) for score in scores)
    where = f"trace {own.trace_id[:_SHOWN_ID]}" + ("" if place is not None else ", a new one")
    return Parcel(f"span/{first.dataset}/{first.system}/{first.query_id}", body, f"{shown} -> {where}", _SPAN)


def _make_event(score: Score, place: Place, judgements: Judgements) -> Parcel:
    body = {**_locate(score, place), "value": _describe(score, judgements)}
    return Parcel(f"event/{score.key}", body, f"{_show(score)} -> trace {place.trace_id[:_SHOWN_ID]}", _EVENT)


def _show(score: Score) -> str:
    return f"{score.metric} {score.status if score.value is None else format(score.value, '.3f')}"


def _list_metrics(evaluation: Evaluation) -> Iterator[Parcel]:
    from rageval_spec.exchange.otel.evaluations import list_gauges

    for gauge in list_gauges(evaluation, 0):
        body = {key: value for key, value in gauge._asdict().items() if key != "time"}
        key = "/".join((gauge.name, *(str(gauge.attributes[name]) for name in sorted(gauge.attributes))))
        shown = ", ".join(str(value) for name, value in gauge.attributes.items() if name != "spec")
        yield Parcel(key, body, f"{gauge.name} {gauge.value:.3f} ({shown})", _METRIC)
