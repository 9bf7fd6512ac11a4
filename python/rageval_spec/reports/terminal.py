"""`terminal`: the result as tables of text, for people.

Each dataset has a table with a row for each metric and a column for each system. If a line is too wide, cells take two
lines; if that is still too wide, some systems move to another table. A number is never cut off. Marks have a shape for
everything that a colour shows.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field

from rageval_spec.plugin import Report, ReportNode
from rageval_spec.reports.shared.legend import describe_legend, significance_mark
from rageval_spec.reports.shared.notes import SharedNote, share_notes
from rageval_spec.reports.shared.outcomes import MARKS, describe_verdict, worst_first, worst_outcome
from rageval_spec.wording import DIGITS, count_noun, format_interval, format_mean, make_visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

    from rageval_spec.data.evaluation import Aggregate, Evaluation, GateOutcome, Overall, Verdict
    from rageval_spec.data.note import NoteLevel

_STYLES: dict[Verdict | None, str] = {"pass": "green", "warn": "yellow", "fail": "bold red", None: ""}
_WORDS: dict[Verdict, str] = {"pass": "pass", "warn": "warn", "fail": "FAIL"}
_NOTE_STYLES: dict[NoteLevel, str] = {"note": "cyan", "warning": "bold yellow"}
_VERDICTS: dict[Overall, str] = {
    "pass": "PASSED",
    "warn": "PASSED WITH WARNINGS",
    "fail": "FAILED",
    "error": "BROKEN",
}
_WIDTH_IN_A_PIPE = 100
_NARROWEST = 40
_NAME_WIDTH = 28
_NAME_PARTS = re.compile(r"[^\s_(,/.@:-]+[\s_(,/.@:-]*|[\s_(,/.@:-]+")
_PASSED_GATES_SHOWN = 12
_NOTES_SHOWN = 20


class TerminalNode(ReportNode):
    """Settings of the report `terminal`: tables and the outcome, for people."""

    digits: int = Field(default=DIGITS, ge=1, le=15, description="Digits after the point.")
    width: int | None = Field(
        default=None, ge=_NARROWEST, description="Width in columns; the terminal's width by default."
    )


class TerminalReport(Report[TerminalNode]):
    """Renders an evaluation as tables in text, coloured on a terminal unless NO_COLOR is set."""

    node_type = TerminalNode
    known_as = ("console", "stdout", "text", "table")
    filename: ClassVar[str | None] = None

    def render(self, evaluation: Evaluation) -> bytes:
        """Text in UTF-8, with ANSI colours if standard output is a terminal."""
        return render_text(lambda console: _blocks(evaluation, self.node.digits, console), self.node.width)


def render_text(draw: Callable[[Console], Iterable[RenderableType]], width: int | None = None) -> bytes:
    """Render what `draw` returns as text in UTF-8, coloured on a terminal unless NO_COLOR is set.

    `width` is in columns; by default it is the terminal's width, or 100 in a pipe.
    """
    from rich.console import Console

    colour = _wants_colour()
    text = StringIO()
    console = Console(
        file=text,
        width=width or _terminal_width(),
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for block in draw(console):
        console.print(block, crop=False)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _wants_colour() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _terminal_width() -> int:
    fallback = 80 if sys.stdout.isatty() else _WIDTH_IN_A_PIPE
    return max(_NARROWEST, shutil.get_terminal_size((fallback, 24)).columns)


def _blocks(evaluation: Evaluation, digits: int, console: Console) -> Iterator[RenderableType]:
    for dataset in evaluation.datasets:
        yield _heading(evaluation, dataset)
        yield ""
        for table in _fitting_tables(evaluation, dataset, digits, console):
            yield table
            yield ""
        legend = describe_legend(evaluation, dataset)
        yield from list_lines((sign, make_visible(sentence), "dim") for sign, sentence in legend)
    yield from list_lines(_note_lines(share_notes(evaluation)))
    yield from list_lines(_gate_lines(evaluation.gates))
    yield _verdict_line(evaluation)


def _heading(evaluation: Evaluation, dataset: str) -> Text:
    from rich.text import Text

    return Text.assemble((make_visible(evaluation.name), "bold"), " on ", (make_visible(dataset), "bold"))


def list_lines(lines: Iterable[tuple[str, str, str]]) -> Iterator[RenderableType]:
    """Lay out lines of (label, sentence, style) so that a wrapped sentence continues in its own column.

    Yields nothing if there are no lines.
    """
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, sentence, style in lines:
        grid.add_row(Text(label, style), Text(sentence, style if style == "dim" else ""))
    if grid.row_count:
        yield grid
        yield ""


def _fitting_tables(evaluation: Evaluation, dataset: str, digits: int, console: Console) -> list[Table]:
    """One table if all systems fit, with cells of one line or two; otherwise as few tables as possible."""
    columns = [_column(evaluation, dataset, system, digits) for system in evaluation.systems]
    ends = _names(evaluation), _common_counts(evaluation, dataset)
    layouts = [(len(columns), False), *((size, True) for size in range(len(columns), 0, -1))]
    for size, stacked in layouts:
        parts = [columns[start : start + size] for start in range(0, len(columns), size)]
        tables = [_table(part, *ends, stacked) for part in parts]
        if all(measure_width(table, console) <= console.width for table in tables):
            return tables
    for table in tables:
        table.width = measure_width(table, console)
    return tables


def measure_width(table: Table, console: Console) -> int:
    """The width in columns that a table needs to show everything."""
    return console.measure(table, options=console.options.update(max_width=100_000)).maximum


def _table(columns: Sequence[_Column], names: Sequence[Text], counts: Sequence[Text], stacked: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, leading=int(stacked))
    headers = (chop_name(column.system) for column in columns)
    for header in (Text("metric"), *headers, Text("scored" if any(counts) else "")):
        table.add_column(header, no_wrap=True)
    for row in zip(names, *(_cells(column, stacked) for column in columns), counts, strict=True):
        table.add_row(*row)
    return table


def _names(evaluation: Evaluation) -> list[Text]:
    return [chop_name(metric) for metric in evaluation.metrics]


def _common_counts(evaluation: Evaluation, dataset: str) -> list[Text]:
    from rich.text import Text

    return [Text(_common_scored(evaluation, dataset, metric), "dim") for metric in evaluation.metrics]


def chop_name(name: str) -> Text:
    """A name as a table shows it: on several lines if it is long, and without control characters."""
    from rich.text import Text

    return Text("\n".join(_wrap_name(make_visible(name))))


def _wrap_name(name: str) -> list[str]:
    """The lines of a name, broken after punctuation, and within a word only if the word is too long."""
    from rich.cells import cell_len, chop_cells

    lines = [""]
    for part in _NAME_PARTS.findall(name):
        for piece in [part] if cell_len(part) <= _NAME_WIDTH else chop_cells(part, _NAME_WIDTH):
            if cell_len(lines[-1] + piece) <= _NAME_WIDTH:
                lines[-1] += piece
            else:
                lines.append(piece)
    return lines


class _Parts(NamedTuple):
    """The parts of a cell; `scored` is empty if the row's last column shows it."""

    number: str
    interval: str
    mark: str
    gate: Verdict | None
    scored: str


class _Column(NamedTuple):
    system: str
    parts: Sequence[_Parts]


def _column(evaluation: Evaluation, dataset: str, system: str, digits: int) -> _Column:
    return _Column(system, [_parts(evaluation, dataset, system, metric, digits) for metric in evaluation.metrics])


def _parts(evaluation: Evaluation, dataset: str, system: str, metric: str, digits: int) -> _Parts:
    cell = evaluation.aggregate(dataset, system, metric)
    if cell is None:
        return _Parts("", "", "", None, "")
    return _Parts(
        number=format_mean(cell, digits),
        interval=format_interval(cell.interval, digits),
        mark=significance_mark(evaluation.comparison(dataset, system, metric)),
        gate=worst_outcome(evaluation.outcomes(dataset, system, metric)),
        scored="" if _common_scored(evaluation, dataset, metric) else _scored(cell),
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
        max(len(parts.mark) for parts in column.parts),
        max(len(_gate_mark(parts)) for parts in column.parts),
    )
    return [_line_up(parts, *widths) for parts in column.parts]


def _line_up(parts: _Parts, number_width: int, interval_width: int, mark_width: int, gate_width: int) -> Text:
    return _join(
        (parts.number.rjust(number_width), "bold"),
        (parts.interval.ljust(interval_width), "dim"),
        (parts.mark.ljust(mark_width), ""),
        (_gate_mark(parts).ljust(gate_width), _STYLES[parts.gate]),
        (parts.scored, ""),
    )


def _stack(parts: _Parts) -> Text:
    from rich.text import Text

    first = _join((parts.number, "bold"), (parts.mark, ""), (_gate_mark(parts), _STYLES[parts.gate]))
    below = [Text(parts.interval, "dim"), Text(parts.scored)]
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

    worst: Verdict = "fail" if evaluation.verdict == "error" else evaluation.verdict
    style = "bold green" if worst == "pass" else _STYLES[worst]
    mark, word = MARKS[worst], _VERDICTS[evaluation.verdict]
    return Text.assemble((f"{mark} {word}", style), f": {describe_verdict(evaluation)}")


PLUGIN = TerminalReport
