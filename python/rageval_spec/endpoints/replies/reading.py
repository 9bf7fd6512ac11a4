"""Reads the one value that a JSON reply states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rageval_spec.endpoints.replies.json_text import Piece, find_pieces, parse_strictly
from rageval_spec.endpoints.replies.schemas import fit_value, is_choice, keep_decisions, list_types
from rageval_spec.endpoints.replies.thoughts import drop_thoughts, find_ends
from rageval_spec.endpoints.replies.unreadable import UnreadableReplyError, show_value

_BARE_REPLY = re.compile(r"[+-]?\d+(?:\.\d+)?|[^\W_]+(?:[ _-][^\W_]+)*[.!]?")
_SAYS = r"(?:[:=]|\b(?:is|should be)\b)"
"""Between the name of a grade and the grade in prose."""
_PLACEHOLDER = re.compile(r"<[^<>]*>|\.\.\.|…|[^|]*\|[^|]*(?:\|[^|]*)*")
"""Placeholders in a repeated form: `<the letter>`, `...`, `yes | no`."""


def read_reply(text: str, schema: Mapping[str, Any]) -> Any:
    """The value in a reply that fits the schema (`schemas`); a reply of only a number or word can be the value.

    Several values must agree in everything that cannot be null, so that an attacker whom the reply quotes cannot choose
    its value; parts that can be null, such as reasons, may differ. Thoughts do not count, nor does a repetition of the
    form with placeholders.

    Raises:
        UnreadableReplyError: there is no such value, it is cut off, or the reply says two things.
    """
    text = drop_thoughts(text)
    if not text:
        raise UnreadableReplyError("it is empty")
    try:
        whole = parse_strictly(text)
    except (ValueError, RecursionError):
        bare = text.strip("*`\"' \n")
        if _BARE_REPLY.fullmatch(bare) is not None:
            with suppress(UnreadableReplyError):
                return fit_value(bare, schema)
        return _read_parts(text, schema)
    return fit_value(whole, schema)


def _read_parts(text: str, schema: Mapping[str, Any]) -> Any:
    pieces = _drop_drafts(text, [*find_pieces(text)])
    found: list[Any] = []
    faults: list[str] = []
    rival = None
    for piece in pieces:
        fault = piece.fault
        if fault is None:
            try:
                found.append(fit_value(piece.value, schema))
                continue
            except UnreadableReplyError as error:
                fault = str(error)
        if piece.began:
            faults.append(fault)
        if _is_attempt(piece, text, schema):
            rival = rival or fault
    if not found:
        prose = next((piece.fault for piece in reversed(pieces) if piece.fault), "there is no JSON in it")
        # What follows the first fault can be a fragment.
        raise UnreadableReplyError(faults[0] if faults else prose)
    if rival is not None:
        raise UnreadableReplyError(f"it has JSON that fits beside JSON that does not: {rival}")
    first, *others = (keep_decisions(value, schema) for value in found)
    gaps = zip(pieces, (*(piece.begin for piece in pieces[1:]), len(text)), strict=True)
    others += _list_claims("\n".join(text[piece.end : end] for piece, end in gaps), first, schema)
    if differing := next((other for other in others if other != first), None):
        raise UnreadableReplyError(f"it says two things: {show_value(first)} and {show_value(differing)}")
    return found[-1]


def _list_claims(text: str, said: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The value with a grade or option that the prose states in its place: `"grade": 5 is what the answer wants`."""
    for key, inner in schema.get("properties", {}).items():
        if key not in said or not is_choice(inner):
            continue
        named = re.compile(rf"\b{re.escape(key)}\b[^\w\n]{{0,3}}{_SAYS}[^\w\n-]{{0,3}}(-?\w+(?:\.\d+)?)", re.IGNORECASE)
        for found in named.finditer(text):
            with suppress(UnreadableReplyError):
                yield {**said, **fit_value({key: found.group(1)}, {"type": "object", "properties": {key: inner}})}


def _drop_drafts(text: str, pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces after thoughts that the model's template began, and that hold JSON themselves.

    A tag that ends thoughts is one where it stands outside of all JSON, and once.
    """
    ends = [end for end in find_ends(text) if not any(piece.begin < end < piece.end for piece in pieces)]
    if len(ends) != 1 or any(piece.fault and piece.began and piece.begin < ends[0] for piece in pieces):
        return pieces
    return [piece for piece in pieces if piece.begin >= ends[0]]


def _is_attempt(piece: Piece, text: str, schema: Mapping[str, Any]) -> bool:
    """Whether a piece that does not fit was meant to: it has a key of the schema and no placeholder as a value."""
    wanted = [key for key, inner in schema.get("properties", {}).items() if "null" not in list_types(inner)]
    if piece.fault is not None:
        source = text[piece.begin : piece.end + 1]
        return not source.endswith("<") and any(re.search(rf"\b{re.escape(key)}\W*:", source) for key in wanted)
    if not isinstance(piece.value, dict) or not any(key in piece.value for key in wanted):
        return False
    return not _has_placeholder(piece.value)


def _has_placeholder(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(_has_placeholder(inner) for inner in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip()) is not None
