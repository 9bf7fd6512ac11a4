"""Gates: what passes, what fails, and the sentence that explains it."""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.pipeline.gates import check_gates, describe_bound
from rageval_spec.spec.nodes import GateNode
from tests.pipeline.gating import METRICS, cell, check, comparison


def test_no_value_fails_even_if_no_share_is_required() -> None:
    checked = check({"max": 1.0, "min_scored": 0}, cell(None, interval=None, scored=0, total=40))
    assert (checked.outcome, checked.observed) == ("fail", None)
    assert checked.reason == "ndcg@10 of bm25 has no value: 0 of 40 queries could be scored"


def test_passing_bounds_share_one_sentence() -> None:
    checked = check({"min": 0.4, "target": 0.41})
    assert checked.reason == "ndcg@10 of bm25 is 0.412, at least the minimum 0.400 and at least the target 0.410"
    drop = check({"min": 0.4, "baseline": "main", "max_drop": 0.02}, against=comparison(0.01))
    assert drop.reason.startswith("ndcg@10 of bm25 is 0.412, at least the minimum 0.400; ndcg@10 of bm25 is 0.010 ")


def test_all_failing_bounds_are_named() -> None:
    checked = check({"min": 0.45}, cell(0.4, scored=1))
    assert "the gate requires 90%" in checked.reason
    assert "below the minimum" in checked.reason


def test_a_gate_without_a_system_looks_at_all_but_its_baseline() -> None:
    cells = [cell(0.5, system=system) for system in ("bm25", "dense", "hybrid")]
    everywhere = check_gates([GateNode(metric="ndcg@10", min=0.4)], cells, METRICS)
    assert [outcome.system for outcome in everywhere] == ["bm25", "dense", "hybrid"]
    gate = GateNode(metric="ndcg@10", baseline="bm25", max_drop=0.1)
    against = {"bm25": [comparison(0.1, system=system, baseline="bm25") for system in ("dense", "hybrid")]}
    compared = check_gates([gate], cells, METRICS, against)
    assert [(outcome.system, outcome.outcome) for outcome in compared] == [("dense", "pass"), ("hybrid", "pass")]
    one = check_gates([GateNode(metric="ndcg@10", min=0.4, system="dense")], cells, METRICS)
    assert [outcome.system for outcome in one] == ["dense"]


def test_a_gate_that_finds_nothing_fails() -> None:
    checked = check({"system": "dense", "dataset": "golden", "min": 0})
    assert (checked.outcome, checked.system, checked.observed) == ("fail", "dense", None)
    assert checked.reason == "the evaluation has no ndcg@10 of dense on golden, so the gate could not be checked"
    alone = check({"system": "bm25", "baseline": "bm25", "max_drop": 0})
    assert (alone.outcome, alone.reason) == ("fail", "the gate on ndcg@10 compares bm25 with itself")


def test_the_dataset_is_named_if_there_are_several() -> None:
    cells = [cell(0.5, dataset=dataset) for dataset in ("golden", "scifact")]
    reasons = [o.reason for o in check_gates([GateNode(metric="ndcg@10", min=0.6)], cells, METRICS)]
    assert reasons[1] == "ndcg@10 of bm25 on scifact is 0.500, below the minimum 0.600"
    assert len(reasons) == 2


def test_the_number_of_a_gate_is_its_index_in_the_spec() -> None:
    gates = [GateNode(metric="ndcg@10", min=0), GateNode(metric="ndcg@10", max=1)]
    assert [outcome.gate for outcome in check_gates(gates, [cell(0.5)], METRICS)] == [0, 1]


@pytest.mark.parametrize(
    ("gate", "bound"),
    [
        ({"min": 0.4, "target": 0.55}, "≥ 0.4, target 0.55"),
        ({"min": 0.85, "on": "lower"}, "lower end ≥ 0.85"),
        ({"max": 5}, "≤ 5.0"),
        ({"baseline": "main", "max_drop": 0.02, "alpha": 0.05}, "drop from main ≤ 0.02 (p < 0.05)"),
        ({"baseline": "main", "alpha": 0.05}, "no drop from main (p < 0.05)"),
        ({"baseline": "main"}, "no drop from main"),
        ({"min_scored": 0.95}, "scored ≥ 95%"),
    ],
)
def test_bounds_in_short(gate: dict[str, Any], bound: str) -> None:
    assert describe_bound(GateNode.model_validate({"metric": "ndcg@10"} | gate)) == bound
