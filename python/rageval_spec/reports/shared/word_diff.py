"""The words that were removed from a text and added to it.

The work is bounded: where two long texts have little in common, all of one is removed and all of the other added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_ONE_BY_ONE = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"\s*(?:[{_ONE_BY_ONE}]|[^\W{_ONE_BY_ONE}]+|[^\w\s]|$)")
"""A word, or one character of a script without spaces, with the white space before it."""
_MOST_WORDS = 4_000
"""Texts that differ in more words than this are not compared word by word."""
_KEPT = 60
"""Characters of unchanged text that are kept before and after a change."""
_LONGEST = 600
"""Characters of a removed or added passage that are shown."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A passage that both texts have, or only one of them."""

    kind: Literal["equal", "removed", "added"]
    text: str


def diff_words(before: str, after: str) -> list[Edit]:
    """The passages of both texts in order: `before` without the added ones, `after` without the removed ones."""
    from difflib import SequenceMatcher

    if before == after:
        return [Edit("equal", before)] if before else []
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    middle = old[start : len(old) - end], new[start : len(new) - end]
    edits = [Edit("equal", "".join(old[:start]))]
    if max(map(len, middle)) > _MOST_WORDS:
        edits += [Edit("removed", "".join(middle[0])), Edit("added", "".join(middle[1]))]
    else:
        for kind, low, high, first, last in SequenceMatcher(None, *middle).get_opcodes():
            if kind == "equal":
                edits.append(Edit("equal", "".join(middle[0][low:high])))
            else:
                edits += [Edit("removed", "".join(middle[0][low:high])), Edit("added", "".join(middle[1][first:last]))]
    edits.append(Edit("equal", "".join(old[len(old) - end :])))
    return list(_join([edit for edit in edits if edit.text]))


def _count_shared(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of words that both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _join(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Join neighbouring changes, and those that only a comma or a space keeps apart: `a, b` -> `c, d` is one change."""
    removed = added = ""
    for at, edit in enumerate(edits):
        between = bool(removed or added) and at + 1 < len(edits)
        if edit.kind == "equal" and not (between and not re.search(r"\w", edit.text)):
            yield from _list_change(removed, added)
            removed = added = ""
            yield edit
        else:
            removed += edit.text if edit.kind != "added" else ""
            added += edit.text if edit.kind != "removed" else ""
    yield from _list_change(removed, added)


def _list_change(removed: str, added: str) -> Iterator[Edit]:
    if removed:
        yield Edit("removed", removed)
    if added:
        yield Edit("added", added)


def shorten_edits(edits: Sequence[Edit]) -> list[Edit]:
    """The edits with `…` in place of what is far from a change, and of the rest of a very long change."""
    last = len(edits) - 1
    return [
        Edit(
            edit.kind, _shorten(edit.text, is_first=at == 0, is_last=at == last) if edit.kind == "equal" else _cut(edit)
        )
        for at, edit in enumerate(edits)
    ]


def _shorten(text: str, *, is_first: bool, is_last: bool) -> str:
    head = 0 if is_first and not is_last else _KEPT
    tail = 0 if is_last and not is_first else _KEPT
    if len(text) <= head + tail + 10:
        return text
    return f"{text[:head].rstrip()} … {text[len(text) - tail :].lstrip() if tail else ''}"


def _cut(edit: Edit) -> str:
    return edit.text if len(edit.text) <= _LONGEST else f"{edit.text[:_LONGEST]}…"
