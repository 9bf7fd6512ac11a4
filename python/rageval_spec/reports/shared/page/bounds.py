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
_DROP = re.compile(r"(?:^|, )(no )?(?:lower end |upper end )?drop from ")
_ALLOWED = re.compile(rf" ≤ {_NUMBER}(?: \([^)]*\))?$")


def describe_gate(evaluation: Evaluation, gate: GateOutcome) -> dict[str, Any]:
    """A gate for the page: its number, the interval around it, and where its bounds lie.

    `scale` is "value" if the bounds are on the metric, "change" if they are on the difference from the baseline, and
    None if there is nothing to draw. `point` is what the marker shows: the mean, or the difference.
    """
    bounds = {kind: float(found[1]) for kind, rule in _BOUNDS.items() if (found := rule.search(gate.bound))}
    drop = _DROP.search(gate.bound)
    if bounds:
        cell = evaluation.aggregate(gate.dataset, gate.system, gate.metric, gate.slice)
        point, interval = (None, None) if cell is None else (cell.mean, cell.interval)
        return _describe("value", point, interval, bounds)
    if drop is None:
        return _describe(None, None, None, {})
    allowed = _ALLOWED.search(gate.bound)
    limit = float(allowed[1]) if allowed and not drop[1] else 0.0
    side = {"max": limit} if gate.metric in evaluation.lower_is_better else {"min": -limit}
    comparison = evaluation.comparison(gate.dataset, gate.system, gate.metric, gate.slice)
    if comparison is None or f"drop from {comparison.baseline}" not in gate.bound:
        return _describe("change", gate.observed, None, side)
    return _describe("change", comparison.difference, comparison.interval, side)


def _describe(
    scale: str | None, point: float | None, interval: Interval | None, bounds: dict[str, float]
) -> dict[str, Any]:
    ends = None if interval is None else [interval.low, interval.high]
    return {"scale": scale, "point": point, "interval": ends, "bounds": bounds}
