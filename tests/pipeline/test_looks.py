"""The comparisons that gates make, and when they are certain."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rageval_spec import registry
from rageval_spec.data.drop import Drop
from rageval_spec.pipeline.looks import (
    Look,
    clip,
    list_bound_looks,
    list_drop_looks,
    list_drops,
    list_half_looks,
    list_share_looks,
    settle,
    warns_of_few,
)
from rageval_spec.pipeline.rounds import Pairs, Scored
from rageval_spec.plugin import Context, Metric
from rageval_spec.spec.nodes import GateNode

UNIT = (0.0, 1.0)


ONE, NONE, ERROR = Scored("scored", 1.0), Scored("unscorable", None), Scored("error", None)


def metric(word: str) -> Metric[Any]:
    plugin = registry.load("metrics", word)
    made: Metric[Any] = plugin(plugin.node_type(use=word), Context(word, Path()))
    return made


def gate(**keys: Any) -> GateNode:
    return GateNode(metric="exact_match", **keys)


def share(value: float) -> Look:
    return Look([value] * 80, 200, 0.5, UNIT)


def test_a_bound_is_met_missed_or_open() -> None:
    assert share(0.9).decide(0.95) is True
    assert share(0.1).decide(0.95) is False
    assert share(0.5).decide(0.95) is None
    assert share(0.1)._replace(passes_above=False).decide(0.95) is True
    assert share(math.nan).decide(0.95) is None


def test_a_decision_that_the_mean_seen_contradicts_is_open() -> None:
    values = [1.0] * 30 + [0.0] * 50  # after 30 the mean is surely above a half; then it falls below
    assert Look(values[:30], 500, 0.5, UNIT).decide(0.95) is True
    assert Look(values, 500, 0.5, UNIT).decide(0.95) is None


def test_a_metric_that_is_wrong_about_its_bounds_is_never_decided() -> None:
    assert Look([0.9, 1.4] * 100, 500, 0.5, UNIT).decide(0.95) is None
    assert clip([1 + 1e-12, -1e-12, 0.5, 2.0], UNIT) == [1.0, 0.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ([True, True], True),
        ([False, None], True),
        ([None, False], False),
        ([True, None], False),
        ([True, False], True),
        ([], True),
    ],
)
def test_a_gate_is_settled_once_nothing_open_could_change_its_outcome(met: list[bool | None], expected: bool) -> None:
    looks = [share(0.5), share(0.5)._replace(miss="warn")]
    assert settle(zip(looks, met, strict=False)) is expected


def test_the_joint_error_of_two_bounds_is_small() -> None:
    """A gate with two bounds, one of which equals the mean, has the wrong outcome in at most 5% of the draws."""
    generator = np.random.default_rng(3)
    values = np.array([1.0] * 120 + [0.0] * 80)
    wrong = 0
    for _ in range(300):
        drawn = generator.permutation(values)[:150].tolist()
        low = Look(drawn, 200, 0.6, UNIT).decide(0.975)
        high = Look(drawn, 200, 0.6, UNIT, passes_above=False).decide(0.975)
        wrong += low is False or high is False
    assert wrong <= 15


def test_each_bound_of_a_gate_is_a_look() -> None:
    looks = [*list_bound_looks(gate(min=0.2, max=0.9, target=0.5), metric("exact_match"), [ONE, NONE], 10, None)]
    assert [(look.bound, look.passes_above, look.miss) for look in looks] == [
        (0.2, True, "fail"),
        (0.9, False, "fail"),
        (0.5, True, "warn"),
    ]
    assert looks[0].values[0] == 1.0
    assert math.isnan(looks[0].values[1])
    (low,) = list_bound_looks(gate(target=0.1), metric("error_rate"), [ONE], 10, None)
    assert not low.passes_above


def test_a_drop_is_a_bound_of_the_differences() -> None:
    pairs = Pairs({"a": (0.5, 0.25), "b": (0.0, 1.0), "c": None}, 10, True)
    (drop,) = list_drop_looks(gate(baseline="main", max_drop=0.02), metric("exact_match"), pairs)
    assert (drop.bound, drop.bounds, drop.passes_above, drop.population) == (-0.02, (-1.0, 1.0), True, 10)
    assert drop.values[:2] == [0.25, -1.0]
    assert math.isnan(drop.values[2])
    (rise,) = list_drop_looks(gate(baseline="main", max_drop=0.02), metric("error_rate"), pairs)
    assert (rise.bound, rise.passes_above) == (0.02, False)


def test_a_drop_by_a_share_is_a_bound_of_what_is_left_of_the_baseline() -> None:
    pairs = Pairs({"a": (0.5, 1.0)}, 10, True)
    (drop,) = list_drop_looks(gate(baseline="main", max_drop="20%"), metric("exact_match"), pairs)
    assert (drop.bound, drop.bounds, round(drop.values[0], 9)) == (0.0, (-0.8, 1.0), -0.3)
    (rise,) = list_drop_looks(gate(baseline="main", max_drop="20%"), metric("error_rate"), pairs)
    assert (rise.bound, rise.bounds, round(rise.values[0], 9)) == (0.0, (-1.2, 1.0), -0.7)
    (wide,) = list_drop_looks(gate(baseline="main", max_drop="150%"), metric("exact_match"), pairs)
    assert (wide.bounds, wide.values[0]) == ((0.0, 1.5), 1.0)


def test_severities_are_bounds_unless_the_gate_has_one_of_its_own() -> None:
    pairs = Pairs({"a": (0.5, 1.0)}, 10, True)
    severities = {"low": "5%", "high": 0.2}
    graded = [*list_drop_looks(gate(baseline="main", severities=severities), metric("exact_match"), pairs)]
    assert [(look.bound, look.miss) for look in graded] == [(0.0, "warn"), (-0.2, "fail")]
    both = [*list_drop_looks(gate(baseline="main", max_drop=0.1, severities=severities), metric("exact_match"), pairs)]
    assert [(look.bound, look.miss) for look in both] == [(-0.1, "fail")]
    assert list_drops(gate(baseline="main")) == [(Drop(0.0), "fail")]
    assert list_drops(gate(min=0.5)) == []


def test_questions_that_cannot_be_scored_do_not_count_against_min_scored() -> None:
    (look,) = list_share_looks(gate(min=0.2), metric("exact_match"), [ONE, NONE, ERROR], 10)
    assert (look.values[0], look.values[2], look.bound) == (1.0, 0.0, 0.9)
    assert math.isnan(look.values[1])
    assert not [*list_share_looks(gate(min=0.2, min_scored=0), metric("exact_match"), [ONE], 10)]


def test_the_warning_of_few_scored_questions_is_decided_by_two_shares() -> None:
    assert warns_of_few(gate(min=0.2), metric("exact_match"))
    assert not warns_of_few(gate(min=0.2, min_scored=0.9), metric("exact_match"))
    assert not warns_of_few(gate(min=0.2), metric("ndcg"))
    half, excused = list_half_looks([ONE, NONE, ERROR], 10)
    assert (half.values, half.bound) == ([1.0, 0.0, 0.0], 0.5)
    assert (excused.values, excused.bound, excused.bounds) == ([1.0, 2.0, 0.0], 1.0, (0.0, 2.0))
