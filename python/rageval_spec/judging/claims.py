"""Finds the sentences that a model's claims come from, and the places where its evidence occurs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rageval_spec.judging.segments import Segment

_WORD = re.compile(r"\w+")
_SHORTENED = re.compile(r"\.\.\.|…|\[\.\.\.\]|\[…\]")


class Statement(NamedTuple):
    """A claim as a model wrote it, and the number (from 1) of the sentence that it cites; None if it cites none."""

    text: str
    sentence: int | None = None


def place_claims(statements: Sequence[Statement], sentences: Sequence[Segment]) -> list[Segment]:
    """Claims with the offsets of the sentence that each comes from: the one it cites, else the most similar one.

    A claim that occurs in its sentence word for word gets the offsets of its own words instead.
    """
    return [_place(statement, sentences) for statement in statements]


def _place(statement: Statement, sentences: Sequence[Segment]) -> Segment:
    number = statement.sentence
    if number is not None and 1 <= number <= len(sentences):
        sentence = sentences[number - 1]
    else:
        sentence = max(sentences, key=lambda one: _count_shared(statement.text, one.text))
    text = statement.text
    for part in filter(None, (text, text.rstrip("."))):
        if (at := sentence.text.find(part)) >= 0:
            return Segment(text, sentence.start + at, sentence.start + at + len(part))
    return Segment(text, sentence.start, sentence.end)


def _count_shared(claim: str, sentence: str) -> float:
    """The share of the words of the claim and the sentence that both have."""
    first, second = ({*_WORD.findall(text.casefold())} for text in (claim, sentence))
    return len(first & second) / max(len(first | second), 1)


def find_evidence(evidence: str, source: int, sources: Sequence[str]) -> int | None:
    """The number (from 0) of the source that holds these words, the cited one if several do; None if none does.

    White space, case and outer quotation marks do not matter; "..." can stand for an omission.
    """
    parts = [_fold(part) for part in _SHORTENED.split(evidence)]
    wanted = [part for part in parts if part]
    if not wanted:
        return None
    first = [source] if 0 <= source < len(sources) else []
    numbers: list[int] = [*first, *range(len(sources))]
    for number in numbers:
        if _holds(_fold(sources[number]), wanted):
            return number
    return None


def _holds(text: str, parts: Sequence[str]) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _fold(text: str) -> str:
    return " ".join(text.split()).strip(" \"'“”‘’«»").casefold()
