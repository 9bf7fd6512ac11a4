"""The parts of a comment, and how they are cut to its greatest length: rows first, from the end, then whole parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rageval_spec.reports.shared.markup import format_table
from rageval_spec.wording import count_noun

_RESERVED = 160
"""Characters that are kept for each further part, which at least says that it was left out."""
_MOST_RESERVED = 20
"""For at most this many parts; of more, some are only counted."""
_LONGEST_TITLE = 100
_NEW_BLOCK = 2


@dataclass(frozen=True)
class Part:
    """A part of a comment; all texts are Markdown.

    Attributes:
        title: its heading, or the line that unfolds it; "" for neither.
        rows: the rows of a table with `header`; lines if there is no header.
        before, after: text above and below the rows.
        is_folded: whether a reader must unfold it.
    """

    title: str = ""
    rows: Sequence[Sequence[str]] = ()
    header: Sequence[str] = ()
    before: str = ""
    after: str = ""
    is_folded: bool = True

    def render(self, most_rows: int | None = None) -> str:
        """The part with its first rows, and a count of the others."""
        shown = self.rows[:most_rows]
        left_out = len(self.rows) - len(shown)
        more = f"{count_noun(left_out, 'more row')}: too long for a comment; see the results." if left_out else ""
        listed = format_table(self.header, shown) if self.header else "\n".join(line for (line,) in shown)
        body = "\n\n".join(filter(None, (self.before, listed if shown else "", more, self.after)))
        if not self.is_folded:
            return "\n\n".join(filter(None, (f"**{self.title}**" if self.title else "", body)))
        return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>"

    def omit(self) -> str:
        """A line in place of a part that has no room."""
        title = self.title if len(self.title) <= _LONGEST_TITLE else f"{self.title[:_LONGEST_TITLE].rstrip()}..."
        return f"{title or 'A part'}: too long for a comment; see the results."


def join_parts(head: str, parts: Sequence[Part], longest: int) -> str:
    """The text of the comment, of at most `longest` characters.

    `head` stands first and is never cut. A part gets the room that the parts before it left, except for a line for each
    part after it. If there is no room for a line either, the last parts are only counted.
    """
    blocks, omitted = [head], 0
    for number, part in enumerate(parts):
        used = sum(len(block) + _NEW_BLOCK for block in blocks)
        reserved = _RESERVED * min(len(parts) - number - 1, _MOST_RESERVED)
        block = _fit(part, longest - used - reserved - 1)
        is_last = number == len(parts) - 1 and not omitted
        if used + len(block) + (0 if is_last else _RESERVED) < longest:
            blocks.append(block)
        else:
            omitted += 1
    if omitted:
        blocks.append(f"{count_noun(omitted, 'more part')}: too long for a comment; see the results.")
    return "\n\n".join(blocks) + "\n"


def _fit(part: Part, room: int) -> str:
    """The part with as many rows as fit; a line in its place if not even one does."""
    if len(whole := part.render()) <= room:
        return whole
    low, high = 0, len(part.rows) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(part.render(middle)) <= room else (low, middle - 1)
    text = part.render(low)
    return text if low > 0 and len(text) <= room else part.omit()


def list_lines(lines: Iterable[str]) -> list[list[str]]:
    """The rows of a part without a table."""
    return [[f"- {line}"] for line in lines]
