"""Checks the bounds of a gate, on the evaluation's own numbers and against a baseline.

The bounds on its own numbers are `min`, `max`, `target`, `at_least` and `min_scored`. `max_drop` says how far a
number may fall below a baseline; with `alpha`, a drop that is not significant warns at most. With `decide: certain`,
a whole interval must clear the bound. Where it does not, the number of further queries that would decide is
estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

from rageval_spec.data import arithmetic
from rageval_spec.data.bands import BandScale
from rageval_spec.data.datasets import CellDesign
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.data.outcomes import (
    BaselineChange,
    Counted,
    Drop,
    DropSeverity,
    Interval,
    Verdict,
    rank_outcome,
    read_drop,
)
from rageval_spec.history.comparability import describe_changes
from rageval_spec.pipeline.values.answer_values import lacks_most
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.statistics.mean_intervals import (
    RANGE_ADVICE,
    ValueRange,
    count_needed,
    find_difference_range,
    lacks_range,
    list_bounds,
)
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.wording import (
    ADJUSTED,
    ALL_DIGITS,
    DIGITS,
    PERCENT,
    PLAIN,
    UNRESOLVABLE,
    Formatter,
    NumberFormat,
    describe_limit,
    format_interval,
    format_mean,
    format_p_value,
    format_percent,
    format_points,
    tell_apart,
)

_NEGLIGIBLE = 1e-9
"""A share that is only a rounding error."""


class BoundResult(NamedTuple):
    """The result of one bound: a sentence (`sentence`, then `relation` after a comma) and the number it looked at.

    `counts_as` is what an inconclusive finding counts as. Of a drop from a baseline, `max_drop` is the amount that is
    allowed, and `severity` how bad the drop is.
    """

    outcome: Verdict
    sentence: str
    relation: str = ""
    observed: float | None = None
    counts_as: Counted | None = None
    max_drop: float | None = None
    severity: DropSeverity | None = None


class Directed(Protocol):
    """What a gate must know about a metric; `plugin.Metric` has these properties."""

    @property
    def higher_is_better(self) -> bool | None:
        """False for a metric whose low values are good; None if neither direction is good."""

    @property
    def is_partial(self) -> bool:
        """Whether the metric is meant for only some of the queries."""

    @property
    def is_percent(self) -> bool:
        """Whether its values are shown as percentages."""


_Check: TypeAlias = Callable[..., BoundResult]


class _Subject(NamedTuple):
    """The number that `on:` selects, its name, the number of digits to show, and of how many values it was made."""

    name: str
    value: float
    digits: int
    terms: int
    shown: Formatter

    @classmethod
    def mean_of(cls, cell: Aggregate, cell_name: str, metric: Directed) -> _Subject:
        assert cell.mean is not None
        digits = 0 if cell.statistic == "sum" else DIGITS
        return cls(cell_name, cell.mean, digits, cell.scored, find_metric_format(metric).number)

    @classmethod
    def end_of(cls, gate: GateNode, interval: Interval, cell: Aggregate, cell_name: str, metric: Directed) -> _Subject:
        name = f"the {gate.on} end of the {format_percent(interval.confidence)} interval of {cell_name}"
        value = interval.low if gate.on == "lower" else interval.high
        return cls(name, value, DIGITS, cell.scored, find_metric_format(metric).number)


def find_metric_format(metric: Directed) -> NumberFormat:
    """How the numbers of a metric are written."""
    return PERCENT if metric.is_percent else PLAIN


def check_bounds(gate: GateNode, cell: Aggregate, cell_name: str, metric: Directed) -> Iterable[BoundResult]:
    """Check `min`, `max` and `target`."""
    check = _choose_check(gate, cell, cell_name, metric)
    lower_is_better = metric.higher_is_better is False
    if isinstance(check, BoundResult):
        yield check
        return
    if gate.min is not None:
        yield check(gate.min, "minimum", below_is_bad=True, miss="fail")
    if gate.max is not None:
        yield check(gate.max, "maximum", below_is_bad=False, miss="fail")
    if gate.target is not None:
        yield check(gate.target, "target", below_is_bad=not lower_is_better, miss="warn")


def _choose_check(gate: GateNode, cell: Aggregate, cell_name: str, metric: Directed) -> _Check | BoundResult:
    """How the gate checks a bound: `check(bound, kind, below_is_bad=, miss=)`; a finding if it cannot."""
    check: _Check
    if gate.need is None:
        return partial(_compare, _Subject.mean_of(cell, cell_name, metric))
    if cell.interval is None:
        seen = f"{cell_name} is {format_mean(cell, shown=find_metric_format(metric))} and has no interval"
        return _lack_interval(gate, seen, _explain_no_interval(gate, cell, metric), cell.mean)
    if gate.decide == "certain":
        check = partial(_decide, gate, cell, cell_name, metric)
    else:
        check = partial(_compare, _Subject.end_of(gate, cell.interval, cell, cell_name, metric))
    return partial(_check_in_range, gate, cell, check) if lacks_range(metric, cell.statistic) else check


def _check_in_range(gate: GateNode, cell: Aggregate, check: _Check, *args: Any, **kwargs: Any) -> BoundResult:
    return _need_range(gate, cell, check(*args, **kwargs), kwargs["miss"])


def _need_range(gate: GateNode, cell: Aggregate, found: BoundResult, miss: Counted = "fail") -> BoundResult:
    """The finding of an interval of a metric without a range: it can miss a bound, but not clear it."""
    if found.outcome not in ("pass", "inconclusive"):
        return found
    relation = f"which shows too little, because the lowest and highest value of {cell.metric} are not known"
    relation += f"; {RANGE_ADVICE}"
    return found._replace(outcome="inconclusive", relation=relation, counts_as=weigh(gate, miss))


_FEWEST = 2
"""The fewest values of which there is an interval."""


def _lack_interval(gate: GateNode, seen: str, why: str, observed: float | None = None) -> BoundResult:
    """An inconclusive finding: the gate decides by an interval, and there is none."""
    return BoundResult("inconclusive", f"{seen}, which '{gate.need}' needs: {why}", "", observed, weigh(gate))


def _explain_no_interval(gate: GateNode, cell: Aggregate, metric: Directed) -> str:
    if cell.statistic == "sum":
        return f"it is a count; remove '{gate.need}'"
    if cell.design is not None and cell.design.clusters == 1:
        return f"{describe_scored(cell)}, and all its questions belong to one cluster"
    if read_percentile(cell.statistic) is not None:
        return f"{describe_scored(cell)}, too few for this percentile"
    if cell.correction is not None:
        return "all its labels belong to one cluster"
    if cell.scored < _FEWEST:
        return describe_scored(cell)
    return f"all values are equal, {_describe_equal(cell, metric)}"


def _describe_equal(cell: Aggregate, metric: Directed) -> str:
    """Why equal values, or differences, have no interval."""
    if lacks_range(metric, cell.statistic):
        return f"and the lowest and highest value of {cell.metric} are not known; {RANGE_ADVICE}"
    return f"and {cell.metric} has no highest value, so they do not say what another one could be"


def check_level(
    word: str, scale: BandScale, gate: GateNode, cell: Aggregate, cell_name: str, metric: Directed
) -> BoundResult:
    """Whether a value is in the level `word` of its scale, or in a better one."""
    check = _choose_check(gate, cell, cell_name, metric)
    if isinstance(check, BoundResult):
        return check
    bound = scale.bound_of(word)
    assert bound is not None, "the spec's check refuses the level without a bound"
    kind = f"level {word}" + ("" if scale.name == "custom" else f" ({scale.name})") + ", which starts at"
    finding = check(bound, kind, below_is_bad=not scale.lower_is_better, miss="fail")
    assert finding.observed is not None
    return finding._replace(sentence=f"{finding.sentence} ({scale.find(finding.observed, cell.scored).word})")


def _compare(subject: _Subject, bound: float, kind: str, *, below_is_bad: bool, miss: Counted) -> BoundResult:
    value = subject.value
    is_level = arithmetic.is_level(value, bound, terms=subject.terms)
    seen, shown = tell_apart(bound if is_level else value, bound, subject.shown, subject.digits)
    missed = not is_level and (value < bound) == below_is_bad
    if is_level:
        relation = "exactly"
    elif missed:
        relation = "below" if below_is_bad else "above"
    else:
        relation = "at least" if below_is_bad else "at most"
    outcome: Verdict = miss if missed else "pass"
    return BoundResult(outcome, f"{subject.name} is {seen}", f"{relation} the {kind} {shown}", value)


def _decide(
    gate: GateNode,
    cell: Aggregate,
    cell_name: str,
    metric: Directed,
    bound: float,
    kind: str,
    *,
    below_is_bad: bool,
    miss: Counted,
) -> BoundResult:
    """Whether the whole interval clears a bound. An undecided target warns at most."""
    assert cell.mean is not None and cell.interval is not None
    of_values = list_bounds(metric) if cell.statistic == "mean" else None
    estimate = GateEstimate.of(cell, cell.mean, cell.scored, of_values)
    outcome = decide(estimate, bound, below_is_bad=below_is_bad, miss=miss)
    formatter = find_metric_format(metric).number
    seen, shown = tell_apart(cell.mean, bound, formatter)
    sentence = f"{cell_name} is {seen} {format_interval(cell.interval, formatter=formatter)}"
    relation = describe_decision(outcome, estimate, bound, f"the {kind} {shown}", below_is_bad=below_is_bad)
    counts_as = weigh(gate, miss) if outcome == "inconclusive" else None
    return BoundResult(outcome, sentence, relation, cell.mean, counts_as)


def weigh(gate: GateNode, miss: Counted = "fail") -> Counted:
    """What an undecided bound counts as. One whose miss is a warning warns at most."""
    counts_as = gate.on_inconclusive or "warn"
    return "warn" if miss == "warn" and counts_as == "fail" else counts_as


def count_parts(design: CellDesign | None, queries: int) -> float:
    """How many independent questions of equal weight an interval is from."""
    if design is None:
        return queries
    known = [number for number in (design.clusters, design.effective) if number is not None]
    return min(known, default=queries)


def describe_scored(cell: Aggregate) -> str:
    """`39 of 40 queries could be scored`."""
    return f"{cell.scored} of {cell.total} queries could be scored"


def check_scored(gate: GateNode, cell: Aggregate, cell_name: str) -> Iterable[BoundResult]:
    """Whether enough queries could be scored, for `min_scored`."""
    asked = cell.total - cell.excused
    share = cell.scored / asked if asked else 0.0
    if not arithmetic.reaches(share, gate.min_scored):
        seen, required = tell_apart(share, gate.min_scored, format_percent, digits=1)
        seen += f" of the {asked} that can have a value" if cell.excused else ""
        required += " (min_scored)"
        yield BoundResult(
            "fail", f"only {describe_scored(cell)} for {cell_name} ({seen}); the gate requires {required}"
        )


def check_covered(cell: Aggregate, cell_name: str) -> Iterable[BoundResult]:
    """A warning if a part of production has no scored question, because the weighted mean says nothing about it."""
    if cell.design is not None and (share := cell.design.uncovered) > _NEGLIGIBLE:
        yield BoundResult(
            "warn", f"{cell_name} leaves out {format_percent(share)} of production, which has no scored question"
        )


def describe_weights(gate: GateNode, cell: Aggregate, metric: Directed) -> str:
    """`; weighted, 0.840 if all questions count the same`; "" for a number without weights, or that they do not change.

    If the gate looks at something else than the mean, the sentence calls the plain number the mean.
    """
    if cell.design is None or cell.design.plain is None or cell.mean is None:
        return ""
    if math.isclose(cell.design.plain, cell.mean, rel_tol=1e-9):
        return ""
    plain = find_metric_format(metric).number(cell.design.plain, DIGITS)
    if gate.on != "mean" or gate.baseline is not None:
        return f"; weighted (if all questions count the same, the mean is {plain})"
    return f"; weighted, {plain} if all questions count the same"


def check_half(gate: GateNode, cell: Aggregate, cell_name: str, metric: Directed) -> Iterable[BoundResult]:
    """A warning if most queries have no value, excused or not, because the mean describes only the rest.

    There is no warning if the gate sets `min_scored`, which states how few queries are enough.
    """
    share = cell.scored / cell.total
    if lacks_most(cell) and not ("min_scored" in gate.model_fields_set and arithmetic.reaches(share, gate.min_scored)):
        accept = f"if that is expected, add 'min_scored: {math.floor(100 * share) / 100:g}' to the gate"
        seen = f"{cell_name} is {format_mean(cell, shown=find_metric_format(metric))}"
        seen += f", but only {describe_scored(cell)} ({format_percent(share)})"
        yield BoundResult("warn", f"{seen}; {accept}")


def check_drop(
    gate: GateNode, comparison: Comparison | None, cell: Aggregate, cell_name: str, metric: Directed
) -> BoundResult:
    """Whether a number is at most as far below the gate's baseline as the gate allows.

    If lower values are better, the gate limits a rise. `comparison` is the cell's comparison with the baseline; None
    if there is none.
    """
    if comparison is None:
        return BoundResult("fail", _no_comparison(gate, cell, cell_name))
    if refused := [change for change in comparison.changes if change.part not in (gate.accept_changes or ())]:
        return _refuse(gate, comparison, refused, cell_name)
    if gate.need is not None and comparison.interval is None:
        seen = f"{cell_name} has no interval of its difference from {gate.baseline}"
        return _lack_interval(gate, seen, _explain_no_difference(comparison, cell, metric))
    if gate.decide == "certain":
        found = _decide_drop(gate, comparison, cell, cell_name, metric)
    else:
        change = _change(gate, comparison)
        drop = change if metric.higher_is_better is False else -change
        found = _decide_by_drop(gate, comparison, cell_name, change, drop, find_metric_format(metric))
    return _need_range(gate, cell, found) if gate.need and lacks_range(metric, cell.statistic) else found


def _explain_no_difference(comparison: Comparison, cell: Aggregate, metric: Directed) -> str:
    if cell.statistic == "geometric mean":
        return "it is a geometric mean"
    shared = f"the two share {comparison.queries} queries"
    if cell.design is not None and cell.design.clusters == 1:
        return f"{shared}, and all belong to one cluster"
    if read_percentile(cell.statistic) is not None:
        return f"{shared}, too few for this percentile"
    if cell.correction is not None:
        return "all labels belong to one cluster"
    return f"all differences are equal, {_describe_equal(cell, metric)}"


class _Limit(NamedTuple):
    """A drop that a gate allows: the amount, what a larger drop means, and the amount in words.

    `share` says in brackets what the amount is a share of; "" if it is none.
    """

    amount: float
    miss: Counted
    shown: str
    share: str = ""
    severity: DropSeverity | None = None

    @property
    def told(self) -> str:
        """`0.020`, or `0.021 (5% of 0.420)`."""
        return self.shown + self.share


def _list_limits(gate: GateNode, comparison: Comparison, size: float, shown: NumberFormat) -> list[_Limit]:
    """What the gate allows, the smallest drop first; `size` is the drop that it is compared with."""
    drops = {} if gate.severities is None else gate.severities.drops
    grades: Mapping[DropSeverity, Counted] = {"low": "warn", "medium": "fail", "high": "fail"}
    limits = [_resolve(drop, comparison, size, shown, grades[word], word) for word, drop in drops.items()]
    if gate.max_drop is not None:
        limits = [limit._replace(miss="pass") for limit in limits]
        limits.append(_resolve(read_drop(gate.max_drop), comparison, size, shown, "fail"))
    return sorted(limits or [_Limit(0.0, "fail", "")], key=lambda limit: limit.amount)


def _resolve(
    drop: Drop,
    comparison: Comparison,
    size: float,
    shown: NumberFormat,
    miss: Counted,
    severity: DropSeverity | None = None,
) -> _Limit:
    base = comparison.baseline_mean or 0.0
    amount = drop.resolve(base)
    share = f" ({drop} of {shown.number(abs(base), DIGITS)})" if drop.is_share else ""
    share += ", so no drop is small enough; write the amount as a number" if drop.is_share and base == 0 else ""
    told = tell_apart(_snap(size, amount, comparison), amount, shown.change)[1]
    return _Limit(amount, miss, told, share, severity)


def _find_allowed(limits: Iterable[_Limit]) -> float | None:
    """The largest drop with which the gate does not fail; None if it never fails."""
    return min((limit.amount for limit in limits if limit.miss == "fail"), default=None)


def wait_for_baseline(gate: GateNode, cell_name: str) -> BoundResult:
    """An inconclusive finding, because no evaluation can be the gate's baseline yet."""
    branch = (gate.baseline or "").partition(":")[2]
    absent = f"no evaluation on the branch {branch} has passed" if branch else "there is no earlier evaluation"
    return _wait(gate, f"{cell_name} has nothing to be compared with yet: {absent}")


def _wait(gate: GateNode, sentence: str) -> BoundResult:
    """An inconclusive finding until there is another baseline; how to record one if the gate does not let it pass."""
    counts_as = weigh(gate)
    way_out = "; to record a first one that passes, run with --set 'gates=[]'" if counts_as == "fail" else ""
    return BoundResult("inconclusive", sentence + way_out, counts_as=counts_as)


def lack_part(gate: GateNode, cell_name: str, part: str) -> BoundResult:
    """An inconclusive finding, because the gate's baseline is of before `part` was added to the spec."""
    return _wait(gate, f"{cell_name} has nothing to be compared with yet: {gate.baseline} has no {part}")


def lack_shared_questions(gate: GateNode, cell_name: str) -> BoundResult:
    """An inconclusive finding, because the questions of the dataset are others than those of the gate's baseline."""
    return _wait(gate, f"{cell_name} cannot be compared with {gate.baseline}: the questions are not the same")


def _refuse(gate: GateNode, comparison: Comparison, refused: Sequence[BaselineChange], cell_name: str) -> BoundResult:
    """An inconclusive finding: the numbers are not of one kind, so their difference says nothing about the system."""
    parts = ", ".join(dict.fromkeys(change.part for change in comparison.changes))
    sentence = f"{cell_name} is not comparable with {gate.baseline}: {describe_changes(refused)}"
    relation = f"to compare all the same, write 'accept_changes: [{parts}]'"
    return BoundResult("inconclusive", f"{sentence}; {relation}", "", comparison.difference, weigh(gate))


def describe_drop(gate: GateNode, *, is_percent: bool) -> str:
    """The part of a gate's bound in short that is about its baseline: `drop from main ≤ 0.02 (p < 0.05)`."""
    end = "" if gate.on == "mean" else f"{gate.on} end "
    significance = "" if gate.alpha is None else f" (p < {gate.alpha!r})"
    significance = " (whole interval)" if gate.decide == "certain" else significance
    grades = {} if gate.severities is None else gate.severities.drops
    graded = ", ".join(f"{word} > {_write_drop(drop, is_percent)}" for word, drop in grades.items())
    if gate.max_drop is None:
        from_where = f"{end}drop from {gate.baseline}{significance}"
        return f"{from_where}: {graded}" if graded else f"no {from_where}"
    allowed = f"{end}drop from {gate.baseline} ≤ {_write_drop(read_drop(gate.max_drop), is_percent)}{significance}"
    return f"{allowed}, {graded}" if graded else allowed


def _write_drop(drop: Drop, is_percent: bool) -> str:
    """A drop as the gate has it; of a metric that is shown as a percentage, an amount is in percentage points."""
    return format_points(drop.number, ALL_DIGITS) if is_percent and not drop.is_share else str(drop)


def _decide_drop(
    gate: GateNode, comparison: Comparison, cell: Aggregate, cell_name: str, metric: Directed
) -> BoundResult:
    """Whether the whole interval of the difference is within the allowed drop.

    A severity is one that the whole interval has. A drop of low severity that is not certain warns at most.
    """
    assert comparison.interval is not None
    lower_is_better = metric.higher_is_better is False
    change = _snap(comparison.difference, 0.0, comparison)
    of_values = find_difference_range(list_bounds(metric)) if cell.statistic == "mean" else None
    estimate = GateEstimate.of(comparison, change, comparison.queries, of_values, comparison.baseline_mean or 0.0)
    shown = find_metric_format(metric)
    limits = _list_limits(gate, comparison, abs(change), shown)
    findings = [_decide_limit(gate, limit, estimate, metric) for limit in limits if limit.miss != "pass"]
    worst = min(findings, key=lambda finding: rank_outcome(finding.outcome, finding.counts_as))
    size = shown.change(abs(change), DIGITS)
    side = "level with" if change == 0 else f"{size} {'below' if change < 0 else 'above'}"
    interval = f"{format_interval(comparison.interval, formatter=shown.change)} for the difference"
    sentence = f"{cell_name} is {side} {gate.baseline} on {comparison.queries} shared queries ({interval})"
    sentence += _describe_accepted(comparison)
    severity = _find_severity(limits, estimate.low if lower_is_better else -estimate.high, comparison)
    relation = worst.relation + (f": a regression of {severity} severity" if severity else "")
    return worst._replace(sentence=sentence, relation=relation, max_drop=_find_allowed(limits), severity=severity)


def _decide_limit(gate: GateNode, limit: _Limit, estimate: GateEstimate, metric: Directed) -> BoundResult:
    """Whether the whole interval of a difference is within one limit. An undecided warning warns at most."""
    lower_is_better = metric.higher_is_better is False
    bound = limit.amount * (1 if lower_is_better else -1)
    outcome = decide(estimate, bound, below_is_bad=not lower_is_better, miss=limit.miss)
    written = f"{'+' if bound > 0 else '-'}{limit.shown}" if limit.share or metric.is_percent else f"{bound:+g}"
    said = f"the allowed {written}{limit.share}" if bound else "zero"
    relation = describe_decision(outcome, estimate, bound, said, below_is_bad=not lower_is_better)
    counts_as = weigh(gate, limit.miss) if outcome == "inconclusive" else None
    return BoundResult(outcome, "", relation, estimate.point, counts_as)


def _find_severity(limits: Iterable[_Limit], size: float, comparison: Comparison) -> DropSeverity | None:
    """The worst severity that a drop of this size has."""
    exceeded = [limit.severity for limit in limits if limit.severity and _is_exceeded(limit, size, comparison)]
    return exceeded[-1] if exceeded else None


def _is_exceeded(limit: _Limit, drop: float, comparison: Comparison) -> bool:
    """Whether a drop is larger than a limit, by more than the rounding of the two numbers that it lies between."""
    return _snap(drop, limit.amount, comparison) > limit.amount


def _snap(change: float, bound: float, comparison: Comparison) -> float:
    """The change; the bound, if the two differ by no more than the rounding of the numbers that it lies between."""
    scale = comparison.baseline_mean or 0.0
    return bound if arithmetic.is_level(change, bound, terms=comparison.queries, scale=scale) else change


def _describe_accepted(comparison: Comparison) -> str:
    return f", although {describe_changes(comparison.changes)}" if comparison.changes else ""


def _change(gate: GateNode, comparison: Comparison) -> float:
    """The number that `on:` selects."""
    if gate.on == "mean":
        return _snap(comparison.difference, 0.0, comparison)
    assert comparison.interval is not None
    return _snap(comparison.interval.low if gate.on == "lower" else comparison.interval.high, 0.0, comparison)


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


def _decide_by_drop(
    gate: GateNode, comparison: Comparison, cell_name: str, change: float, drop: float, shown: NumberFormat
) -> BoundResult:
    """Whether a drop is within the limits. A drop that `alpha` says is not significant warns at most."""
    limits = _list_limits(gate, comparison, drop, shown)
    misses = {limit.miss for limit in limits if _is_exceeded(limit, drop, comparison)}
    outcome: Verdict = "fail" if "fail" in misses else "warn" if "warn" in misses else "pass"
    relation = _describe_relation(gate, limits, drop, comparison)
    if gate.alpha is not None and not comparison.is_resolvable(gate.alpha):
        outcome = "inconclusive"
        relation = f"{relation}; {UNRESOLVABLE}: {describe_limit(comparison, gate.alpha)}".removeprefix("; ")
    elif outcome != "pass" and gate.alpha is not None and arithmetic.reaches(comparison.p_adjusted, gate.alpha):
        is_bounded = gate.max_drop is not None or gate.severities is not None
        outcome = "warn" if is_bounded else "pass"
        relation = f"{relation}: not significant".removeprefix(": ")
    sentence = _describe_change(gate, comparison, cell_name, change, relation, shown)
    counts_as = weigh(gate) if outcome == "inconclusive" else None
    severity = _find_severity(limits, drop, comparison)
    return BoundResult(outcome, *sentence, change, counts_as, _find_allowed(limits), severity)


def _describe_relation(gate: GateNode, limits: Sequence[_Limit], drop: float, comparison: Comparison) -> str:
    """The drop beside what the gate allows; "" if nothing dropped or any drop is too much."""
    if drop <= 0:
        return ""
    allowed = next((limit for limit in limits if gate.max_drop is not None and limit.severity is None), None)
    parts = []
    if allowed is not None:
        relation = "more than" if _is_exceeded(allowed, drop, comparison) else "within"
        parts.append(f"{relation} the allowed {allowed.told}")
    if severity := _find_severity(limits, drop, comparison):
        told = next(limit.told for limit in limits if limit.severity == severity)
        parts.append(f"a regression of {severity} severity, which begins at {told}")
    elif gate.severities is not None and allowed is None:
        parts.append(f"within {limits[0].told}, where {limits[0].severity} severity begins")
    return "; ".join(parts)


def _describe_change(
    gate: GateNode, comparison: Comparison, cell_name: str, change: float, relation: str, shown: NumberFormat
) -> tuple[str, str]:
    """The distance from the baseline, and its relation to what the gate allows."""
    size = _show_size(gate, comparison, change, shown)
    where = "" if gate.on == "mean" else f" at the {gate.on} end of the difference's interval"
    side = "level with" if change == 0 else f"{size} below" if change < 0 else f"{size} above"
    evidence = f"on {comparison.queries} shared queries ({ADJUSTED} {format_p_value(comparison.p_adjusted)})"
    return f"{cell_name} is {side} {gate.baseline}{where} {evidence}{_describe_accepted(comparison)}", relation


def _show_size(gate: GateNode, comparison: Comparison, change: float, shown: NumberFormat) -> str:
    """The distance, with enough digits to tell it from the allowed drop."""
    if gate.max_drop is None:
        return shown.change(abs(change), DIGITS)
    allowed = read_drop(gate.max_drop).resolve(comparison.baseline_mean or 0.0)
    return tell_apart(_snap(abs(change), allowed, comparison), allowed, shown.change)[0]


_MOST = 1_000_000
"""More queries than this are not worth naming."""
_ROUNDING = 1e-9
"""So that a whole number that rounding moved up by a little is not raised to the next one."""


class GateEstimate(NamedTuple):
    """A number with its interval, from `queries` queries; or from as many labels, for a number corrected by labels.

    `scale` is the size of the two numbers, if it is a difference. `range` is that of the values, `parts` how many
    independent queries of equal weight they are worth, and `confidence` the level of the interval.
    """

    point: float
    low: float
    high: float
    queries: int
    is_of_labels: bool = False
    scale: float = 0.0
    range: ValueRange | None = None
    parts: float = 0
    confidence: float = 0.95

    @classmethod
    def of(
        cls, of: Aggregate | Comparison, point: float, queries: int, of_values: ValueRange | None, scale: float = 0.0
    ) -> GateEstimate:
        """The estimate of a number with an interval, which is `point`; `of_values` is the range of its values."""
        assert of.interval is not None
        low, high, level = of.interval.low, of.interval.high, of.interval.confidence
        if of.correction is not None:
            labels = of.correction.labels
            return cls(point, low, high, labels, True, scale, of_values, labels, level)
        return cls(point, low, high, queries, False, scale, of_values, count_parts(of.design, queries), level)


def decide(estimate: GateEstimate, bound: float, *, below_is_bad: bool, miss: Counted) -> Verdict:
    """`pass` if the whole interval clears the bound, `miss` if none of it does, else `inconclusive`.

    A number that equals the bound clears it.
    """
    worst, best = (estimate.low, estimate.high) if below_is_bad else (-estimate.high, -estimate.low)
    least = bound if below_is_bad else -bound
    reaches = partial(arithmetic.reaches, terms=estimate.queries, scale=estimate.scale)
    if reaches(worst, least):
        return "pass"
    return "inconclusive" if reaches(best, least) else miss


def describe_decision(outcome: Verdict, estimate: GateEstimate, bound: float, limit: str, *, below_is_bad: bool) -> str:
    """Where the interval lies: `with the whole interval below the minimum 0.850`. `limit` is the bound in words."""
    if outcome == "inconclusive":
        return f"with {limit} inside the interval; {_describe_more(estimate, bound)}"
    is_above = (outcome == "pass") == below_is_bad
    side = ("at or above" if is_above else "at or below") if outcome == "pass" else ("above" if is_above else "below")
    return f"with the whole interval {side} {limit}"


def count_more(estimate: GateEstimate, bound: float) -> int | None:
    """How many more queries would decide, if their values varied as those seen do and had the same mean.

    None if that is more than a million.
    """
    end = estimate.low if bound < estimate.point else estimate.high
    parts = estimate.parts or estimate.queries
    needed = count_needed(estimate.point, end, parts, bound, estimate.range, estimate.confidence)
    if needed is None or (total := needed * estimate.queries / parts) > _MOST:
        return None
    return max(1, math.ceil(total * (1 - _ROUNDING)) - estimate.queries)


def _describe_more(estimate: GateEstimate, bound: float) -> str:
    more = count_more(estimate, bound)
    if more is None:
        noun = "labels" if estimate.is_of_labels else "queries"
        return f"the two are so close that no number of {noun} would decide"
    one, several = ("label", "labels") if estimate.is_of_labels else ("query", "queries")
    if estimate.range is not None and estimate.point in estimate.range:
        return f"if all others are like these, {_round(more):,} more {one if more == 1 else several} would decide"
    return f"at the variance seen, about {_round(more):,} more {one if more == 1 else several} would decide"


def _round(count: int) -> int:
    """Two significant digits, rounded up: the number is an estimate."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return math.ceil(count / unit) * unit
