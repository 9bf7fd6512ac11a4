"""Families of comparisons, checked against a slow reference of Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.evaluation import Comparison
from rageval_spec.statistics.families import adjust, adjust_table, share_highest


def comparison(metric: str, p_value: float, **changes: Any) -> Comparison:
    fields: dict[str, Any] = {
        "dataset": "golden",
        "system": "new",
        "baseline": "old",
        "difference": -0.1,
        "interval": None,
        "p_adjusted": p_value,
        "queries": 10,
        "wins": 1,
        "losses": 5,
    }
    return Comparison(metric=metric, p_value=p_value, **fields | changes)


def slow_holm(p_values: Sequence[float]) -> list[float]:
    """Each p-value times the number of p-values that are not smaller; never less than the result of a smaller one."""
    return [
        min(1.0, max(sum(1 for q in p_values if q >= other) * other for other in p_values if other <= p))
        for p in p_values
    ]


def adjusted(comparisons: Sequence[Comparison]) -> list[float]:
    return [one.p_adjusted for one in comparisons]


def test_a_family_worked_by_hand() -> None:
    family = [comparison("a", 0.01), comparison("b", 0.04), comparison("c", 0.03)]
    assert adjusted(adjust(family)) == pytest.approx([0.03, 0.06, 0.06])


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=12, unique=True))
def test_a_family_is_corrected_by_holms_procedure(p_values: list[float]) -> None:
    found = adjust([comparison(f"m{index}", p) for index, p in enumerate(p_values)])
    assert adjusted(found) == pytest.approx(slow_holm(p_values))
    assert [one.p_value for one in found] == p_values


def test_each_dataset_is_a_family() -> None:
    found = adjust([comparison("a", 0.01), comparison("a", 0.02, dataset="other"), comparison("b", 0.5)])
    assert adjusted(found) == pytest.approx([0.02, 0.02, 0.5])


def test_nothing_to_adjust() -> None:
    assert adjust([]) == ()
    assert adjust_table([], [comparison("a", 0.5)]) == ()


def test_a_comparison_that_a_gate_requests_has_the_gates_p_value_in_the_table() -> None:
    gated = adjust([comparison("a", 0.25)])
    table = [comparison("a", 0.25), *(comparison(f"m{index}", 0.02 + index / 1000) for index in range(4))]
    found = adjust_table(table, gated)
    assert [one.metric for one in found] == [one.metric for one in table]
    assert found[0].p_adjusted == 0.25
    assert adjusted(found[1:]) == adjusted(adjust(table[1:]))


def test_the_direction_of_a_comparison_does_not_matter() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.4, system="old", baseline="new")]
    assert adjusted(adjust_table([comparison("a", 0.2), comparison("b", 0.2)], gated)) == [0.4, 0.2]


def test_gates_on_several_baselines_keep_the_highest_p_value() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.4), comparison("a", 0.2, p_adjusted=0.2, system="old", baseline="new")]
    assert adjusted(adjust_table([comparison("a", 0.2)], gated)) == [0.4]


def test_another_dataset_or_metric_is_another_comparison() -> None:
    gated = [comparison("a", 0.2, p_adjusted=0.9, dataset="other"), comparison("b", 0.2, p_adjusted=0.9)]
    assert adjusted(adjust_table([comparison("a", 0.2)], gated)) == [0.2]


def test_a_pair_that_two_families_have_takes_the_highest_p_value_in_both() -> None:
    there = comparison("a", 0.01, system="x", baseline="y", p_adjusted=0.02)
    back = comparison("a", 0.01, system="y", baseline="x", p_adjusted=0.05)
    alone = comparison("b", 0.01, system="x", baseline="y", p_adjusted=0.03)
    found = share_highest({"y": [there, alone], "x": [back]})
    assert {name: adjusted(of) for name, of in found.items()} == {"y": [0.05, 0.03], "x": [0.05]}
