from __future__ import annotations

from rageval_spec.audit.audit_findings import AuditedRow
from tests.audit.test_audit_report import make_whole_audit


def test_a_row_is_named_by_its_place_or_else_by_its_id() -> None:
    assert str(AuditedRow("q1", "set.jsonl:1")) == "set.jsonl:1"
    assert str(AuditedRow("q1")) == "query q1"


def test_findings_are_counted_by_severity() -> None:
    audit = make_whole_audit()
    assert (audit.count("error"), audit.count("warning")) == (0, 1)
    assert [(dataset.name, check.name) for dataset, check, _ in audit.iterate()] == [("golden", "leaks")]
