"""Corrects the aggregates and comparisons of judged metrics by what people said of some of the answers.

The table of values then has the columns `LABEL` and `LABEL_WEIGHT` of `data/correction.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from rageval_spec.data.cell import CELL, split_cells
from rageval_spec.data.correction import FEWEST_LABELS, LABEL, LABEL_WEIGHT, Correction, CorrectionMethod
from rageval_spec.data.evaluation import Aggregate, Comparison, Interval
from rageval_spec.data.note import Note
from rageval_spec.statistics.corrected import CorrectedMean, correct_mean, count_effective
from rageval_spec.statistics.families import adjust
from rageval_spec.statistics.layout import Layout, add_up, lay_out
from rageval_spec.statistics.misclassified import CorrectedShare, UncorrectableError, correct_share
from rageval_spec.statistics.regression import find_p_value
from rageval_spec.statistics.resampling import number_clusters

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.statistics.aggregate import Comparisons
    from rageval_spec.statistics.resampling import Floats

_FEWEST_CLUSTERS = 2
ALL_EQUAL = "all-equal"
"""The method of an interval where all labels are the same."""


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
    cells = dict(split_cells(_take(values, [*rules])))
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
    labelled = _Labelled.of(scored, _place(design, scored, frame))
    found = _correct(labelled, rule, rule.bounds, judged, confidence)
    told = one.design
    if told is not None and told.plain is not None:
        plain = _correct(_Labelled.of(scored), rule, rule.bounds, judged, confidence)
        told = replace(told, plain=plain.value)
    return replace(one, mean=found.value, interval=found.interval, correction=found.correction, design=told)


def _place(design: Design | None, scored: pl.DataFrame, asked: pl.DataFrame) -> Layout | None:
    """The layout of the scored questions of a cell; None without a design."""
    if design is None:
        return None
    return lay_out(design, scored["query_id"].to_list(), asked["query_id"].to_list())


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
    cells = dict(split_cells(_take(values, [*rules])))
    bases = cells if earlier is None else dict(split_cells(_take(earlier, [*rules])))
    kept, notes = [], [*compared.notes]
    for one in compared.comparisons:
        if one.metric not in rules:
            kept.append(one)
            continue
        own = replace(one.cell, slice=None)
        base = bases[replace(own, system=one.baseline if earlier is None else one.system)]
        pair = _Pair(cells[own], base, (designs or {}).get(one.dataset))
        found = _correct_comparison(one, pair, rules[one.metric], confidence)
        kept += [found] if isinstance(found, Comparison) else []
        notes += [found] if isinstance(found, Note) else []
    return replace(compared, comparisons=adjust(kept), notes=tuple(notes))


def _correct_comparison(one: Comparison, pair: _Pair, rule: Rule, confidence: float) -> Comparison | Note:
    width = rule.bounds[1] - rule.bounds[0]
    judged = Correction(rule.method, one.difference, one.interval, None, None, 0, None, rule.source)
    differences = pair.differences
    found = _correct(differences, rule, (-width, width), judged, confidence, pair)
    if found.value is None:
        subject = f"{one.metric} was not compared with {one.baseline}: " + (found.correction.reason or "")
        return Note("too_few_labels", subject, one.dataset, one.system, differences.count, "warning")
    base = _correct(pair.base_rows, rule, rule.bounds, judged, confidence)
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


class _Labelled:
    """The judge's values of some answers or questions, and what people say of those with labels.

    `clusters` and `shares` are what `correct_mean` takes, of the labelled rows and then the others; None without a
    design.
    """

    def __init__(self, judged: Floats, labels: Floats, weights: Floats, *, layout: Layout | None = None) -> None:
        import numpy as np

        if layout is not None:
            judged, labels, weights = (of[layout.rows] for of in (judged, labels, weights))
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
    def of(cls, frame: pl.DataFrame, layout: Layout | None = None) -> _Labelled:
        columns = ("value", LABEL, LABEL_WEIGHT)
        return cls(*(frame[name].cast(float).fill_null(math.nan).to_numpy() for name in columns), layout=layout)

    def correct(self, confidence: float, *, uses_others: bool = True) -> CorrectedMean:
        """The corrected mean; that of the labels alone without the others."""
        count, others = self.count, self.others if uses_others else self.others[:0]
        clusters, shares = self.clusters, self.shares
        if shares is not None and not uses_others:
            shares = shares[:count] / shares[:count].sum()
        return correct_mean(
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
        return count_effective(
            self.weights if self.shares is None else self.weights * self.shares[: self.count], members
        )

    @property
    def count(self) -> int:
        """How many have labels."""
        return len(self.labels)


class _Pair:
    """The scored rows of a cell and of its baseline, on the queries that are scored in both."""

    def __init__(self, own: pl.DataFrame, base: pl.DataFrame, design: Design | None) -> None:
        scored = (of.filter(of["status"] == "scored") for of in (own, base))
        both = next(scored).join(next(scored), on="query_id", how="inner", suffix="_of_base").sort("query_id")
        self._layout = _place(design, both, own)
        columns = ("value", LABEL, LABEL_WEIGHT)
        self._own, self._base = (
            [both[f"{name}{suffix}"].cast(float).fill_null(math.nan).to_numpy() for name in columns]
            for suffix in ("", "_of_base")
        )

    def add_up(self, parts: Floats) -> Floats:
        """What each cluster moves a number by, from what each question does; without a design, the same."""
        return parts if self._layout is None else add_up(self._layout.members, parts, self._layout.clusters)

    def drop_design(self) -> _Pair:
        """The same if all questions count the same and on their own."""
        plain = copy(self)
        plain._layout = None
        return plain

    @property
    def rows(self) -> _Labelled:
        return _Labelled(*self._own, layout=self._layout)

    @property
    def base_rows(self) -> _Labelled:
        return _Labelled(*self._base, layout=self._layout)

    @property
    def differences(self) -> _Labelled:
        """The difference of each query. Its label counts as the rarer of the two would."""
        import numpy as np

        (value, label, weight), (base, base_label, base_weight) = self._own, self._base
        return _Labelled(value - base, label - base_label, np.maximum(weight, base_weight), layout=self._layout)


def _take(values: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The rows of some metrics, in the order of their queries."""
    import polars as pl

    wanted = values.filter(pl.col("metric").is_in(metrics))
    columns = (*CELL, "query_id", "status", "value", LABEL, LABEL_WEIGHT)
    return wanted.select(*columns).sort(*CELL, "query_id", maintain_order=True)


def _correct(
    rows: _Labelled,
    rule: Rule,
    bounds: tuple[float, float],
    judged: Correction,
    confidence: float,
    pair: _Pair | None = None,
) -> _Found:
    """The corrected mean of some rows; of the differences of a pair, if it is given."""
    labelled = replace(judged, labels=rows.count)
    reason = rule.problem or _find_lack(rows.count, is_pair=pair is not None)
    if reason is None and rows.parts < _FEWEST_CLUSTERS:
        reason = "all labels belong to questions of one cluster"
    if rows.count:
        alone = rows.correct(confidence, uses_others=False)
        interval = alone.labelled_interval if reason is None else None
        labelled = replace(labelled, labelled=alone.labelled, labelled_interval=interval)
    if reason is not None:
        return _Found(None, None, replace(labelled, reason=reason))
    try:
        if rule.method == "rogan_gladen":
            return _correct_shares(rows, bounds, labelled, confidence, pair)
        return _infer(rows, bounds, labelled, confidence)
    except UncorrectableError as error:
        return _Found(None, None, replace(labelled, reason=str(error)))


def _find_lack(count: int, *, is_pair: bool) -> str | None:
    if count >= FEWEST_LABELS:
        return None
    noun, of_both = ("question", " for both") if is_pair else ("answer", "")
    how_many = {0: f"no {noun} has", 1: f"only 1 {noun} has"}.get(count, f"only {count} {noun}s have")
    return f"{how_many} labels{of_both}, where at least {FEWEST_LABELS} are needed"


def _infer(rows: _Labelled, bounds: tuple[float, float], labelled: Correction, confidence: float) -> _Found:
    """PPI++. Where all labels are the same, their spread is not known, and the interval is that of `_bound_equal`."""
    found = rows.correct(confidence)
    if rows.labels.min() == rows.labels.max():
        value = float(rows.labels[0])
        interval, p_value = _bound_equal(value, rows.effective, bounds, confidence)
        return _Found(value, interval, replace(labelled, labelled_interval=interval), p_value)
    correction = replace(labelled, labelled_interval=found.labelled_interval, worth=found.worth)
    t = abs(found.value) / found.error if found.error else math.inf
    return _clip(_Found(found.value, found.interval, correction, find_p_value(t, found.degrees)), bounds)


def _bound_equal(value: float, count: int, bounds: tuple[float, float], confidence: float) -> tuple[Interval, float]:
    """The interval of a mean of which `count` labels were drawn that all have one value, and the p-value of 0.

    With the confidence, at most the share `1 - (1 - confidence) ** (1 / count)` of all labels differs, and by no more
    than the bounds allow.
    """
    share = 1 - (1 - confidence) ** (1 / count)
    low, high = bounds
    interval = Interval(value - share * (value - low), value + share * (high - value), confidence, ALL_EQUAL)
    farthest = high if value < 0 else -low
    return interval, 1.0 if value == 0 else (farthest / (farthest + abs(value))) ** count


def _correct_shares(
    rows: _Labelled, bounds: tuple[float, float], labelled: Correction, confidence: float, pair: _Pair | None
) -> _Found:
    """Rogan and Gladen's correction; of two systems, the difference of their corrected shares."""
    if pair is None:
        share = _correct_share(rows, confidence)
        alone = labelled.labelled_interval
        worth = None if alone is None else labelled.labels * ((alone.high - alone.low) / _width(share.interval)) ** 2
        return _clip(_Found(share.value, share.interval, replace(labelled, worth=worth)), bounds)
    import numpy as np

    parts, shares = [], []
    for one in (pair.rows, pair.base_rows):
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
    return _clip(_Found(difference, interval, labelled, p_value), bounds)


def _correct_share(rows: _Labelled, confidence: float) -> CorrectedShare:
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


def list_reasons(aggregates: Sequence[Aggregate]) -> Iterator[tuple[Aggregate, str]]:
    """The aggregates that could not be corrected, with the reason."""
    for one in aggregates:
        if one.correction is not None and one.correction.reason is not None:
            yield one, one.correction.reason
