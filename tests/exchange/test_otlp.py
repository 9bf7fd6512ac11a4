from __future__ import annotations

from pathlib import Path
from typing import Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.exchange.otlp import OtlpNode, OtlpTarget
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.span_files import SpanFiles
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.plugin import Context
from tests.command_line import invoke
from tests.exchange.otel.test_source import record_trace
from tests.exchange.otel.test_target import AGGREGATES
from tests.exchange.traced_evaluation import evaluate

TIME = "2026-03-02T00:00:00Z"


def _render(evaluation: Evaluation, **given: Any) -> dict[str, bytes]:
    return dict(OtlpTarget(OtlpNode(time=TIME, **given), Context("otlp", Path())).render_files(evaluation, "a.otlp"))


def test_the_file_can_be_read_as_one_of_a_collector(tmp_path: Path) -> None:
    traces = [trace for number in range(1, 4) for trace in SpanReader("otel").read(record_trace(number))]
    files = _render(evaluate(traces, aggregates=AGGREGATES), signals=("traces", "logs", "metrics"))
    assert sorted(files) == ["", "logs.otlp", "metrics.otlp"]
    (tmp_path / "values.otlp").write_bytes(files[""])
    spans = list(SpanFiles().read(tmp_path / "values.otlp"))
    assert [span.parent_id for span in spans] == [f"{1:016x}"] * 3
    assert {event.name for span in spans for event in span.events} == {"gen_ai.evaluation.result"}
    assert files == _render(evaluate(traces, aggregates=AGGREGATES), signals=("traces", "logs", "metrics"))


def test_values_come_back_as_feedback_of_their_traces(tmp_path: Path) -> None:
    (tmp_path / "a.otlp").write_bytes(encode_spans([span for number in (1, 2) for span in record_trace(number)]))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {prod: {use: otel, path: a.otlp}}\nsystems: {bot: {use: otel, path: a.otlp}}\n"
        "metrics: [is_json]\nreports: [json, parquet, samples]\n"
    )
    assert invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results").exit_code == 0
    done = invoke("export", "otlp", tmp_path / "results", "-o", tmp_path / "values.otlp")
    assert done.exit_code == 0 and "wrote" in done.stdout, done.output
    spans = [span for name in ("a", "values") for span in SpanFiles().read(tmp_path / f"{name}.otlp")]
    (trace,) = SpanReader("otel").read([span for span in spans if span.trace_id == f"{2:032x}"])
    assert [(said.name, said.value, said.source) for said in trace.feedback] == [("is_json", 0.0, "program")]
