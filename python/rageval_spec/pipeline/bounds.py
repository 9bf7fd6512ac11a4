"""Checks the bounds of a gate on the evaluation's own numbers: `min`, `max`, `target`, `at_least` and `min_scored`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeAlias

from rageval_spec.data.bands import Scale
from rageval_spec.data.drop import Severity
from rageval_spec.data.evaluation import Aggregate, Counted, Verdict
from rageval_spec.pipeline.certainty import Estimate, decide, describe_decision
from rageval_spec.pipeline.notes import lacks_most
from rageval_spec.spec.nodes import GateNode
from rageval_spec.statistics.percentiles import read_percentile
from rageval_spec.wording import DIGITS, format_interval, format_mean, format_number, format_percent, tell_apart

_NEGLIGIBLE = 1e-9
"""A share that is only a rounding error."""


class Finding(NamedTuple):
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
    severity: Severity | None = None


_Check: TypeAlias = Callable[..., Finding]


class _Subject(NamedTuple):
    """The number that `on:` selects, its name, and the number of digits to show."""

    name: str
    value: float
    digits: int


def check_bounds(gate: GateNode, cell: Aggregate, cell_name: str, lower_is_better: bool) -> Iterable[Finding]:
    """Check `min`, `max` and `target`."""
    check = _choose_check(gate, cell, cell_name)
    if isinstance(check, Finding):
        yield check
        return
    if gate.min is not None:
        yield check(gate.min, "minimum", below_is_bad=True, miss="fail")
    if gate.max is not None:
        yield check(gate.max, "maximum", below_is_bad=False, miss="fail")
    if gate.target is not None:
        yield check(gate.target, "target", below_is_bad=not lower_is_better, miss="warn")


def _choose_check(gate: GateNode, cell: Aggregate, cell_name: str) -> _Check | Finding:
    """How the gate checks a bound: `check(bound, kind, below_is_bad=, miss=)`; a finding if it cannot."""
    if gate.decide == "certain":
        if cell.interval is not None:
            return partial(_decide, gate, cell, cell_name)
        return _lack_interval("decide: certain", cell, cell_name)
    subject = _subject(gate, cell, cell_name)
    return _lack_interval(f"on: {gate.on}", cell, cell_name) if subject is None else partial(_compare, subject)


def _lack_interval(need: str, cell: Aggregate, cell_name: str) -> Finding:
    if cell.correction is not None:
        return Finding("fail", f"{cell_name} is {format_mean(cell)} and has no interval, which '{need}' needs")
    few = ", too few for this percentile" if read_percentile(cell.statistic) is not None else ""
    few = ", and all its questions belong to one cluster" if cell.design and cell.design.clusters == 1 else few
    lacking = f"has no interval, which '{need}' needs: {describe_scored(cell)}{few}"
    return Finding("fail", f"{cell_name} is {format_mean(cell)} and {lacking}")


def check_level(word: str, scale: Scale, gate: GateNode, cell: Aggregate, cell_name: str) -> Finding:
    """Whether a value is in the level `word` of its scale, or in a better one."""
    check = _choose_check(gate, cell, cell_name)
    if isinstance(check, Finding):
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


def _compare(subject: _Subject, bound: float, kind: str, *, below_is_bad: bool, miss: Counted) -> Finding:
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
    return Finding(outcome, f"{subject.name} is {seen}", f"{relation} the {kind} {shown}", value)


def _decide(
    gate: GateNode, cell: Aggregate, cell_name: str, bound: float, kind: str, *, below_is_bad: bool, miss: Counted
) -> Finding:
    """Whether the whole interval clears a bound. An undecided target warns at most."""
    assert cell.mean is not None and cell.interval is not None
    labels = None if cell.correction is None else cell.correction.labels
    ends, count = (cell.interval.low, cell.interval.high), cell.scored if labels is None else labels
    estimate = Estimate(cell.mean, *ends, count, is_of_labels=labels is not None)
    outcome = decide(estimate, bound, below_is_bad=below_is_bad, miss=miss)
    seen, shown = tell_apart(cell.mean, bound)
    sentence = f"{cell_name} is {seen} {format_interval(cell.interval)}"
    relation = describe_decision(outcome, estimate, bound, f"the {kind} {shown}", below_is_bad=below_is_bad)
    counts_as = gate.on_inconclusive or "warn"
    counts_as = "warn" if miss == "warn" and counts_as == "fail" else counts_as
    return Finding(outcome, sentence, relation, cell.mean, counts_as if outcome == "inconclusive" else None)


def describe_scored(cell: Aggregate) -> str:
    """`39 of 40 queries could be scored`."""
    return f"{cell.scored} of {cell.total} queries could be scored"


def check_scored(gate: GateNode, cell: Aggregate, cell_name: str) -> Iterable[Finding]:
    """Whether enough queries could be scored, for `min_scored`."""
    asked = cell.total - cell.excused
    share = cell.scored / asked if asked else 0.0
    if share < gate.min_scored:
        seen, required = tell_apart(share, gate.min_scored, format_percent, digits=1)
        seen += f" of the {asked} that can have a value" if cell.excused else ""
        required += " (min_scored)"
        yield Finding("fail", f"only {describe_scored(cell)} for {cell_name} ({seen}); the gate requires {required}")


def check_covered(cell: Aggregate, cell_name: str) -> Iterable[Finding]:
    """A warning if a part of production has no scored question, because the weighted mean says nothing about it."""
    if cell.design is not None and (share := cell.design.uncovered) > _NEGLIGIBLE:
        yield Finding(
            "warn", f"{cell_name} leaves out {format_percent(share)} of production, which has no scored question"
        )


def describe_weights(gate: GateNode, cell: Aggregate) -> str:
    """`; weighted, 0.840 if all questions count the same`; "" for a number without weights, or that they do not change.

    If the gate looks at something else than the mean, the plain number is said to be the mean.
    """
    if cell.design is None or cell.design.plain is None or cell.mean is None:
        return ""
    if math.isclose(cell.design.plain, cell.mean, rel_tol=1e-9):
        return ""
    plain = format_number(cell.design.plain)
    if gate.on != "mean" or gate.baseline is not None:
        return f"; weighted (if all questions count the same, the mean is {plain})"
    return f"; weighted, {plain} if all questions count the same"


def check_half(gate: GateNode, cell: Aggregate, cell_name: str) -> Iterable[Finding]:
    """A warning if most queries have no value, excused or not, because the mean describes only the rest.

    There is no warning if the gate sets `min_scored`, which states how few queries are enough.
    """
    share = cell.scored / cell.total
    if lacks_most(cell) and not ("min_scored" in gate.model_fields_set and share >= gate.min_scored):
        accept = f"if that is expected, add 'min_scored: {math.floor(100 * share) / 100:g}' to the gate"
        seen = f"{cell_name} is {format_mean(cell)}, but only {describe_scored(cell)} ({format_percent(share)})"
        yield Finding("warn", f"{seen}; {accept}")
