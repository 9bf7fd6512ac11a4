"""Draws text for a terminal: the console, tables, and names that they can show.

Colours appear on a terminal unless NO_COLOR is set. In a pipe, lines have a fixed width.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from io import StringIO
from typing import TypeAlias

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import Console, RenderableType, Table, Text, box, cell_len, chop_cells, compile_later

Block: TypeAlias = "tuple[str, str] | RenderableType"
"""A line of text, one with its style, or what rich draws. Lines are made visible when they are shown."""
_WIDTH_IN_A_PIPE = 100
_NARROWEST = 40
_NAME_PARTS = compile_later(r"[^\s_(,/.@:-]+[\s_(,/.@:-]*|[\s_(,/.@:-]+")


def render_text(draw: Callable[[Console], Iterable[Block]], width: int | None = None) -> bytes:
    """Render what `draw` returns as text in UTF-8, coloured on a terminal unless NO_COLOR is set.

    `width` is in columns; by default it is the terminal's width, or 100 in a pipe.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # it can be closed
    colour = (bool(os.environ.get("FORCE_COLOR")) or is_terminal) and os.environ.get("TERM") != "dumb"
    colour = colour and not os.environ.get("NO_COLOR")
    columns = _WIDTH_IN_A_PIPE  # not the width of the terminal where errors go
    if is_terminal or os.environ.get("COLUMNS"):
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


def wrap_name(name: str, longest: int) -> list[str]:
    """The lines of a name, broken after punctuation, and within a word only if the word is too long."""
    lines = [""]
    for part in _NAME_PARTS.findall(name):
        for piece in [part] if cell_len(part) <= longest else chop_cells(part, longest):
            if cell_len(lines[-1] + piece) <= longest:
                lines[-1] += piece
            else:
                lines.append(piece)
    return lines
