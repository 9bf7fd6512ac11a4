"""Draws an evaluation as text for a terminal: the verdict, the tables, what to look at first, notes and gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Overall
from rageval_spec.data.outcomes import GateOutcome, NoteLevel, Verdict
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.card_text import draw_entry
from rageval_spec.drawing.cards import list_first, write_show
from rageval_spec.drawing.legend import describe_bands, describe_legend, is_improvement, name_band, significance_mark
from rageval_spec.drawing.question_order import got_no_answer
from rageval_spec.drawing.sections import Section, list_sections
from rageval_spec.drawing.terminal import chop_name, list_lines, measure_width
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
from rageval_spec.wording import NO_MEAN, count_noun, find_format, format_interval, format_mean

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, JustifyMethod, RenderableType
    from rich.table import Table
    from rich.text import Text

    _Outer: TypeAlias = tuple[str, Sequence[Text]]
    """The header and the cells of a table's first or last column."""

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
) -> Iterator[RenderableType]:
    """The blocks of the report, for a console of a certain width. `folder` has the results, if they are written."""
    yield from _headline(evaluation, digits)
    if evaluation.failures and got_no_answer(evaluation):  # a server that is down is one message
        yield _verdict_line(evaluation)
        return
    for dataset in evaluation.datasets:
        yield _heading(evaluation, dataset)
        yield ""
        for table in _fitting_tables(evaluation, dataset, digits, console):
            yield table
            yield ""
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


def _headline(evaluation: Evaluation, digits: int) -> Iterator[RenderableType]:
    from rich.text import Text

    headline = describe_headline(evaluation, digits)
    worst = _worst(evaluation.verdict)
    start = f"{MARKS[worst]} " if evaluation.gates or worst != "pass" else ""
    reason = f" {make_visible(headline.reason)}" if headline.reason else ""
    yield Text.assemble((f"{start}{headline.title}", _style(worst)), f": {headline.summary}.{reason}")
    yield from (Text(make_visible(sentence), "yellow") for sentence in headline.taken_over)
    yield ""
    others = share_failures(evaluation)[1:]
    yield from list_lines((MARKS["fail"], make_visible(failure), "bold red") for failure in others)


def _slices(evaluation: Evaluation, digits: int, console: Console) -> Iterator[RenderableType]:
    """For each dataset and system a table with a row for each slice and a column for each metric."""
    from rich.text import Text

    for dataset in dict.fromkeys(one.dataset for one in evaluation.slices):
        slices = [one for one in evaluation.slices if one.dataset == dataset]
        largest = sorted(slices, key=lambda one: -one.queries)[:_SLICES_SHOWN]
        shown = [one for one in slices if one in largest]
        names, counts = [chop_name(one.name) for one in shown], [Text(str(one.queries), "dim") for one in shown]
        place = "" if len(evaluation.datasets) == 1 else f" on {dataset}"
        for system in evaluation.systems:
            columns = [*_slice_columns(evaluation, dataset, system, [one.name for one in shown], digits)]
            if not columns:
                continue
            yield Text(make_visible(f"Slices of {system}{place}"), "bold")
            for table in _fit(columns, columns, ("slice", names), ("queries", counts), console):
                yield table
                yield ""
        if more := len(slices) - len(shown):
            yield Text(f"{count_noun(more, 'other slice')} with fewer queries: see results.json")
            yield ""


def _slice_columns(
    evaluation: Evaluation, dataset: str, system: str, slices: Sequence[str], digits: int
) -> Iterator[_Column]:
    for metric in evaluation.metrics:
        parts = [_parts(evaluation, dataset, system, metric, digits, name) for name in slices]
        if any(part.number not in ("", NO_MEAN) for part in parts):
            yield _Column(metric, parts)


def _section(section: Section) -> Iterator[RenderableType]:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    yield Text(make_visible(section.title), "bold")
    if section.rows:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for place, name in enumerate(section.header):
            # A name that fits is kept whole: headers and sentences wrap instead.
            is_name = place == 0 and max(cell_len(row[0]) for row in section.rows) <= _WHOLE_NAME
            justify: JustifyMethod = "right" if place in section.numbers else "left"
            table.add_column(Text(make_visible(name)), justify=justify, no_wrap=is_name)
        for row in section.rows:
            table.add_row(*(Text(make_visible(cell)) for cell in row))
        yield table
    yield from (Text(make_visible(remark)) for remark in section.remarks)
    yield ""


def _look_first(evaluation: Evaluation, folder: Path | None) -> Iterator[RenderableType]:
    """The questions to look at first, each once."""
    from rich.text import Text

    found = list_first(evaluation)
    if not found:
        return
    yield Text("Look at first", "bold")
    yield ""
    several = len(evaluation.datasets) > 1
    for card, metric in found:
        names = [card.system, *([card.dataset] if several else [])]
        yield from draw_entry(card, names, None if metric is None else card.value(metric))
        yield ""
    if folder is not None:
        yield Text(f"One question in full: {write_show(found[0][0].query_id, str(folder))}", "dim")
        yield ""


def _heading(evaluation: Evaluation, dataset: str) -> Text:
    from rich.text import Text

    return Text.assemble((make_visible(evaluation.name), "bold"), " on ", (make_visible(dataset), "bold"))


def _fitting_tables(evaluation: Evaluation, dataset: str, digits: int, console: Console) -> list[Table]:
    """One table if all systems fit, with cells of one line or two; otherwise as few tables as possible.

    Columns with the difference from another system of the table are left out if they do not fit: the system's own
    column is there too.
    """
    columns = [*_columns(evaluation, dataset, digits)]
    own = [column for column in columns if column.baseline not in evaluation.systems]
    counts = _common_counts(evaluation, dataset)
    return _fit(columns, own, ("metric", _names(evaluation)), ("scored" if any(counts) else "", counts), console)


def _fit(
    columns: Sequence[_Column], own: Sequence[_Column], first: _Outer, last: _Outer, console: Console
) -> list[Table]:
    """As few tables of columns as fit the console; without those that are not in `own` if there is no space."""
    layouts = [(columns, len(columns), stacked) for stacked in (False, True)]
    layouts += [(own, len(own), False), *((own, size, True) for size in range(len(own), 0, -1))]
    for shown, size, stacked in layouts:
        parts = [shown[start : start + size] for start in range(0, len(shown), size)]
        tables = [_table(part, first, last, stacked, len(parts) == 1) for part in parts]
        if all(measure_width(table, console) <= console.width for table in tables):
            return tables
    for table in tables:
        table.width = measure_width(table, console)
    return tables


def _table(columns: Sequence[_Column], first: _Outer, last: _Outer, stacked: bool, is_whole: bool) -> Table:
    """A table of these columns; one of several tables has no row for what none of its columns has."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, leading=int(stacked))
    headers = (chop_name(column.title) for column in columns)
    for header in (Text(first[0]), *headers, Text(last[0])):
        table.add_column(header, no_wrap=True)
    filled = [any(parts.number for parts in row) for row in zip(*(column.parts for column in columns), strict=True)]
    for at, row in enumerate(zip(first[1], *(_cells(column, stacked) for column in columns), last[1], strict=True)):
        if filled[at] or is_whole:
            table.add_row(*row)
    return table


def _names(evaluation: Evaluation) -> list[Text]:
    return [chop_name(metric) for metric in evaluation.metrics]


def _common_counts(evaluation: Evaluation, dataset: str) -> list[Text]:
    from rich.text import Text

    return [Text(_common_scored(evaluation, dataset, metric), "dim") for metric in evaluation.metrics]


class _Parts(NamedTuple):
    """The parts of a cell; `scored` is empty if the row's last column shows it, `is_good` None where neither is."""

    number: str = ""
    interval: str = ""
    mark: str = ""
    gate: Verdict | None = None
    scored: str = ""
    is_good: bool | None = None
    band: str = ""


class _Column(NamedTuple):
    """A column of a table: a system's means, or its differences from a baseline."""

    title: str
    parts: Sequence[_Parts]
    baseline: str | None = None


def _columns(evaluation: Evaluation, dataset: str, digits: int) -> Iterator[_Column]:
    """For each system its means, then its differences from each baseline of a gate."""
    changes: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in evaluation.baselines:
        if comparison.dataset == dataset and comparison.slice is None:
            changes.setdefault((comparison.system, comparison.baseline), {})[comparison.metric] = comparison
    for system in evaluation.systems:
        yield _Column(system, [_parts(evaluation, dataset, system, metric, digits) for metric in evaluation.metrics])
        for (of, baseline), found in changes.items():
            if of == system:
                parts = [_change(evaluation, found.get(metric), digits) for metric in evaluation.metrics]
                yield _Column(f"{system} vs {baseline}", parts, baseline)


def _change(evaluation: Evaluation, comparison: Comparison | None, digits: int) -> _Parts:
    if comparison is None:
        return _Parts()
    shown = find_format(evaluation, comparison.metric).change
    number = shown(comparison.difference, digits)
    return _Parts(
        number if number.startswith("-") else f"+{number}",
        format_interval(comparison.interval, digits, shown),
        significance_mark(comparison),
        is_good=is_improvement(comparison, evaluation),
    )


def _parts(
    evaluation: Evaluation, dataset: str, system: str, metric: str, digits: int, slice: str | None = None
) -> _Parts:
    cell = evaluation.aggregate(dataset, system, metric, slice)
    if cell is None:
        return _Parts()
    comparison = evaluation.comparison(dataset, system, metric, slice)
    is_counted = cell.scored == cell.total if slice else bool(_common_scored(evaluation, dataset, metric))
    shown = find_format(evaluation, metric)
    return _Parts(
        number=format_mean(cell, digits, shown),
        interval=format_interval(cell.interval, digits, shown.number),
        band=name_band(evaluation, cell),
        mark=significance_mark(comparison),
        gate=worst_outcome(evaluation.outcomes(dataset, system, metric, slice)),
        scored="" if is_counted else _scored(cell),
        is_good=None if comparison is None else is_improvement(comparison, evaluation),
    )


def _scored(cell: Aggregate) -> str:
    return f"{cell.scored}/{cell.total}"


def _common_scored(evaluation: Evaluation, dataset: str, metric: str) -> str:
    """`40/40` if all systems have the same counts, else ""."""
    cells = (evaluation.aggregate(dataset, system, metric) for system in evaluation.systems)
    counts = {_scored(cell) for cell in cells if cell is not None}
    return counts.pop() if len(counts) == 1 else ""


def _cells(column: _Column, stacked: bool) -> list[Text]:
    """The cells of one system, with their parts aligned on one line, or stacked."""
    if stacked:
        return [_stack(parts) for parts in column.parts]
    widths = (
        max(len(parts.number) for parts in column.parts),
        max(len(parts.interval) for parts in column.parts),
        max(len(parts.band) for parts in column.parts),
        max(len(parts.mark) for parts in column.parts),
        max(len(_gate_mark(parts)) for parts in column.parts),
    )
    return [_line_up(parts, *widths) for parts in column.parts]


def _line_up(parts: _Parts, number: int, interval: int, band: int, mark: int, gate: int) -> Text:
    """The parts of a cell on one line, each padded to a width."""
    return _join(
        (parts.number.rjust(number), "bold"),
        (parts.interval.ljust(interval), "dim"),
        (parts.band.ljust(band), ""),
        (parts.mark.ljust(mark), _CHANGES[parts.is_good] if parts.mark else ""),
        (_gate_mark(parts).ljust(gate), _STYLES[parts.gate]),
        (parts.scored, ""),
    )


def _stack(parts: _Parts) -> Text:
    from rich.text import Text

    first = _join(
        (parts.number, "bold"), (parts.mark, _CHANGES[parts.is_good]), (_gate_mark(parts), _STYLES[parts.gate])
    )
    below = [Text(parts.interval, "dim"), Text(parts.band), Text(parts.scored)]
    return Text("\n").join([first, *(line for line in below if line)])


def _gate_mark(parts: _Parts) -> str:
    return MARKS[parts.gate] if parts.gate else ""


def _join(*parts: tuple[str, str]) -> Text:
    """Join the non-empty parts with spaces."""
    from rich.text import Text

    text = Text(" ").join([Text(part, style) for part, style in parts if part])
    text.rstrip()
    return text


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
    from rich.text import Text

    worst = _worst(evaluation.verdict)
    mark, word = MARKS[worst], _VERDICTS[evaluation.verdict]
    return Text.assemble((f"{mark} {word}", _style(worst)), f": {describe_verdict(evaluation)}")


def _worst(verdict: Overall) -> Verdict:
    return "fail" if verdict == "error" else verdict


def _style(outcome: Verdict) -> str:
    return "bold green" if outcome == "pass" else _STYLES[outcome]
