"""The values of a query's columns: which there are, how slices are named after them, and whether a condition holds.

CSV files have only text, so text that is a number counts as one, and text that is a JSON list is a list.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rageval_spec.spec.slices import ConditionNode, Scalar

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_EXACT = 1e15
"""Floats without a fraction are written without one up to here."""


def list_values(value: Any) -> list[Scalar]:
    """The values of a column: those of a list, or the one value. Null, empty text and objects are no values."""
    return list(_find_values(value))


def _find_values(value: Any) -> Iterator[Scalar]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _find_values(item)
    elif isinstance(value, str):
        inner = _read_list(value)
        if inner is not None:
            yield from _find_values(inner)
        elif value.strip():
            yield value
    elif value is not None and not isinstance(value, Mapping):
        yield value


def _read_list(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def label(value: Scalar) -> str:
    """The value in the name of a slice: `true`, `2` (also for 2.0), or the text on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def find_number(value: Scalar) -> float | None:
    """The value as a finite number; None if it is none."""
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def holds(condition: ConditionNode, value: Any) -> bool:
    """Whether one of a column's values passes all tests of a condition. Without a value none holds."""
    return any(_passes(condition, one) for one in list_values(value))


def _passes(condition: ConditionNode, value: Scalar) -> bool:
    if condition.equal is not None and not _equals(value, condition.equal):
        return False
    if condition.among is not None and not any(_equals(value, wanted) for wanted in condition.among):
        return False
    if condition.contains is not None and condition.contains.casefold() not in label(value).casefold():
        return False
    if (condition.min, condition.max) != (None, None) and not _is_within(
        find_number(value), condition.min, condition.max
    ):
        return False
    words = condition.words
    return words is None or _is_within(len(str(value).split()), words.min, words.max)


def _equals(value: Scalar, wanted: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return label(value).lower() == label(wanted).lower()
    if isinstance(wanted, int | float):
        return find_number(value) == wanted
    return label(value) == label(wanted)


def _is_within(number: float | None, low: float | None, high: float | None) -> bool:
    return number is not None and (low is None or number >= low) and (high is None or number <= high)


def describe(condition: ConditionNode) -> str:
    """A condition in words: `question has at least 12 words`."""
    tests = [
        f"is {label(condition.equal)}" if condition.equal is not None else "",
        f"is {' or '.join(map(label, condition.among))}" if condition.among is not None else "",
        _describe_bounds("is", condition.min, condition.max, ""),
        f"contains {condition.contains!r}" if condition.contains is not None else "",
        _describe_bounds("has", condition.words.min, condition.words.max, " words") if condition.words else "",
    ]
    return f"{condition.column} {' and '.join(filter(None, tests))}"


def _describe_bounds(verb: str, low: float | None, high: float | None, unit: str) -> str:
    bounds = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    told = " and ".join(filter(None, bounds))
    return f"{verb} {told}{unit}" if told else ""
