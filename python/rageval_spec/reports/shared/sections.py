"""What reports for people show below their tables of numbers: causes, weakest slices, stages of judges.

Each is a small table of texts with a title, so that every report shows the same in its own form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data.diagnosis import Cause
from rageval_spec.reports.shared import corrected, weighted
from rageval_spec.reports.shared.slice_causes import FrequentCause, list_frequent_causes, list_slice_counts
from rageval_spec.wording import (
    ADJUSTED,
    DIGITS,
    count_noun,
    format_interval,
    format_number,
    format_percent,
    format_probability,
)

if TYPE_CHECKING:
    from rageval_spec.data.diagnosis import CauseCount
    from rageval_spec.data.evaluation import Evaluation, SliceGap

_MOST_SLICES = 8
_MEANINGS: dict[Cause, str] = {
    "retrieval": "the contexts lack what was needed, and the answer is wrong",
    "generation": "the contexts have what was needed, and the answer is wrong or unfaithful",
    "both": "the contexts lack what was needed, and the answer is wrong and unfaithful to them",
    "lucky": "the contexts lack what was needed, but the answer is right",
    "fine": "the contexts have what was needed, and the answer is right",
    "undecided": "a part was not measured, or lies between right and wrong",
}
CAUSES: tuple[Cause, ...] = tuple(_MEANINGS)
"""The causes in the order in which reports show them."""


@dataclass(frozen=True, slots=True)
class Section:
    """A small table with a title; its cells are unescaped text.

    `numbers` are the columns (from 0) to align to the right; `remarks` are sentences below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()
    remarks: tuple[str, ...] = ()


def list_sections(evaluation: Evaluation, digits: int = DIGITS) -> Iterator[Section]:
    """The sections for which the evaluation has something to show."""
    yield from _show_weighted(evaluation, digits)
    yield from _show_corrections(evaluation, digits)
    yield from _show_causes(evaluation)
    yield from _show_frequent_causes(evaluation)
    yield from _show_weakest(evaluation, digits)
    yield from _show_stages(evaluation)


def _show_weighted(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    if rows := weighted.list_weighted(evaluation, digits):
        remarks = tuple(weighted.explain_weights(evaluation))
        yield Section(weighted.TITLE, weighted.HEADER, tuple(rows), weighted.NUMBERS, remarks)


def _show_corrections(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    rows = corrected.list_corrected(evaluation, digits)
    if rows:
        remarks = tuple(corrected.explain_corrections(evaluation))
        yield Section("What people would say", corrected.HEADER, tuple(rows), corrected.NUMBERS, remarks)


def _show_causes(evaluation: Evaluation) -> Iterator[Section]:
    diagnosis = evaluation.diagnosis
    if diagnosis is None:
        return
    whole = [one for one in diagnosis.counts if one.slice is None]
    advice = {(one.dataset, one.system): one.sentence for one in diagnosis.advice}
    for dataset, system in dict.fromkeys((one.dataset, one.system) for one in whole):
        counts = [one for one in whole if (one.dataset, one.system) == (dataset, system)]
        rows = tuple((one.cause, str(one.count), describe_share(one), _MEANINGS[one.cause]) for one in counts)
        place = system if len(evaluation.datasets) == 1 else f"{system} on {dataset}"
        remarks = (f"Try first: {advice[dataset, system]}.",) if (dataset, system) in advice else ()
        title = f"Causes: why answers of {place} are right or wrong"
        yield Section(title, ("cause", "questions", "share", "meaning"), rows, frozenset({1, 2}), remarks)


def _show_frequent_causes(evaluation: Evaluation) -> Iterator[Section]:
    """Where in the slices a cause stands out."""
    if not list_slice_counts(evaluation):
        return
    title, found = "Causes that stand out in slices", list_frequent_causes(evaluation)
    if not found:
        remark = "In no slice is a cause significantly more frequent than among the other questions."
        if evaluation.designs:
            remark = "Causes of slices were not tested: the test is only for questions that all count on their own."
        yield Section(title, (), (), remarks=(remark,))
        return
    rows = tuple(_describe_frequent(one, evaluation) for one in found[:_MOST_SLICES])
    more = len(found) - len(rows)
    verb = "stands" if more == 1 else "stand"
    counted = f"{count_noun(more, 'more cause')} {verb} out; results.json has the counts of every slice."
    remarks = (counted,) if more else ()
    header = ("slice", "cause", "system", "questions", "share", "other questions", f"{ADJUSTED} p")
    yield Section(title, header, rows, frozenset(range(3, len(header))), remarks)


def _describe_frequent(one: FrequentCause, evaluation: Evaluation) -> tuple[str, ...]:
    count = one.count
    slice_name = str(count.slice) if len(evaluation.datasets) == 1 else f"{count.slice} ({count.dataset})"
    others = format_percent(one.others / one.others_total, 0)
    of_all = f"{count.count} of {count.total}"
    return (
        slice_name,
        count.cause,
        count.system,
        of_all,
        describe_share(count),
        others,
        format_probability(one.p_adjusted),
    )


def describe_share(count: CauseCount) -> str:
    """`10% [1%, 20%]`: the share of questions with a cause, and its interval."""
    interval = count.interval
    ends = "" if interval is None else f" [{format_percent(interval.low, 0)}, {format_percent(interval.high, 0)}]"
    return format_percent(count.share, 0) + ends


def _show_weakest(evaluation: Evaluation, digits: int) -> Iterator[Section]:
    if not evaluation.slices:
        return
    title = "Weakest slices"
    if not evaluation.weakest:
        remarks = ("No slice is significantly worse than the other queries.", *_list_untested(evaluation))
        yield Section(title, (), (), remarks=remarks)
        return
    shown = evaluation.weakest[:_MOST_SLICES]
    rows = tuple(_describe_gap(gap, evaluation, digits) for gap in shown)
    more = len(evaluation.weakest) - len(shown)
    remarks = (f"{count_noun(more, 'more slice')} differ; results.json lists all of them.",) if more else ()
    remarks = (*remarks, *_list_untested(evaluation))
    header = ("slice", "metric", "system", "queries", "mean", "other queries", "difference", f"{ADJUSTED} p")
    yield Section(title, header, rows, frozenset(range(3, len(header))), remarks)


def _list_untested(evaluation: Evaluation) -> Iterator[str]:
    """The metrics for which no slice is tested against the rest."""
    metrics = dict.fromkeys(one.metric for one in evaluation.aggregates if one.correction is not None)
    if metrics:
        yield f"Not tested, because people's labels correct it: {', '.join(metrics)}."


def _describe_gap(gap: SliceGap, evaluation: Evaluation, digits: int) -> tuple[str, ...]:
    slice_name = gap.slice if len(evaluation.datasets) == 1 else f"{gap.slice} ({gap.dataset})"
    difference = f"{gap.difference:+.{digits}f} {format_interval(gap.interval, digits)}".strip()
    numbers = format_number(gap.mean, digits), format_number(gap.rest, digits), difference
    return (
        slice_name,
        gap.metric,
        gap.system,
        str(gap.queries),
        *numbers,
        format_probability(gap.p_adjusted),
    )


def _show_stages(evaluation: Evaluation) -> Iterator[Section]:
    """The tables of notes: how many samples each stage of a waterfall passed on, or the steps of a grade."""
    for note in evaluation.notes:
        if note.table:
            header, *rows = note.table
            metric = next((name for name in evaluation.metrics if note.message.startswith(f"{name}: ")), None)
            names = (metric, f"of {note.system}" if note.system else None)
            where = " ".join(name for name in names if name) or note.code
            numbers = frozenset(place for place in range(1, len(header)) if all(row[place].isdecimal() for row in rows))
            yield Section(f"{header[0].capitalize()}s of {where}", header, tuple(rows), numbers)
