"""A Python dict -> the tree that a YAML file with the same content gives, or diagnostics that name key paths."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from rageval_spec.diagnostics import NOWHERE, Diagnostic
from rageval_spec.spec.places import KeyPath, Place, cut, quote
from rageval_spec.spec.reading import (
    MAX_DEPTH,
    MAX_VALUES,
    UNUSABLE,
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
)
from rageval_spec.spec.scalars import LARGEST, ScalarValue

_TYPES = "text, a number, True, False, None, a list or a dict"


def read_value(value: Any, path: KeyPath, name: str) -> tuple[YamlNode, list[Diagnostic]]:
    """The tree of a Python value, and the diagnostics.

    Tuples are lists, paths are text, and numpy's scalars are numbers. The place of a value is its key path.

    Args:
        value: dicts, lists and scalars.
        path: the value's own key path; () for a whole spec.
        name: what messages on a value without a key path begin with.
    """
    reader = _Reader(name)
    return reader.read(value, path, 0), reader.diagnostics


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.diagnostics: list[Diagnostic] = []
        self._count = 0

    def read(self, value: Any, path: KeyPath, depth: int) -> YamlNode:
        self._count += 1
        place = name_place(path, self.name)
        if depth > MAX_DEPTH:
            return self._refuse(place, f"the spec is nested more than {MAX_DEPTH} levels deep", "too-deep")
        if self._count > MAX_VALUES:
            return self._refuse(place, f"the spec has more than {MAX_VALUES:,} values", "too-large")
        if isinstance(value, Mapping):
            return self._read_mapping(value, path, place, depth)
        if isinstance(value, (list, tuple)):
            return YamlSequence(place, [self.read(one, (*path, index), depth + 1) for index, one in enumerate(value)])
        return self._read_scalar(_simplify(value), place)

    def _read_mapping(self, value: Mapping[Any, Any], path: KeyPath, place: Place, depth: int) -> YamlMapping:
        entries: dict[str, YamlEntry] = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                self._refuse(place, f"a key must be text, not {cut(repr(key))}", "key", "write it in quotes")
            elif unusable := UNUSABLE.search(key):
                self._refuse(place, f"the character U+{ord(unusable[0]):04X} cannot be part of a key", "character")
            elif self._count <= MAX_VALUES:
                entries[key] = YamlEntry(name_place((*path, key), self.name), self.read(inner, (*path, key), depth + 1))
        return YamlMapping(place, entries)

    def _read_scalar(self, value: Any, place: Place) -> YamlScalar:
        if isinstance(value, str) and (unusable := UNUSABLE.search(value)):
            return self._refuse(place, f"the character U+{ord(unusable[0]):04X} cannot be part of a value", "character")
        if isinstance(value, float) and not math.isfinite(value):
            return self._refuse(place, f"{value} is not a number that a spec can use", "number")
        if isinstance(value, (int, float)) and abs(value) > LARGEST:
            return self._refuse(place, "this number is too large", "number", f"the largest whole number is {LARGEST}")
        if value is not None and not isinstance(value, (str, int, float)):
            kind = type(value).__name__
            return self._refuse(
                place, f"{quote(kind)} is not a type that a spec can contain", "type", f"write {_TYPES}"
            )
        return YamlScalar(place, value, _spell(value))

    def _refuse(self, place: Place, message: str, code: str, hint: str | None = None) -> YamlScalar:
        self.diagnostics.append(place.diagnose(message, code, hint))
        return YamlScalar(place, None, "", faulty=True)


def name_place(path: KeyPath, name: str) -> Place:
    """The place of a value that is in no text: its key path, or `name` for the whole spec."""
    return Place(cut(".".join(map(str, path))) if path else name, NOWHERE, "")


def _simplify(value: Any) -> Any:
    """Paths as text, and numpy's scalars as Python's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    return value.item() if is_scalar else value


def _spell(value: ScalarValue) -> str:
    """The value as YAML writes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
