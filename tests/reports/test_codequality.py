from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import SEVERITIES, Counted
from rageval_spec.plugin import Context
from rageval_spec.plugin.plugin import SpecOrigin
from rageval_spec.reports.codequality import CodequalityNode, CodequalityReport
from tests.command_line import invoke
from tests.reports.golden import assert_golden
from tests.sample_evaluation import make_evaluation, make_hostile_evaluation
from tests.tiny import write_spec

ORIGIN = SpecOrigin("evals/support.yaml", (21, 22, 24))


def render(evaluation: Evaluation, origin: SpecOrigin | None = ORIGIN, **keys: Any) -> bytes:
    node = CodequalityNode(use="codequality", **keys)
    return CodequalityReport(node, Context("codequality", origin=origin)).render(evaluation)


def test_golden() -> None:
    assert_golden("codequality.json", render(make_evaluation()))


@pytest.mark.parametrize("evaluation", [make_evaluation(), make_hostile_evaluation()])
def test_an_issue_has_what_gitlab_requires(evaluation: Evaluation) -> None:
    issues = json.loads(render(evaluation))
    assert len(issues) == 2
    for issue in issues:
        assert {*issue} == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
    assert len({issue["fingerprint"] for issue in issues}) == 2


def test_gates_are_at_their_lines_and_failures_at_the_first() -> None:
    issues = json.loads(render(replace(make_evaluation(), failures=("bm25: out of memory",))))
    places = [(one["severity"], one["location"]["path"], one["location"]["lines"]["begin"]) for one in issues]
    assert places == [
        ("critical", "evals/support.yaml", 1),
        ("minor", "evals/support.yaml", 22),
        ("major", "evals/support.yaml", 24),
    ]


def test_an_inconclusive_gate_is_as_severe_as_what_it_counts_as() -> None:
    gate = replace(make_evaluation().gates[2], outcome="inconclusive")
    kinds: tuple[Counted, ...] = ("fail", "warn", "pass")
    gates = tuple(replace(gate, counts_as=kind, slice=kind) for kind in kinds)
    issues = json.loads(render(replace(make_evaluation(), gates=gates)))
    assert [issue["severity"] for issue in issues] == ["major", "minor", "info"]


def test_a_spec_without_a_file_needs_the_key_file() -> None:
    assert json.loads(render(make_evaluation(), None))[0]["location"] == {"path": "support-bot", "lines": {"begin": 1}}
    assert json.loads(render(make_evaluation(), None, file="a.yaml"))[0]["location"]["path"] == "a.yaml"


def test_an_issue_keeps_its_fingerprint_when_only_the_number_changes() -> None:
    evaluation = make_evaluation()
    moved = [replace(gate, observed=0.1, reason="another", outcome="fail") for gate in evaluation.gates[1:]]
    before, after = json.loads(render(evaluation)), json.loads(render(replace(evaluation, gates=tuple(moved))))
    assert [one["fingerprint"] for one in before] == [one["fingerprint"] for one in after]


def test_without_findings_the_list_is_empty() -> None:
    assert json.loads(render(replace(make_evaluation(), gates=()))) == []


def test_run_writes_the_line_of_the_failed_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gates = [{"metric": "rr", "min": 0.1}, {"metric": "precision@1", "system": "tied", "min": 0.9}]
    path = write_spec(tmp_path, gates=gates, reports=["codequality"])
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    assert invoke("run", path, "-o", tmp_path / "out").exit_code == 1
    (issue,) = json.loads((tmp_path / "out" / "codequality.json").read_text())
    location = issue["location"]
    assert location["path"] == "spec.yaml"
    assert path.read_text().splitlines()[location["lines"]["begin"] - 1] == "- metric: precision@1"


def test_a_graded_drop_has_its_own_severity() -> None:
    evaluation = make_evaluation()
    gates = tuple(replace(evaluation.gates[2], gate=at, severity=word) for at, word in enumerate(SEVERITIES))
    issues = json.loads(render(replace(evaluation, gates=gates)))
    assert [issue["severity"] for issue in issues] == ["minor", "major", "critical"]
