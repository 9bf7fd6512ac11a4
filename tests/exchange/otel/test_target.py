""""""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Aggregate, Evaluation
from rageval_spec.data.outcomes import Interval, TakenOver
from rageval_spec.data.traces import Trace, TraceLink
from rageval_spec.errors import RagevalError
from rageval_spec.exchange.otel.target import (
    OtelConnection,
    OtelTarget,
    OtelTargetNode,
    ValueSpan,
    find_endpoint,
    find_headers,
    find_place,
    list_gauges,
)
from rageval_spec.exchange.shared.delivery import send_parcels
from rageval_spec.exchange.shared.scores import Judgements
from rageval_spec.exchange.shared.spans.protobuf import (
    decode_spans,
    encode_rejection,
    encode_spans,
)
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import SECOND
from rageval_spec.kernels import version
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import Secret
from tests.command_line import invoke
from tests.exchange.otel.collector import attributes, collecting
from tests.exchange.otel.rotel import rotel_forwarding
from tests.exchange.otel.test_source import BEGIN, record_trace
from tests.exchange.traced_evaluation import evaluate
from tests.sample_evaluation import alter

TIME = "2026-03-02T00:00:00Z"
SPANS = ("traces",)
CHAT = {
    "models": {"gpt": {"use": "chat", "model": "gpt-5-mini"}},
    "judges": {"strict": {"use": "claims", "model": "gpt"}},
    "metrics": [{"use": "faithfulness", "judge": "strict"}, {"use": "ndcg", "cutoff": 10}],
}


def _traces(count: int = 3) -> list[Trace]:
    return [trace for number in range(1, count + 1) for trace in SpanReader("otel").read(record_trace(number))]


def send(evaluation: Evaluation, url: str, folder: Path | None = None, **given: Any) -> str:
    target = OtelTarget(OtelTargetNode(endpoint=url, time=TIME, **given), Context("otel", Path()))
    try:
        return send_parcels(target, evaluation, folder, tool="otel").render()
    finally:
        target.close()


def test_values_are_events_of_a_span_in_the_trace_of_the_answer() -> None:
    with collecting() as collector:
        said = send(evaluate(_traces()), collector.url, signals=SPANS)
    assert said == f"sent 3 spans to {collector.url}\n" and collector.paths == ["/v1/traces"]
    span = collector.spans()[1]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (f"{2:032x}", f"{1:016x}")
    assert span.links[0].span_id == span.parent_span_id
    assert attributes(span) == {
        "openinference.span.kind": "EVALUATOR", "rageval.dataset": "golden", "rageval.system": "v1",
        "rageval.query_id": f"{2:032x}",
    }  # fmt: skip
    first, second = span.events
    assert first.name == second.name == "gen_ai.evaluation.result"
    shown = attributes(first)
    assert shown.pop("gen_ai.evaluation.evaluator.id") == "rageval-spec/faithfulness/strict"
    assert shown.pop("gen_ai.evaluation.evaluator.version").startswith(f"{version()}+")
    assert shown.pop("gen_ai.evaluation.explanation").startswith("1 supported, 1 contradicted")
    assert shown == {
        "gen_ai.evaluation.name": "faithfulness",
        "gen_ai.evaluation.score.value": 0.1,
        "gen_ai.evaluation.score.label": "poor",
    }
    assert attributes(second)["gen_ai.evaluation.score.value"] == 0.25
    assert span.start_time_unix_nano == first.time_unix_nano == BEGIN + 3 * SECOND  # when the answer was there


def test_each_value_is_a_log_record_of_the_span_of_the_answer() -> None:
    with collecting() as collector:
        said = send(evaluate(_traces(), spec=CHAT), collector.url)
    assert said == f"sent 6 log records to {collector.url}\n" and collector.paths == ["/v1/logs"]
    record, other = collector.records()[2:4]
    assert record.event_name == other.event_name == "gen_ai.evaluation.result"
    assert (record.trace_id.hex(), record.span_id.hex()) == (f"{2:032x}", f"{1:016x}")
    assert record.time_unix_nano == BEGIN + 3 * SECOND  # when the answer was there
    shown = attributes(record)
    assert shown["gen_ai.evaluation.score.value"] == 0.1 and shown["rageval.query_id"] == f"{2:032x}"
    assert shown["gen_ai.evaluation.evaluator.id"] == "rageval-spec/faithfulness/claims"
    assert shown["gen_ai.evaluation.evaluator.type"] == "llm_judge"
    assert attributes(other)["gen_ai.evaluation.name"] == "ndcg@10"
    assert attributes(other)["gen_ai.evaluation.evaluator.id"] == "rageval-spec/ndcg"
    assert attributes(other)["gen_ai.evaluation.evaluator.type"] == "deterministic"


def _version_of(**changes: Any) -> str:
    return Judgements(evaluate(_traces(1), **({"spec": CHAT} | changes))).find_evaluator("faithfulness").version


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {**CHAT, "models": {"gpt": {"use": "chat", "model": "gpt-5"}}}},
        {"spec": {**CHAT, "judges": {"strict": {"use": "claims", "model": "gpt", "batch": 2}}}},
        {"prompts": {"strict.verify": "changed"}},
        {"implementations": {"faithfulness": "changed"}},
        {"models": {"gpt": {"revision": "changed"}}},
    ],
)
def test_an_evaluator_has_another_version_once_its_values_mean_something_else(changes: dict[str, Any]) -> None:
    assert _version_of() == _version_of(name="another spec", prompts={"other.verify": "of another judge"})
    assert _version_of(**changes) != _version_of()


def test_without_the_spec_the_version_is_that_of_the_program() -> None:
    assert _version_of(spec={}) == version()


def test_what_was_sent_before_is_not_sent_again(tmp_path: Path) -> None:
    with collecting() as collector:
        send(evaluate(_traces()), collector.url, tmp_path, signals=SPANS)
        again = send(evaluate(_traces()), collector.url, tmp_path, signals=SPANS)
        changed = send(evaluate(_traces(), shift=0.1), collector.url, tmp_path, signals=SPANS)
    ids = [span.span_id for span in collector.spans()]
    assert "3 values had been sent before" in again and len(ids) == 6 == len(set(ids))
    assert changed.startswith("sent 3 spans")


def test_sending_again_sends_the_same_ids() -> None:
    with collecting() as collector:
        for _ in range(2):
            send(evaluate(_traces()), collector.url, signals=SPANS)
    first, second = collector.requests
    assert first == second


def test_metrics() -> None:
    with collecting() as collector:
        said = send(evaluate(_traces(), aggregates=AGGREGATES), collector.url, signals=("metrics",))
    metrics = collector.metrics()
    assert "metrics to" in said
    named = {attributes(point)["metric"]: point for point in metrics["rageval.metric.value"]}
    assert named["ndcg@10"].as_double == 0.25
    assert named["ndcg@10"].time_unix_nano == 1_772_409_600 * SECOND
    assert {"rageval.metric.queries.scored", "rageval.metric.queries.total"} <= metrics.keys()


def test_an_answer_without_a_value_says_why() -> None:
    (trace,) = _traces(1)
    failed = Trace(trace.link, trace.question, trace.id, error="timeout")
    with collecting() as collector:
        send(evaluate([failed]), collector.url, signals=SPANS)
    shown = attributes(collector.spans()[0].events[0])
    assert shown["error.type"] == "unscorable" and "gen_ai.evaluation.score.value" not in shown
    assert shown["gen_ai.evaluation.explanation"] == "there is no answer"


def test_answers_without_a_trace_become_traces_that_can_be_read_again() -> None:
    (trace,) = _traces(1)
    lone = Trace(
        TraceLink("langfuse", "not-hexadecimal"), trace.question, "q1", trace.answer, trace.documents, seconds=2.0
    )
    with collecting() as collector:
        said = send(evaluate([lone]), collector.url, signals=SPANS)
        (request,) = collector.requests
    assert "1 answer without a trace became traces of their own" in said
    (read,) = SpanReader("otel").read(list(decode_spans(request.SerializeToString())))
    assert (read.question, read.answer, read.seconds) == (trace.question, trace.answer, 2.0)
    assert [(one.doc_id, one.text) for one in read.documents or ()] == [("d1", "1 is 1.")]
    assert {(said.name, said.value) for said in read.feedback} == {("faithfulness", 0.0), ("ndcg@10", 0.25)}
    with collecting() as collector:
        said = send(evaluate([lone]), collector.url)
    assert "1 answer without a trace: the records of their values name only the question; --signals traces" in said
    record = collector.records()[0]
    assert (record.trace_id, record.span_id) == (b"", b"") and attributes(record)["rageval.query_id"] == "q1"


def test_a_collector_that_rejects_spans_is_an_error() -> None:
    partial = encode_rejection(2, "too old")
    with collecting() as collector:
        collector.answers = [(200, partial)]
        with pytest.raises(RagevalError, match=r"/v1/traces: rejected 2 of what was sent: too old"):
            send(evaluate(_traces()), collector.url, signals=SPANS)


def test_a_collector_that_takes_no_metrics_is_an_error_that_says_what_to_do() -> None:
    with collecting() as collector:
        collector.answers = [(404, b"not found")]
        with pytest.raises(RagevalError, match="the endpoint may take no metrics: leave metrics out of signals"):
            send(evaluate(_traces(), aggregates=AGGREGATES), collector.url, signals=("metrics",))


def test_a_tool_that_takes_no_log_records_can_have_spans() -> None:
    with collecting() as collector:
        collector.answers = [(404, b"not found")]
        with pytest.raises(RagevalError, match="leave logs out of signals, or send events of spans: --signals traces"):
            send(evaluate(_traces()), collector.url)


def test_a_busy_collector_is_asked_again() -> None:
    with collecting() as collector:
        collector.answers = [(503, b""), (429, b"")]
        assert send(evaluate(_traces()), collector.url, signals=SPANS).startswith("sent 3 spans")
    assert collector.paths == ["/v1/traces"] * 3


def test_headers_of_the_environment_are_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20s3cret-token,x-other=1")
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{collector.url}/v1/traces")
        collector.answers = [(200, b""), (403, b"no: s3cret-token")]
        target = OtelTarget(OtelTargetNode(signals=SPANS), Context("otel", Path()))
        send_parcels(target, evaluate(_traces()), None, tool="otel")
        with pytest.raises(RagevalError) as error:
            send_parcels(target, evaluate(_traces()), None, tool="otel")
    assert collector.headers[0]["authorization"] == "Bearer s3cret-token" and collector.headers[0]["x-other"] == "1"
    assert "s3cret" not in str(error.value)


def test_the_command_line_and_a_report(tmp_path: Path) -> None:
    (tmp_path / "a.otlp").write_bytes(encode_spans([span for number in (1, 2) for span in record_trace(number)]))
    spec = "version: 1\ndatasets: {prod: {use: otel, path: a.otlp}}\nsystems: {bot: {use: otel, path: a.otlp}}\n"
    results = tmp_path / "results"
    with collecting() as collector:
        reports = f"reports: [json, parquet, samples, {{use: otel, endpoint: '{collector.url}', signals: [traces]}}]\n"
        (tmp_path / "spec.yaml").write_text(f"{spec}metrics: [is_json]\n{reports}")
        done = invoke("run", tmp_path / "spec.yaml", "-o", results)
        assert done.exit_code == 0 and "sent 2 spans to" in done.output, done.output
        done = invoke(
            "export", "otel", results, "--endpoint", collector.url, "--signals", "traces", "--dry-run", "--again"
        )
        assert (
            done.exit_code == 0
            and "is_json 0.000 -> trace 00000000" in done.stdout
            and "would send 2 spans" in done.stdout
        )
        done = invoke("export", "otel", results, "--endpoint", collector.url, "--signals", "traces")
        assert "sent nothing" in done.stdout and "2 values had been sent before" in done.stdout
    assert len(collector.spans()) == 2


def test_a_real_collector_takes_all_signals() -> None:
    with collecting() as behind, rotel_forwarding(behind.url) as rotel:
        send(evaluate(_traces(), aggregates=AGGREGATES), rotel, signals=("traces", "logs", "metrics"))
        until = time.monotonic() + 30
        while len(set(behind.paths)) < 3 and time.monotonic() < until:
            time.sleep(0.05)
    assert set(behind.paths) == {"/v1/traces", "/v1/logs", "/v1/metrics"}
    assert {span.trace_id.hex() for span in behind.spans()} == {f"{number:032x}" for number in (1, 2, 3)}
    shown = attributes(behind.spans()[0].events[1])
    assert (shown["gen_ai.evaluation.name"], shown["gen_ai.evaluation.score.value"]) == ("ndcg@10", 0.25)
    assert {record.event_name for record in behind.records()} == {"gen_ai.evaluation.result"}
    assert {"gen_ai.evaluation.evaluator.id", "gen_ai.evaluation.evaluator.version"} <= attributes(
        behind.records()[0]
    ).keys()
    assert len(behind.records()) == 6 and "rageval.metric.value" in behind.metrics()


@pytest.mark.parametrize(
    ("given", "environment", "url"),
    [
        (None, {}, "http://localhost:4318"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/"}, "http://c:1"),
        ("http://d:2/v1/traces", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "http://d:2"),
        ("https://e/otlp/", {}, "https://e/otlp"),
    ],
)
def test_endpoints(given: str | None, environment: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_endpoint(OtelConnection(endpoint=given)) == url


def test_headers_of_the_node_replace_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1,broken")
    found = find_headers(OtelConnection())
    assert {name: secret.reveal() for name, secret in found.items()} == {"api-key": "a b", "x": "1"}
    assert "a b" not in repr(found)
    own = {"y": Secret("2")}
    assert find_headers(OtelConnection(headers=own)) == own


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(ValueError, match="write a URL such as"):
        OtelTargetNode(endpoint="localhost:4318")


AGGREGATES = tuple(
    Aggregate("golden", "bot", metric, mean, Interval(0.1, 0.4, 0.95, "bootstrap"), 2, 3)
    for metric, mean in (("ndcg@10", 0.25), ("faithfulness", 0.5))
)
T, S = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("link", "place"),
    [
        (TraceLink("otel", T, S, None, {"ended": "5"}), ValueSpan(T, S, 5)),
        (TraceLink("phoenix", T.upper(), S), ValueSpan(T, S, 0)),
        (TraceLink("mlflow", f"tr-{T}", S), ValueSpan(T, S, 0)),
        (TraceLink("otel", T), None),
        (TraceLink("langfuse", "abc", S), None),
        (TraceLink("otel", "0" * 32, S), None),
        (TraceLink("otel", T, S, None, {"ended": "later"}), ValueSpan(T, S, 0)),
        (None, None),
    ],
)
def test_any_tool_with_ids_of_opentelemetry_has_a_place(link: TraceLink | None, place: ValueSpan | None) -> None:
    assert find_place(link) == place


def test_gauges_of_one_name_stand_together() -> None:
    traces = [trace for number in (1, 2) for trace in SpanReader("otel").read(record_trace(number))]
    names = [gauge.name for gauge in list_gauges(evaluate(traces, aggregates=AGGREGATES), 5)]
    assert names == sorted(names, key=names.index) and len(set(names)) >= 3
    changes = sum(before != after for before, after in pairwise(names))
    assert changes == len(set(names)) - 1


def test_answers_that_were_taken_over_are_a_gauge() -> None:
    taken = TakenOver("golden", "bot", 9, 10, ("unfinished",), "2026-03-01T10:42:00+00:00", "2026-03-01T10:43:00+00:00")
    traces = list(SpanReader("otel").read(record_trace(1)))
    evaluation = alter(evaluate(traces, aggregates=AGGREGATES), taken_over=(taken,))
    [gauge] = [one for one in list_gauges(evaluation, 5) if one.name == "rageval.answers.taken_over"]
    assert gauge.value == 9
    assert gauge.attributes["system"] == "bot" and gauge.attributes["first"] == taken.first
