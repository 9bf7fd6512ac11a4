"""Draws text for a terminal: the console, lists of lines, tables of any width, and names that they can show.

Colours appear on a terminal unless NO_COLOR is set. In a pipe, lines have a fixed width.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from io import StringIO
from typing import NamedTuple, TypeAlias

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import Console, RenderableType, Table, Text, box, cell_len, chop_cells

Block: TypeAlias = "tuple[str, str] | RenderableType"
"""A line of text, one with its style, or what rich draws. Lines are made visible when they are shown."""
_WIDTH_IN_A_PIPE = 100
_NARROWEST = 40
_NAME_WIDTH = 28
_NAME_PARTS = re.compile(r"[^\s_(,/.@:-]+[\s_(,/.@:-]*|[\s_(,/.@:-]+")


def render_text(draw: Callable[[Console], Iterable[Block]], width: int | None = None) -> bytes:
    """Render what `draw` returns as text in UTF-8, coloured on a terminal unless NO_COLOR is set.

    `width` is in columns; by default it is the terminal's width, or 100 in a pipe.
    """
    is_terminal = sys.stdout.isatty()
    colour = (bool(os.environ.get("FORCE_COLOR")) or is_terminal) and os.environ.get("TERM") != "dumb"
    colour = colour and not os.environ.get("NO_COLOR")
    columns = shutil.get_terminal_size((80 if is_terminal else _WIDTH_IN_A_PIPE, 24)).columns
    text = StringIO()
    console = Console(
        file=text,
        width=width or max(_NARROWEST, columns),
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for block in draw(console):
        if isinstance(block, str | tuple):
            line, style = (block, "") if isinstance(block, str) else block
            block = Text(make_visible(line), style)
        # rich joins texts to a new one before it prints them, which forgets what each says about wrapping
        told = block if isinstance(block, Text) else Text()
        console.print(block, crop=False, no_wrap=told.no_wrap, overflow=told.overflow)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def list_lines(lines: Iterable[tuple[str, str, str]]) -> Iterator[RenderableType]:
    """Lay out lines of (label, sentence, style) so that a wrapped sentence continues in its own column.

    Yields nothing if there are no lines.
    """
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, sentence, style in lines:
        grid.add_row(Text(label, style), Text(sentence, style if style == "dim" else ""))
    if grid.row_count:
        yield grid
        yield ""


def begin_table(leading: int = 0) -> Table:
    """An empty table with a line below its header, and `leading` empty lines between its rows."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, leading=leading)


def tabulate(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]) -> RenderableType:
    """A table with a line below its header; `numbers` are the places of the columns that are aligned right."""
    table = begin_table()
    for place, name in enumerate(header):
        table.add_column(Text(make_visible(name)), justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_visible(cell)) for cell in row))
    return table


class Part(NamedTuple):
    """A part of a cell, with its style; where cells have several lines, `is_below` gives it a line of its own."""

    text: str
    style: str = ""
    is_below: bool = False


class Column(NamedTuple):
    """A column of a wide table. All of its cells have equally many parts, of which the first is a number."""

    title: str
    cells: Sequence[Sequence[Part]]
    baseline: str | None = None


Outer: TypeAlias = "tuple[str, Sequence[Text]]"
"""The header and the cells of a table's first or last column."""


def fit_tables(
    layouts: Iterable[tuple[Sequence[Sequence[Column]], bool]], console: Console, *outer: Outer
) -> list[Table]:
    """The tables of the first layout that is not wider than the console; else of the last one, as wide as they are.

    A layout has the columns of each table, and says whether cells have several lines. `outer` is the first column of
    each table, and perhaps its last.
    """
    for parts, is_stacked in layouts:
        tables = [_draw_columns(part, outer, is_stacked, is_whole=len(parts) == 1) for part in parts]
        if all(_measure_width(table, console) <= console.width for table in tables):
            return tables
    for table in tables:
        table.width = _measure_width(table, console)
    return tables


def _measure_width(table: Table, console: Console) -> int:
    """The width in columns that a table needs to show everything."""
    return console.measure(table, options=console.options.update(max_width=100_000)).maximum


def _draw_columns(columns: Sequence[Column], outer: Sequence[Outer], is_stacked: bool, *, is_whole: bool) -> Table:
    """A table of these columns; one of several tables has no row for what none of its columns has."""
    table = begin_table(leading=int(is_stacked))
    draw = _stack if is_stacked else _line_up
    inner = [(chop_name(column.title), draw(column.cells)) for column in columns]
    shown = [(Text(outer[0][0]), outer[0][1]), *inner, *((Text(title), cells) for title, cells in outer[1:])]
    for header, _ in shown:
        table.add_column(header, no_wrap=True)
    for at, row in enumerate(zip(*(cells for _, cells in shown), strict=True)):
        if is_whole or any(column.cells[at][0].text for column in columns):
            table.add_row(*row)
    return table


def _line_up(cells: Sequence[Sequence[Part]]) -> list[Text]:
    """Each cell on one line, its parts aligned with those of the cell above."""
    widths = [max(len(part.text) for part in parts) for parts in zip(*cells, strict=True)]
    lines = []
    for (number, *parts), (first, *others) in ((cell, widths) for cell in cells):
        padded = [part._replace(text=part.text.ljust(width)) for part, width in zip(parts, others, strict=True)]
        lines.append(_join([number._replace(text=number.text.rjust(first)), *padded]))
    return lines


def _stack(cells: Sequence[Sequence[Part]]) -> list[Text]:
    beside = [_join([part for part in cell if not part.is_below]) for cell in cells]
    below = [[Text(part.text, part.style) for part in cell if part.is_below and part.text] for cell in cells]
    return [Text("\n").join([first, *rest]) for first, rest in zip(beside, below, strict=True)]


def _join(parts: Sequence[Part]) -> Text:
    text = Text(" ").join([Text(part.text, part.style) for part in parts if part.text])
    text.rstrip()
    return text


def chop_name(name: str) -> Text:
    """A name as a table shows it: on several lines if it is long, and without control characters."""
    return Text("\n".join(wrap_name(make_visible(name))))


def wrap_name(name: str, longest: int = _NAME_WIDTH) -> list[str]:
    """The lines of a name, broken after punctuation, and within a word only if the word is too long."""
    lines = [""]
    for part in _NAME_PARTS.findall(name):
        for piece in [part] if cell_len(part) <= longest else chop_cells(part, longest):
            if cell_len(lines[-1] + piece) <= longest:
                lines[-1] += piece
            else:
                lines.append(piece)
    return lines
