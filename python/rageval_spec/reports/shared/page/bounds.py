"""Reads the numbers in a gate's bound, so that they can be drawn on an axis."""

from __future__ import annotations

import re
from typing import Any

from rageval_spec.data.evaluation import Evaluation, GateOutcome, Interval

_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_BOUNDS = {
    "min": re.compile(rf"(?:^|, )(?:lower end |upper end |whole interval )?≥ {_NUMBER}"),
    "max": re.compile(rf"(?:^|, )(?:lower end |upper end |whole interval )?≤ {_NUMBER}"),
    "target": re.compile(rf"target {_NUMBER}"),
}


def describe_gate(evaluation: Evaluation, gate: GateOutcome) -> dict[str, Any]:
    """A gate for the page: its number, the interval around it, and where its bounds lie.

    `scale` is "value" if the bounds are on the metric, "change" if they are on the difference from the baseline, and
    None if there is nothing to draw. `point` is what the marker shows: the mean, or the difference.
    """
    bounds = {kind: float(found[1]) for kind, rule in _BOUNDS.items() if (found := rule.search(gate.bound))}
    if bounds:
        cell = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
        point, interval = (None, None) if cell is None else (cell.mean, cell.interval)
        return _describe("value", point, interval, bounds)
    if gate.baseline is None:
        return _describe(None, None, None, {})
    is_lower_better = gate.metric in evaluation.lower_is_better
    limit = gate.max_drop
    side = {} if limit is None else {"max": limit} if is_lower_better else {"min": -limit}
    comparison = evaluation.find_asked(gate)
    if comparison is None:
        return _describe("change", gate.observed, None, side)
    return _describe("change", comparison.difference, comparison.interval, side)


def _describe(
    scale: str | None, point: float | None, interval: Interval | None, bounds: dict[str, float]
) -> dict[str, Any]:
    ends = None if interval is None else [interval.low, interval.high]
    return {"scale": scale, "point": point, "interval": ends, "bounds": bounds}
