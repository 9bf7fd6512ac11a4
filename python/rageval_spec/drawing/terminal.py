"""Draws text for a terminal: the console, lists of lines, and names that tables can show.

Colours appear on a terminal unless NO_COLOR is set. In a pipe, lines have a fixed width.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rageval_spec.diagnostics import make_visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

_WIDTH_IN_A_PIPE = 100
_NARROWEST = 40
_NAME_WIDTH = 28
_NAME_PARTS = re.compile(r"[^\s_(,/.@:-]+[\s_(,/.@:-]*|[\s_(,/.@:-]+")


def render_text(draw: Callable[[Console], Iterable[RenderableType]], width: int | None = None) -> bytes:
    """Render what `draw` returns as text in UTF-8, coloured on a terminal unless NO_COLOR is set.

    `width` is in columns; by default it is the terminal's width, or 100 in a pipe.
    """
    from rich.console import Console
    from rich.text import Text

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
        # rich joins texts to a new one before it prints them, which forgets what each says about wrapping
        told = block if isinstance(block, Text) else Text()
        console.print(block, crop=False, no_wrap=told.no_wrap, overflow=told.overflow)
    lines = (line.rstrip() for line in text.getvalue().splitlines())
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def _wants_colour() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _terminal_width() -> int:
    fallback = 80 if sys.stdout.isatty() else _WIDTH_IN_A_PIPE
    return max(_NARROWEST, shutil.get_terminal_size((fallback, 24)).columns)


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


def tabulate(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]) -> RenderableType:
    """A table with a line below its header; `numbers` are the places of the columns that are aligned right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for place, name in enumerate(header):
        table.add_column(Text(make_visible(name)), justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_visible(cell)) for cell in row))
    return table


def measure_width(table: Table, console: Console) -> int:
    """The width in columns that a table needs to show everything."""
    return console.measure(table, options=console.options.update(max_width=100_000)).maximum


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
