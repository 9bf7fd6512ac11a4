"""Paths into JSON: the part of JSONPath (RFC 9535) that names locations, with or without the leading `$`.

`$.choices[0].message.content`, `choices[0].message.content`, `sources[*].text`, `$['odd key'][-1]`, `data.0.text`.
Filters, slices and recursive descent are not supported. Messages refer to JSON values by their kind and keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import RagevalError
from rageval_spec.libraries import compile_later

_STEP = compile_later(
    r"""
    \[\s*(?P<index>-?\d+)\s*\]
    | \[\s*(?P<each>\*)\s*\]
    | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
    | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
    | \.(?P<star>\*)
    | \.(?P<name>[^.\[\]'"*\s]+)
    """,
    re.VERBOSE,
)


_EACH = object()
"""The step that stands for every item of a list, or every value of an object."""


class PathError(RagevalError):
    """A path finds nothing. The message says how far it leads and what is there."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path; `steps` are keys, indexes (negative ones from the end) and wildcards."""

    text: str
    steps: tuple[Any, ...]

    @property
    def is_plural(self) -> bool:
        """Whether it has a wildcard: what it finds is a list, which may be empty."""
        return _EACH in self.steps

    def find(self, content: Any) -> Any:
        """The value at the path, or with a wildcard the list of all. Raises PathError: a part of it finds nothing."""
        found = list(self._walk(content, 0, "the reply"))
        return found if self.is_plural else found[0]

    def find_or(self, content: Any, default: Any) -> Any:
        """As `find`, but `default` if the path finds nothing."""
        try:
            return self.find(content)
        except PathError:
            return default

    def lacks_some(self, content: Any) -> bool:
        """Whether some of the items at the first wildcard have what follows it, and others lack it."""
        if not self.is_plural:
            return False
        at = self.steps.index(_EACH)
        items = JsonPath(self.text, self.steps[:at]).find_or(content, [])
        rest, nothing = JsonPath(self.text, self.steps[at + 1 :]), object()
        listed = items.values() if isinstance(items, dict) else items if isinstance(items, list) else []
        return len({rest.find_or(item, nothing) is nothing for item in listed}) == 2

    def _walk(self, value: Any, at: int, place: str) -> Iterator[Any]:
        if at == len(self.steps):
            yield value
            return
        step = self.steps[at]
        if step is _EACH:
            for name, item in self._items(value, place):
                yield from self._walk(item, at + 1, f"{place}[{name!r}]")
        elif isinstance(value, dict) and str(step) in value:
            yield from self._walk(value[str(step)], at + 1, _extend(place, str(step)))
        elif isinstance(value, list) and (index := _as_index(step)) is not None and -len(value) <= index < len(value):
            yield from self._walk(value[index], at + 1, f"{place}[{index}]")
        else:
            raise PathError(f"{self.text} finds nothing: {place} {_describe(value, step)}")

    def _items(self, value: Any, place: str) -> list[tuple[Any, Any]]:
        if isinstance(value, list):
            return list(enumerate(value))
        if isinstance(value, dict):
            return list(value.items())
        raise PathError(f"{self.text} finds nothing: {place} is {name_kind(value)}, but '*' needs a list")


def parse_path(text: str) -> JsonPath:
    """Parse a path. Raises ValueError: the text is not a path; the message shows where it goes wrong."""
    written = text.strip()
    if not written:
        raise ValueError("the path is empty; write one such as answer or $.choices[0].message.content")
    rest = written.removeprefix("$")
    rest = rest if rest == "" or rest[0] in ".[" else f".{rest}"
    steps: list[Any] = []
    position = 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(
                f"{text!r} is not a valid path from {rest[position:]!r} on; "
                "write names, [0], [*] and ['odd name'], such as $.choices[0].message.content"
            )
        steps.append(_read_step(match))
        position = match.end()
    return JsonPath(text, tuple(steps))


def _read_step(match: re.Match[str]) -> Any:
    if match["index"] is not None:
        return int(match["index"])
    if match["each"] or match["star"]:
        return _EACH
    if match["name"] is not None:
        return match["name"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return re.sub(r"\\(.)", r"\1", quoted)


def _as_index(step: Any) -> int | None:
    if isinstance(step, int):
        return step
    return int(step) if isinstance(step, str) and step.isascii() and step.isdigit() else None


def _extend(place: str, key: str) -> str:
    return f"'{key}'" if place == "the reply" else f"{place}.'{key}'"


def _describe(value: Any, step: Any) -> str:
    if isinstance(value, dict):
        return f"has no {str(step)!r}; it has {list_keys(list(value))}"
    return f"is {name_kind(value)}, which has no {step if isinstance(step, int) else repr(step)}"


MOST_SHOWN = 12


def name_kind(value: Any) -> str:
    """What a JSON value is: `an object`, `a list of 3`, `null`."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    kinds = {dict: "an object", str: "text", bool: "a Boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null" if value is None else type(value).__name__)


def list_keys(keys: Sequence[Any]) -> str:
    """`'a', 'b'`, shortened if there are many; `nothing` if there are none."""
    shown = ", ".join(repr(key) for key in keys[:MOST_SHOWN])
    return (shown + (", ..." if len(keys) > MOST_SHOWN else "")) or "nothing"
