"""Checks the bounds of a gate, on the evaluation's own numbers and against a baseline.

The bounds on its own numbers are `min`, `max`, `target`, `at_least` and `min_scored`. `max_drop` says how far a
number may fall below a baseline; with `alpha`, a drop that is not significant warns at most. With `decide: certain`,
a whole interval must clear the bound. Where it does not, the number of further queries that would decide is
estimated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from rageval_spec import wording
from rageval_spec.data import arithmetic
from rageval_spec.data.bands import BandScale
from rageval_spec.data.datasets import CellDesign
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.data.outcomes import (
    Counted,
    Drop,
    DropSeverity,
    Verdict,
    rank_outcome,
    read_drop,
)
from rageval_spec.dataclass import dataclass
from rageval_spec.history.comparability import describe_changes
from rageval_spec.pipeline.values.answer_values import lacks_most
from rageval_spec.spec.blocks.gates import AllowedDrop, GateBound, GateNode
from rageval_spec.statistics import mean_intervals
from rageval_spec.statistics.mean_intervals import ValueRange
from rageval_spec.statistics.percentiles import read_percentile

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


def describe_scored(cell: Aggregate) -> str:
    """`39 of 40 queries could be scored`."""
    return f"{cell.scored} of {cell.total} queries could be scored"


def weigh(gate: GateNode, miss: Counted = "fail") -> Counted:
    """What an undecided bound counts as. One whose miss is a warning warns at most."""
    counts_as = gate.on_inconclusive or "warn"
    return "warn" if miss == "warn" and counts_as == "fail" else counts_as


_FEWEST = 2
"""The fewest values of which there is an interval."""


@dataclass(frozen=True)
class CellCheck:
    """Checks a gate on one cell, which `name` names in sentences."""

    gate: GateNode
    cell: Aggregate
    name: str
    metric: Directed

    @property
    def shown(self) -> wording.NumberFormat:
        """How the metric's numbers are written."""
        return wording.PERCENT if self.metric.is_percent else wording.PLAIN

    @property
    def _lower_is_better(self) -> bool:
        return self.metric.higher_is_better is False

    @property
    def _lacks_range(self) -> bool:
        return mean_intervals.lacks_range(self.metric, self.cell.statistic)

    def check_bounds(self, scale: BandScale | None) -> Iterable[BoundResult]:
        """Check `min`, `max`, `target` and `at_least`, which is a word of the metric's scale."""
        bounds = [*self.gate.list_bounds(lower_is_better=self._lower_is_better, scale=scale)]
        lacking = self._find_lack() if bounds else None
        yield from map(self._check, bounds) if lacking is None else (lacking,)

    def _find_lack(self) -> BoundResult | None:
        """The finding of a gate that needs an interval where the cell has none."""
        if self.gate.need is None or self.cell.interval is not None:
            return None
        seen = f"{self.name} is {wording.format_mean(self.cell, shown=self.shown)} and has no interval"
        return self._lack_interval(seen, self._explain_no_interval(describe_scored(self.cell)), self.cell.mean)

    def _lack_interval(self, seen: str, why: str, observed: float | None = None) -> BoundResult:
        return BoundResult(
            "inconclusive", f"{seen}, which '{self.gate.need}' needs: {why}", "", observed, weigh(self.gate)
        )

    def _explain_no_interval(self, told: str, what: str = "values") -> str:
        """Why a number, or a difference, has no interval; `told` says of how many queries it is."""
        cell = self.cell
        if cell.statistic == "sum":
            return f"it is a count; remove '{self.gate.need}'"
        if cell.statistic == "geometric mean" and what != "values":
            return "it is a geometric mean"
        if cell.design is not None and cell.design.clusters == 1:
            return f"{told}, and all belong to one cluster"
        if read_percentile(cell.statistic) is not None:
            return f"{told}, too few for this percentile"
        if cell.correction is not None:
            return "all labels belong to one cluster"
        if cell.scored < _FEWEST:
            return told
        why = f"{cell.metric} has no highest value, so they do not say what another one could be"
        if self._lacks_range:
            why = f"the lowest and highest value of {cell.metric} are not known; {mean_intervals.RANGE_ADVICE}"
        return f"all {what} are equal, and {why}"

    def _check(self, bound: GateBound) -> BoundResult:
        """Whether the number that the gate looks at, or its whole interval, clears a bound."""
        found = self._decide(bound) if self.gate.decide == "certain" else self._compare(bound)
        if self.gate.need is not None:
            found = self._need_range(found, bound.miss)
        if bound.scale is None:
            return found
        assert found.observed is not None
        level = bound.scale.find(found.observed, self.cell.scored).word
        return found._replace(sentence=f"{found.sentence} ({level})")

    def _need_range(self, found: BoundResult, miss: Counted = "fail") -> BoundResult:
        """The finding of an interval. That of a metric without a range can miss a bound, but not clear it."""
        if not self._lacks_range or found.outcome not in ("pass", "inconclusive"):
            return found
        relation = f"which shows too little, because the lowest and highest value of {self.cell.metric} are not known"
        relation += f"; {mean_intervals.RANGE_ADVICE}"
        return found._replace(outcome="inconclusive", relation=relation, counts_as=weigh(self.gate, miss))

    def _compare(self, bound: GateBound) -> BoundResult:
        name, value, digits = self._find_subject()
        is_level = arithmetic.is_level(value, bound.bound, terms=self.cell.scored)
        seen, shown = wording.tell_apart(bound.bound if is_level else value, bound.bound, self.shown.number, digits)
        missed = not is_level and (value < bound.bound) == bound.passes_above
        outside, inside = ("below", "at least") if bound.passes_above else ("above", "at most")
        relation = "exactly" if is_level else outside if missed else inside
        outcome: Verdict = bound.miss if missed else "pass"
        return BoundResult(outcome, f"{name} is {seen}", f"{relation} the {bound.kind} {shown}", value)

    def _find_subject(self) -> tuple[str, float, int]:
        """The name of the number that `on:` selects, the number, and how many digits to show."""
        interval = self.cell.interval
        if self.gate.need is None or interval is None:
            assert self.cell.mean is not None
            return self.name, self.cell.mean, 0 if self.cell.statistic == "sum" else wording.DIGITS
        name = f"the {self.gate.on} end of the {wording.format_percent(interval.confidence)} interval of {self.name}"
        return name, interval.low if self.gate.on == "lower" else interval.high, wording.DIGITS

    def _decide(self, bound: GateBound) -> BoundResult:
        """Whether the whole interval clears a bound. An undecided target warns at most."""
        cell, write = self.cell, self.shown.number
        assert cell.mean is not None and cell.interval is not None
        of_values = mean_intervals.list_bounds(self.metric) if cell.statistic == "mean" else None
        estimate = GateEstimate.of(cell, cell.mean, cell.scored, of_values)
        seen, shown = wording.tell_apart(cell.mean, bound.bound, write)
        found = self._place(estimate, bound._replace(kind=f"the {bound.kind} {shown}"))
        return found._replace(
            sentence=f"{self.name} is {seen} {wording.format_interval(cell.interval, formatter=write)}"
        )

    def _place(self, estimate: GateEstimate, bound: GateBound) -> BoundResult:
        """`pass` if the whole interval clears the bound, `miss` if none of it does, else `inconclusive`.

        A number that equals the bound clears it. The kind is the bound in words. The finding says where the interval
        lies, `with the whole interval below the minimum 0.850`, and has no sentence.
        """
        low, high, limit = estimate.low, estimate.high, bound.bound
        worst, best, least, inner, outer = low, high, limit, "above", "below"
        if not bound.passes_above:
            worst, best, least, inner, outer = -high, -low, -limit, "below", "above"
        reaches = partial(arithmetic.reaches, bound=least, terms=estimate.queries, scale=estimate.scale)
        if reaches(worst):
            return BoundResult("pass", "", f"with the whole interval at or {inner} {bound.kind}", estimate.point)
        if not reaches(best):
            return BoundResult(bound.miss, "", f"with the whole interval {outer} {bound.kind}", estimate.point)
        relation = f"with {bound.kind} inside the interval; {_describe_more(estimate, limit)}"
        return BoundResult("inconclusive", "", relation, estimate.point, weigh(self.gate, bound.miss))

    def check_scored(self) -> Iterable[BoundResult]:
        """Whether enough queries could be scored, for `min_scored`."""
        cell, least = self.cell, self.gate.min_scored
        asked = cell.total - cell.excused
        share = cell.scored / asked if asked else 0.0
        if not arithmetic.reaches(share, least):
            seen, required = wording.tell_apart(share, least, wording.format_percent, digits=1)
            seen += f" of the {asked} that can have a value" if cell.excused else ""
            told = f"only {describe_scored(cell)} for {self.name} ({seen}); the gate requires {required} (min_scored)"
            yield BoundResult("fail", told)

    def check_covered(self) -> Iterable[BoundResult]:
        """A warning if a part of production has no scored question: the weighted mean says nothing about it."""
        if self.cell.design is not None and (share := self.cell.design.uncovered) > _NEGLIGIBLE:
            told = f"{self.name} leaves out {wording.format_percent(share)} of production, which has no scored question"
            yield BoundResult("warn", told)

    def check_half(self) -> Iterable[BoundResult]:
        """A warning if most queries have no value, excused or not, because the mean describes only the rest.

        There is none for a metric of some queries, or if the gate sets `min_scored`: how few queries are enough.
        """
        cell, gate = self.cell, self.gate
        share = cell.scored / cell.total
        is_expected = "min_scored" in gate.model_fields_set and arithmetic.reaches(share, gate.min_scored)
        if not self.metric.is_partial and lacks_most(cell) and not is_expected:
            accept = f"if that is expected, add 'min_scored: {math.floor(100 * share) / 100:g}' to the gate"
            seen = f"{self.name} is {wording.format_mean(cell, shown=self.shown)}"
            seen += f", but only {describe_scored(cell)} ({wording.format_percent(share)})"
            yield BoundResult("warn", f"{seen}; {accept}")

    def describe_weights(self) -> str:
        """`; weighted (if all questions count the same, the mean is 0.840)`; "" if weights change nothing."""
        design, mean = self.cell.design, self.cell.mean
        if design is None or design.plain is None or mean is None or math.isclose(design.plain, mean, rel_tol=1e-9):
            return ""
        plain = self.shown.number(design.plain, wording.DIGITS)
        return f"; weighted (if all questions count the same, the mean is {plain})"

    def wait(self, lack: str) -> BoundResult:
        """An inconclusive finding until there is another baseline; how to record one if the gate lets none pass."""
        counts_as = weigh(self.gate)
        way_out = "; to record a first one that passes, run with --set 'gates=[]'" if counts_as == "fail" else ""
        return BoundResult("inconclusive", f"{self.name} {lack}{way_out}", counts_as=counts_as)

    def check_drop(self, comparison: Comparison | None) -> BoundResult:
        """Whether a number is at most as far below the gate's baseline as the gate allows.

        If lower values are better, the gate limits a rise. `comparison` is the cell's comparison with the baseline;
        None if there is none.
        """
        gate, name = self.gate, self.name
        if comparison is None:
            return BoundResult("fail", self._explain_no_comparison())
        if refused := [change for change in comparison.changes if change.part not in (gate.accept_changes or ())]:
            parts = ", ".join(dict.fromkeys(change.part for change in comparison.changes))
            sentence = f"{name} is not comparable with {gate.baseline}: {describe_changes(refused)}"
            sentence += f"; to compare all the same, write 'accept_changes: [{parts}]'"
            return BoundResult("inconclusive", sentence, "", comparison.difference, weigh(gate))
        if gate.need is not None and comparison.interval is None:
            seen = f"{name} has no interval of its difference from {gate.baseline}"
            shared = f"the two share {comparison.queries} queries"
            return self._lack_interval(seen, self._explain_no_interval(shared, "differences"))
        drop = _Drop(gate, self.cell, name, self.metric, comparison)
        found = drop.decide_by_interval() if gate.decide == "certain" else drop.decide_by_size()
        return self._need_range(found) if gate.need else found

    def _explain_no_comparison(self) -> str:
        cell, baseline = self.cell, self.gate.baseline
        if cell.statistic == "sum":
            return f"{self.name} is a count, which is not compared with {baseline}; use 'min' or 'max'"
        why = f"fewer than two queries have a value of {cell.metric} in both"
        if cell.correction is not None:
            why = f"too few questions have labels of '{cell.correction.source}' for both answers"
        return f"{self.name} could not be compared with {baseline}: {why}"


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


@dataclass(frozen=True)
class _Drop(CellCheck):
    """Checks how far a cell fell below the gate's baseline."""

    comparison: Comparison

    def decide_by_size(self) -> BoundResult:
        """Whether a drop is within the limits. A drop that `alpha` says is not significant warns at most."""
        gate, comparison, change = self.gate, self.comparison, self._find_change()
        drop = change if self._lower_is_better else -change
        limits = self._list_limits(drop)
        misses = {limit.miss for limit in limits if self._is_exceeded(limit, drop)}
        outcome: Verdict = "fail" if "fail" in misses else "warn" if "warn" in misses else "pass"
        relation = self._describe_relation(limits, drop)
        if gate.alpha is not None and not comparison.is_resolvable(gate.alpha):
            outcome = "inconclusive"
            relation = (
                f"{relation}; {wording.UNRESOLVABLE}: {wording.describe_limit(comparison, gate.alpha)}".removeprefix(
                    "; "
                )
            )
        elif outcome != "pass" and gate.alpha is not None and arithmetic.reaches(comparison.p_adjusted, gate.alpha):
            is_bounded = gate.max_drop is not None or gate.severities is not None
            outcome = "warn" if is_bounded else "pass"
            relation = f"{relation}: not significant".removeprefix(": ")
        where = "" if gate.on == "mean" else f" at the {gate.on} end of the difference's interval"
        evidence = f"({wording.ADJUSTED} {wording.format_p_value(comparison.p_adjusted)})"
        sentence = self._describe_side(change, self._show_size(change), where, evidence)
        counts_as = weigh(gate) if outcome == "inconclusive" else None
        severity = self._find_severity(limits, drop)
        return BoundResult(outcome, sentence, relation, change, counts_as, _find_allowed(limits), severity)

    def decide_by_interval(self) -> BoundResult:
        """Whether the whole interval of the difference is within the allowed drop.

        A severity is one that the whole interval has. A drop of low severity that is not certain warns at most.
        """
        comparison = self.comparison
        assert comparison.interval is not None
        change = self._snap(comparison.difference, 0.0)
        of_values = (
            mean_intervals.compute_difference_range(mean_intervals.list_bounds(self.metric))
            if self.cell.statistic == "mean"
            else None
        )
        estimate = GateEstimate.of(comparison, change, comparison.queries, of_values, comparison.baseline_mean or 0.0)
        limits = self._list_limits(abs(change))
        findings = [self._decide_limit(limit, estimate) for limit in limits if limit.miss != "pass"]
        worst = min(findings, key=lambda finding: rank_outcome(finding.outcome, finding.counts_as))
        interval = f"({wording.format_interval(comparison.interval, formatter=self.shown.change)} for the difference)"
        sentence = self._describe_side(change, self.shown.change(abs(change), wording.DIGITS), "", interval)
        severity = self._find_severity(limits, estimate.low if self._lower_is_better else -estimate.high)
        relation = worst.relation + (f": a regression of {severity} severity" if severity else "")
        return worst._replace(sentence=sentence, relation=relation, max_drop=_find_allowed(limits), severity=severity)

    def _decide_limit(self, limit: _Limit, estimate: GateEstimate) -> BoundResult:
        """Whether the whole interval of a difference is within one limit. An undecided warning warns at most."""
        bound = limit.amount if self._lower_is_better else -limit.amount
        is_written = limit.share or self.metric.is_percent
        written = f"{'+' if bound > 0 else '-'}{limit.shown}" if is_written else f"{bound:+g}"
        said = f"the allowed {written}{limit.share}" if bound else "zero"
        return self._place(estimate, GateBound(bound, not self._lower_is_better, limit.miss, said))

    def _list_limits(self, size: float) -> list[_Limit]:
        """What the gate allows, the smallest drop first; `size` is the drop that it is compared with."""
        return sorted((self._resolve(one, size) for one in self.gate.allowed_drops), key=lambda limit: limit.amount)

    def _resolve(self, allowed: AllowedDrop, size: float) -> _Limit:
        drop, base = allowed.drop, self.comparison.baseline_mean or 0.0
        amount = drop.resolve(base)
        share = f" ({drop} of {self.shown.number(abs(base), wording.DIGITS)})" if drop.is_share else ""
        share += ", so no drop is small enough; write the amount as a number" if drop.is_share and base == 0 else ""
        told = wording.tell_apart(self._snap(size, amount), amount, self.shown.change)[1]
        return _Limit(amount, allowed.miss, told, share, allowed.severity)

    def _find_severity(self, limits: Iterable[_Limit], size: float) -> DropSeverity | None:
        """The worst severity that a drop of this size has."""
        exceeded = [limit.severity for limit in limits if limit.severity and self._is_exceeded(limit, size)]
        return exceeded[-1] if exceeded else None

    def _is_exceeded(self, limit: _Limit, drop: float) -> bool:
        """Whether a drop is larger than a limit, by more than the rounding of the numbers that it lies between."""
        return self._snap(drop, limit.amount) > limit.amount

    def _snap(self, change: float, bound: float) -> float:
        """The change; the bound, if they differ by no more than the rounding of the numbers that it lies between."""
        scale = self.comparison.baseline_mean or 0.0
        return bound if arithmetic.is_level(change, bound, terms=self.comparison.queries, scale=scale) else change

    def _find_change(self) -> float:
        """The number that `on:` selects."""
        if self.gate.on == "mean":
            return self._snap(self.comparison.difference, 0.0)
        interval = self.comparison.interval
        assert interval is not None
        return self._snap(interval.low if self.gate.on == "lower" else interval.high, 0.0)

    def _describe_relation(self, limits: Sequence[_Limit], drop: float) -> str:
        """The drop beside what the gate allows; "" if nothing dropped or any drop is too much."""
        if drop <= 0:
            return ""
        gate = self.gate
        allowed = next((limit for limit in limits if gate.max_drop is not None and limit.severity is None), None)
        parts = []
        if allowed is not None:
            relation = "more than" if self._is_exceeded(allowed, drop) else "within"
            parts.append(f"{relation} the allowed {allowed.told}")
        if severity := self._find_severity(limits, drop):
            told = next(limit.told for limit in limits if limit.severity == severity)
            parts.append(f"a regression of {severity} severity, which begins at {told}")
        elif gate.severities is not None and allowed is None:
            parts.append(f"within {limits[0].told}, where {limits[0].severity} severity begins")
        return "; ".join(parts)

    def _describe_side(self, change: float, size: str, where: str, evidence: str) -> str:
        """The distance from the baseline: `ndcg@10 of dense is 0.020 below main on 40 shared queries (...)`."""
        side = "level with" if change == 0 else f"{size} {'below' if change < 0 else 'above'}"
        changes = self.comparison.changes
        accepted = f", although {describe_changes(changes)}" if changes else ""
        shared = f"on {self.comparison.queries} shared queries {evidence}{accepted}"
        return f"{self.name} is {side} {self.gate.baseline}{where} {shared}"

    def _show_size(self, change: float) -> str:
        """The distance, with enough digits to tell it from the allowed drop."""
        if self.gate.max_drop is None:
            return self.shown.change(abs(change), wording.DIGITS)
        allowed = read_drop(self.gate.max_drop).resolve(self.comparison.baseline_mean or 0.0)
        return wording.tell_apart(self._snap(abs(change), allowed), allowed, self.shown.change)[0]


def _find_allowed(limits: Iterable[_Limit]) -> float | None:
    """The largest drop with which the gate does not fail; None if it never fails."""
    return min((limit.amount for limit in limits if limit.miss == "fail"), default=None)


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
    return wording.format_points(drop.number, wording.ALL_DIGITS) if is_percent and not drop.is_share else str(drop)


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
        cls,
        of: Aggregate | Comparison,
        point: float,
        queries: int,
        of_values: ValueRange | None,
        scale: float = 0.0,
    ) -> GateEstimate:
        """The estimate of a number with an interval, which is `point`; `of_values` is the range of its values."""
        assert of.interval is not None
        low, high, level = of.interval.low, of.interval.high, of.interval.confidence
        if of.correction is not None:
            labels = of.correction.labels
            return cls(point, low, high, labels, True, scale, of_values, labels, level)
        return cls(point, low, high, queries, False, scale, of_values, count_parts(of.design, queries), level)


def count_parts(design: CellDesign | None, queries: int) -> float:
    """How many independent questions of equal weight an interval is from."""
    if design is None:
        return queries
    known = [number for number in (design.clusters, design.effective) if number is not None]
    return min(known, default=queries)


def count_more(estimate: GateEstimate, bound: float) -> int | None:
    """How many more queries would decide, if their values varied as those seen do and had the same mean.

    None if that is more than a million.
    """
    end = estimate.low if bound < estimate.point else estimate.high
    parts = estimate.parts or estimate.queries
    needed = mean_intervals.count_needed(estimate.point, end, parts, bound, estimate.range, estimate.confidence)
    if needed is None or (total := needed * estimate.queries / parts) > _MOST:
        return None
    return max(1, math.ceil(total * (1 - _ROUNDING)) - estimate.queries)


def _describe_more(estimate: GateEstimate, bound: float) -> str:
    one, several = ("label", "labels") if estimate.is_of_labels else ("query", "queries")
    more = count_more(estimate, bound)
    if more is None:
        return f"the two are so close that no number of {several} would decide"
    wanted = f"{_round(more):,} more {one if more == 1 else several} would decide"
    is_in_range = estimate.range is not None and estimate.point in estimate.range
    return f"if all others are like these, {wanted}" if is_in_range else f"at the variance seen, about {wanted}"


def _round(count: int) -> int:
    """Two significant digits, rounded up: the number is an estimate."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return math.ceil(count / unit) * unit
