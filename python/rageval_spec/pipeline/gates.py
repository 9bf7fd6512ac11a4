"""Gates: checks the bounds on aggregates, and writes the sentences that explain each outcome.

Numbers are compared without rounding; a sentence shows enough digits to see the difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from rageval_spec.data.bands import Scale
from rageval_spec.data.evaluation import (
    Aggregate,
    Comparison,
    Counted,
    GateOutcome,
    SliceResult,
    Verdict,
    rank_outcome,
)
from rageval_spec.pipeline.certainty import Estimate, decide, describe_decision
from rageval_spec.pipeline.notes import lacks_most
from rageval_spec.spec.nodes import GateNode
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.wording import (
    DIGITS,
    format_interval,
    format_mean,
    format_number,
    format_p_value,
    format_percent,
    tell_apart,
)

_MOST_NAMES_SHOWN = 12


class Directed(Protocol):
    """What a gate must know about a metric; `plugin.Metric` has these properties."""

    @property
    def higher_is_better(self) -> bool | None:
        """False for a metric whose low values are good; None if neither direction is good."""

    @property
    def is_partial(self) -> bool:
        """Whether the metric is meant for only some of the queries."""


class _Finding(NamedTuple):
    """The result of one bound: a sentence (`sentence`, then `relation` after a comma) and the number it looked at.

    `counts_as` is what an inconclusive finding counts as.
    """

    outcome: Verdict
    sentence: str
    relation: str = ""
    observed: float | None = None
    counts_as: Counted | None = None


_Check: TypeAlias = Callable[..., _Finding]


class _Subject(NamedTuple):
    """The number that `on:` selects, its name, and the number of digits to show."""

    name: str
    value: float
    digits: int


def check_gates(
    gates: Sequence[GateNode],
    aggregates: Sequence[Aggregate],
    metrics: Mapping[str, Directed],
    comparisons: Mapping[str, Sequence[Comparison]] | None = None,
    edits: Mapping[str, Mapping[str, object]] | None = None,
    bands: Mapping[str, Scale] | None = None,
    slices: Sequence[SliceResult] = (),
) -> tuple[GateOutcome, ...]:
    """Check every gate on every dataset and system that it names; a gate that names none checks all of them.

    Every gate has an outcome: a gate that finds nothing to check fails and says so. `observed` is the mean, or the end
    of the interval, that the bounds look at; for a gate that only checks a drop it is the difference from the baseline.

    `max_drop` looks at the mean difference over the queries for which both have a value (with `on: lower` or `upper`,
    at that end of its interval). If lower values are better, it limits a rise. Without `max_drop`, a gate with `alpha`
    fails on any significant drop, and a gate without `alpha` fails on any drop.

    Args:
        gates: the gates of the spec, in its order.
        aggregates: all cells of the evaluation.
        metrics: the metrics by name, for their direction.
        comparisons: for each `gate.baseline`, the comparisons of every system with it.
        edits: for each `gate.baseline` and dataset, how the data differ from the baseline's, as text; falsy if they do
            not differ.
        bands: the scale of each metric that has one, for `at_least`.
        slices: the slices of the evaluation, which gates can name.
    """
    checker = _Checker(aggregates, metrics, comparisons or {}, edits or {}, bands or {}, slices)
    return tuple(outcome for index, gate in enumerate(gates) for outcome in checker.check(index, gate))


class _Checker:
    def __init__(
        self,
        aggregates: Sequence[Aggregate],
        metrics: Mapping[str, Directed],
        comparisons: Mapping[str, Sequence[Comparison]],
        edits: Mapping[str, Mapping[str, object]],
        bands: Mapping[str, Scale],
        slices: Sequence[SliceResult],
    ) -> None:
        self.aggregates = aggregates
        self.metrics = metrics
        self.comparisons = comparisons
        self.edits = edits
        self.bands = bands
        self.slices = slices
        self.many_datasets = len({aggregate.dataset for aggregate in aggregates}) > 1

    def check(self, index: int, gate: GateNode) -> Iterable[GateOutcome]:
        cells = [aggregate for aggregate in self._list_aggregates(gate) if _concerns(gate, aggregate)]
        if not cells:
            yield self._nothing_to_check(index, gate)
        for cell in cells:
            yield self._outcome(index, gate, cell)

    def _list_aggregates(self, gate: GateNode) -> Iterable[Aggregate]:
        """The aggregates of all queries, or those of the slices that the gate names."""
        if gate.slice is None:
            return self.aggregates
        named = (one for one in self.slices if gate.slice in (one.name, one.by))
        return [aggregate for one in named for aggregate in one.aggregates]

    def _nothing_to_check(self, index: int, gate: GateNode) -> GateOutcome:
        where = f" of {gate.system}" if gate.system else ""
        where += f" on {gate.dataset}" if gate.dataset else ""
        reason = f"the evaluation has no {gate.metric}{where}, so the gate could not be checked"
        if gate.system is not None and gate.system == gate.baseline:
            reason = f"the gate on {gate.metric} compares {gate.system} with itself"
        elif gate.slice is not None and not self._has_slice(gate):
            reason = self._explain_no_slice(gate)
        where_to = (gate.dataset or "", gate.system or "", gate.metric)
        return GateOutcome(index, *where_to, "fail", describe_bound(gate), None, reason, gate.slice)

    def _has_slice(self, gate: GateNode) -> bool:
        return any(gate.slice in (one.name, one.by) and gate.dataset in (None, one.dataset) for one in self.slices)

    def _explain_no_slice(self, gate: GateNode) -> str:
        column = str(gate.slice).partition("=")[0]
        where = f" of {gate.dataset}" if gate.dataset else ""
        names = dict.fromkeys(
            one.name for one in self.slices if one.by == column and gate.dataset in (None, one.dataset)
        )
        known = [*names][:_MOST_NAMES_SHOWN] + (["..."] if len(names) > _MOST_NAMES_SHOWN else [])
        there = f"; the slices by '{column}' are {', '.join(known)}" if known else ""
        return (
            f"the evaluation has no slice {gate.slice}{where}, so the gate on {gate.metric} could not be checked{there}"
        )

    def _outcome(self, index: int, gate: GateNode, cell: Aggregate) -> GateOutcome:
        findings = list(self._findings(gate, cell))
        findings = findings or [_Finding("pass", f"{_scored(cell)} for {self._cell_name(cell)}")]
        worst = min(findings, key=lambda finding: rank_outcome(finding.outcome, finding.counts_as))
        reason = _join(finding for finding in findings if finding.outcome == worst.outcome)
        reason += self._describe_edits(gate, cell)
        observed = next((finding.observed for finding in findings if finding.observed is not None), None)
        where = (cell.dataset, cell.system, cell.metric)
        bound = describe_bound(gate)
        return GateOutcome(index, *where, worst.outcome, bound, observed, reason, cell.slice, worst.counts_as)

    def _findings(self, gate: GateNode, cell: Aggregate) -> Iterable[_Finding]:
        cell_name = self._cell_name(cell)
        if cell.mean is None:
            yield _Finding("fail", f"{cell_name} has no value: {_scored(cell)}")
            return
        lower_is_better = self.metrics[cell.metric].higher_is_better is False
        yield from _check_scored(gate, cell, cell_name)
        if not self.metrics[cell.metric].is_partial:
            yield from _check_half(gate, cell, cell_name)
        if (gate.min, gate.max, gate.target) != (None, None, None):
            yield from _check_bounds(gate, cell, cell_name, lower_is_better)
        if gate.at_least is not None:
            yield _check_level(gate.at_least, self.bands[cell.metric], gate, cell, cell_name)
        if gate.baseline is not None:
            yield self._check_drop(gate, cell, cell_name, lower_is_better)

    def _describe_edits(self, gate: GateNode, cell: Aggregate) -> str:
        """Edits of the data, which could explain a difference from the baseline as well as the system can."""
        edits = self.edits.get(gate.baseline or "", {}).get(cell.dataset)
        return f"; but the data differ from {gate.baseline}'s: {edits}" if edits else ""

    def _cell_name(self, cell: Aggregate) -> str:
        where = f" on {cell.dataset}" if self.many_datasets else ""
        return f"{cell.metric} of {cell.system}{where}" + (f" in the slice {cell.slice}" if cell.slice else "")

    def _check_drop(self, gate: GateNode, cell: Aggregate, cell_name: str, lower_is_better: bool) -> _Finding:
        found = (c for c in self.comparisons.get(gate.baseline or "", ()) if c.cell == cell.cell)
        comparison = next(found, None)
        if comparison is None:
            return _Finding("fail", _no_comparison(gate, cell, cell_name))
        if gate.decide == "certain":
            return _decide_drop(gate, comparison, cell_name, lower_is_better)
        change = _change(gate, comparison)
        if change is None:
            lacking = f"has no interval of its difference from {gate.baseline}, which 'on: {gate.on}' needs"
            return _Finding("fail", f"{cell_name} {lacking}")
        return _judge_drop(gate, comparison, cell_name, change, lower_is_better)


def describe_bound(gate: GateNode) -> str:
    """A gate's bounds in short: `≥ 0.4, target 0.55`, `lower end ≥ 0.85`, `drop from main ≤ 0.02 (p < 0.05)`."""
    end = "" if gate.on == "mean" else f"{gate.on} end "
    end = "whole interval " if gate.decide == "certain" else end
    parts = [
        f"{end}≥ {gate.min!r}" if gate.min is not None else "",
        f"{end}≤ {gate.max!r}" if gate.max is not None else "",
        f"{end}target {gate.target!r}" if gate.target is not None else "",
        f"{end}at least {gate.at_least}" if gate.at_least is not None else "",
        _describe_drop(gate) if gate.baseline is not None else "",
    ]
    return ", ".join(part for part in parts if part) or f"scored ≥ {format_percent(gate.min_scored)}"


def _describe_drop(gate: GateNode) -> str:
    end = "" if gate.on == "mean" else f"{gate.on} end "
    significance = "" if gate.alpha is None else f" (p < {gate.alpha!r})"
    significance = " (whole interval)" if gate.decide == "certain" else significance
    if gate.max_drop is None:
        return f"no {end}drop from {gate.baseline}{significance}"
    return f"{end}drop from {gate.baseline} ≤ {gate.max_drop!r}{significance}"


def _join(findings: Iterable[_Finding]) -> str:
    """Join all findings into one sentence; findings with the same beginning share it."""
    relations: dict[str, list[str]] = {}
    for finding in findings:
        relations.setdefault(finding.sentence, []).append(finding.relation)
    sentences = ((sentence, " and ".join(filter(None, said))) for sentence, said in relations.items())
    return "; ".join(f"{sentence}, {relation}" if relation else sentence for sentence, relation in sentences)


def _concerns(gate: GateNode, cell: Aggregate) -> bool:
    return (
        cell.metric == gate.metric
        and gate.system in (None, cell.system)
        and gate.dataset in (None, cell.dataset)
        and cell.system != gate.baseline
    )


def _scored(cell: Aggregate) -> str:
    return f"{cell.scored} of {cell.total} queries could be scored"


def _check_scored(gate: GateNode, cell: Aggregate, cell_name: str) -> Iterable[_Finding]:
    asked = cell.total - cell.excused
    share = cell.scored / asked if asked else 0.0
    if share < gate.min_scored:
        seen, required = tell_apart(share, gate.min_scored, format_percent, digits=1)
        seen += f" of the {asked} that can have a value" if cell.excused else ""
        required += " (min_scored)"
        yield _Finding("fail", f"only {_scored(cell)} for {cell_name} ({seen}); the gate requires {required}")


def _check_half(gate: GateNode, cell: Aggregate, cell_name: str) -> Iterable[_Finding]:
    """A warning if most queries have no value, excused or not, because the mean describes only the rest.

    There is no warning if the gate sets `min_scored`, which states how few queries are enough.
    """
    share = cell.scored / cell.total
    if lacks_most(cell) and not ("min_scored" in gate.model_fields_set and share >= gate.min_scored):
        accept = f"if that is expected, add 'min_scored: {math.floor(100 * share) / 100:g}' to the gate"
        seen = f"{cell_name} is {format_mean(cell)}, but only {_scored(cell)} ({format_percent(share)})"
        yield _Finding("warn", f"{seen}; {accept}")


def _check_bounds(gate: GateNode, cell: Aggregate, cell_name: str, lower_is_better: bool) -> Iterable[_Finding]:
    check = _choose_check(gate, cell, cell_name)
    if isinstance(check, _Finding):
        yield check
        return
    if gate.min is not None:
        yield check(gate.min, "minimum", below_is_bad=True, miss="fail")
    if gate.max is not None:
        yield check(gate.max, "maximum", below_is_bad=False, miss="fail")
    if gate.target is not None:
        yield check(gate.target, "target", below_is_bad=not lower_is_better, miss="warn")


def _choose_check(gate: GateNode, cell: Aggregate, cell_name: str) -> _Check | _Finding:
    """How the gate checks a bound: `check(bound, kind, below_is_bad=, miss=)`; a finding if it cannot."""
    if gate.decide == "certain":
        if cell.interval is not None:
            return partial(_decide, gate, cell, cell_name)
        return _lack_interval("decide: certain", cell, cell_name)
    subject = _subject(gate, cell, cell_name)
    return _lack_interval(f"on: {gate.on}", cell, cell_name) if subject is None else partial(_compare, subject)


def _lack_interval(need: str, cell: Aggregate, cell_name: str) -> _Finding:
    few = ", too few for this percentile" if read_percentile(cell.statistic) is not None else ""
    lacking = f"has no interval, which '{need}' needs: {_scored(cell)}{few}"
    return _Finding("fail", f"{cell_name} is {format_mean(cell)} and {lacking}")


def _check_level(word: str, scale: Scale, gate: GateNode, cell: Aggregate, cell_name: str) -> _Finding:
    """Whether a value is in the level `word` of its scale, or in a better one."""
    check = _choose_check(gate, cell, cell_name)
    if isinstance(check, _Finding):
        return check
    bound = scale.bound_of(word)
    assert bound is not None, "the spec's check refuses the level without a bound"
    kind = f"level {word}" + ("" if scale.name == "custom" else f" ({scale.name})") + ", which starts at"
    finding = check(bound, kind, below_is_bad=not scale.lower_is_better, miss="fail")
    assert finding.observed is not None
    return finding._replace(sentence=f"{finding.sentence} ({scale.find(finding.observed).word})")


def _subject(gate: GateNode, cell: Aggregate, cell_name: str) -> _Subject | None:
    digits = 0 if cell.statistic == "sum" else DIGITS
    if gate.on == "mean" and cell.mean is not None:
        return _Subject(cell_name, cell.mean, digits)
    if cell.interval is None:
        return None
    name = f"the {gate.on} end of the {format_percent(cell.interval.confidence)} interval of {cell_name}"
    return _Subject(name, cell.interval.low if gate.on == "lower" else cell.interval.high, digits)


def _compare(subject: _Subject, bound: float, kind: str, *, below_is_bad: bool, miss: Counted) -> _Finding:
    value = subject.value
    seen, shown = tell_apart(value, bound, digits=subject.digits)
    missed = value < bound if below_is_bad else value > bound
    if missed:
        relation = "below" if below_is_bad else "above"
    elif value == bound:
        relation = "exactly"
    else:
        relation = "at least" if below_is_bad else "at most"
    outcome: Verdict = miss if missed else "pass"
    return _Finding(outcome, f"{subject.name} is {seen}", f"{relation} the {kind} {shown}", value)


def _decide(
    gate: GateNode, cell: Aggregate, cell_name: str, bound: float, kind: str, *, below_is_bad: bool, miss: Counted
) -> _Finding:
    """Whether the whole interval clears a bound. An undecided target warns at most."""
    assert cell.mean is not None and cell.interval is not None
    estimate = Estimate(cell.mean, cell.interval.low, cell.interval.high, cell.scored)
    outcome = decide(estimate, bound, below_is_bad=below_is_bad, miss=miss)
    seen, shown = tell_apart(cell.mean, bound)
    sentence = f"{cell_name} is {seen} {format_interval(cell.interval)}"
    relation = describe_decision(outcome, estimate, bound, f"the {kind} {shown}", below_is_bad=below_is_bad)
    counts_as = gate.on_inconclusive or "warn"
    counts_as = "warn" if miss == "warn" and counts_as == "fail" else counts_as
    return _Finding(outcome, sentence, relation, cell.mean, counts_as if outcome == "inconclusive" else None)


def _decide_drop(gate: GateNode, comparison: Comparison, cell_name: str, lower_is_better: bool) -> _Finding:
    """Whether the whole interval of the difference is within the allowed drop."""
    if comparison.interval is None:
        lacking = f"has no interval of its difference from {gate.baseline}, which 'decide: certain' needs"
        return _Finding("fail", f"{cell_name} {lacking}")
    ends = comparison.interval.low, comparison.interval.high
    change = comparison.difference
    estimate = Estimate(change, *ends, comparison.queries)
    bound = (gate.max_drop or 0.0) * (1 if lower_is_better else -1)
    outcome = decide(estimate, bound, below_is_bad=not lower_is_better, miss="fail")
    side = "level with" if change == 0 else f"{format_number(abs(change))} {'below' if change < 0 else 'above'}"
    interval = f"{format_interval(comparison.interval)} for the difference"
    sentence = f"{cell_name} is {side} {gate.baseline} on {comparison.queries} shared queries ({interval})"
    limit = f"the allowed {bound:+g}" if bound else "zero"
    relation = describe_decision(outcome, estimate, bound, limit, below_is_bad=not lower_is_better)
    counts_as = gate.on_inconclusive or "warn"
    return _Finding(outcome, sentence, relation, change, counts_as if outcome == "inconclusive" else None)


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
) -> _Finding:
    drop = change if lower_is_better else -change
    sentence, relation = _describe_change(gate, comparison, cell_name, change, drop)
    if drop <= (gate.max_drop or 0.0):
        return _Finding("pass", sentence, relation, change)
    if gate.alpha is not None and comparison.p_adjusted >= gate.alpha:
        outcome: Verdict = "pass" if gate.max_drop is None else "warn"
        return _Finding(outcome, sentence, f"{relation}: not significant".removeprefix(": "), change)
    return _Finding("fail", sentence, relation, change)


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
    evidence = f"on {comparison.queries} shared queries ({format_p_value(comparison.p_adjusted)})"
    return f"{cell_name} is {side} {gate.baseline}{where} {evidence}", allowed
