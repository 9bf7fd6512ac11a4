"""Views: what people read of a result, described once as blocks, and written as terminal text, Markdown or HTML.

Whoever describes a view gives plain texts. Each writer makes them harmless in its own form: control characters are
made visible, and nothing acts as Markdown, as HTML or as a mention of a person. What a colour shows on a terminal has
a sign or a word as well.

A table that is too wide for a terminal puts intervals below their numbers, then leaves out spare columns, then moves
columns to further tables. Names and sentences wrap. A number is never broken.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, NamedTuple, TypeAlias

from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.escaping import escape, format_table, longest_tick_run, quote, quote_cell
from rageval_spec.drawing.html_shell import fill_page, join_styles, read_asset, show_text
from rageval_spec.drawing.terminal import begin_table, render_text, wrap_name
from rageval_spec.libraries import Console, Padding, RenderableType, Table, Text, cell_len
from rageval_spec.wording import count_noun

Kind: TypeAlias = Literal["", "name", "prose", "removed", "added"]


class Span(NamedTuple):
    """A piece of text.

    Attributes:
        style: a style of rich; Markdown and HTML show what is bold.
        kind: "name" for an identifier (code in Markdown), "prose" for a text whose line breaks stay, "removed" and
            "added" for words that changed.
        is_below: where a table is too wide, whether it stands below the spans before it.
        link: the address that it leads to in HTML; the others show only the text.
    """

    text: str
    style: str = ""
    kind: Kind = ""
    is_below: bool = False
    link: str = ""


Inline: TypeAlias = "str | Span | Sequence[str | Span]"
"""A text, or several that follow one another."""


def name(text: str, style: str = "") -> Span:
    """An identifier of the user: a system, a metric, a query."""
    return Span(text, style, "name")


def join(parts: Iterable[str | Span], between: str = " ") -> list[str | Span]:
    """The parts that are not empty, with a text between them."""
    shown = [part for part in parts if (part if isinstance(part, str) else part.text)]
    return [piece for part in shown for piece in (between, part)][1:]


def _spans(text: Inline) -> list[Span]:
    pieces = [text] if isinstance(text, str | Span) else text
    return [piece if isinstance(piece, Span) else Span(piece) for piece in pieces]


@dataclass(frozen=True)
class Heading:
    """A title; `level` is from 1 to 6."""

    text: Inline
    level: int = 3


@dataclass(frozen=True)
class Line:
    """A paragraph. One that `is_cut` has one line on a terminal, which ends with `…` where it does not fit."""

    text: Inline
    is_cut: bool = False


@dataclass(frozen=True)
class Items:
    """A list; each item is a label, which may be empty, a sentence and the label's style ("dim" is of both)."""

    rows: Sequence[tuple[str, Inline, str]]


@dataclass(frozen=True)
class Diff:
    """A text that changed: its equal, removed and added words, and the same with what is far from a change left out.

    A page shows the whole texts side by side, a terminal and Markdown the changes in one text.
    """

    whole: Sequence[Span]
    short: Sequence[Span]


@dataclass(frozen=True)
class Entry:
    """One thing of several that are shown alike: a head, and lines that are indented below it."""

    head: Inline
    lines: Sequence[Line | Diff] = ()


@dataclass(frozen=True)
class Fields:
    """Labels with what belongs to them: a text, a table or a list."""

    rows: Sequence[tuple[str, Inline | Block]]


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        role: "name" for identifiers, "number" for what is aligned and never broken, "text" for what wraps.
        is_spare: whether a narrow terminal can do without it.
        is_fixed: whether it stands in each table where a table is divided; the others can move to another one.
    """

    title: str
    cells: Sequence[Inline]
    role: Literal["name", "number", "text"] = "text"
    is_spare: bool = False
    is_fixed: bool = True


@dataclass(frozen=True)
class Grid:
    """A table. Several spans in a cell stand beside one another, with a space between them.

    `label` tells it from others of the page, where a screen reader lists them.
    """

    columns: Sequence[Column]
    label: str = ""

    @property
    def height(self) -> int:
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def rows(self) -> Iterator[tuple[Inline, ...]]:
        return zip(*(column.cells for column in self.columns), strict=True)


def tabulate(
    header: Sequence[str],
    rows: Iterable[Sequence[Inline]],
    numbers: Iterable[int] = (),
    names: Iterable[int] = (0,),
    spare: Sequence[str] = (),
) -> Grid:
    """A table by its rows; `numbers` and `names` are the places of the columns with these roles, `spare` are titles.

    Columns in which all cells are empty are left out, unless the table has no rows. An interval in a column of numbers,
    as in `0.5 [0.4, 0.6]`, stands below its number where the table is too wide.
    """
    listed, numbers, names = list(rows), set(numbers), set(names)
    columns = []
    for place, title in enumerate(header):
        cells = [_split_interval(row[place]) if place in numbers else row[place] for row in listed]
        if any(_has_text(cell) for cell in cells) or not cells:
            role: Any = "number" if place in numbers else "name" if place in names else "text"
            columns.append(Column(title, cells, role, title in spare))
    return Grid(columns)


def _split_interval(cell: Inline) -> Inline:
    number, bracket, ends = cell.partition(" [") if isinstance(cell, str) else ("", "", "")
    return [number, Span(f"[{ends}", is_below=True)] if bracket else cell


def _has_text(cell: Inline) -> bool:
    return any(span.text for span in _spans(cell))


@dataclass(frozen=True)
class Code:
    """Lines of code or settings, as they are."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Details:
    """Blocks below a title, which Markdown and HTML fold. A terminal leaves out what is only for reading up."""

    title: Inline
    blocks: Sequence[Block]
    is_on_terminal: bool = True


Block: TypeAlias = Heading | Line | Items | Diff | Entry | Fields | Grid | Code | Details


# Terminal


def write_text(blocks: Iterable[Block], width: int | None = None) -> bytes:
    """The view as text in UTF-8, coloured on a terminal; `width` is in columns, by default the terminal's."""
    return render_text(lambda console: _draw_all(blocks, console), width)


def _draw_all(blocks: Iterable[Block], console: Console) -> Iterator[RenderableType]:
    """The blocks with an empty line between them, but none between a heading and its text or table."""
    is_first, after_heading = True, False
    for block in _unfold(blocks):
        for drawn in _draw(block, console):
            if not is_first and not (after_heading and not isinstance(block, Heading | Entry)):
                yield Text("")
            yield drawn
            is_first, after_heading = False, isinstance(block, Heading) and block.level > 1


def _unfold(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if not isinstance(block, Details):
            yield block
        elif block.is_on_terminal:
            yield from _unfold([Heading(block.title), *block.blocks])


def _draw(block: Block, console: Console) -> Iterator[RenderableType]:
    match block:
        case Heading(text):
            yield _draw_inline(text, "bold")
        case Line() | Diff():
            yield _draw_line(block)
        case Items(rows):
            if rows:
                yield _lay_out(
                    [
                        (Text(make_visible(label) or "•", style), _draw_inline(text, "dim" if style == "dim" else ""))
                        for label, text, style in rows
                    ]
                )
        case Entry(head, lines):
            drawn = Table.grid()
            drawn.add_column(overflow="fold")
            drawn.add_row(_draw_inline(head))
            for line in lines:
                drawn.add_row(Padding(_draw_line(line), (0, 0, 0, 2)))
            yield drawn
        case Fields(rows):
            yield _lay_out([(Text(make_visible(label), "dim"), _draw_content(one, console)) for label, one in rows], 1)
        case Grid():
            yield from _fit(block, console)
        case Code(lines):
            yield Text("\n".join(map(make_visible, lines)))
        case Details():
            yield from _draw_all([block], console)


def _draw_inline(text: Inline, style: str = "") -> Text:
    drawn = Text(style=style)
    for span in _spans(text):
        shown = _show_lines(span.text) if span.kind in ("prose", "removed", "added") else make_visible(span.text)
        if span.kind in ("removed", "added"):
            rest = shown.lstrip() or shown  # the sign stands at the word, and white space keeps its place
            drawn.append(shown.removesuffix(rest))
            shown = f"[-{rest}-]" if span.kind == "removed" else f"{{+{rest}+}}"
        drawn.append(shown, span.style)
    return drawn


def _show_lines(text: str) -> str:
    return make_visible(text.replace("\r\n", "\n").replace("\t", "    "), keep="\n")


def _draw_line(line: Line | Diff) -> Text:
    drawn = _draw_inline(line.short if isinstance(line, Diff) else line.text)
    if isinstance(line, Line) and line.is_cut:
        drawn.no_wrap, drawn.overflow = True, "ellipsis"
    return drawn


def _draw_content(content: Inline | Block, console: Console) -> RenderableType:
    if isinstance(content, Sequence):
        return _draw_inline(content)
    if isinstance(content, Grid):
        return _fit(content, console, room=console.width - _LABEL_WIDTH)[0]
    return next(iter(_draw(content, console)))


def _lay_out(rows: Sequence[tuple[Text, RenderableType]], leading: int = 0) -> Table:
    """Labels on the left, their content on the right."""
    grid = Table.grid(padding=(0, 2 if leading else 1, 0, 0))
    grid.add_column(no_wrap=True, min_width=_LABEL_WIDTH - 2 if leading else None)
    grid.add_column(overflow="fold")
    for at, row in enumerate(rows):
        if at and leading:
            grid.add_row()
        grid.add_row(*row)
    return grid


def _fit(grid: Grid, console: Console, room: int | None = None) -> list[Table]:
    """The tables of the first layout that is not wider than the room; else of the last one, as wide as they are."""
    width = room or console.width
    for columns, is_stacked, longest in _list_layouts(grid):
        drawn = [_draw_table(part, longest, is_stacked=is_stacked, is_whole=len(columns) == 1) for part in columns]
        if all(needed <= width for _, needed in drawn):
            break
    for table, needed in drawn:
        table.width = needed if needed > width else None
    return [table for table, _ in drawn]


_LABEL_WIDTH = 12
_NAME_WIDTHS = (28, 14)
"""Longer names are broken, on a narrow terminal earlier."""
_NARROWEST = (16, 10)
"""A column of sentences is not narrower, or not where the table is too wide otherwise."""


def _list_layouts(grid: Grid) -> Iterator[tuple[list[list[Column]], bool, int]]:
    """One table with cells of one line or several, one without spare columns, or as few as hold all columns."""
    own = [column for column in grid.columns if not column.is_spare]
    movable = [column for column in own if not column.is_fixed]
    wide, narrow = _NAME_WIDTHS
    yield [list(grid.columns)], False, wide
    yield [list(grid.columns)], True, wide
    if len(own) < len(grid.columns):
        yield [own], False, wide
    first = [column for column in own if column.is_fixed]
    for count in range(1, len(movable) + 1):
        size = math.ceil(len(movable) / count)
        parts = [movable[start : start + size] for start in range(0, len(movable), size)]
        yield [[*first[:1], *part, *first[1:]] for part in parts], True, wide
    if not movable:
        yield [own], True, wide
        yield [own], True, narrow


def _draw_table(columns: Sequence[Column], longest: int, *, is_stacked: bool, is_whole: bool) -> tuple[Table, int]:
    """A table, and the width that it needs at least."""
    table, needed, drawn = begin_table(leading=int(is_stacked and any(not one.is_fixed for one in columns))), 0, []
    for column in columns:
        cells = [*_draw_cells(column, longest, is_stacked=is_stacked)]
        wide = max((cell_len(line) for cell in cells for line in cell.plain.split("\n")), default=0)
        title = wrap_name(make_visible(column.title), longest)
        if column.role == "text":
            needed += min(max(wide, *map(cell_len, title)), _NARROWEST[is_stacked])
        else:
            title = [line for part in title for line in (_wrap_title(part, wide) if is_stacked else [part])]
            needed += max(wide, *map(cell_len, title))
        justify: Any = "right" if column.role == "number" and column.is_fixed else "left"
        table.add_column(Text("\n".join(title)), justify=justify, no_wrap=column.role != "text", overflow="fold")
        drawn.append(cells)
    for at, row in enumerate(zip(*drawn, strict=True)):
        # One of several tables has no row for what none of its columns has.
        if is_whole or any(_has_text(column.cells[at]) for column in columns if not column.is_fixed):
            table.add_row(*row)
    return table, needed + 2 * (len(columns) - 1)


def _wrap_title(title: str, width: int) -> list[str]:
    return wrap(title, max(width, *map(len, title.split()))) if title else [""]


def _draw_cells(column: Column, longest: int, *, is_stacked: bool) -> Iterator[Text]:
    """The cells; where those of numbers have one line, their spans are aligned with those of the cell above."""
    cells = [[*map(_make_visible, _spans(cell))] for cell in column.cells]
    if column.role == "name":
        yield from (Text("\n".join(wrap_name(" ".join(span.text for span in cell), longest))) for cell in cells)
    elif column.role == "text":
        yield from (_draw_inline(join(cell)) for cell in cells)
    elif is_stacked:
        for cell in cells:
            beside = _draw_inline(join(span for span in cell if not span.is_below))
            below = [_draw_inline(span) for span in cell if span.is_below and span.text]
            yield Text("\n").join([beside, *below])
    else:
        widths = [max(cell_len(span.text) for span in spans) for spans in zip(*_pad(cells), strict=True)]
        for cell in cells:
            first, *others = [
                span._replace(text=span.text.ljust(width) if at else span.text.rjust(width))
                for at, (span, width) in enumerate(zip(cell, widths, strict=False))
            ] or [Span("")]
            drawn = _draw_inline(join([first, *others]))
            drawn.rstrip()
            yield drawn


def _make_visible(span: Span) -> Span:
    return span if span.kind == "prose" else span._replace(text=make_visible(span.text))


def _pad(cells: Sequence[Sequence[Span]]) -> list[list[Span]]:
    most = max(map(len, cells), default=0)
    return [[*cell, *[Span("")] * (most - len(cell))] for cell in cells]


# Markdown

_SIGNS: Mapping[str, str] = {"✓": "✅", "!": "⚠️", "warning": "⚠️", "✗": "❌", "?": "❔"}
"""Markdown has no colours, so the marks of outcomes are coloured themselves."""
TOO_LONG = "too long for a comment; see the results."
_RESERVED, _MOST_RESERVED = 120, 20
"""Characters kept for each of so many later blocks, which at least say that they were left out."""
_FEWER_ROWS = (1000, 300, 100, 30, 10, 3)


def write_markdown(blocks: Iterable[Block], longest: int | None = None) -> str:
    """The view as Markdown of at most `longest` characters: rows that have no room are counted, and blocks named."""
    written: list[str] = []
    listed, left_out = list(blocks), 0
    for at, block in enumerate(listed):
        text = _mark_up(block)
        if longest is not None:
            used = sum(len(one) + 2 for one in written)
            room = longest - used - _RESERVED * min(len(listed) - at, _MOST_RESERVED)
            text = _shorten(block, room) if len(text) > room else text
            if len(text) > longest - used - _RESERVED:
                left_out += 1
                continue
        written += [text] if text else []
    if left_out:
        written.append(f"{count_noun(left_out, 'more part')}: {TOO_LONG}")
    return "\n\n".join(written) + "\n"


def _shorten(block: Block, room: int) -> str:
    """The block with as many rows as fit; a line in its place if not even a few do."""
    for most in _FEWER_ROWS:
        if (fewer := _cut(block, most)) is not None and len(text := _mark_up(fewer)) <= room:
            return text
    title = "".join(span.text for span in _spans(block.title)) if isinstance(block, Details) else ""
    return f"{escape(title[:100]) or 'A part'}: {TOO_LONG}"


def _cut(block: Block, most: int) -> Block | None:
    """The block with its first rows and a count of the others; None if it has not so many."""
    match block:
        case Grid(columns) if block.height > most:
            more = f"{count_noun(block.height - most, 'more row')}: {TOO_LONG}"
            return Details("", [Grid([one._replace(cells=one.cells[:most]) for one in columns]), Line(more)])
        case Items(rows) if len(rows) > most:
            return Items([*rows[:most], ("", f"{count_noun(len(rows) - most, 'more row')}: {TOO_LONG}", "")])
        case Details(blocks=blocks) if len(blocks) > most:
            more = f"{count_noun(len(blocks) - most, 'more part')}: {TOO_LONG}"
            return replace(block, blocks=[*blocks[:most], Line(more)])
        case Details(blocks=blocks):
            cut = [_cut(one, most) for one in blocks]
            if any(cut):
                return replace(block, blocks=[one or old for one, old in zip(cut, blocks, strict=True)])
    return None


def _mark_up(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_mark_up_inline(text)}"
        case Line(text) | Diff(short=text):
            # no text of a user begins a list, or is a command that GitLab or GitHub's runner obeys
            return re.sub(r"^(?=[-+=/:])", r"\\", _mark_up_inline(text))
        case Items(rows):
            return "\n".join(f"- {_mark_up_item(label, text, style)}" for label, text, style in rows)
        case Entry(head, lines):
            return "- " + "<br>".join([_mark_up_inline(head), *map(_mark_up, lines)])
        case Fields(rows):
            return "\n\n".join(_mark_up_field(label, content) for label, content in rows)
        case Grid(columns):
            header = [(escape if one.is_fixed else quote_cell)(one.title) for one in columns]
            names = [column.role == "name" for column in columns]
            return format_table(header, ([*map(_mark_up_cell, row, names)] for row in block.rows))
        case Code(lines):
            code = "\n".join(map(make_visible, lines))
            fence = "`" * (1 + longest_tick_run(code, 2))
            return "\n".join((fence, code, fence))
        case Details(title, blocks):
            inner = "\n\n".join(filter(None, map(_mark_up, blocks)))
            return f"<details><summary>{_mark_up_inline(title)}</summary>\n\n{inner}\n\n</details>" if title else inner


def _mark_up_item(label: str, text: Inline, style: str) -> str:
    sign = "" if style == "dim" else _SIGNS.get(label.split(" ")[0], "")
    return " ".join(filter(None, (sign or escape(label), _mark_up_inline(text))))


def _mark_up_field(label: str, content: Inline | Block) -> str:
    title = f"**{escape(label.capitalize())}:**" if label else ""
    if isinstance(content, Sequence):
        return f"{title} {_mark_up_inline(content)}"
    return "\n\n".join(filter(None, (title, _mark_up(content))))


def _mark_up_cell(cell: Inline, is_name: bool) -> str:
    spans = [span for span in _spans(cell) if span.text]
    if is_name and spans:
        return quote_cell(" ".join(span.text for span in spans))
    return " ".join(quote_cell(span.text) if span.kind == "name" else _mark_up_span(span) for span in spans)


def _mark_up_inline(text: Inline) -> str:
    return "".join(map(_mark_up_span, _spans(text)))


def _mark_up_span(span: Span) -> str:
    if span.kind == "name":
        return quote(span.text) if span.text else ""
    if span.style and span.text in _SIGNS:
        return _SIGNS[span.text]
    lines = span.text.replace("\r\n", "\n").split("\n") if span.kind else [span.text]
    shown = "<br>".join(map(escape, lines))
    sign = "~~" if span.kind == "removed" else "**" if span.kind == "added" or "bold" in span.style.split() else ""
    inner = shown.strip()
    return shown.replace(inner, f"{sign}{inner}{sign}", 1) if sign and inner else shown


# HTML

_CLASSES = {"bold": "strong", "dim": "muted", "red": "bad", "yellow": "weak", "green": "good"}


def write_html(blocks: Iterable[Block]) -> str:
    """The view as the inside of a page."""
    return "\n".join(map(_tag, blocks))


def write_page(title: str, blocks: Iterable[Block]) -> bytes:
    """The view as a page, which makes no request and runs no script."""
    style = join_styles(("page.css", "overview.css", "texts.css", "questions.css", "view.css"))
    return fill_page(read_asset("view.html.jinja"), style, title=make_visible(title), body=write_html(blocks))


def _tag(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_tag_inline(text)}</h{level}>"
        case Line(text):
            return f'<p dir="auto">{_tag_inline(text)}</p>'
        case Items(rows):
            items = (" ".join(filter(None, (show_text(label), _tag_inline(text)))) for label, text, _ in rows)
            return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
        case Entry(head, lines):
            return f'<article class="change"><p>{_tag_inline(head)}</p>{"".join(map(_tag, lines))}</article>'
        case Diff(whole):
            parts = ""
            for title, lost in (("Before", "added"), ("After", "removed")):
                text = _tag_inline([one for one in whole if one.kind != lost]) or "No answer."
                parts += f'<div><h4>{title}</h4><p class="prose" dir="auto">{text}</p></div>'
            return f'<div class="answers">{parts}</div>'
        case Fields(rows):
            shown = ((label, _tag_inline(one) if isinstance(one, Sequence) else _tag(one)) for label, one in rows)
            return f"<dl>{''.join(f'<dt>{show_text(label)}</dt><dd>{one}</dd>' for label, one in shown)}</dl>"
        case Grid(columns):
            heads = "".join(_tag_cell(column, column.title, 'th scope="col"') for column in columns)
            body = "".join(f"<tr>{''.join(map(_tag_cell, columns, row))}</tr>" for row in block.rows)
            table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
            label = f"Table{f': {show_text(block.label)}' if block.label else ''}"
            return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>'
        case Code(lines):
            return f"<pre>{show_text(chr(10).join(lines))}</pre>"
        case Details(title, blocks):
            return f"<details><summary>{_tag_inline(title)}</summary>{write_html(blocks)}</details>"


def _tag_cell(column: Column, cell: Inline, tag: str = "td") -> str:
    role = ' class="number"' if column.role == "number" else ""
    return f"<{tag}{role}>{_tag_inline(join(_spans(cell)))}</{tag[:2]}>"


def _tag_inline(text: Inline) -> str:
    return "".join(map(_tag_span, _spans(text)))


def _tag_span(span: Span) -> str:
    lines = span.text.replace("\r\n", "\n").split("\n") if span.kind in ("prose", "removed", "added") else [span.text]
    shown = "<br>".join(map(show_text, lines))
    styles = " ".join(_CLASSES[word] for word in span.style.split() if word in _CLASSES)
    tag = {"name": "bdi", "removed": "del", "added": "ins"}.get(span.kind, "span")
    tagged = f'<{tag} class="{styles}">{shown}</{tag}>' if styles and shown else f"<{tag}>{shown}</{tag}>"
    return f'<a href="{html.escape(span.link)}">{tagged}</a>' if span.link else tagged
