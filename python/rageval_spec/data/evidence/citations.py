"""Citations of an answer, and the statements that have them.

A statement is a sentence of the answer without its markers. A citation belongs to every sentence that it reaches into;
the sentences that one citation covers are one statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec import kernels
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.libraries import compile_later


@dataclass(frozen=True, slots=True)
class Citation:
    """An answer's reference to a document.

    Attributes:
        start, end: the characters of the answer that it stands for, without markers at their ends.
        document: the document as the answer names it: a number, an id, a URL or a title.
        marker: the characters of the answer that say so; None if the citation came beside the text.
        context: the number, from 0, of the context that it names; None if it names none that the answer had.
        confidence: how sure the system says it is, if it says so.
    """

    start: int
    end: int
    document: str
    marker: tuple[int, int] | None = None
    context: int | None = None
    confidence: float | None = None

    def to_row(self) -> dict[str, Any]:
        """The citation as JSON types; what is not known is left out."""
        row = {name: getattr(self, name) for name in ("start", "end", "document", "marker", "context", "confidence")}
        return {name: list(value) if name == "marker" else value for name, value in row.items() if value is not None}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Citation:
        """The citation that `to_row` wrote."""
        marker = row.get("marker")
        return cls(**{**row, "marker": None if marker is None else (marker[0], marker[1])})


def dump_citations(citations: Sequence[Citation]) -> str:
    """Citations as JSON text, which `load_citations` reads."""
    return json.dumps([one.to_row() for one in citations], ensure_ascii=False, separators=(",", ":"))


def load_citations(text: str | None) -> tuple[Citation, ...] | None:
    """The citations that `dump_citations` wrote; None for None."""
    return None if text is None else tuple(map(Citation.from_row, json.loads(text)))


def move_citations(text: str | None, places: Sequence[int | None]) -> str | None:
    """The citations in a text, where the contexts have these places now; None for one that is no longer there."""
    if (found := load_citations(text)) is None:
        return None
    known = dict(enumerate(places))
    return dump_citations(
        [replace(one, context=None if one.context is None else known.get(one.context)) for one in found]
    )


def count_from(citations: Sequence[Citation], contexts: int | None, first: int) -> tuple[Citation, ...]:
    """The citations, where numbers in the text count the contexts from `first`: 0 or 1.

    What a number means by a list of sources, or as an id, stays: only those that were counted are counted again.
    """
    numbers = {place: int(one.document) for place, one in enumerate(citations) if _is_number(one)}
    before, known, counted = 0 if 0 in numbers.values() else 1, range(contexts or 0), [*citations]
    for place, number in numbers.items():
        if citations[place].context == (number - before if number - before in known else None):
            counted[place] = replace(counted[place], context=number - first if number - first in known else None)
    return tuple(counted)


def _is_number(one: Citation) -> bool:
    return one.marker is not None and one.document.isdecimal()


def find_first(citations: Sequence[Citation]) -> int | None:
    """The number that an answer gives its first context: 0 if it cites that, 1 if a number was read so; else None."""
    numbers = {(int(one.document), one.context) for one in citations if _is_number(one)}
    if (0, 0) in numbers:
        return 0
    return 1 if any(place is not None and number == place + 1 for number, place in numbers) else None


class Statement(NamedTuple):
    """Characters `start` to `end` of an answer, as `text` without markers, and their citations in order."""

    text: str
    start: int
    end: int
    citations: tuple[Citation, ...]


_EMPHASIS = compile_later(r"([*_]{1,3})((?:[ ,]{0,2}\[[^\[\]\n]{1,99}\])+)\1")
DEFINITION = compile_later(r"(?m)^[ \t]*\[(\^?[\w.-]+)\]:[ \t]*(.+)$")
"""A footnote, or where a link goes: `[^1]: guide.md`."""
SOURCE_LIST = compile_later(
    r"(?im)^[#*_ \t]*(?:sources?|references|citations|works cited|footnotes|bibliography|quellen|literatur|fuentes)"
    r"(?: used)?(?: \(\d+\))?[*_ \t]*:?[*_ \t]*"
    r"(?P<lines>(?:\[\w+\][ \t:]*[^\s\[\],;.].*)$|"  # all on the line of the heading
    r"$(?:\s*\n[ \t]*(?:[-*•>][ \t]*)?(?:\[\w+\]|\d+[.):]).*)+(?=\s*\Z)|"
    r"$(?:\n\s*(?:[-*•>][ \t]*)?\[\w+\][ \t:]*[^\s\[\],;.].*)+)"
)
"""The list of an answer's sources after its heading, each with its number; numbers without brackets only at the end."""


def even_out(text: str) -> str:
    """The text with line feeds alone at the ends of lines, and with spaces for what puts brackets in bold or italics.

    All other characters keep their places.
    """
    text = text.replace("\r\n", " \n").replace("\r", "\n")
    return _EMPHASIS.sub(lambda one: one[2].center(len(one[0])), text)


def hide(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text with spaces in place of some of its characters, so that all others keep their places."""
    pieces, last = [], 0
    for start, end in sorted(spans):
        if end > last:
            pieces += [text[last:start], re.sub(r"[^\n]", " ", text[max(last, start) : end])]
            last = end
    return "".join((*pieces, text[last:]))


def hide_sources(text: str) -> str:
    """The text without the places where it says what its markers mean: they state nothing."""
    text = even_out(text)
    return hide(text, [one.span() for form in (DEFINITION, SOURCE_LIST) for one in form.finditer(text)])


def hide_markers(answer: str, citations: Sequence[Citation]) -> str:
    """What an answer says, without its markers and the list of its sources; all other characters keep their places."""
    markers = [one.marker for one in citations if one.marker is not None]
    markers += [_find_opening(answer, start) for start, _ in markers if answer[start : start + 2] == "]("]
    quotes = [(one.end, one.end + 2) for one in citations if one.marker and one.marker[1] == one.start]  # `[ 2 words ]`
    return hide(hide_sources(answer), [*markers, *(one for one in quotes if answer[slice(*one)] == " ]")])


def _find_opening(answer: str, closing: int) -> tuple[int, int]:
    """The bracket before the text of a link, whose marker begins with the closing one."""
    depth = 0
    for place in range(closing - 1, -1, -1):
        depth += (answer[place] == "]") - (answer[place] == "[")
        if depth < 0:
            return place, place + 1
    return closing, closing


def list_statements(answer: str, citations: Sequence[Citation]) -> list[Statement]:
    """The statements of an answer in order, also those without citations; none for a blank answer."""
    plain = hide_markers(answer, citations)
    spans: list[list[int]] = []
    for start, end in kernels.split_sentences(plain):
        if not any(map(str.isalnum, plain[start:end])):
            continue
        reaches = (one for one in citations if one.start < end and start < one.end)
        joined = any(spans and one.start < spans[-1][1] for one in reaches)
        if joined:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    return [
        Statement(
            re.sub(r" +([.,;:!?])", r"\1", re.sub(r"[ \t]{2,}", " ", plain[start:end])).strip(),
            start,
            end,
            tuple(one for one in citations if one.start < end and start < one.end),
        )
        for start, end in spans
    ]
