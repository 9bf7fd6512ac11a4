"""Checks how far a number may fall below a baseline: `max_drop`, `alpha` and `decide: certain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rageval_spec.data.comparability import Change
from rageval_spec.data.drop import Drop, Severity, read_drop
from rageval_spec.data.evaluation import Aggregate, Comparison, Counted, rank_outcome
from rageval_spec.history.comparability import describe_changes
from rageval_spec.pipeline.bounds import Finding
from rageval_spec.pipeline.certainty import Estimate, decide, describe_decision
from rageval_spec.spec.nodes import GateNode
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
        return _lack_interval(gate, cell_name, f"on: {gate.on}")
    return _judge_drop(gate, comparison, cell_name, change, change if lower_is_better else -change)


def _lack_interval(gate: GateNode, cell_name: str, need: str) -> Finding:
    return Finding("fail", f"{cell_name} has no interval of its difference from {gate.baseline}, which '{need}' needs")


class _Limit(NamedTuple):
    """A drop that a gate allows: the amount, what a larger drop means, and the amount in words.

    `share` says in brackets what the amount is a share of; "" if it is none.
    """

    amount: float
    miss: Counted
    shown: str
    share: str = ""
    severity: Severity | None = None

    @property
    def told(self) -> str:
        """`0.020`, or `0.021 (5% of 0.420)`."""
        return self.shown + self.share


def _list_limits(gate: GateNode, comparison: Comparison, size: float) -> list[_Limit]:
    """What the gate allows, the smallest drop first; `size` is the drop that it is compared with."""
    drops = {} if gate.severities is None else gate.severities.drops
    grades: Mapping[Severity, Counted] = {"low": "warn", "medium": "fail", "high": "fail"}
    limits = [_resolve(drop, comparison, size, grades[word], word) for word, drop in drops.items()]
    if gate.max_drop is not None:
        limits = [limit._replace(miss="pass") for limit in limits]
        limits.append(_resolve(read_drop(gate.max_drop), comparison, size, "fail"))
    return sorted(limits or [_Limit(0.0, "fail", "")], key=lambda limit: limit.amount)


def _resolve(
    drop: Drop, comparison: Comparison, size: float, miss: Counted, severity: Severity | None = None
) -> _Limit:
    base = comparison.baseline_mean or 0.0
    amount = drop.resolve(base)
    share = f" ({drop} of {format_number(abs(base))})" if drop.is_share else ""
    share += ", so no drop is small enough; write the amount as a number" if drop.is_share and base == 0 else ""
    return _Limit(amount, miss, tell_apart(size, amount)[1], share, severity)


def _find_allowed(limits: Iterable[_Limit]) -> float | None:
    """The largest drop with which the gate does not fail; None if it never fails."""
    return min((limit.amount for limit in limits if limit.miss == "fail"), default=None)


def wait_for_baseline(gate: GateNode, cell_name: str) -> Finding:
    """An inconclusive finding, because no evaluation can be the gate's baseline yet."""
    branch = (gate.baseline or "").partition(":")[2]
    absent = f"no evaluation on the branch {branch} has passed" if branch else "there is no earlier evaluation"
    return _wait(gate, f"{cell_name} has nothing to be compared with yet: {absent}")


def _wait(gate: GateNode, sentence: str) -> Finding:
    """An inconclusive finding until there is another baseline; how to record one if the gate does not let it pass."""
    counts_as = gate.on_inconclusive or "warn"
    way_out = "; to record a first one that passes, run with --set 'gates=[]'" if counts_as == "fail" else ""
    return Finding("inconclusive", sentence + way_out, counts_as=counts_as)


def lack_part(gate: GateNode, cell_name: str, part: str) -> Finding:
    """An inconclusive finding, because the gate's baseline is of before `part` was added to the spec."""
    return _wait(gate, f"{cell_name} has nothing to be compared with yet: {gate.baseline} has no {part}")


def lack_shared_questions(gate: GateNode, cell_name: str) -> Finding:
    """An inconclusive finding, because the questions of the dataset are others than those of the gate's baseline."""
    return _wait(gate, f"{cell_name} cannot be compared with {gate.baseline}: the questions are not the same")


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
    grades = {} if gate.severities is None else gate.severities.drops
    graded = ", ".join(f"{word} > {drop}" for word, drop in grades.items())
    if gate.max_drop is None:
        from_where = f"{end}drop from {gate.baseline}{significance}"
        return f"{from_where}: {graded}" if graded else f"no {from_where}"
    allowed = f"{end}drop from {gate.baseline} ≤ {read_drop(gate.max_drop)}{significance}"
    return f"{allowed}, {graded}" if graded else allowed


def _decide_drop(gate: GateNode, comparison: Comparison, cell_name: str, lower_is_better: bool) -> Finding:
    """Whether the whole interval of the difference is within the allowed drop.

    A severity is one that the whole interval has. A drop of low severity that is not certain warns at most.
    """
    if comparison.interval is None:
        return _lack_interval(gate, cell_name, "decide: certain")
    ends, change = (comparison.interval.low, comparison.interval.high), comparison.difference
    labels = None if comparison.correction is None else comparison.correction.labels
    estimate = Estimate(change, *ends, labels or comparison.queries, is_of_labels=labels is not None)
    limits = _list_limits(gate, comparison, abs(change))
    findings = [_decide_limit(gate, limit, estimate, lower_is_better) for limit in limits if limit.miss != "pass"]
    worst = min(findings, key=lambda finding: rank_outcome(finding.outcome, finding.counts_as))
    side = "level with" if change == 0 else f"{format_number(abs(change))} {'below' if change < 0 else 'above'}"
    interval = f"{format_interval(comparison.interval)} for the difference"
    sentence = f"{cell_name} is {side} {gate.baseline} on {comparison.queries} shared queries ({interval})"
    sentence += _describe_accepted(comparison)
    severity = _find_severity(limits, ends[0] if lower_is_better else -ends[1])
    relation = worst.relation + (f": a regression of {severity} severity" if severity else "")
    return worst._replace(sentence=sentence, relation=relation, max_drop=_find_allowed(limits), severity=severity)


def _decide_limit(gate: GateNode, limit: _Limit, estimate: Estimate, lower_is_better: bool) -> Finding:
    """Whether the whole interval of a difference is within one limit. An undecided warning warns at most."""
    bound = limit.amount * (1 if lower_is_better else -1)
    outcome = decide(estimate, bound, below_is_bad=not lower_is_better, miss=limit.miss)
    written = f"{'+' if bound > 0 else '-'}{limit.shown}" if limit.share else f"{bound:+g}"
    said = f"the allowed {written}{limit.share}" if bound else "zero"
    relation = describe_decision(outcome, estimate, bound, said, below_is_bad=not lower_is_better)
    counts_as = gate.on_inconclusive or "warn"
    counts_as = "warn" if limit.miss == "warn" and counts_as == "fail" else counts_as
    return Finding(outcome, "", relation, estimate.point, counts_as if outcome == "inconclusive" else None)


def _find_severity(limits: Iterable[_Limit], size: float) -> Severity | None:
    """The worst severity that a drop of this size has."""
    exceeded = [limit.severity for limit in limits if limit.severity is not None and size > limit.amount]
    return exceeded[-1] if exceeded else None


def _describe_accepted(comparison: Comparison) -> str:
    return f", although {describe_changes(comparison.changes)}" if comparison.changes else ""


def _change(gate: GateNode, comparison: Comparison) -> float | None:
    if gate.on == "mean":
        return comparison.difference
    if comparison.interval is None:
        return None
    return comparison.interval.low if gate.on == "lower" else comparison.interval.high


def _no_comparison(gate: GateNode, cell: Aggregate, cell_name: str) -> str:
    if cell.statistic == "sum":
        return f"{cell_name} is a count, which is not compared with {gate.baseline}; use 'min' or 'max'"
    if cell.correction is not None:
        labels = f"labels of '{cell.correction.source}' for both answers"
        return f"{cell_name} could not be compared with {gate.baseline}: too few questions have {labels}"
    return (
        f"{cell_name} could not be compared with {gate.baseline}: fewer than two queries have a value of "
        f"{cell.metric} in both"
    )


def _judge_drop(gate: GateNode, comparison: Comparison, cell_name: str, change: float, drop: float) -> Finding:
    """Whether a drop is within the limits. A drop that `alpha` says is not significant warns at most."""
    limits = _list_limits(gate, comparison, drop)
    exceeded = [limit for limit in limits if drop > limit.amount]
    misses = {limit.miss for limit in exceeded}
    outcome: Counted = "fail" if "fail" in misses else "warn" if "warn" in misses else "pass"
    relation = _describe_relation(gate, limits, drop)
    if outcome != "pass" and gate.alpha is not None and comparison.p_adjusted >= gate.alpha:
        is_bounded = gate.max_drop is not None or gate.severities is not None
        outcome = "warn" if is_bounded else "pass"
        relation = f"{relation}: not significant".removeprefix(": ")
    sentence = _describe_change(gate, comparison, cell_name, change, relation)
    return Finding(outcome, *sentence, change, None, _find_allowed(limits), _find_severity(limits, drop))


def _describe_relation(gate: GateNode, limits: Sequence[_Limit], drop: float) -> str:
    """The drop beside what the gate allows; "" if nothing dropped or any drop is too much."""
    if drop <= 0:
        return ""
    allowed = next((limit for limit in limits if gate.max_drop is not None and limit.severity is None), None)
    parts = (
        [] if allowed is None else [f"{'more than' if drop > allowed.amount else 'within'} the allowed {allowed.told}"]
    )
    if severity := _find_severity(limits, drop):
        told = next(limit.told for limit in limits if limit.severity == severity)
        parts.append(f"a regression of {severity} severity, which begins at {told}")
    elif gate.severities is not None and allowed is None:
        parts.append(f"within {limits[0].told}, where {limits[0].severity} severity begins")
    return "; ".join(parts)


def _describe_change(
    gate: GateNode, comparison: Comparison, cell_name: str, change: float, relation: str
) -> tuple[str, str]:
    """The distance from the baseline, and its relation to what the gate allows."""
    size = _show_size(gate, comparison, change)
    where = "" if gate.on == "mean" else f" at the {gate.on} end of the difference's interval"
    side = "level with" if change == 0 else f"{size} below" if change < 0 else f"{size} above"
    evidence = f"on {comparison.queries} shared queries ({ADJUSTED} {format_p_value(comparison.p_adjusted)})"
    return f"{cell_name} is {side} {gate.baseline}{where} {evidence}{_describe_accepted(comparison)}", relation


def _show_size(gate: GateNode, comparison: Comparison, change: float) -> str:
    """The distance, with enough digits to tell it from the allowed drop."""
    if gate.max_drop is None:
        return format_number(abs(change))
    return tell_apart(abs(change), read_drop(gate.max_drop).resolve(comparison.baseline_mean or 0.0))[0]
