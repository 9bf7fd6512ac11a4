"""Values that templates of a spec print inside fences: texts, lists of texts, and columns of any type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rageval_spec.judging.prompts import fence


class FencedText(str):
    """A text that a template prints between tags that it cannot forge.

    Its characters are those of the fence, so every filter, slice and join works on them and never on the bare text.
    Tests see the text itself: `{% if reference %}` is false for a blank text, and `{% if language == "de" %}` compares
    the text.
    """

    __slots__ = ("_bare",)
    _bare: str

    def __new__(cls, tag: str, text: str, number: int | None = None) -> FencedText:
        """Fence the text; a number tells texts of one list apart."""
        made = super().__new__(cls, fence(tag, text, number))
        made._bare = text
        return made

    def __bool__(self) -> bool:
        """Whether the text says anything."""
        return bool(self._bare.strip())

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same text, fenced or bare."""
        return self._bare == (other._bare if isinstance(other, FencedText) else other)

    def __ne__(self, other: object) -> bool:
        """The opposite of `==`."""
        return not self == other

    def __hash__(self) -> int:
        """The bare text's hash, because both are equal."""
        return hash(self._bare)


class FencedTexts(tuple[Any, ...]):
    """Several values, to loop over; printed as a whole, one below the other."""

    __slots__ = ()

    def __str__(self) -> str:
        """The values in lines of their own."""
        return "\n".join(map(str, self))


def fence_texts(tag: str, texts: Iterable[str]) -> FencedTexts:
    """Texts in fences, numbered from 1."""
    return FencedTexts(FencedText(tag, text, number) for number, text in enumerate(texts, 1))


def fence_value(name: str, value: Any) -> Any:
    """The value of a column: texts and lists of them are fenced, a mapping as its JSON; numbers and Booleans stay."""
    tag = re.sub(r"\W+", "_", name).strip("_") or "column"
    if isinstance(value, str):
        return FencedText(tag, value)
    if isinstance(value, Mapping):
        return FencedText(tag, json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, list | tuple):
        return FencedTexts(
            FencedText(tag, one, number) if isinstance(one, str) else fence_value(name, one)
            for number, one in enumerate(value, 1)
        )
    return value
