"""The error of a reply that cannot be read, and how a message quotes the reply."""

from __future__ import annotations

import json
from typing import Any

from rageval_spec.wording import make_visible

_SHOWN = 80
_QUOTED = 120


class UnreadableReplyError(ValueError):
    """A reply that cannot be read; the message says what is wrong, in words that the model understands."""


def quote_reply(text: str) -> str:
    """The beginning of a reply in quotation marks, on one line, with control characters shown as escapes."""
    words = " ".join(text[: 4 * _QUOTED].split())
    shown = words[:_QUOTED].rstrip()
    is_whole = shown == words and len(text) <= 4 * _QUOTED
    return f'"{make_visible(shown)}{"" if is_whole else " ..."}"'


def show_value(value: Any) -> str:
    """A value as JSON in ASCII, cut after 80 characters."""
    shown = json.dumps(value, ensure_ascii=True, default=str)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."


def name_place(path: str) -> str:
    """The name of a place in a reply, such as `'verdicts[0].claim'`; "the reply" if the path is empty."""
    return f"'{path}'" if path else "the reply"
