from __future__ import annotations

from pathlib import Path

from rageval_spec.plugin import Context
from rageval_spec.reports.weave import WeaveNode, WeaveReport
from tests.exchange.evaluations import make_traced
from tests.exchange.test_weave import WeaveServer
from tests.exchange.test_weave import server as server


def test_a_report_publishes_what_is_new(server: WeaveServer, tmp_path: Path) -> None:
    report = WeaveReport(
        WeaveNode(use="weave", url=server.url, project="my-team/support"), Context("weave", output=tmp_path)
    )
    evaluation = make_traced({"q0": None})
    assert report.render(evaluation) == f"weave: sent 1 dataset to {server.url}, project my-team/support\n".encode()
    assert report.render(evaluation).startswith(b"weave: sent nothing")
    assert len(server.bodies) == 2
