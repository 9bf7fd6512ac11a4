"""What the numbers of a calibration mean, in words.

The sentences say how good the judge is, what makes it err, which of several judges is better, and what more labels
would bring. Tables show several judges side by side, what more labels would bring and, with details, the effects of
all properties.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rageval_spec.calibration.bias import Bias, Biases
from rageval_spec.calibration.judge_quality import (
    ENOUGH_LABELS,
    Calibration,
    Compared,
    JudgeComparison,
    JudgeRow,
    Promise,
    Spending,
)
from rageval_spec.calibration.measures import CalibrationMeasure, Learning, Need, Quantity
from rageval_spec.calibration.reliability import Reliability
from rageval_spec.drawing.terminal import Block, tabulate
from rageval_spec.libraries import RenderableType
from rageval_spec.statistics.raters.label_counts import MOST_LABELS
from rageval_spec.statistics.raters.reliability_curves import CalibrationError
from rageval_spec.statistics.raters.risk_control import count_needed
from rageval_spec.wording import (
    ADJUSTED,
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_probability,
    format_signed,
)

_POOR = 0.7
"""An AUROC below this is little better than guessing (0.5)."""
_FEWEST = 5
"""The fewest good, and bad, answers that show whether a judge tells them apart."""
_MAPS = {"platt": "Platt's map", "isotonic": "An isotonic map"}

Sentence = tuple[str, str]
"""A sentence and its style."""


def conclude_judge(found: Calibration) -> Iterator[Sentence]:
    """What a reader must know of a judge, the most important first."""
    yield from _say_same(found)
    yield _say_order(found)
    yield from _say_bias(found)
    if found.reliability is not None:
        yield from _say_reliability(found, found.reliability)
    yield from _say_threshold(found)
    if found.is_few:
        labelled = f"{count_noun(found.items, 'item')} {'is' if found.items == 1 else 'are'} labelled"
        yield (
            f"! Only {labelled}; label {ENOUGH_LABELS} or more, so that intervals are narrow enough to decide by.",
            "yellow",
        )
    for reason, count in found.unused:
        yield f"{count_noun(count, 'label')} {reason} {'was' if count == 1 else 'were'} not used.", ""


def _say_same(found: Calibration) -> Iterator[Sentence]:
    """A warning if graded labels are the judge's values, as where a column of results is taken for labels."""
    error = _find(found.association, "mae")
    is_graded = found.reliability is not None and len(found.reliability.bins) > 2
    if is_graded and error is not None and error.value == 0:
        yield "! Every label is exactly the judge's value: make sure that people gave them, not the judge.", "yellow"


def _say_order(found: Calibration) -> Sentence:
    auroc = _find(found.discrimination, "auroc")
    if auroc is None or auroc.value is None:
        rare, side = ("bad", "below") if found.yes else ("good", "above")
        return (
            f"! No labelled item is {rare} ({side} 0.5), so it is not known whether the judge tells right from wrong: "
            f"label some {rare} answers too.",
            "yellow",
        )
    if min(found.yes, found.no) < _FEWEST:
        kind = "good" if found.yes < found.no else "bad"
        count = min(found.yes, found.no)
        return (
            f"! Only {count_noun(count, 'labelled item')} {'is' if count == 1 else 'are'} {kind}, too few to show "
            f"whether the judge tells right from wrong: label {_FEWEST} or more.",
            "yellow",
        )
    if auroc.interval is not None and auroc.interval.low <= 0.5 <= auroc.interval.high:
        return "✗ The judge cannot be distinguished from guessing: the interval of its AUROC contains 0.5.", "red"
    if auroc.value == 0.5:
        return "✗ The judge cannot be distinguished from guessing: it ranks good and bad answers alike.", "red"
    if auroc.value < 0.5:
        return (
            f"✗ The judge is the wrong way round: it ranks a bad answer above a good one in "
            f"{format_percent(1 - auroc.value)} of the cases.",
            "red",
        )
    if auroc.value < _POOR:
        return (
            "! The judge is little better than guessing: it ranks a good answer above a bad one in "
            f"{format_percent(auroc.value)} of the cases.",
            "yellow",
        )
    return f"✓ The judge ranks a good answer above a bad one in {format_percent(auroc.value)} of the cases.", "green"


def _say_bias(found: Calibration) -> Iterator[Sentence]:
    bias = _find(found.association, "bias")
    if bias is None or bias.value is None or bias.interval is None or bias.interval.low <= 0 <= bias.interval.high:
        return
    how = "generous" if bias.value > 0 else "strict"
    yield f"! It is {format_number(abs(bias.value))} more {how} than people: use the corrected mean.", "yellow"


def _say_reliability(found: Calibration, reliability: Reliability) -> Iterator[Sentence]:
    if not reliability.is_off:
        return
    yield (
        f"! Its values do not mean what they say: they are {_describe_error(reliability.error)} from what people say "
        "of such answers, on average.",
        "yellow",
    )
    if found.map.chosen is None:
        return
    trial = next(one for one in found.map.trials if one.kind == found.map.chosen.kind)
    yield f"{_MAPS[trial.kind]} brings this down to {_describe_error(trial.error)}, on questions held out.", ""


def _describe_error(error: CalibrationError) -> str:
    return " ".join(filter(None, (format_number(error.value), format_interval(error.interval))))


def _say_threshold(found: Calibration) -> Iterator[Sentence]:
    chosen = found.threshold
    if chosen is None:
        return
    if chosen.threshold is None:
        reason = chosen.reason or ""
        yield f"! {reason[:1].upper()}{reason[1:]}.", "yellow"
        return
    if not found.decisions:
        return
    wanted = chosen.criterion.partition(">=")[2]
    precision = _find(found.decisions, "precision")
    if wanted and precision is not None and (precision.value is None or precision.value < float(wanted)):
        reached = "no answer is taken" if precision.value is None else f"it is {format_number(precision.value)}"
        yield (
            f"! On questions held out, the precision of {wanted} is not reached: {reached}. A threshold looks better "
            "on the labels that chose it. For a promise, use --guarantee.",
            "yellow",
        )


def _find(measures: tuple[CalibrationMeasure, ...], name: str) -> CalibrationMeasure | None:
    return next((one for one in measures if one.name == name), None)


def say_promise(found: Promise, limit: float, confidence: float, items: int) -> Iterator[Sentence]:
    """Whether a promise can be kept, and if not, which can; `items` is the number of labelled items."""
    kept = found.wanted
    share, sure = format_percent(limit, 2), f"with {format_percent(confidence)} confidence"
    if kept is not None:
        yield (
            f"✓ Send answers from {format_number(kept.threshold)} on: at most {share} of them are wrong, {sure}.",
            "green",
        )
        yield f"Of {kept.labels} labelled answers, {kept.sent} would be sent, {kept.wrong} of them wrong.", ""
    elif found.best is not None:
        yield (
            f"✗ At most {share} cannot be promised with {found.items} labels; the best that can be is "
            f"{format_percent(found.best.limit)}, from {format_number(found.best.threshold)} on, {sure}.",
            "red",
        )
        yield say_needed(found.items, found.items, limit, confidence, "A stricter judge"), ""
    else:
        yield f"✗ Nothing can be promised with {found.items} labels.", "red"
    if found.items < items:
        yield f"{found.items} of {items} labelled items count: one of each question, or of each cluster.", ""


def say_needed(used: int, labels: int, limit: float, confidence: float, judges: str) -> str:
    """What would help to keep a promise; `used` of the labels tested it."""
    needed = count_needed(limit, 1 - confidence)
    if used < needed:
        return f"Even if no answer were wrong, {math.ceil(needed * labels / used)} labels would be needed."
    return f"{judges}, or more labels of answers with high values, would help."


_NAMES: Mapping[Compared, str] = {"auroc": "AUROC", "kappa": "kappa", "mae": "mean absolute error"}
_BETTER: Mapping[Compared, str] = {
    "auroc": "tells good answers from bad ones better",
    "kappa": "decides more like people",
}
"""The sentence about a judge that is better by a measure; the others are in the table of --details."""
_MOST_SAID = 6
_SPENDING = ("$/sample", "s/sample")
"""Columns that are left out if no judge has a number for them."""


def draw_comparison(found: JudgeComparison, *, details: bool) -> Iterator[Block]:
    """The judges in a table, and what is certain about them; with `details`, the test of each pair."""
    yield f"{len(found.rows)} judges on the same {found.items} labelled items", "bold"
    yield ""
    yield _tabulate(found.rows)
    yield ""
    yield from conclude_comparison(found)
    yield ""
    if details:
        errors = [(row.metric, *_write(row, "mae"), *_write(row, "bias")) for row in found.rows]
        yield tabulate(("metric", "mean absolute error", "95% interval", "bias", "95% interval"), errors, {1, 3})
        yield ""
    if details and found.differences:
        rows = [
            (
                f"{one.first} less {one.second}",
                _NAMES[one.measure],
                format_signed(one.difference),
                format_interval(one.interval),
                format_probability(one.p_adjusted),
            )
            for one in found.differences
        ]
        yield tabulate(("judges", "measure", "difference", "95% interval", "adjusted p"), rows, {2, 4})
        yield ""


def conclude_comparison(found: JudgeComparison) -> Iterator[str]:
    certain = [one for one in found.differences if one.better is not None and one.measure in _BETTER]
    for one in certain[:_MOST_SAID]:
        sign, worse = (1, one.second) if one.better == one.first else (-1, one.first)
        ends = one.interval
        if ends is not None and sign < 0:
            ends = replace(ends, low=-ends.high, high=-ends.low)
        change = f"{format_signed(sign * one.difference)} {format_interval(ends)}"
        yield (
            f"{one.better} {_BETTER[one.measure]} than {worse}: {_NAMES[one.measure]} {change}, {ADJUSTED} "
            f"{format_p_value(one.p_adjusted)}."
        )
    if len(certain) > _MOST_SAID:
        yield f"{count_noun(len(certain) - _MOST_SAID, 'more difference')} of this kind: see --details."
    if not certain:
        yield "These labels do not show that one judge is better than another."


def _tabulate(rows: Sequence[JudgeRow]) -> RenderableType:
    named = any(row.judge not in (None, row.metric) for row in rows)
    first = ["metric", "judge"] if named else ["metric"]
    spent = [_describe_spending(row.spending) for row in rows]
    known = [place for place in range(len(_SPENDING)) if any(one[place] for one in spent)]
    header = (*first, "AUROC", "95% interval", "kappa", "95% interval", "bias", *(_SPENDING[place] for place in known))
    described = [
        (
            row.metric,
            *([row.judge or ""] if named else []),
            *_write(row, "auroc"),
            *_write(row, "kappa"),
            _write(row, "bias")[0],
            *(cost[place] for place in known),
        )
        for row, cost in zip(rows, spent, strict=True)
    ]
    numbers = {place for place, name in enumerate(header) if name not in (*first, "95% interval")}
    return tabulate(header, described, numbers)


def _write(row: JudgeRow, name: str) -> tuple[str, str]:
    measure = row.find(name)
    if measure is None or measure.value is None:
        return "", ""
    return (format_signed if name == "bias" else format_number)(measure.value), format_interval(measure.interval)


def _describe_spending(spending: Spending) -> tuple[str, str]:
    cost, seconds = "", ""
    if spending.cost is not None:
        cost = format_number(spending.cost, 4) if spending.cost else "0"
    if spending.seconds is not None:
        seconds = "< 0.001" if spending.seconds < 0.001 else format_number(spending.seconds)
    return cost, seconds


def draw_biases(biases: Biases, *, details: bool) -> Iterator[Block]:
    """The biases that the labels show; with `details`, all effects, and the properties that were left out."""
    yield "What makes the judge err", "bold"
    certain = [one for one in biases.found if one.is_significant]
    for one in certain:
        yield f"! {one}", "yellow"
        if explanation := one.explain():
            yield f"  {explanation}", "yellow"
    if biases.reason is not None:
        yield f"This cannot be computed: {biases.reason}."
    elif not certain:
        yield "Nothing that these labels can show."
    yield ""
    if details and biases.found:
        header = ("property", "effect on the error", "95% interval", "at equal labels", "standardized", "adjusted p")
        yield tabulate(header, [_bias_row(one) for one in biases.found], {1, 4, 5})
    if details:
        yield from ((f"Left out: {left.name} ({left.reason}).", "dim") for left in biases.left_out)
    if details and (biases.found or biases.left_out):
        yield ""


def _bias_row(one: Bias) -> tuple[str, ...]:
    held = one.at_equal_labels
    return (
        one.change.rpartition(" ")[0],
        format_signed(one.effect.slope),
        format_interval(one.effect.interval),
        "" if held is None else f"{format_signed(held.slope)} {format_interval(held.interval)}",
        format_signed(one.standardized),
        format_probability(one.p_adjusted),
    )


_COLUMNS: Mapping[Quantity, str] = {
    "corrected_mean": "corrected mean",
    "labels_alone": "labels alone",
    "auroc": "AUROC",
    "kappa": "kappa",
}


def say_needs(learning: Learning, items: int) -> Iterator[str]:
    half = f"±{learning.width / 2:g}"
    corrected, alone = learning.find("corrected_mean"), learning.find("labels_alone")
    if corrected is not None and alone is not None:
        yield _say_mean(corrected, alone, learning, items)
    others = [
        f"{_COLUMNS[need.quantity]} to {half} takes about {need.labels:,} labels"
        for need in learning.needs
        if need.quantity in ("auroc", "kappa") and not need.is_met(learning.width)
    ]
    if others:
        told = "; ".join(others)
        yield f"{told[:1].upper()}{told[1:]}."


def _say_mean(corrected: Need, alone: Need, learning: Learning, items: int) -> str:
    half = f"±{learning.width / 2:g}"
    needed = f"more than {MOST_LABELS:,}" if alone.labels is None else f"{alone.labels:,}"
    without = f"Without the judge, it takes {needed}."
    if corrected.is_met(learning.width):
        now = format_number((corrected.now or 0.0) / 2)
        return f"The corrected mean is known to ±{now}, so that ±{learning.width / 2:g} needs no more labels. {without}"
    if corrected.labels is None:
        return (
            f"Labels of all {learning.rows:,} answers would not show the mean to {half}: have the judge score more "
            f"answers. {without}"
        )
    more, bounds = max(corrected.labels - items, 1), corrected.labels_interval
    ends = "" if bounds is None else f" [{math.floor(bounds.low):,}, {math.ceil(bounds.high):,}]"
    return f"The mean to {half} takes {corrected.labels:,} labels{ends} with this judge: {more:,} more. {without}"


def draw_curve(learning: Learning) -> RenderableType:
    columns = [name for name in _COLUMNS if any(name in point.widths for point in learning.curve)]
    rows = []
    for point in learning.curve:
        widths = (f"±{format_number(point.widths[name] / 2)}" if name in point.widths else "" for name in columns)
        rows.append((f"{point.labels:,}", *widths, "" if point.is_measured else "expected"))
    return tabulate(("labels", *(_COLUMNS[name] for name in columns), ""), rows, range(len(columns) + 1))
