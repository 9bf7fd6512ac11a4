"""Finds bounds of gates that no value of the metric can meet, or that every value meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rageval_spec.plugin import Metric
from rageval_spec.spec.nodes import GateNode
from rageval_spec.spec.places import quote

_COMPARED = ("mean", "geometric mean")
"""The statistics that can be compared with a baseline by a paired test."""


class Unattainable(NamedTuple):
    """A key of a gate, what is wrong with it, and what to write instead."""

    key: str
    message: str
    hint: str | None = None


def find_unattainable(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[Unattainable]:
    """The keys of a gate that do not fit its metric. `name` is the metric's name in the spec."""
    if gate.baseline is not None and (reason := _explain_no_comparison(metric)):
        message = f"{quote(name)} {reason}, so it cannot be compared with a baseline"
        yield Unattainable("baseline", message, "use 'min' or 'max'")
    low, high = metric.bounds
    range_ = f"its values are between {low:g} and {high:g}" if high is not None else f"its values are {low:g} or more"
    if high is not None:
        for key in ("min", "target"):
            value = getattr(gate, key)
            if value is not None and value > high and not (key == "target" and metric.higher_is_better is False):
                message = f"{quote(name)} is never {value:g} or more: {range_}"
                yield Unattainable(key, message, _suggest_share(value, high))
        if gate.max is not None and gate.max > high:
            message = f"{quote(name)} is never above {gate.max:g}, so the gate can never fail: {range_}"
            yield Unattainable("max", message, _suggest_share(gate.max, high))
        if gate.max_drop is not None and gate.max_drop > high - low:
            message = f"{quote(name)} never drops by more than {gate.max_drop:g}: {range_}"
            yield Unattainable("max_drop", message, _suggest_share(gate.max_drop, high))
    for key in ("max", "target"):
        value = getattr(gate, key)
        if value is not None and value < low and not (key == "target" and metric.higher_is_better is not False):
            yield Unattainable(key, f"{quote(name)} is never {value:g} or less: {range_}")


def _explain_no_comparison(metric: Metric[Any]) -> str | None:
    if metric.statistic == "sum":
        return "is a count"
    if metric.statistic not in _COMPARED:
        return "is a percentile"
    return "has no better or worse direction" if metric.higher_is_better is None else None


def _suggest_share(value: float, high: float) -> str | None:
    """A hint for a share that was written as a percentage."""
    return f"for {value:g}% write {value / 100:g}" if high == 1 and value <= 100 else None
