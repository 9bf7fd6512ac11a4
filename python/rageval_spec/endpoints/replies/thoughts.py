"""What a reasoning model thought before it replied."""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|thoughts|reasoning"
_THOUGHTS = re.compile(rf"(?:<(?:{_NAMES})>.*?</(?:{_NAMES})>\s*|\[THINK\].*?\[/THINK\]\s*)+", re.DOTALL)
_END = re.compile(rf"^[ \t]*(?:</(?:{_NAMES})>|\[/THINK\])", re.MULTILINE)
_JSON_BEGINS = re.compile(r"\{|(?:(?<=[\n:])|^)[ \t]*\[(?!/THINK\])")


def drop_thoughts(text: str) -> str:
    """A reply without byte order mark, white space around it, and what a reasoning model thought before it.

    Thoughts begin the reply with `<think>`, or, where the model's template has said that already, end with a line that
    begins with `</think>` before any JSON. Elsewhere it is a quotation, and whoever wrote what is quoted would choose
    where the reply begins.
    """
    text = text.replace("\ufeff", "").strip()
    if thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    json_begins = _JSON_BEGINS.search(text)
    ends = [*_END.finditer(text, 0, json_begins.start() if json_begins else len(text))]
    return (text[ends[-1].end() :] if ends else text).strip()


def find_ends(text: str) -> list[int]:
    """Where lines begin that end thoughts, and so may divide drafts from the reply: their places after the tag."""
    return [found.end() for found in _END.finditer(text)]
