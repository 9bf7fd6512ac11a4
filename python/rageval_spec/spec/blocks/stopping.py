"""The node of `stopping:`, which says when an evaluation has asked enough questions, and the checks of its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.spec.blocks.history_block import SpecBlock
from rageval_spec.spec.text.places import KeyPath, TextPlace, nearest_place, quote

if TYPE_CHECKING:
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.blocks.gates import GateNode

_DECIDABLE = {
    "metric", "system", "dataset", "slice", "min", "max", "target", "at_least", "on", "decide", "on_inconclusive",
    "baseline", "max_drop", "alpha", "min_scored", "accept_changes", "severities",
}  # fmt: skip
"""The keys of gates that `explain_undecidable` knows."""


class StoppingNode(SpecBlock):
    """`stopping:` when to stop asking questions."""

    when: Literal["decided"] = Field(
        default="decided",
        description="decided: questions are asked and judged in a random order, until every gate's outcome is certain "
        "enough. Questions that were not asked by then are reported as such.",
    )
    confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="The probability that all gates have the outcome that they would have if every question had been "
        "asked.",
    )
    first: int = Field(default=30, ge=2, description="How many questions of each dataset to ask in any case.")
    batch: int = Field(
        default=20, ge=1, description="How many more questions to ask before looking at the gates again."
    )


def explain_undecidable(gate: GateNode, metric: Metric[Any]) -> str | None:
    """Why a gate's outcome is known only after every question; None if it can be certain earlier.

    A confidence sequence is of a mean of bounded values, each of which depends on one question alone.
    """
    for explain in (_explain_kind, _explain_values):
        reason = explain(gate, metric)
        if reason is not None:
            return reason
    return None


def _explain_kind(gate: GateNode, _: Metric[Any]) -> str | None:
    if gate.slice is not None:
        return "it looks at a slice"
    if gate.need is not None:
        return "it looks at an interval over all questions"
    if gate.alpha is not None:
        return "it looks at a p-value"
    if gate.min_scored == 1:
        return "every question must have a value ('min_scored: 1')"
    unknown = sorted(gate.model_fields_set - _DECIDABLE)
    return f"'{unknown[0]}' looks at every question" if unknown else None


def _explain_values(gate: GateNode, metric: Metric[Any]) -> str | None:
    if metric.statistic != "mean":
        return f"it looks at a {'percentile' if metric.statistic.startswith('p') else metric.statistic}, not at a mean"
    if metric.is_partial or getattr(metric, "needs", frozenset()) & {"group", "condition"}:
        return "its values compare questions with one another"
    if not is_bounded_mean(metric):
        return "its values have no bounds"
    drops = () if gate.severities is None else gate.severities.drops.values()
    if metric.bounds[0] < 0 and (isinstance(gate.max_drop, str) or any(drop.is_share for drop in drops)):
        return "it looks at a share of a number that can be negative"
    return None


def is_bounded_mean(metric: Metric[Any]) -> bool:
    """Whether a metric's aggregate is a mean of values between two bounds, of which there are confidence sequences."""
    low, high = metric.bounds
    return metric.statistic == "mean" and high is not None and math.isfinite(low) and math.isfinite(high)


def check_stopping(
    node: StoppingNode | None,
    gates: Mapping[int, GateNode],
    metrics: Mapping[str, Metric[Any]],
    places: Mapping[KeyPath, TextPlace],
    *,
    can_ask: bool = True,
) -> Iterator[Diagnostic]:
    """Warnings where every question is asked: without gates, and for each gate that needs all of them.

    Specs without gates are no mistake: a baseline is recorded with `--set 'gates=[]'`.

    `gates` are those of the spec by their index, `metrics` those that are right, by name. `can_ask` says whether any
    system may answer questions.
    """
    place = nearest_place(places, ("stopping",))
    if node is None or place is None:
        return
    if not gates:
        message = "the spec has no gates, so there is nothing to decide and every question is asked, despite 'stopping'"
        yield place.diagnose(message, "stopping", None, "warning")
    elif not can_ask:
        message = "no system of the spec answers questions, so 'stopping' has no effect: all queries are evaluated"
        yield place.diagnose(message, "stopping", "remove it", "warning")
    for index, gate in gates.items() if can_ask else ():
        metric, at = metrics.get(gate.metric), nearest_place(places, ("gates", index, "metric"))
        reason = None if metric is None else explain_undecidable(gate, metric)
        if reason is not None and at is not None:
            message = (
                f"every question is asked because of the gate on {quote(gate.metric)}, despite 'stopping': {reason}"
            )
            yield at.diagnose(message, "stopping", None, "warning")
