"""Corrects aggregates and comparisons of judged metrics by what people said of some of the answers.

The table of values then has the columns `LABEL` and `LABEL_WEIGHT` of `data/outcomes.py`.

`correct_mean` of the differences of two systems needs questions with labels for both. Where few have them, because
people labelled answers to different questions, the corrected means of the two are subtracted. The judge's values are
of the same questions all the same, so the two are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from statistics import NormalDist
from typing import TYPE_CHECKING

from rageval_spec import kernels
from rageval_spec.data import outcomes
from rageval_spec.data.evaluation import Aggregate, Comparison
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.libraries import Floats, np, pl
from rageval_spec.statistics.aggregation import PairedTests, adjust
from rageval_spec.statistics.intervals import number_clusters
from rageval_spec.statistics.raters import corrected_means
from rageval_spec.statistics.raters.corrected_means import Side
from rageval_spec.statistics.raters.corrected_rankings import CorrectedCell, average_queries
from rageval_spec.statistics.weighted_clusters import Layout, add_up, lay_out, lay_out_clusters

if TYPE_CHECKING:
    from rageval_spec.data.datasets import Design


_FEWEST_CLUSTERS = 2


@dataclass(frozen=True, slots=True)
class Rule:
    """How a metric is corrected by the labels that the spec names `source`.

    `problem` is why its numbers cannot be corrected at all; None if that depends on the numbers. Labels of pairs have
    `cells`, by dataset and system.
    """

    source: str
    bounds: tuple[float, float]
    method: outcomes.UsedCorrection = "ppi"
    problem: str | None = None
    cells: Mapping[tuple[str, str], CorrectedCell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    """A corrected number, its p-value if it is a difference, and where it comes from."""

    value: float | None
    interval: outcomes.Interval | None
    correction: outcomes.Correction
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
    mean is never shown in their place. The aggregates are of the same values, which have the columns `label` and
    `label_weight` if there are rules. The designs of datasets hold for the corrected means too.
    """
    if not rules:
        return tuple(aggregates)
    cells = dict(outcomes.split_cells(take_rows(values, [*rules])))
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
    judged = outcomes.Correction(rule.method, one.mean, one.interval, None, None, 0, None, rule.source)
    scored = frame.filter(frame["status"] == "scored")
    layout, told = place_rows(design, scored, frame), one.design
    if rule.method == "imputation":
        found = _correct_ranking([one.cell], scored, layout, rule, (judged, confidence))
        told = told and replace(told, plain=None)
    else:
        found = _correct(LabelledRows.of(scored, layout), rule, rule.bounds, judged, confidence)
    if told is not None and told.plain is not None:
        plain = _correct(LabelledRows.of(scored), rule, rule.bounds, judged, confidence)
        told = replace(told, plain=plain.value)
    return replace(one, mean=found.value, interval=found.interval, correction=found.correction, design=told)


def correct_comparisons(
    compared: PairedTests,
    values: pl.DataFrame,
    rules: Mapping[str, Rule],
    confidence: float = 0.95,
    earlier: pl.DataFrame | None = None,
    designs: Mapping[str, Design] | None = None,
) -> PairedTests:
    """The comparisons, those of the metrics with rules corrected, and Holm's correction over all of them again.

    What people say of the difference is corrected as a mean is: the judge's difference on every question, the labels'
    difference on the questions with labels for both. Where these are too few, there is a note instead of a comparison.

    Systems are compared with the values of an `earlier` evaluation; without one, with another system of the same
    values. The other arguments are as in `correct_aggregates`.
    """
    if not rules or not any(one.metric in rules for one in compared.comparisons):
        return compared
    cells = dict(outcomes.split_cells(take_rows(values, [*rules])))
    bases = cells if earlier is None else dict(outcomes.split_cells(take_rows(earlier, [*rules])))
    kept, notes = [], [*compared.notes]
    for one in compared.comparisons:
        if one.metric not in rules:
            kept.append(one)
            continue
        own = replace(one.cell, slice=None)
        base = bases[replace(own, system=one.baseline if earlier is None else one.system)]
        rule = rules[one.metric]
        if rule.method == "imputation" and earlier is not None:
            rule = replace(rule, problem="labels of pairs compare systems of one evaluation; evaluate both in one spec")
        pair = LabelledPair(cells[own], base, (designs or {}).get(one.dataset))
        found = _correct_comparison(one, pair, rule, confidence)
        kept += [found] if isinstance(found, Comparison) else []
        notes += [found] if isinstance(found, outcomes.Note) else []
    return replace(compared, comparisons=adjust(kept), notes=tuple(notes))


def _correct_comparison(
    one: Comparison, pair: LabelledPair, rule: Rule, confidence: float
) -> Comparison | outcomes.Note:
    width = rule.bounds[1] - rule.bounds[0]
    judged = outcomes.Correction(rule.method, one.difference, one.interval, None, None, 0, None, rule.source)
    told = one.design
    if rule.method == "imputation":
        cells, told = [one.cell, replace(one.cell, system=one.baseline)], told and replace(told, plain=None)
        found, base = (_correct_ranking(of, *pair.shared, rule, (judged, confidence)) for of in (cells, cells[1:]))
    else:
        found = _correct(pair.differences, rule, (-width, width), judged, confidence, pair)
        base = _correct(pair.sides[1], rule, rule.bounds, judged, confidence)
    if found.value is None:
        subject = f"{one.metric} was not compared with {one.baseline}: " + (found.correction.reason or "")
        return outcomes.Note("too_few_labels", subject, one.dataset, one.system, found.correction.labels, "warning")
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
        limit=None,
    )


def _correct_ranking(
    cells: list[outcomes.Cell],
    rows: pl.DataFrame,
    at: Layout | None,
    rule: Rule,
    told: tuple[outcomes.Correction, float],
) -> _Found:
    """The corrected mean of a cell on the scored questions, or of the first cell minus the second."""
    judged, confidence = told
    ranked = [rule.cells[key] for one in cells if (key := (one.dataset, one.system)) in rule.cells]
    places = [[one.places[name] for name in rows["query_id"]] for one in ranked]
    labels = int(ranked[0].labels[places[0]].sum()) if ranked else 0
    layout, reason, (low, high) = at or lay_out_clusters(range(rows.height)), rule.problem, rule.bounds
    if labels < outcomes.FEWEST_LABELS or len(ranked) < len(cells):
        reason = reason or f"only {labels} judged pairs have labels, where at least {outcomes.FEWEST_LABELS} are needed"
    if layout.clusters < _FEWEST_CLUSTERS:
        reason = reason or "all scored questions belong to one cluster"
    if reason is not None:
        return _Found(None, None, replace(judged, labels=labels, reason=reason))
    own, *other = (one.numbers[:, at] for one, at in zip(ranked, places, strict=True))
    value, interval, p_value = average_queries(own - other[0] if other else own, layout, confidence)
    found = _Found(value, interval, replace(judged, labels=labels), p_value)
    return _clip(found, (low - high, high - low) if other else (low, high))


def _correct(
    rows: LabelledRows,
    rule: Rule,
    bounds: tuple[float, float],
    judged: outcomes.Correction,
    confidence: float,
    pair: LabelledPair | None = None,
) -> _Found:
    """The corrected mean of some rows; of the differences of a pair, if it is given."""
    labelled = replace(judged, labels=rows.count)
    is_apart = pair is not None and min(side.count for side in pair.sides) >= outcomes.FEWEST_LABELS
    is_apart = is_apart and pair is not None and (rule.method == "rogan_gladen" or pair.is_apart)
    counted = pair.sides if pair is not None and is_apart else (rows,)
    reason = rule.problem or _describe_lack(min(one.count for one in counted), is_pair=pair is not None)
    if reason is None and min(one.parts for one in counted) < _FEWEST_CLUSTERS:
        reason = "all labels belong to questions of one cluster"
    if reason is None and pair is not None and is_apart:
        return _correct_apart(pair, rule, bounds, labelled, confidence)
    if rows.count:
        alone = rows.correct(confidence, uses_others=False)
        if pair is None:
            alone = corrected_means.respect_bounds(alone, rows.labels, bounds, confidence)
        interval = alone.labelled_interval if reason is None else None
        labelled = replace(labelled, labelled=alone.labelled, labelled_interval=interval)
    if reason is not None:
        return _Found(None, None, replace(labelled, reason=reason))
    try:
        if rule.method == "rogan_gladen":
            return _correct_share_of_yes(rows, bounds, labelled, confidence)
        return _infer(rows, bounds, labelled, confidence, is_pair=pair is not None)
    except corrected_means.UncorrectableError as error:
        return _Found(None, None, replace(labelled, reason=str(error)))


def _correct_apart(
    pair: LabelledPair, rule: Rule, bounds: tuple[float, float], labelled: outcomes.Correction, confidence: float
) -> _Found:
    sides = pair.sides
    labelled = replace(labelled, labels=sum(side.count for side in sides), is_paired=False)
    try:
        if rule.method == "rogan_gladen":
            return _correct_shares(pair, bounds, labelled, confidence)
        if any(side.labels.min() == side.labels.max() for side in sides):
            raise corrected_means.UncorrectableError(
                "all labels of one of the two are the same; label the other system's answers to the same questions"
            )
    except corrected_means.UncorrectableError as error:
        return _Found(None, None, replace(labelled, reason=str(error)))
    found = pair.correct_apart(confidence)
    return _settle(found, bounds, replace(labelled, labelled=found.labelled))


def _describe_lack(count: int, *, is_pair: bool) -> str | None:
    if count >= outcomes.FEWEST_LABELS:
        return None
    noun, of_both = ("question", " for both") if is_pair else ("answer", "")
    how_many = {0: f"no {noun} has", 1: f"only 1 {noun} has"}.get(count, f"only {count} {noun}s have")
    return f"{how_many} labels{of_both}, where at least {outcomes.FEWEST_LABELS} are needed"


def _infer(
    rows: LabelledRows, bounds: tuple[float, float], labelled: outcomes.Correction, confidence: float, *, is_pair: bool
) -> _Found:
    """PPI++. Where all labels are the same, their spread is not known, and the interval is that of `bound_equal`."""
    if rows.labels.min() == rows.labels.max():
        value = float(rows.labels[0])
        interval, p_value = corrected_means.bound_equal(value, rows.effective, bounds, confidence)
        return _Found(value, interval, replace(labelled, labelled_interval=interval), p_value)
    found = rows.correct(confidence)
    if not is_pair:
        found = corrected_means.respect_bounds(found, rows.labels, bounds, confidence)
    return _settle(found, bounds, labelled)


def _settle(found: corrected_means.CorrectedMean, bounds: tuple[float, float], labelled: outcomes.Correction) -> _Found:
    correction = replace(labelled, labelled_interval=found.labelled_interval, worth=found.worth)
    t = abs(found.value) / found.error if found.error else math.inf if found.value else 0.0
    return _clip(_Found(found.value, found.interval, correction, kernels.student_p_value(t, found.degrees)), bounds)


def _correct_share_of_yes(
    rows: LabelledRows, bounds: tuple[float, float], labelled: outcomes.Correction, confidence: float
) -> _Found:
    share, alone = _correct_share(rows, confidence), labelled.labelled_interval
    worth = None if alone is None else labelled.labels * (_width(alone) / _width(share.interval)) ** 2
    return _clip(_Found(share.value, share.interval, replace(labelled, worth=worth)), bounds)


def _correct_shares(
    pair: LabelledPair, bounds: tuple[float, float], labelled: outcomes.Correction, confidence: float
) -> _Found:
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
    interval = outcomes.Interval(difference - half, difference + half, confidence, shares[0].interval.method)
    p_value = math.erfc(abs(difference) / error / math.sqrt(2))
    own, base = (float(side.labels.mean()) for side in pair.sides)
    labelled = replace(labelled, labelled=own - base)
    return _clip(_Found(difference, interval, labelled, p_value), bounds)


def _correct_share(rows: LabelledRows, confidence: float) -> corrected_means.CorrectedShare:
    return corrected_means.correct_share(
        rows.judged,
        rows.labels,
        rows.others,
        weights=rows.weights,
        clusters=rows.clusters,
        shares=rows.shares,
        confidence=confidence,
    )


def _width(interval: outcomes.Interval) -> float:
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


_MOSTLY = 0.75
"""From this share on, enough labelled answers have a counterpart for differences question by question."""


def place_rows(design: Design | None, scored: pl.DataFrame, asked: pl.DataFrame) -> Layout | None:
    """The layout of the scored questions of a cell; None without a design."""
    if design is None:
        return None
    return lay_out(design, scored["query_id"].to_list(), asked["query_id"].to_list())


def _read_side(frame: pl.DataFrame, suffix: str = "") -> Side:
    columns = (f"{name}{suffix}" for name in ("value", outcomes.LABEL, outcomes.LABEL_WEIGHT))
    return Side(*(frame[name].cast(float).fill_null(math.nan).to_numpy() for name in columns))


class LabelledRows:
    """The judge's values of some answers or questions, and what people say of those with labels.

    `clusters` and `shares` are what `correct_mean` takes, of the labelled rows and then the others; None without a
    design.
    """

    def __init__(self, answers: Side, layout: Layout | None = None) -> None:
        judged, labels, weights = answers if layout is None else (of[layout.rows] for of in answers)
        is_labelled = ~np.isnan(labels)
        self.judged, self.others = judged[is_labelled], judged[~is_labelled]
        self.labels, self.weights = labels[is_labelled], weights[is_labelled]
        self.is_labelled = is_labelled
        self.clusters: list[int] | None = None
        self.shares: Floats | None = None
        if layout is not None:
            self.clusters = np.concatenate([layout.members[is_labelled], layout.members[~is_labelled]]).tolist()
            if layout.is_weighted:
                self.shares = np.concatenate([layout.weights[is_labelled], layout.weights[~is_labelled]])

    @classmethod
    def of(cls, frame: pl.DataFrame, layout: Layout | None = None) -> LabelledRows:
        return cls(_read_side(frame), layout)

    def correct(self, confidence: float, *, uses_others: bool = True) -> corrected_means.CorrectedMean:
        """The corrected mean; that of the labels alone without the others."""
        count, others = self.count, self.others if uses_others else self.others[:0]
        clusters, shares = self.clusters, self.shares
        if shares is not None and not uses_others:
            shares = shares[:count] / shares[:count].sum()
        return corrected_means.correct_mean(
            self.judged,
            self.labels,
            others,
            weights=self.weights,
            clusters=None if clusters is None else clusters[:count],
            other_clusters=None if clusters is None else clusters[count:][: len(others)],
            shares=shares,
            confidence=confidence,
        )

    @property
    def parts(self) -> int:
        """How many independent parts the labelled rows have: their clusters."""
        return self.count if self.clusters is None else len(set(self.clusters[: self.count]))

    @property
    def effective(self) -> int:
        """How many labels of equal weight, each on its own, tell as much."""
        members = number_clusters(None if self.clusters is None else self.clusters[: self.count], self.count)
        return corrected_means.count_effective(
            self.weights if self.shares is None else self.weights * self.shares[: self.count], members
        )

    @property
    def count(self) -> int:
        return len(self.labels)


class LabelledPair:
    """The scored rows of a cell and of its baseline, on the queries that are scored in both."""

    def __init__(self, own: pl.DataFrame, base: pl.DataFrame, design: Design | None) -> None:
        scored = (of.filter(of["status"] == "scored") for of in (own, base))
        both = next(scored).join(next(scored), on="query_id", how="inner", suffix="_of_base").sort("query_id")
        self._layout = place_rows(design, both, own)
        self.shared = both, self._layout
        self._own, self._base = _read_side(both), _read_side(both, "_of_base")

    def add_up(self, parts: Floats) -> Floats:
        """What each cluster moves a number by, from what each question does; without a design, the same."""
        return parts if self._layout is None else add_up(self._layout.members, parts, self._layout.clusters)

    def drop_design(self) -> LabelledPair:
        plain = copy(self)
        plain._layout = None
        return plain

    @property
    def sides(self) -> tuple[LabelledRows, LabelledRows]:
        return LabelledRows(self._own, self._layout), LabelledRows(self._base, self._layout)

    @property
    def is_apart(self) -> bool:
        """Whether many labelled answers are to questions of which the other system's answer has no label."""
        return self.differences.count < _MOSTLY * max(side.count for side in self.sides)

    def correct_apart(self, confidence: float) -> corrected_means.CorrectedMean:
        layout = self._layout
        if layout is None:
            return corrected_means.correct_difference(self._own, self._base, confidence=confidence)
        own, base = (Side(*(column[layout.rows] for column in side)) for side in (self._own, self._base))
        clusters, shares = layout.members.tolist(), layout.weights if layout.is_weighted else None
        return corrected_means.correct_difference(own, base, clusters=clusters, shares=shares, confidence=confidence)

    @property
    def differences(self) -> LabelledRows:
        """The difference of each query. Its label counts as the rarer of the two would."""
        (value, label, weight), (base, base_label, base_weight) = self._own, self._base
        answers = Side(value - base, label - base_label, np.maximum(weight, base_weight))
        return LabelledRows(answers, self._layout)


def take_rows(values: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    wanted = values.filter(pl.col("metric").is_in(metrics))
    columns = (*outcomes.CELL, "query_id", "status", "value", outcomes.LABEL, outcomes.LABEL_WEIGHT)
    return wanted.select(*columns).sort(*outcomes.CELL, "query_id", maintain_order=True)
