"""How messages refer to JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MOST_SHOWN = 12


def name_kind(value: Any) -> str:
    """What a JSON value is: `an object`, `a list of 3`, `null`."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    kinds = {dict: "an object", str: "text", bool: "a Boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)


def list_keys(keys: Sequence[Any]) -> str:
    """`'a', 'b'`, shortened if there are many; `nothing` if there are none."""
    shown = ", ".join(repr(key) for key in keys[:_MOST_SHOWN])
    return (shown + (", ..." if len(keys) > _MOST_SHOWN else "")) or "nothing"
