from __future__ import annotations

from pathlib import Path

from rageval_spec.audit.checks import Material, audit_dataset
from tests.plugins import build_dataset
from tests.question_sets import ask


def test_every_check_is_made_or_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "question": "Who won?"}\n')
    dataset = build_dataset("jsonl", tmp_path, path="golden.jsonl")
    questions = ask("Who won?", "How?", references=["Ann"], relevant=[{"d1": 1}])
    found = audit_dataset(questions, dataset, Material(why_none="there are no results", origin="version 3"))
    assert (found.questions, found.with_reference, found.with_relevant) == (2, 1, 1)
    assert found.origin == "version 3"
    names = [check.name for check in found.checks]
    assert len(names) == len(set(names)) >= 11
    assert all(check.skipped for check in found.checks if check.state == "skipped")
