"""Removes what a reasoning model thought before it replied."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|thoughts|reasoning"
_THOUGHTS = re.compile(rf"(?:<(?:{_NAMES})>.*?</(?:{_NAMES})>\s*|\[THINK\].*?\[/THINK\]\s*)+", re.DOTALL)
_END = re.compile(rf"^[ \t]*(?:</(?:{_NAMES})>|\[/THINK\])", re.MULTILINE)
_JSON_BEGINS = re.compile(r"\{|(?:(?<=[\n:])|^)[ \t]*\[(?!/THINK\])")


def drop_thoughts(text: str) -> str:
    """A reply without its byte order mark, outer white space, and the thoughts of a reasoning model before it.

    Thoughts begin the reply with `<think>`. If the model's template already wrote that tag, they end with a line that
    begins with `</think>` before any JSON. Anywhere else the tag is a quotation; if it counted, the author of a quoted
    text could choose where the reply begins.
    """
    text = text.replace("\ufeff", "").strip()
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    json_begins = _JSON_BEGINS.search(text)
    ends = [*_END.finditer(text, 0, json_begins.start() if json_begins else len(text))]
    return (text[ends[-1].end() :] if ends else text).strip()


def find_ends(text: str) -> list[int]:
    """The offsets after the closing tags of thoughts that begin a line, which can separate drafts from the reply."""
    return [found.end() for found in _END.finditer(text)]
