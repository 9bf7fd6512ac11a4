from __future__ import annotations

import pytest

from rageval_spec.data.findings import Finding
from tests.metrics.citing import RECORDED
from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of


def test_hand_worked() -> None:
    # 2 of 3 claims are supported, 4 would be enough: P = 2/3, R = 1/2
    one = sample(answer="a|b|c", contexts=("a|b",))
    built = metric("verified_f1", RuleJudge(), cutoff=4)
    assert built.name == "verified_f1@4"
    assert value_of(built, one) == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert value_of(metric("verified_f1", RuleJudge(), cutoff=1), one) == pytest.approx(0.8)  # R = 1


def test_equal_to_veriscore() -> None:
    for row in RECORDED[200:]:
        claims = [f"claim {number}" for number in range(row["claims"])]
        one = sample(answer="|".join(claims), contexts=("|".join(claims[: row["supported"]]),))
        found = value_of(metric("verified_f1", RuleJudge(), cutoff=row["k"]), one)
        assert found == pytest.approx(row["veriscore"], rel=4e-16)  # ours is rounded once


def test_edges() -> None:
    found = measure(
        metric("verified_f1", RuleJudge(), cutoff=2),
        sample(answer="", contexts=("a",)),
        sample(answer="|", contexts=("a",)),
        sample(answer="b", contexts=("a",)),
        sample(answer="broken", contexts=("a",)),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "the answer is empty"),
        (0.0, "scored", "the answer makes no claim"),
        (0.0, "scored", None),
        (None, "error", "the reply is no JSON"),
    ]
    judge = RuleJudge(say=lambda _: Finding(None, reason="sent to a person"))
    (one,) = measure(metric("verified_f1", judge, cutoff=2), sample(answer="a", contexts=("a",)))
    assert (one.value, one.reason) == (None, "sent to a person")


def test_markers_are_not_read() -> None:
    judge = RuleJudge()
    one = sample(answer="a [1] | b [2]", contexts=("a", "b"))
    assert value_of(metric("verified_f1", judge, cutoff=2), one) == 1.0
