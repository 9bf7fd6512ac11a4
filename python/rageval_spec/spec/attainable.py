"""What a gate asks of its metric that no value can be, or that every value is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rageval_spec.plugin import Metric
from rageval_spec.spec.nodes import GateNode
from rageval_spec.spec.places import quote

_COMPARED = ("mean", "geometric mean")
"""The statistics whose paired differences are tested."""


class Unattainable(NamedTuple):
    """A key of a gate, what is wrong with it, and what to write instead."""

    key: str
    message: str
    hint: str | None = None


def find_unattainable(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[Unattainable]:
    """What of a gate does not fit its metric, which is called `name` in the spec."""
    if gate.baseline is not None and (reason := _explain_no_comparison(metric)):
        message = f"{quote(name)} {reason}, which is not compared with a baseline"
        yield Unattainable("baseline", message, "use 'min' or 'max'")
    low, high = metric.bounds
    range_ = f"its values lie between {low:g} and {high:g}" if high is not None else f"its values are {low:g} or more"
    if high is not None:
        for key in ("min", "target"):
            value = getattr(gate, key)
            if value is not None and value > high and not (key == "target" and metric.higher_is_better is False):
                message = f"{quote(name)} is never {value:g} or more: {range_}"
                yield Unattainable(key, message, _suggest_share(value, high))
        if gate.max is not None and gate.max > high:
            message = f"{quote(name)} is never above {gate.max:g}, so the gate could not fail: {range_}"
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
    return "has no better or worse" if metric.higher_is_better is None else None


def _suggest_share(value: float, high: float) -> str | None:
    """What was meant where a share was written as a percentage."""
    return f"for {value:g}% write {value / 100:g}" if high == 1 and value <= 100 else None
