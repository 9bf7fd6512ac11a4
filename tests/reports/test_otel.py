from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.plugin import Context
from rageval_spec.reports.otel import OtelReport, OtelReportNode
from tests.exchange.otel.collector import collecting
from tests.exchange.otel.test_source import record_trace
from tests.exchange.traced_evaluation import evaluate


def _report(url: str, folder: Path) -> OtelReport:
    return OtelReport(OtelReportNode(use="otel", endpoint=url), Context("otel", folder, output=folder))


def test_the_report_says_what_was_sent(tmp_path: Path) -> None:
    evaluation = evaluate(list(SpanReader("otel").read(record_trace(1))))
    with collecting() as collector:
        said = _report(collector.url, tmp_path).render(evaluation)
    assert said == f"otel: sent 2 log records to {collector.url}\n".encode() and len(collector.records()) == 2


def test_a_collector_that_refuses_is_an_error(tmp_path: Path) -> None:
    evaluation = evaluate(list(SpanReader("otel").read(record_trace(1))))
    with collecting() as collector:
        collector.answers = [(401, b"who are you?")]
        with pytest.raises(RagevalError, match=r"/v1/logs"):
            _report(collector.url, tmp_path).render(evaluation)
