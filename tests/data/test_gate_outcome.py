from __future__ import annotations

import pytest

from rageval_spec.data.gate_outcome import Counted, GateOutcome, Verdict


def outcome(verdict: Verdict, counts_as: Counted | None = None) -> GateOutcome:
    return GateOutcome(0, "golden", "bot", "rr", verdict, "≥ 0.5", 0.4, "", counts_as=counts_as)


def test_outcomes_are_in_order_from_the_worst() -> None:
    ordered = [
        outcome("fail"),
        outcome("inconclusive", "fail"),
        outcome("inconclusive", "warn"),
        outcome("warn"),
        outcome("inconclusive", "pass"),
        outcome("pass"),
    ]
    assert [one.rank for one in ordered] == list(range(6))


@pytest.mark.parametrize(
    ("verdict", "counts_as", "counted"),
    [("fail", None, "fail"), ("inconclusive", None, "warn"), ("inconclusive", "pass", "pass")],
)
def test_an_inconclusive_outcome_counts_as_it_says(verdict: Verdict, counts_as: Counted | None, counted: str) -> None:
    assert outcome(verdict, counts_as).counted == counted
