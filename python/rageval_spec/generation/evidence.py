"""Finds quotes in the texts that they are said to come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "`": "'",
                       "–": "-", "—": "-", "‑": "-", "−": "-", "\u00ad": " ", "\u00a0": " "})  # fmt: skip
"""Characters that models write in place of one another. Each is replaced by one character, so offsets stay."""
_OUTER = " \t\r\n\"'.…"
_GAP = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|\[…\])\s*")


class Span(NamedTuple):
    """A part of a text: `texts[place][start:end]`."""

    place: int
    start: int
    end: int


def find_quote(quote: str, texts: Sequence[str], place: int | None = None) -> list[Span] | None:
    """Where a quote stands; None if it is in none of the texts.

    Case, white space and the kind of quotation marks and dashes may differ. A quote with gaps (`A ... B`) has a span
    for each part, in this order and all in one text.

    Args:
        quote: what is quoted.
        texts: the texts to look in.
        place: the text to look in first, from 0.
    """
    parts = [part for part in _GAP.split(quote) if part.strip(_OUTER)]
    order = sorted(range(len(texts)), key=lambda number: number != place)
    return next((spans for number in order if (spans := _find_parts(parts, texts[number], number))), None)


def _find_parts(parts: Sequence[str], text: str, number: int) -> list[Span] | None:
    spans, at = list[Span](), 0
    for part in parts:
        found = _find(part, text, at)
        if found is None:
            return None
        spans.append(Span(number, *found))
        at = found[1]
    return spans


def _find(part: str, text: str, at: int) -> tuple[int, int] | None:
    words = part.strip(_OUTER).translate(_SAME).split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    found = pattern.search(text.translate(_SAME), at)
    return None if found is None else found.span()
