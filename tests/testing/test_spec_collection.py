"""What a test of a spec is called; `test_plugin.py` has what pytest shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rageval_spec.data.outcomes import GateOutcome
from rageval_spec.testing.spec_collection import SpecFile, explain_gate
from tests.answered_evaluation import answered, bridges, sample, value
from tests.tiny import write_spec


def list_names(request: pytest.FixtureRequest, path: Path) -> list[str]:
    return [item.name for item in SpecFile.from_parent(request.session, path=path).collect()]


def test_a_name_has_what_the_gate_names_and_its_bound(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    gates = [
        {"metric": "rr", "min": 0.4, "on": "lower"},
        {"metric": "rr", "system": "good", "dataset": "fruit", "max": 0.9},
    ]
    assert list_names(request, write_spec(tmp_path, gates=gates)) == [
        "evaluation",
        "rr lower end ≥ 0.4",
        "rr good fruit ≤ 0.9",
    ]


def test_gates_that_are_equal_get_numbers(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    gate = {"metric": "rr", "min": 0.4}
    assert list_names(request, write_spec(tmp_path, gates=[gate, gate]))[1:] == ["rr ≥ 0.4", "rr ≥ 0.4 (2)"]


GATE = GateOutcome(0, "golden", "v1", "faithfulness", "fail", "≥ 0.9", 0.75, "faithfulness of v1 is\x1b 0.750, below")


def test_the_reason_is_followed_by_the_card_of_the_worst_question() -> None:
    text = explain_gate(bridges(), GATE)
    assert text.startswith("faithfulness of v1 is\\x1b 0.750, below\n\nq1 · v1 · golden")
    assert "Question q1?" in text
    assert "[It was built in 1911. ✗1]" in text
    assert "q2" not in text
    assert "\x1b" not in text


def test_without_any_value_it_is_the_card_of_a_question_that_failed() -> None:
    values = [value("q3", "faithfulness", None, status="error", reason="HTTP 500")]
    evaluation = answered(values, [sample("q3", answer=None, error="HTTP 500: out of memory")])
    assert "q3 · v1 · golden · failed" in explain_gate(evaluation, GATE)


def test_a_gate_that_found_nothing_has_only_a_reason() -> None:
    nothing = replace(GATE, system="", dataset="", reason="the evaluation has no faithfulness")
    assert explain_gate(bridges(), nothing) == "the evaluation has no faithfulness"
    assert explain_gate(bridges(), replace(GATE, metric="rr", reason="no rr")) == "no rr"
