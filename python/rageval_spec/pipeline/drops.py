"""Checks how far a number may fall below a baseline: `max_drop`, `alpha` and `decide: certain`."""

from __future__ import annotations

from collections.abc import Sequence

from rageval_spec.data.comparability import Change
from rageval_spec.data.evaluation import Aggregate, Comparison, Verdict
from rageval_spec.history.comparability import describe_changes
from rageval_spec.pipeline.bounds import Finding
from rageval_spec.pipeline.certainty import Estimate, decide, describe_decision
from rageval_spec.spec.nodes import GateNode
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.wording import ADJUSTED, format_interval, format_number, format_p_value, tell_apart


def check_drop(
    gate: GateNode, comparison: Comparison | None, cell: Aggregate, cell_name: str, lower_is_better: bool
) -> Finding:
    """Whether a number is at most as far below the gate's baseline as the gate allows.

    If lower values are better, the gate limits a rise. `comparison` is the cell's comparison with the baseline; None
    if there is none.
    """
    if comparison is None:
        return Finding("fail", _no_comparison(gate, cell, cell_name))
    if refused := [change for change in comparison.changes if change.part not in (gate.accept_changes or ())]:
        return _refuse(gate, comparison, refused, cell_name)
    if gate.decide == "certain":
        return _decide_drop(gate, comparison, cell_name, lower_is_better)
    change = _change(gate, comparison)
    if change is None:
        lacking = f"has no interval of its difference from {gate.baseline}, which 'on: {gate.on}' needs"
        return Finding("fail", f"{cell_name} {lacking}")
    return _judge_drop(gate, comparison, cell_name, change, lower_is_better)


def wait_for_baseline(gate: GateNode, cell_name: str) -> Finding:
    """An inconclusive finding, because no evaluation can be the gate's baseline yet."""
    branch = (gate.baseline or "").partition(":")[2]
    absent = f"no evaluation on the branch {branch} has passed" if branch else "there is no earlier evaluation"
    counts_as = gate.on_inconclusive or "warn"
    way_out = "; to record a first one that passes, run with --set 'gates=[]'" if counts_as == "fail" else ""
    sentence = f"{cell_name} has nothing to be compared with yet: {absent}{way_out}"
    return Finding("inconclusive", sentence, counts_as=counts_as)


def _refuse(gate: GateNode, comparison: Comparison, refused: Sequence[Change], cell_name: str) -> Finding:
    """An inconclusive finding: the numbers are not of one kind, so their difference says nothing about the system."""
    parts = ", ".join(dict.fromkeys(change.part for change in comparison.changes))
    sentence = f"{cell_name} is not comparable with {gate.baseline}: {describe_changes(refused)}"
    relation = f"to compare all the same, write 'accept_changes: [{parts}]'"
    return Finding("inconclusive", f"{sentence}; {relation}", "", comparison.difference, gate.on_inconclusive or "warn")


def describe_drop(gate: GateNode) -> str:
    """The part of a gate's bound in short that is about its baseline: `drop from main ≤ 0.02 (p < 0.05)`."""
    end = "" if gate.on == "mean" else f"{gate.on} end "
    significance = "" if gate.alpha is None else f" (p < {gate.alpha!r})"
    significance = " (whole interval)" if gate.decide == "certain" else significance
    if gate.max_drop is None:
        return f"no {end}drop from {gate.baseline}{significance}"
    return f"{end}drop from {gate.baseline} ≤ {gate.max_drop!r}{significance}"


def _decide_drop(gate: GateNode, comparison: Comparison, cell_name: str, lower_is_better: bool) -> Finding:
    """Whether the whole interval of the difference is within the allowed drop."""
    if comparison.interval is None:
        lacking = f"has no interval of its difference from {gate.baseline}, which 'decide: certain' needs"
        return Finding("fail", f"{cell_name} {lacking}")
    ends = comparison.interval.low, comparison.interval.high
    change = comparison.difference
    estimate = Estimate(change, *ends, comparison.queries)
    bound = (gate.max_drop or 0.0) * (1 if lower_is_better else -1)
    outcome = decide(estimate, bound, below_is_bad=not lower_is_better, miss="fail")
    side = "level with" if change == 0 else f"{format_number(abs(change))} {'below' if change < 0 else 'above'}"
    interval = f"{format_interval(comparison.interval)} for the difference"
    sentence = f"{cell_name} is {side} {gate.baseline} on {comparison.queries} shared queries ({interval})"
    sentence += f", although {describe_changes(comparison.changes)}" if comparison.changes else ""
    limit = f"the allowed {bound:+g}" if bound else "zero"
    relation = describe_decision(outcome, estimate, bound, limit, below_is_bad=not lower_is_better)
    counts_as = gate.on_inconclusive or "warn"
    return Finding(outcome, sentence, relation, change, counts_as if outcome == "inconclusive" else None)


def _change(gate: GateNode, comparison: Comparison) -> float | None:
    if gate.on == "mean":
        return comparison.difference
    if comparison.interval is None:
        return None
    return comparison.interval.low if gate.on == "lower" else comparison.interval.high


def _no_comparison(gate: GateNode, cell: Aggregate, cell_name: str) -> str:
    if cell.statistic == "sum":
        return f"{cell_name} is a count, which is not compared with {gate.baseline}; use 'min' or 'max'"
    if read_percentile(cell.statistic) is not None:
        return f"{cell_name} is a percentile, which is not compared with {gate.baseline}; use 'min' or 'max'"
    return (
        f"{cell_name} could not be compared with {gate.baseline}: fewer than two queries have a value of "
        f"{cell.metric} in both"
    )


def _judge_drop(
    gate: GateNode, comparison: Comparison, cell_name: str, change: float, lower_is_better: bool
) -> Finding:
    drop = change if lower_is_better else -change
    sentence, relation = _describe_change(gate, comparison, cell_name, change, drop)
    if drop <= (gate.max_drop or 0.0):
        return Finding("pass", sentence, relation, change)
    if gate.alpha is not None and comparison.p_adjusted >= gate.alpha:
        outcome: Verdict = "pass" if gate.max_drop is None else "warn"
        return Finding(outcome, sentence, f"{relation}: not significant".removeprefix(": "), change)
    return Finding("fail", sentence, relation, change)


def _describe_change(
    gate: GateNode, comparison: Comparison, cell_name: str, change: float, drop: float
) -> tuple[str, str]:
    """The distance from the baseline, and its relation to `max_drop` ("" if nothing dropped)."""
    size, allowed = format_number(abs(change)), ""
    if drop > 0 and gate.max_drop is not None:
        size, bound = tell_apart(drop, gate.max_drop)
        allowed = f"{'more than' if drop > gate.max_drop else 'within'} the allowed {bound}"
    where = "" if gate.on == "mean" else f" at the {gate.on} end of the difference's interval"
    side = "level with" if change == 0 else f"{size} below" if change < 0 else f"{size} above"
    evidence = f"on {comparison.queries} shared queries ({ADJUSTED} {format_p_value(comparison.p_adjusted)})"
    accepted = f", although {describe_changes(comparison.changes)}" if comparison.changes else ""
    return f"{cell_name} is {side} {gate.baseline}{where} {evidence}{accepted}", allowed
