"""Finds bounds of gates that no value of the metric can meet, or that every value meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rageval_spec.data.drop import SEVERITIES, read_drop
from rageval_spec.plugin import Metric
from rageval_spec.spec.gates import GateNode
from rageval_spec.spec.places import quote


class Unattainable(NamedTuple):
    """A key of a gate (`severities.low` for one inside another), what is wrong with it, and what to write instead."""

    key: str
    message: str
    hint: str | None = None


def find_unattainable(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[Unattainable]:
    """The keys of a gate that do not fit its metric. `name` is the metric's name in the spec."""
    if gate.baseline is not None and (reason := _explain_no_comparison(metric)):
        message = f"{quote(name)} {reason}, so it cannot be compared with a baseline"
        yield Unattainable("baseline", message, "use 'min' or 'max'")
    lower_is_better = metric.higher_is_better is False
    range_ = _describe_range(metric)
    yield from _find_too_high(gate, metric, name, range_)
    for key in ("min", "target"):
        value = getattr(gate, key)
        if value is not None and value < metric.bounds[0] and not (key == "target" and lower_is_better):
            never = "fail" if key == "min" else "warn"
            yield Unattainable(key, f"{quote(name)} is never below {value:g}, so the gate can never {never}: {range_}")
    for key in ("max", "target"):
        value = getattr(gate, key)
        if value is not None and value < metric.bounds[0] and (key == "max" or lower_is_better):
            yield Unattainable(key, f"{quote(name)} is never {value:g} or less: {range_}")
    yield from _find_too_large(gate, metric, name, range_)


def _describe_range(metric: Metric[Any]) -> str:
    low, high = metric.bounds
    return f"its values are between {low:g} and {high:g}" if high is not None else f"its values are {low:g} or more"


def _find_too_high(gate: GateNode, metric: Metric[Any], name: str, range_: str) -> Iterator[Unattainable]:
    """Bounds above the highest possible value."""
    high = metric.bounds[1]
    if high is None:
        return
    lower_is_better = metric.higher_is_better is False
    for key in ("min", "target"):
        value = getattr(gate, key)
        if value is not None and value > high and not (key == "target" and lower_is_better):
            message = f"{quote(name)} is never {value:g} or more: {range_}"
            yield Unattainable(key, message, _suggest_share(value, high))
    for key in ("max", "target"):
        value = getattr(gate, key)
        if value is not None and value > high and (key == "max" or lower_is_better):
            never = "fail" if key == "max" else "warn"
            message = f"{quote(name)} is never above {value:g}, so the gate can never {never}: {range_}"
            yield Unattainable(key, message, _suggest_share(value, high))


def _find_too_large(gate: GateNode, metric: Metric[Any], name: str, range_: str) -> Iterator[Unattainable]:
    """Drops that are larger than the range of the values, or than the whole of a number that cannot be negative."""
    (low, high), lower_is_better = metric.bounds, metric.higher_is_better is False
    moves = "rises" if lower_is_better else "drops"
    for key, written in _list_drops(gate):
        drop = read_drop(written)
        if drop.is_share and drop.number > 1 and low >= 0 and not lower_is_better:
            yield Unattainable(key, f"{quote(name)} never {moves} by more than 100%: {range_}")
        elif not drop.is_share and high is not None and drop.number > high - low:
            message = f"{quote(name)} never {moves} by more than {drop.number:g}: {range_}"
            hint = f"for {drop.number:g}% of the baseline's number write {drop.number:g}%"
            share = _suggest_share(drop.number, high)
            yield Unattainable(key, message, hint if share is None else f"{share}; {hint}")


def _list_drops(gate: GateNode) -> Iterator[tuple[str, float | str]]:
    if gate.max_drop is not None:
        yield "max_drop", gate.max_drop
    for key in SEVERITIES if gate.severities is not None else ():
        if (written := getattr(gate.severities, key)) is not None:
            yield f"severities.{key}", written


def _explain_no_comparison(metric: Metric[Any]) -> str | None:
    if metric.statistic == "sum":
        return "is a count"
    return "has no better or worse direction" if metric.higher_is_better is None else None


def _suggest_share(value: float, high: float) -> str | None:
    """A hint for a share that was written as a percentage."""
    return f"for {value:g}% write {value / 100:g}" if high == 1 and value <= 100 else None
