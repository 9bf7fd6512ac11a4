from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rageval_spec.data.evaluation import Comparison, GateOutcome, Interval
from rageval_spec.reports.shared.page.bounds import describe_gate
from tests.sample_evaluation import make_evaluation

WORSE = Comparison("golden", "map", "dense", "bm25", -0.1, Interval(-0.2, 0.0), 0.01, 0.01, 40, 1, 30)
EVALUATION = replace(make_evaluation(metrics={"map": (0.5, 0.4)}), comparisons=(WORSE,))


def describe(bound: str, lower_is_better: tuple[str, ...] = (), **drop: Any) -> dict[str, Any]:
    gate = GateOutcome(0, "golden", "dense", "map", "fail", bound, -0.15, "", **drop)
    return describe_gate(replace(EVALUATION, lower_is_better=lower_is_better), gate)


@pytest.mark.parametrize(
    ("bound", "bounds"),
    [
        ("≥ 0.4", {"min": 0.4}),
        ("≥ 0.4, target 0.55", {"min": 0.4, "target": 0.55}),
        ("≤ 3.0", {"max": 3.0}),
        ("lower end ≥ 0.85", {"min": 0.85}),
        ("whole interval ≥ 0.85, whole interval target 0.9", {"min": 0.85, "target": 0.9}),
        ("≥ -1e-05, ≤ 2, drop from main ≤ 0.02 (p < 0.05)", {"min": -1e-05, "max": 2.0}),
    ],
)
def test_bounds_on_the_value_lie_around_the_mean(bound: str, bounds: dict[str, float]) -> None:
    found = describe(bound)
    assert found["scale"] == "value"
    assert found["bounds"] == bounds
    assert found["point"] == 0.4
    assert found["interval"] == [pytest.approx(0.36), pytest.approx(0.44)]


def test_bounds_on_a_drop_lie_around_the_difference() -> None:
    assert describe("drop from bm25 ≤ 5% (p < 0.05)", baseline="bm25", max_drop=0.02) == {
        "scale": "change",
        "point": -0.1,
        "interval": [-0.2, 0.0],
        "bounds": {"min": -0.02},
    }
    assert describe("no drop from bm25", baseline="bm25", max_drop=0.0)["bounds"] == {"min": 0.0}
    assert describe("drop from bm25: low > 5%", baseline="bm25")["bounds"] == {}
    rise = describe("drop from bm25 ≤ 0.02", lower_is_better=("map",), baseline="bm25", max_drop=0.02)
    assert rise["bounds"] == {"max": 0.02}


def test_a_baseline_outside_the_evaluation_has_its_interval_too() -> None:
    earlier = replace(WORSE, baseline="main", difference=-0.3)
    gate = GateOutcome(0, "golden", "dense", "map", "fail", "drop from main ≤ 0.02", -0.3, "", baseline="main")
    found = describe_gate(replace(EVALUATION, baselines=(earlier,)), gate)
    assert (found["scale"], found["point"], found["interval"]) == ("change", -0.3, [-0.2, 0.0])
    unknown = describe("lower end drop from main ≤ 0.02", baseline="main", max_drop=0.02)
    assert (unknown["scale"], unknown["point"], unknown["interval"]) == ("change", -0.15, None)


def test_a_bound_on_the_share_of_scored_queries_is_not_drawn() -> None:
    assert describe("scored ≥ 50%")["scale"] is None
