"""The report that sends values says what it sent, and sends nothing twice."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from rageval_spec.exchange.shared.contracts import TargetNode
from rageval_spec.history.saved_evaluations import load_record
from rageval_spec.plugin import Context, ReportNode
from rageval_spec.reports.shared.tool_report import SendingReport
from tests.exchange.conftest import toy as toy
from tests.exchange.evaluating import evaluate
from tests.exchange.tool import ToyTarget


class ToyReportNode(ReportNode, TargetNode):
    """Where to send values."""


class ToyReport(SendingReport[ToyReportNode]):
    node_type = ToyReportNode
    target_type = ToyTarget


def test_values_are_sent_once(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    evaluation = load_record(results).evaluation
    report = ToyReport(ToyReportNode(use="toy"), Context("toy", tmp_path, output=results))
    assert report.render(evaluation) == b"toy: sent 10 scores to the toy\n"
    assert report.render(evaluation) == b"toy: sent nothing to the toy; 10 values had been sent before\n"
    assert len(toy.ToyTarget.stored) == 10


def test_a_report_that_fails_says_so(toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = evaluate(tmp_path)
    monkeypatch.setattr(toy.ToyTarget, "fails_after", 0)
    report = ToyReport(ToyReportNode(use="toy"), Context("toy", tmp_path))
    with pytest.raises(Exception, match="the toy is broken"):
        report.render(load_record(results).evaluation)
