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
    ],
)
def test_the_verdict_counts_gates_by_outcome(outcomes: tuple[Verdict, ...], text: str) -> None:
    assert describe_verdict(replace(make_evaluation(), gates=gates(*outcomes), failures=())) == text


def test_gates_are_shown_worst_first_then_in_the_order_of_the_spec() -> None:
    shown = worst_first(gates("pass", "warn", "fail", "pass", "fail"))
    assert [(gate.outcome, gate.gate) for gate in shown] == [
        ("fail", 2), ("fail", 4), ("warn", 1), ("pass", 0), ("pass", 3),
    ]  # fmt: skip
    assert worst_outcome(gates("pass", "warn")) == "warn"
    assert worst_outcome(()) is None
