"""A spec that reads from and writes to the tool."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from tests.command_line import invoke
from tests.exchange.blocks import open_dataset, render_report
from tests.exchange.otel.collector import collecting
from tests.exchange.otel.test_source import record_trace
from tests.exchange.traced_evaluation import evaluate

SPEC = """\
version: 1
datasets: {prod: {use: otel, path: spans}}
systems: {bot: {use: otel, path: spans}}
metrics: [latency@p50, is_json]
reports: [json]
"""


def test_spans_are_questions_and_answers_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "spans").mkdir()
    for number in (1, 2):
        (tmp_path / "spans" / f"{number}.otlp").write_bytes(encode_spans(record_trace(number)))
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    latency = next(one for one in results["aggregates"] if one["metric"] == "latency@p50")
    assert (latency["mean"], latency["scored"]) == (1.0, 2)


def test_a_folder_without_spans_is_an_error_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = invoke("validate", tmp_path / "spec.yaml")
    assert done.exit_code == 2 and "spec.yaml:2:36: there is no file 'spans'" in done.output
    (tmp_path / "spans").mkdir()
    done = invoke("validate", tmp_path / "spec.yaml")
    assert done.exit_code == 2 and "the folder has no file that ends in .json" in done.output


def test_the_questions_are_those_of_the_traces_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "a.otlp").write_bytes(encode_spans([*record_trace(2), *record_trace(1)]))
    queries = open_dataset(tmp_path, use="otel", path="a.otlp").require("queries", "test")
    assert queries["query_id"].to_list() == [f"{1:032x}", f"{2:032x}"]
    assert queries["text"].to_list() == ["What is 1?", "What is 2?"]


def test_the_report_says_what_was_sent(tmp_path: Path) -> None:
    evaluation = evaluate(list(SpanReader("otel").read(record_trace(1))))
    with collecting() as collector:
        said = render_report(evaluation, tmp_path, use="otel", endpoint=collector.url)
    assert said == f"otel: sent 2 log records to {collector.url}\n" and len(collector.records()) == 2


def test_a_collector_that_refuses_is_an_error(tmp_path: Path) -> None:
    evaluation = evaluate(list(SpanReader("otel").read(record_trace(1))))
    with collecting() as collector:
        collector.answers = [(401, b"who are you?")]
        with pytest.raises(RagevalError, match=r"/v1/logs"):
            render_report(evaluation, tmp_path, use="otel", endpoint=collector.url)
