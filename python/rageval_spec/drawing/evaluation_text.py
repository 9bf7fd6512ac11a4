"""Draws an evaluation as text for a terminal: the verdict, the tables, what to look at first, notes and gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rageval_spec.data.evaluation import Comparison, Evaluation, Overall
from rageval_spec.data.outcomes import GateOutcome, NoteLevel, Verdict
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.card_text import draw_entry
from rageval_spec.drawing.cards import list_first, write_show
from rageval_spec.drawing.question_order import got_no_answer
from rageval_spec.drawing.sections import (
    Section,
    describe_bands,
    describe_legend,
    is_improvement,
    list_sections,
    name_band,
    significance_mark,
)
from rageval_spec.drawing.terminal import Block, Column, Outer, Part, begin_table, chop_name, fit_tables, list_lines
from rageval_spec.drawing.verdict import (
    MARKS,
    SharedNote,
    describe_headline,
    describe_verdict,
    share_failures,
    share_notes,
    worst_first,
    worst_outcome,
)
from rageval_spec.libraries import Console, JustifyMethod, Text, cell_len
from rageval_spec.wording import NO_MEAN, count_noun, find_format, format_interval, format_mean

if TYPE_CHECKING:
    from pathlib import Path

_STYLES: dict[Verdict | None, str] = {
    "pass": "green",
    "warn": "yellow",
    "inconclusive": "yellow",
    "fail": "bold red",
    None: "",
}
_CHANGES: dict[bool | None, str] = {True: "green", False: "red", None: ""}
_WORDS: dict[Verdict, str] = {"pass": "pass", "warn": "warn", "fail": "FAIL", "inconclusive": "inconclusive"}
_NOTE_STYLES: dict[NoteLevel, str] = {"note": "cyan", "warning": "bold yellow"}
_VERDICTS: dict[Overall, str] = {
    "pass": "PASSED",
    "warn": "PASSED WITH WARNINGS",
    "fail": "FAILED",
    "error": "BROKEN",
}
_PASSED_GATES_SHOWN = 12
_NOTES_SHOWN = 20
_WHOLE_NAME = 24
_SLICES_SHOWN = 12


def draw_evaluation(
    evaluation: Evaluation, digits: int, console: Console, folder: Path | None = None
) -> Iterator[Block]:
    """The blocks of the report, for a console of a certain width. `folder` has the results, if they are written."""
    yield from _headline(evaluation, digits)
    if evaluation.failures and got_no_answer(evaluation):  # a server that is down is one message
        yield _verdict_line(evaluation)
        return
    for dataset in evaluation.datasets:
        yield Text.assemble((make_visible(evaluation.name), "bold"), " on ", (make_visible(dataset), "bold"))
        yield ""
        yield from _tables(evaluation, dataset, digits, console)
        legend = [*describe_bands(evaluation), *describe_legend(evaluation, dataset)]
        yield from list_lines((sign, make_visible(sentence), "dim") for sign, sentence in legend)
    yield from _slices(evaluation, digits, console)
    for section in list_sections(evaluation, digits):
        yield from _section(section)
    yield from _look_first(evaluation, folder)
    told = [note for note in share_notes(evaluation) if not any(note.message in one for one in evaluation.failures)]
    yield from list_lines(_note_lines(told))
    yield from list_lines(_gate_lines(evaluation.gates))
    yield _verdict_line(evaluation)


def _headline(evaluation: Evaluation, digits: int) -> Iterator[Block]:
    headline = describe_headline(evaluation, digits)
    worst = _worst(evaluation.verdict)
    start = f"{MARKS[worst]} " if evaluation.gates or worst != "pass" else ""
    reason = f" {make_visible(headline.reason)}" if headline.reason else ""
    yield Text.assemble((f"{start}{headline.title}", _style(worst)), f": {headline.summary}.{reason}")
    yield from ((sentence, "yellow") for sentence in headline.taken_over)
    yield ""
    others = share_failures(evaluation)[1:]
    yield from list_lines((MARKS["fail"], make_visible(failure), "bold red") for failure in others)


def _slices(evaluation: Evaluation, digits: int, console: Console) -> Iterator[Block]:
    """For each dataset and system a table with a row for each slice and a column for each metric."""
    for dataset in dict.fromkeys(one.dataset for one in evaluation.slices):
        slices = [one for one in evaluation.slices if one.dataset == dataset]
        largest = sorted(slices, key=lambda one: -one.queries)[:_SLICES_SHOWN]
        shown = [one for one in slices if one in largest]
        names, counts = [chop_name(one.name) for one in shown], [Text(str(one.queries), "dim") for one in shown]
        place = "" if len(evaluation.datasets) == 1 else f" on {dataset}"
        for system in evaluation.systems:
            columns = [
                Column(metric, cells)
                for metric in evaluation.metrics
                for cells in [[_cell(evaluation, dataset, system, metric, digits, one.name) for one in shown]]
                if any(cell[0].text not in ("", NO_MEAN) for cell in cells)
            ]
            if columns:
                yield f"Slices of {system}{place}", "bold"
                yield from _fit(columns, columns, console, ("slice", names), ("queries", counts))
        if more := len(slices) - len(shown):
            yield f"{count_noun(more, 'other slice')} with fewer queries: see results.json"
            yield ""


def _section(section: Section) -> Iterator[Block]:
    yield section.title, "bold"
    if section.rows:
        table = begin_table()
        for place, name in enumerate(section.header):
            # A name that fits is kept whole: headers and sentences wrap instead.
            is_name = place == 0 and max(cell_len(row[0]) for row in section.rows) <= _WHOLE_NAME
            justify: JustifyMethod = "right" if place in section.numbers else "left"
            table.add_column(Text(make_visible(name)), justify=justify, no_wrap=is_name)
        for row in section.rows:
            table.add_row(*(Text(make_visible(cell)) for cell in row))
        yield table
    yield from section.remarks
    yield ""


def _look_first(evaluation: Evaluation, folder: Path | None) -> Iterator[Block]:
    found = list_first(evaluation)
    if not found:
        return
    yield "Look at first", "bold"
    yield ""
    several = len(evaluation.datasets) > 1
    for card, metric in found:
        names = [card.system, *([card.dataset] if several else [])]
        yield from draw_entry(card, names, None if metric is None else card.value(metric))
        yield ""
    if folder is not None:
        yield f"One question in full: {write_show(found[0][0].query_id, str(folder))}", "dim"
        yield ""


def _tables(evaluation: Evaluation, dataset: str, digits: int, console: Console) -> Iterator[Block]:
    """One table if all systems fit, with cells of one line or two; otherwise as few tables as possible.

    Columns with the difference from another system of the table are left out if they do not fit: the system's own
    column is there too.
    """
    columns = [*_columns(evaluation, dataset, digits)]
    own = [column for column in columns if column.baseline not in evaluation.systems]
    counts = [_common_scored(evaluation, dataset, metric) for metric in evaluation.metrics]
    names, last = [chop_name(metric) for metric in evaluation.metrics], "scored" if any(counts) else ""
    yield from _fit(columns, own, console, ("metric", names), (last, [Text(count, "dim") for count in counts]))


def _fit(columns: Sequence[Column], own: Sequence[Column], console: Console, *outer: Outer) -> Iterator[Block]:
    """As few tables of columns as fit the console; without those that are not in `own` if there is no space."""
    fewer = [[own[start : start + size] for start in range(0, len(own), size)] for size in range(len(own), 0, -1)]
    layouts = [([columns], False), ([columns], True), ([own], False), *((parts, True) for parts in fewer)]
    for table in fit_tables(layouts, console, *outer):
        yield table
        yield ""


def _columns(evaluation: Evaluation, dataset: str, digits: int) -> Iterator[Column]:
    """For each system its means, then its differences from each baseline of a gate."""
    changes: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in evaluation.baselines:
        if comparison.dataset == dataset and comparison.slice is None:
            changes.setdefault((comparison.system, comparison.baseline), {})[comparison.metric] = comparison
    for system in evaluation.systems:
        yield Column(system, [_cell(evaluation, dataset, system, metric, digits) for metric in evaluation.metrics])
        for (of, baseline), found in changes.items():
            if of == system:
                cells = [_change(evaluation, found.get(metric), digits) for metric in evaluation.metrics]
                yield Column(f"{system} vs {baseline}", cells, baseline)


def _change(evaluation: Evaluation, comparison: Comparison | None, digits: int) -> Sequence[Part]:
    if comparison is None:
        return _parts()
    shown = find_format(evaluation, comparison.metric).change
    number = shown(comparison.difference, digits)
    return _parts(
        number if number.startswith("-") else f"+{number}",
        format_interval(comparison.interval, digits, shown),
        mark=significance_mark(comparison),
        is_good=is_improvement(comparison, evaluation),
    )


def _cell(
    evaluation: Evaluation, dataset: str, system: str, metric: str, digits: int, slice: str | None = None
) -> Sequence[Part]:
    cell = evaluation.aggregate(dataset, system, metric, slice)
    if cell is None:
        return _parts()
    comparison = evaluation.comparison(dataset, system, metric, slice)
    is_counted = cell.scored == cell.total if slice else bool(_common_scored(evaluation, dataset, metric))
    shown = find_format(evaluation, metric)
    return _parts(
        format_mean(cell, digits, shown),
        format_interval(cell.interval, digits, shown.number),
        name_band(evaluation, cell),
        significance_mark(comparison),
        None if comparison is None else is_improvement(comparison, evaluation),
        worst_outcome(evaluation.outcomes(dataset, system, metric, slice)),
        "" if is_counted else f"{cell.scored}/{cell.total}",
    )


def _parts(
    number: str = "",
    interval: str = "",
    band: str = "",
    mark: str = "",
    is_good: bool | None = None,
    gate: Verdict | None = None,
    scored: str = "",
) -> Sequence[Part]:
    """The parts of a cell; `scored` is empty if the row's last column shows it."""
    return (
        Part(number, "bold"),
        Part(interval, "dim", is_below=True),
        Part(band, is_below=True),
        Part(mark, _CHANGES[is_good]),
        Part(MARKS[gate] if gate else "", _STYLES[gate]),
        Part(scored, is_below=True),
    )


def _common_scored(evaluation: Evaluation, dataset: str, metric: str) -> str:
    """`40/40` if all systems have the same counts, else ""."""
    cells = (evaluation.aggregate(dataset, system, metric) for system in evaluation.systems)
    counts = {f"{cell.scored}/{cell.total}" for cell in cells if cell is not None}
    return counts.pop() if len(counts) == 1 else ""


def _gate_lines(gates: Sequence[GateOutcome]) -> Iterator[tuple[str, str, str]]:
    passed = sum(gate.outcome == "pass" for gate in gates)
    shown = worst_first(gates)[: len(gates) - max(0, passed - _PASSED_GATES_SHOWN)]
    for gate in shown:
        label = f"{MARKS[gate.outcome]} {_WORDS[gate.outcome]}"
        yield label, make_visible(gate.reason), _STYLES[gate.outcome]
    if more := len(gates) - len(shown):
        yield f"{MARKS['pass']} {_WORDS['pass']}", count_noun(more, "other gate"), _STYLES["pass"]


def _note_lines(notes: Sequence[SharedNote]) -> Iterator[tuple[str, str, str]]:
    for note in notes[:_NOTES_SHOWN]:
        yield note.level, make_visible(str(note)), _NOTE_STYLES[note.level]
    if (more := len(notes) - _NOTES_SHOWN) > 0:
        yield "note", f"{count_noun(more, 'other note')}; the JSON report lists all of them", "cyan"


def _verdict_line(evaluation: Evaluation) -> Text:
    worst = _worst(evaluation.verdict)
    mark, word = MARKS[worst], _VERDICTS[evaluation.verdict]
    return Text.assemble((f"{mark} {word}", _style(worst)), f": {describe_verdict(evaluation)}")


def _worst(verdict: Overall) -> Verdict:
    return "fail" if verdict == "error" else verdict


def _style(outcome: Verdict) -> str:
    return "bold green" if outcome == "pass" else _STYLES[outcome]
