"""What the numbers of a calibration mean, in words.

The sentences say how good the judge is, what makes it err, which of several judges is better, and what more labels
would bring. Tables show several judges side by side, what more labels would bring and, with details, the effects of
all properties.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rageval_spec.calibration.bias import Biases
from rageval_spec.calibration.judge_quality import (
    ENOUGH_LABELS,
    Calibration,
    Compared,
    JudgeComparison,
    JudgeRow,
)
from rageval_spec.calibration.labelled_items import Sampling, explain_promise
from rageval_spec.calibration.measures import CalibrationMeasure, Learning, Need, Quantity
from rageval_spec.calibration.reliability import Reliability
from rageval_spec.calibration.thresholds import Promise
from rageval_spec.data.outcomes import Interval
from rageval_spec.drawing.view import Block, Grid, Heading, Inline, Items, Line, Span, tabulate
from rageval_spec.statistics.raters.label_counts import MOST_LABELS
from rageval_spec.statistics.raters.rater_agreement import AgreementCoefficient
from rageval_spec.statistics.raters.risk_control import count_needed
from rageval_spec.wording import (
    ADJUSTED,
    agree,
    count_noun,
    format_interval,
    format_number,
    format_p_value,
    format_percent,
    format_probability,
    format_signed,
)

_STYLES = {"✓": "green", "!": "yellow", "✗": "red"}


def list_told(told: Iterable[str]) -> Items:
    """Sentences, one a line; a sentence that begins with a sign has it in front."""
    rows = (sentence.partition(" ") for sentence in told)
    return Items(
        [(sign, rest, _STYLES[sign]) if sign in _STYLES else ("", f"{sign} {rest}", "") for sign, _, rest in rows]
    )


def show_number(
    value: float | None, interval: Interval | None = None, reason: str | None = None, *, signed: bool = False
) -> Inline:
    """A number with its interval as a cell, or why there is none."""
    number = "" if value is None else (format_signed if signed else format_number)(value)
    return [number, Span(format_interval(interval) or reason or "", is_below=True)]


def show_measure(one: CalibrationMeasure | AgreementCoefficient | None, *, signed: bool = False) -> Inline:
    return "" if one is None else show_number(one.value, one.interval, one.reason, signed=signed)


_POOR = 0.7
"""An AUROC below this is little better than guessing (0.5)."""
_FEWEST = 5
"""The fewest good, and bad, answers that show whether a judge tells them apart."""
_MAPS = {"platt": "Platt's map", "isotonic": "An isotonic map"}


def conclude_judge(found: Calibration) -> Iterator[str]:
    """What a reader must know of a judge, the most important first."""
    error = _find(found.association, "mae")
    is_graded = found.reliability is not None and len(found.reliability.bins) > 2
    if is_graded and error is not None and error.value == 0:  # as where a column of results is taken for labels
        yield "! Every label is exactly the judge's value: make sure that people gave them, not the judge."
    yield _say_order(found)
    bias = _find(found.association, "bias")
    if bias is not None and bias.value is not None and bias.interval is not None and _is_apart(bias.interval):
        how = "generous" if bias.value > 0 else "strict"
        yield f"! It is {format_number(abs(bias.value))} more {how} than people: use the corrected mean."
    if found.reliability is not None:
        yield from _say_reliability(found, found.reliability)
    yield from _say_threshold(found)
    if found.is_few:
        labelled = f"{count_noun(found.items, 'item')} {agree(found.items, 'is')} labelled"
        yield f"! Only {labelled}; label {ENOUGH_LABELS} or more, so that intervals are narrow enough to decide by."
    for reason, count in found.unused:
        yield f"{count_noun(count, 'label')} {reason} {agree(count, 'was')} not used."


def _say_order(found: Calibration) -> str:
    auroc, fewer = _find(found.discrimination, "auroc"), min(found.yes, found.no)
    if auroc is None or auroc.value is None or fewer < _FEWEST:
        kind = "good (above 0.5)" if found.yes < found.no or not found.yes else "bad (below 0.5)"
        return (
            f"! Only {count_noun(fewer, 'labelled item')} {agree(fewer, 'is')} {kind}, too few to show whether the "
            f"judge tells right from wrong: label {_FEWEST} or more."
        )
    low, high = (auroc.interval.low, auroc.interval.high) if auroc.interval else (auroc.value, auroc.value)
    if low <= 0.5 <= high:
        ends = " ".join(filter(None, (format_number(auroc.value), format_interval(auroc.interval))))
        return f"✗ The judge cannot be distinguished from guessing, which has an AUROC of 0.5: its own is {ends}."
    share = format_percent(max(auroc.value, 1 - auroc.value))
    if auroc.value < 0.5:
        return f"✗ The judge is the wrong way round: it ranks a bad answer above a good one in {share} of the cases."
    if auroc.value < _POOR:
        good = f"it ranks a good answer above a bad one in {share} of the cases."
        return f"! The judge is little better than guessing: {good}"
    return f"✓ The judge ranks a good answer above a bad one in {share} of the cases."


def _say_reliability(found: Calibration, reliability: Reliability) -> Iterator[str]:
    if not reliability.is_off:
        return
    off, chosen = reliability.error, found.map.chosen
    yield (
        f"! Its values do not mean what they say: they are {format_number(off.value)} {format_interval(off.interval)} "
        "from what people say of such answers, on average."
    )
    if chosen is not None:
        left = next(one for one in found.map.trials if one.kind == chosen.kind).error
        ends = " ".join(filter(None, (format_number(left.value), format_interval(left.interval))))
        yield f"{_MAPS[chosen.kind]} brings this down to {ends}, on questions held out."


def _say_threshold(found: Calibration) -> Iterator[str]:
    chosen = found.threshold
    if chosen is not None and chosen.threshold is None:
        reason = chosen.reason or ""
        yield f"! {reason[:1].upper()}{reason[1:]}."
    precision = _find(found.decisions, "precision")
    wanted = "" if chosen is None else chosen.criterion.partition(">=")[2]
    if wanted and precision is not None and (precision.value is None or precision.value < float(wanted)):
        reached = "no answer is taken" if precision.value is None else f"it is {format_number(precision.value)}"
        yield (
            f"! On questions held out, the precision of {wanted} is not reached: {reached}. A threshold looks better "
            "on the labels that chose it. For a promise, use --guarantee."
        )


def _find(measures: tuple[CalibrationMeasure, ...], name: str) -> CalibrationMeasure | None:
    return next((one for one in measures if one.name == name), None)


def _is_apart(interval: Interval) -> bool:
    return interval.low > 0 or interval.high < 0


def describe_promise(
    found: Promise, limit: float, confidence: float, sampling: Sampling | None, items: int, *, of_steps: bool = False
) -> Iterator[Block]:
    """Whether a promise can be kept, and if not, which can; then what thresholds, or rules of several steps, do.

    `items` is the number of labelled items.
    """
    yield list_told([*_say_promise(found, limit, confidence, items, of_steps), *explain_promise(sampling)])
    header = ("sent from", "answers sent", "wrong among them", f"upper bound ({format_percent(confidence)})")
    rows = (
        ("" if of_steps else format_number(one.threshold), *map(format_percent, (one.coverage, one.risk, one.upper)))
        for one in found.curve
    )
    yield tabulate(header, rows, range(4), ())
    noun = "rule" if of_steps else "threshold"
    yield Line(Span(f"Each bound holds for a {noun} that was chosen beforehand, not for the best of them.", "dim"))


def _say_promise(found: Promise, limit: float, confidence: float, items: int, of_steps: bool) -> Iterator[str]:
    share, sure = format_percent(limit, 2), f"with {format_percent(confidence)} confidence"
    kept, best, tested = found.wanted, found.best, found.items - found.learnt
    if kept is not None and found.control == "crc":
        yield f"✓ On average, at most {share} of all answers are wrong and sent."
        yield (
            "This limits the mean over sets of labels, and wrong answers among all answers. --control ltt limits their "
            "share among the answers that are sent, with a confidence."
        )
    elif kept is not None:
        rule = "At" if of_steps else f"Send answers from {format_number(kept.threshold)} on: at"
        yield f"✓ {rule} most {share} of the answers that are sent are wrong, {sure}."
    elif best is not None:
        rule = "" if of_steps else f", from {format_number(best.threshold)} on"
        yield (
            f"✗ At most {share} cannot be promised with {found.items} labels; the best that can be is "
            f"{format_percent(best.limit)}{rule}, {sure}."
        )
        needed = math.ceil(count_needed(limit, 1 - confidence) * found.items / tested)
        if found.items < needed:
            yield f"Even if no answer were wrong, {needed} labels would be needed."
        else:
            yield "A stricter judge, or more labels of answers with high values, would help."
    else:
        yield f"✗ Nothing can be promised with {found.items} labels."
    if kept is not None:
        yield f"Of {tested} labelled answers, {kept.sent} would be sent, {kept.wrong} of them wrong."
    if found.items < items:
        yield f"{found.items} of {items} labelled items count: one of each question, or of each cluster."
    if found.learnt:
        yield f"{found.learnt} other labels decide which bounds to relax first."


_NAMES: Mapping[Compared, str] = {"auroc": "AUROC", "kappa": "kappa", "mae": "mean absolute error"}
_BETTER: Mapping[Compared, str] = {
    "auroc": "tells good answers from bad ones better",
    "kappa": "decides more like people",
}
"""The sentence about a judge that is better by a measure; the others are in the table of --details."""
_MOST_SAID = 6


def describe_comparison(found: JudgeComparison, *, details: bool) -> Iterator[Block]:
    """The judges in a table, and what is certain about them; with `details`, the test of each pair."""
    yield Heading(f"{len(found.rows)} judges on the same {found.items} labelled items")
    header = ("metric", "judge", "AUROC", "kappa", "bias", "$/sample", "s/sample")
    yield tabulate(header, map(_describe_row, found.rows), range(2, 7), (0, 1))
    yield list_told(conclude_comparison(found))
    if details:
        errors = [
            (row.metric, show_measure(row.find("mae")), show_measure(row.find("bias"), signed=True))
            for row in found.rows
        ]
        yield tabulate(("metric", "mean absolute error", "bias"), errors, (1, 2))
    if details and found.differences:
        rows = [
            (
                f"{one.first} less {one.second}",
                _NAMES[one.measure],
                show_number(one.difference, one.interval, signed=True),
                format_probability(one.p_adjusted),
            )
            for one in found.differences
        ]
        yield tabulate(("judges", "measure", "difference", "adjusted p"), rows, (2, 3))


def _describe_row(row: JudgeRow) -> Sequence[Inline]:
    bias, cost, seconds = row.find("bias"), row.spending.cost, row.spending.seconds
    return (
        row.metric,
        "" if row.judge in (None, row.metric) else row.judge,
        show_measure(row.find("auroc")),
        show_measure(row.find("kappa")),
        "" if bias is None else show_number(bias.value, signed=True),
        "" if cost is None else format_number(cost, 4) if cost else "0",
        "" if seconds is None else "< 0.001" if seconds < 0.001 else format_number(seconds),
    )


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


def describe_biases(biases: Biases, *, details: bool) -> Iterator[Block]:
    """The biases that the labels show; with `details`, all effects, and the properties that were left out."""
    yield Heading("What makes the judge err")
    told = [" ".join(filter(None, (f"! {one}", one.explain()))) for one in biases.found if one.is_significant]
    if biases.reason is not None:
        told.append(f"This cannot be computed: {biases.reason}.")
    yield list_told(told or ["Nothing that these labels can show."])
    if not details:
        return
    header = ("property", "effect on the error", "at equal labels", "standardized", "adjusted p")
    rows = [
        (
            one.change.rpartition(" ")[0],
            show_number(one.effect.slope, one.effect.interval, signed=True),
            show_number(one.at_equal_labels.slope, one.at_equal_labels.interval, signed=True)
            if one.at_equal_labels
            else "",
            format_signed(one.standardized),
            format_probability(one.p_adjusted),
        )
        for one in biases.found
    ]
    if rows:
        yield tabulate(header, rows, range(1, 5), ())
    yield Items([("", f"Left out: {left.name} ({left.reason}).", "dim") for left in biases.left_out])


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


def describe_curve(learning: Learning) -> Grid:
    rows = []
    for point in learning.curve:
        widths = (f"±{format_number(point.widths[name] / 2)}" if name in point.widths else "" for name in _COLUMNS)
        rows.append((f"{point.labels:,}", *widths, "" if point.is_measured else "expected"))
    return tabulate(("labels", *_COLUMNS.values(), ""), rows, range(len(_COLUMNS) + 2), ())
