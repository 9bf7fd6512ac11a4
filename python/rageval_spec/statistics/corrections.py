"""Corrects the aggregates and comparisons of judged metrics by what people said of some of the answers.

The table of values then has the columns `LABEL` and `LABEL_WEIGHT` of `data/correction.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from rageval_spec.data.cell import split_cells
from rageval_spec.data.correction import FEWEST_LABELS, Correction, CorrectionMethod
from rageval_spec.data.evaluation import Aggregate, Comparison, Interval
from rageval_spec.data.note import Note
from rageval_spec.statistics.edges import bound_equal, respect_bounds
from rageval_spec.statistics.families import adjust
from rageval_spec.statistics.labelled import LabelledPair, LabelledRows, place_rows, take_rows
from rageval_spec.statistics.misclassified import CorrectedShare, UncorrectableError, correct_share
from rageval_spec.statistics.regression import find_p_value

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.statistics.aggregate import Comparisons

_FEWEST_CLUSTERS = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """How a metric is corrected.

    Attributes:
        source: the name of its labels in the spec.
        bounds: the lowest and the highest possible value.
        method: how its numbers are corrected.
        problem: why they cannot be corrected at all; None if that depends on the numbers.
    """

    source: str
    bounds: tuple[float, float]
    method: CorrectionMethod = "ppi"
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """A corrected number, its p-value if it is a difference, and where it comes from."""

    value: float | None
    interval: Interval | None
    correction: Correction
    p_value: float = 1.0


def correct_aggregates(
    aggregates: Sequence[Aggregate],
    values: pl.DataFrame,
    rules: Mapping[str, Rule],
    confidence: float = 0.95,
    designs: Mapping[str, Design] | None = None,
) -> tuple[Aggregate, ...]:
    """The aggregates, those of the metrics with rules corrected; `correction` says where each comes from.

    Where there are too few labels, the mean and its interval are None, and the correction has the reason: the judge's
    mean is never shown in their place.

    Args:
        aggregates: from `aggregate`, of the same values.
        values: the values, with the columns `label` and `label_weight` if there are rules.
        rules: how each metric that has labels is corrected.
        confidence: the level of the intervals.
        designs: the designs of datasets whose questions belong together or count differently. They hold for the
            corrected means too.
    """
    if not rules:
        return tuple(aggregates)
    cells = dict(split_cells(take_rows(values, [*rules])))
    return tuple(
        _correct_aggregate(one, cells.get(one.cell), rules, confidence, (designs or {}).get(one.dataset))
        for one in aggregates
    )


def _correct_aggregate(
    one: Aggregate,
    frame: pl.DataFrame | None,
    rules: Mapping[str, Rule],
    confidence: float,
    design: Design | None,
) -> Aggregate:
    rule = rules.get(one.metric)
    if rule is None or one.mean is None or frame is None:
        return one
    judged = Correction(rule.method, one.mean, one.interval, None, None, 0, None, rule.source)
    scored = frame.filter(frame["status"] == "scored")
    labelled = LabelledRows.of(scored, place_rows(design, scored, frame))
    found = _correct(labelled, rule, rule.bounds, judged, confidence)
    told = one.design
    if told is not None and told.plain is not None:
        plain = _correct(LabelledRows.of(scored), rule, rule.bounds, judged, confidence)
        told = replace(told, plain=plain.value)
    return replace(one, mean=found.value, interval=found.interval, correction=found.correction, design=told)


def correct_comparisons(
    compared: Comparisons,
    values: pl.DataFrame,
    rules: Mapping[str, Rule],
    confidence: float = 0.95,
    earlier: pl.DataFrame | None = None,
    designs: Mapping[str, Design] | None = None,
) -> Comparisons:
    """The comparisons, those of the metrics with rules corrected, and Holm's correction over all of them again.

    What people say of the difference is corrected as a mean is: the judge's difference on every question, the labels'
    difference on the questions with labels for both. Where these are too few, there is a note instead of a comparison.

    Args:
        compared: from `compare_systems` or `compare_evaluations`, of the same values.
        values, rules, confidence, designs: as in `correct_aggregates`.
        earlier: the values of the earlier evaluation that systems are compared with; None if they are compared with
            another system of the same values.
    """
    if not rules or not any(one.metric in rules for one in compared.comparisons):
        return compared
    cells = dict(split_cells(take_rows(values, [*rules])))
    bases = cells if earlier is None else dict(split_cells(take_rows(earlier, [*rules])))
    kept, notes = [], [*compared.notes]
    for one in compared.comparisons:
        if one.metric not in rules:
            kept.append(one)
            continue
        own = replace(one.cell, slice=None)
        base = bases[replace(own, system=one.baseline if earlier is None else one.system)]
        pair = LabelledPair(cells[own], base, (designs or {}).get(one.dataset))
        found = _correct_comparison(one, pair, rules[one.metric], confidence)
        kept += [found] if isinstance(found, Comparison) else []
        notes += [found] if isinstance(found, Note) else []
    return replace(compared, comparisons=adjust(kept), notes=tuple(notes))


def _correct_comparison(one: Comparison, pair: LabelledPair, rule: Rule, confidence: float) -> Comparison | Note:
    width = rule.bounds[1] - rule.bounds[0]
    judged = Correction(rule.method, one.difference, one.interval, None, None, 0, None, rule.source)
    found = _correct(pair.differences, rule, (-width, width), judged, confidence, pair)
    if found.value is None:
        subject = f"{one.metric} was not compared with {one.baseline}: " + (found.correction.reason or "")
        return Note("too_few_labels", subject, one.dataset, one.system, found.correction.labels, "warning")
    base = _correct(pair.sides[1], rule, rule.bounds, judged, confidence)
    told = one.design
    if told is not None and told.plain is not None:
        plain = pair.drop_design()
        told = replace(told, plain=_correct(plain.differences, rule, (-width, width), judged, confidence, plain).value)
    return replace(
        one,
        design=told,
        difference=found.value,
        interval=found.interval,
        p_value=found.p_value,
        p_adjusted=found.p_value,
        baseline_mean=base.value,
        correction=found.correction,
    )


def _correct(
    rows: LabelledRows,
    rule: Rule,
    bounds: tuple[float, float],
    judged: Correction,
    confidence: float,
    pair: LabelledPair | None = None,
) -> _Found:
    """The corrected mean of some rows; of the differences of a pair, if it is given."""
    labelled = replace(judged, labels=rows.count)
    is_apart = pair is not None and min(side.count for side in pair.sides) >= FEWEST_LABELS
    is_apart = is_apart and pair is not None and (rule.method == "rogan_gladen" or pair.is_apart)
    counted = pair.sides if pair is not None and is_apart else (rows,)
    reason = rule.problem or _find_lack(min(one.count for one in counted), is_pair=pair is not None)
    if reason is None and min(one.parts for one in counted) < _FEWEST_CLUSTERS:
        reason = "all labels belong to questions of one cluster"
    if reason is None and pair is not None and is_apart:
        return _correct_apart(pair, rule, bounds, labelled, confidence)
    if rows.count:
        alone = rows.correct(confidence, uses_others=False)
        if pair is None:
            alone = respect_bounds(alone, rows.labels, bounds, confidence)
        interval = alone.labelled_interval if reason is None else None
        labelled = replace(labelled, labelled=alone.labelled, labelled_interval=interval)
    if reason is not None:
        return _Found(None, None, replace(labelled, reason=reason))
    try:
        if rule.method == "rogan_gladen":
            return _correct_share_of_yes(rows, bounds, labelled, confidence)
        return _infer(rows, bounds, labelled, confidence, is_pair=pair is not None)
    except UncorrectableError as error:
        return _Found(None, None, replace(labelled, reason=str(error)))


def _correct_apart(
    pair: LabelledPair, rule: Rule, bounds: tuple[float, float], labelled: Correction, confidence: float
) -> _Found:
    """The difference of two numbers that are corrected each by its own labels."""
    sides = pair.sides
    labelled = replace(labelled, labels=sum(side.count for side in sides), is_paired=False)
    try:
        if rule.method == "rogan_gladen":
            return _correct_shares(pair, bounds, labelled, confidence)
        if any(side.labels.min() == side.labels.max() for side in sides):
            raise UncorrectableError(
                "all labels of one of the two are the same; label the other system's answers to the same questions"
            )
    except UncorrectableError as error:
        return _Found(None, None, replace(labelled, reason=str(error)))
    found = pair.correct_apart(confidence)
    correction = replace(
        labelled, labelled=found.labelled, labelled_interval=found.labelled_interval, worth=found.worth
    )
    t = abs(found.value) / found.error if found.error else math.inf
    return _clip(_Found(found.value, found.interval, correction, find_p_value(t, found.degrees)), bounds)


def _find_lack(count: int, *, is_pair: bool) -> str | None:
    if count >= FEWEST_LABELS:
        return None
    noun, of_both = ("question", " for both") if is_pair else ("answer", "")
    how_many = {0: f"no {noun} has", 1: f"only 1 {noun} has"}.get(count, f"only {count} {noun}s have")
    return f"{how_many} labels{of_both}, where at least {FEWEST_LABELS} are needed"


def _infer(
    rows: LabelledRows, bounds: tuple[float, float], labelled: Correction, confidence: float, *, is_pair: bool
) -> _Found:
    """PPI++. Where all labels are the same, their spread is not known, and the interval is that of `bound_equal`."""
    if rows.labels.min() == rows.labels.max():
        value = float(rows.labels[0])
        interval, p_value = bound_equal(value, rows.effective, bounds, confidence)
        return _Found(value, interval, replace(labelled, labelled_interval=interval), p_value)
    found = rows.correct(confidence)
    if not is_pair:
        found = respect_bounds(found, rows.labels, bounds, confidence)
    correction = replace(labelled, labelled_interval=found.labelled_interval, worth=found.worth)
    t = abs(found.value) / found.error if found.error else math.inf
    return _clip(_Found(found.value, found.interval, correction, find_p_value(t, found.degrees)), bounds)


def _correct_share_of_yes(
    rows: LabelledRows, bounds: tuple[float, float], labelled: Correction, confidence: float
) -> _Found:
    """Rogan and Gladen's correction."""
    share, alone = _correct_share(rows, confidence), labelled.labelled_interval
    worth = None if alone is None else labelled.labels * (_width(alone) / _width(share.interval)) ** 2
    return _clip(_Found(share.value, share.interval, replace(labelled, worth=worth)), bounds)


def _correct_shares(pair: LabelledPair, bounds: tuple[float, float], labelled: Correction, confidence: float) -> _Found:
    """The difference of two shares with Rogan and Gladen's correction."""
    import numpy as np

    parts, shares = [], []
    for one in pair.sides:
        shares.append(_correct_share(one, confidence))
        placed = np.empty(len(one.is_labelled))
        placed[one.is_labelled], placed[~one.is_labelled] = np.split(shares[-1].parts, [one.count])
        parts.append(placed)
    difference = shares[0].value - shares[1].value
    moved = pair.add_up(parts[0] - parts[1])
    error = math.sqrt(float((moved**2).sum()) + shares[0].added + shares[1].added)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    interval = Interval(difference - half, difference + half, confidence, shares[0].interval.method)
    p_value = math.erfc(abs(difference) / error / math.sqrt(2))
    own, base = (float(side.labels.mean()) for side in pair.sides)
    labelled = replace(labelled, labelled=own - base)
    return _clip(_Found(difference, interval, labelled, p_value), bounds)


def _correct_share(rows: LabelledRows, confidence: float) -> CorrectedShare:
    try:
        return correct_share(
            rows.judged,
            rows.labels,
            rows.others,
            weights=rows.weights,
            clusters=rows.clusters,
            shares=rows.shares,
            confidence=confidence,
        )
    except UncorrectableError:
        raise
    except ValueError:
        raise UncorrectableError(
            "Rogan and Gladen's correction needs values and labels that are yes or no (1 or 0); where annotators "
            "disagree, adjudicate; or write 'correction: ppi'"
        ) from None


def _width(interval: Interval) -> float:
    return interval.high - interval.low


def _clip(found: _Found, bounds: tuple[float, float]) -> _Found:
    """The number and its interval within the bounds, which lose nothing: no mean lies outside them."""
    assert found.value is not None and found.interval is not None
    low, high = bounds
    value = min(max(found.value, low), high)
    lower, upper = (min(max(end, low), high) for end in (found.interval.low, found.interval.high))
    interval = replace(found.interval, low=lower, high=upper)
    if (value, interval) == (found.value, found.interval):
        return found
    return replace(found, value=value, interval=interval, correction=replace(found.correction, is_clipped=True))
