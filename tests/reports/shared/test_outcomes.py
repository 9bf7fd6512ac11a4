from __future__ import annotations

from dataclasses import replace

import pytest

from rageval_spec.data.evaluation import GateOutcome, Verdict
from rageval_spec.reports.shared.outcomes import describe_verdict, worst_first, worst_outcome
from tests.sample_evaluation import make_evaluation


def gates(*outcomes: Verdict) -> tuple[GateOutcome, ...]:
    return tuple(GateOutcome(n, "golden", "bm25", "map", one, ">= 0.4", 0.3, "") for n, one in enumerate(outcomes))


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        ((), "no gates to check"),
        (("pass",), "1 gate passed"),
        (("pass", "warn"), "1 of 2 gates warned, none failed"),
        (("fail", "warn", "pass"), "1 of 3 gates failed, 1 warned"),
        (("fail", "fail"), "2 of 2 gates failed"),
        (("pass", "inconclusive"), "1 of 2 gates is inconclusive, none failed"),
        (("inconclusive", "warn", "inconclusive"), "2 of 3 gates are inconclusive, 1 warned, none failed"),
        (("inconclusive", "fail"), "1 of 2 gates failed, 1 is inconclusive"),
    ],
)
def test_the_verdict_counts_gates_by_outcome(outcomes: tuple[Verdict, ...], text: str) -> None:
    assert describe_verdict(replace(make_evaluation(), gates=gates(*outcomes), failures=())) == text


def test_an_inconclusive_gate_that_counts_as_failed_says_so() -> None:
    undecided = tuple(replace(gate, counts_as="fail") for gate in gates("inconclusive", "inconclusive"))
    evaluation = replace(make_evaluation(), gates=undecided, failures=())
    assert describe_verdict(evaluation) == "2 of 2 gates are inconclusive, which counts as failed"


def test_what_an_inconclusive_gate_counts_as_decides_its_place() -> None:
    warned, undecided, failed = gates("warn", "inconclusive", "fail")
    accepted = replace(undecided, gate=3, counts_as="pass")
    assert worst_first([accepted, warned, undecided, failed]) == [failed, undecided, warned, accepted]


def test_gates_are_shown_worst_first_then_in_the_order_of_the_spec() -> None:
    shown = worst_first(gates("pass", "warn", "fail", "pass", "fail"))
    assert [(gate.outcome, gate.gate) for gate in shown] == [
        ("fail", 2), ("fail", 4), ("warn", 1), ("pass", 0), ("pass", 3),
    ]  # fmt: skip
    assert worst_outcome(gates("pass", "warn")) == "warn"
    assert worst_outcome(()) is None
