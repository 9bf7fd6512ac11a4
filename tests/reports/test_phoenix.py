from __future__ import annotations

from pathlib import Path

from rageval_spec.plugin import Context
from rageval_spec.reports.phoenix import PhoenixReport, PhoenixReportNode
from tests.exchange.phoenix.conftest import phoenix as phoenix
from tests.exchange.phoenix.sending import make_traces
from tests.exchange.phoenix.server import PhoenixServer
from tests.exchange.traced_evaluation import evaluate


def test_the_report_says_what_it_wrote_and_writes_nothing_twice(phoenix: PhoenixServer, tmp_path: Path) -> None:
    evaluation = evaluate(make_traces(2))
    report = PhoenixReport(PhoenixReportNode(use="phoenix"), Context("phoenix", tmp_path, output=tmp_path))
    told = report.render(evaluation).decode()
    assert told == f"phoenix: sent 2 document annotations and 4 span annotations to {phoenix.url}\n"
    again = PhoenixReport(PhoenixReportNode(use="phoenix"), Context("phoenix", tmp_path, output=tmp_path))
    assert "sent nothing" in again.render(evaluation).decode()
    assert len(phoenix.annotations) == 6
