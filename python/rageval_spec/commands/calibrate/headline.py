"""What the numbers of a calibration mean, in words."""

from __future__ import annotations

from collections.abc import Iterator

from rageval_spec.calibration.measures import Measure
from rageval_spec.calibration.measuring import ENOUGH_LABELS, Calibration, Promise
from rageval_spec.calibration.reliability import Reliability
from rageval_spec.statistics.guarantees import count_needed
from rageval_spec.statistics.reliability import CalibrationError
from rageval_spec.wording import count_noun, format_interval, format_number, format_percent

_POOR = 0.7
"""An AUROC below this is little better than guessing (0.5)."""
_FEWEST = 5
"""The fewest good, and bad, answers that show whether a judge tells them apart."""
_MAPS = {"platt": "Platt's map", "isotonic": "An isotonic map"}

Sentence = tuple[str, str]
"""A sentence and its style."""


def conclude(found: Calibration) -> Iterator[Sentence]:
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
        return "✗ The judge cannot be told from guessing: the interval of its AUROC contains 0.5.", "red"
    if auroc.value < 0.5:
        return (
            f"✗ The judge is the wrong way round: it ranks a bad answer above a good one in {1 - auroc.value:.0%} of "
            "the cases.",
            "red",
        )
    if auroc.value < _POOR:
        return (
            "! The judge is little better than guessing: it ranks a good answer above a bad one in "
            f"{auroc.value:.0%} of the cases.",
            "yellow",
        )
    return f"✓ The judge ranks a good answer above a bad one in {auroc.value:.0%} of the cases.", "green"


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
        f"! Its values do not mean what they say: they are {_describe(reliability.error)} from what people say of such "
        "answers, on average.",
        "yellow",
    )
    if found.map.chosen is None:
        return
    trial = next(one for one in found.map.trials if one.kind == found.map.chosen.kind)
    yield f"{_MAPS[trial.kind]} brings this down to {_describe(trial.error)}, on questions held out.", ""


def _describe(error: CalibrationError) -> str:
    return " ".join(filter(None, (format_number(error.value), format_interval(error.interval))))


def _say_threshold(found: Calibration) -> Iterator[Sentence]:
    chosen = found.threshold
    if chosen is None:
        return
    if chosen.threshold is None:
        yield f"! {_capitalize(chosen.reason or '')}.", "yellow"
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


def _find(measures: tuple[Measure, ...], name: str) -> Measure | None:
    return next((one for one in measures if one.name == name), None)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def say_promise(found: Promise, limit: float, confidence: float, items: int) -> Iterator[Sentence]:
    """Whether a promise can be kept, and if not, which can; `items` is the number of labelled items."""
    kept = found.wanted
    share, sure = format_percent(limit, 2), f"with {confidence:.0%} confidence"
    if kept is not None:
        yield (
            f"✓ Send answers from {format_number(kept.threshold)} on: at most {share} of them are wrong, {sure}.",
            "green",
        )
        yield f"Of {kept.labels} labelled answers, {kept.sent} would be sent, {kept.wrong} of them wrong.", ""
    elif found.best is not None:
        yield (
            f"✗ At most {share} cannot be promised with {found.items} labels; the best that can be is "
            f"{found.best.limit:.1%}, from {format_number(found.best.threshold)} on, {sure}.",
            "red",
        )
        yield _say_needed(found, limit, confidence), ""
    else:
        yield f"✗ Nothing can be promised with {found.items} labels.", "red"
    if found.items < items:
        yield f"{found.items} of {items} labelled items count: one of each question, or of each cluster.", ""


def _say_needed(found: Promise, limit: float, confidence: float) -> str:
    needed = count_needed(limit, 1 - confidence)
    if found.items < needed:
        return f"Even if no answer were wrong, {needed} labels would be needed."
    return "A stricter judge, or more labels of answers with high values, would help."
