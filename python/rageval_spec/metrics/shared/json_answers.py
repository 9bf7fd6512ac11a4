"""Reads an answer as JSON."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_FENCE = re.compile(r"\s*```(?:json|JSON)?[ \t]*\r?\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_LONGEST_INTEGER = 4000


def read_json(answer: str, *, unfence: bool) -> Any:
    """The value that an answer is as JSON; `unfence` removes a Markdown code fence around all of it.

    Raises:
        ValueError: it is not JSON; the message says what is wrong and where.
    """
    fenced = _FENCE.fullmatch(answer) if unfence else None
    text = fenced[1] if fenced else answer
    if not text.strip():
        raise ValueError("the answer is empty")
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_read_integer)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _read_integer(text: str) -> int | float:
    return int(text) if len(text) < _LONGEST_INTEGER else float(text)
