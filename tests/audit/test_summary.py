from __future__ import annotations

from rageval_spec.audit.finding import Audit, DatasetAudit
from rageval_spec.audit.summary import describe_dataset, summarize
from tests.audit.test_content import make_audit


def test_the_summary_counts_by_severity() -> None:
    assert summarize(make_audit()) == "1 warning"
    assert summarize(Audit("spec", ())) == "nothing found"


def test_a_dataset_is_described_with_its_origin() -> None:
    dataset = DatasetAudit("golden", 1200, 2, 1, (), "version 3")
    assert describe_dataset(dataset) == "1,200 questions, 2 with a reference, 1 with relevant documents; version 3"
