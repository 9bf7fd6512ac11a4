"""`--set PATH=VALUE` replaces a value of a spec, and a Python dict becomes the tree of one.

A path is keys and indexes separated by dots: `gates.0.min=0.5`, `systems.bm25.k1=1.2`. The value is YAML. An empty
value (`gates=`) is null. Diagnostics point into the argument. From Python, overrides can also be a dict:
`{"systems.bm25.k1": 1.2}`.

`axes:` gives keys several values, of which each combination is a spec of its own; `--sweep PATH=A,B` adds to them, and
an override of a path removes its axis. A value keeps its place in the text, so a diagnostic about it points to the
axis. Everything but a sweep sees the first value of each.

A dict gives the tree that a YAML file with the same content gives, or diagnostics that name key paths.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias

from rageval_spec.dataclass import replace
from rageval_spec.diagnostics import NOWHERE, Diagnostic, suggest
from rageval_spec.libraries import compile_later
from rageval_spec.spec.blocks.spec_node import AXIS_PATTERN, NAMED_SECTIONS, default_blocks
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import KeyPath, SourceText, TextPlace, cut, quote
from rageval_spec.spec.text.yaml_tree import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence

Overrides: TypeAlias = Sequence[str] | Mapping[str, Any]
"""`PATH=VALUE` texts, or a dict of paths and values."""
OPTION = "--set"
ARGUMENT = "overrides"
_INDEX = compile_later(r"(\w+)\[(\d+)\]")
_AXIS = compile_later(AXIS_PATTERN)
_LISTS = {
    "gates": "gates=[{metric: ndcg@10, min: 0.5}]",
    "metrics": "metrics=[ndcg@10]",
    "reports": "reports=[terminal]",
}
"""Sections that are lists, with an example of how to replace all of one."""
_MOST_COMBINATIONS = 256


def override(tree: YamlMapping, overrides: Overrides, option: str = OPTION) -> tuple[YamlMapping, list[Diagnostic]]:
    """Apply all overrides in order. Returns a new tree, and diagnostics; the given tree is not changed.

    `option` is what the user knows the texts by, which diagnostics name as their file.
    """
    diagnostics: list[Diagnostic] = []
    readers: list[Callable[[], _Override]]
    if isinstance(overrides, Mapping):
        readers = [partial(_read_item, str(path), value) for path, value in overrides.items()]
    else:
        texts = enumerate([overrides] if isinstance(overrides, str) else overrides, start=1)
        readers = [partial(_read_text, SourceText(option, text, first_line=line)) for line, text in texts]
    for read in readers:
        try:
            steps, value, faults = read()
            diagnostics += faults
            if value is not None:
                tree = _set_entry(tree, steps, value, steps)
        except _RefusedError as refused:
            diagnostics.append(refused.diagnostic)
    return tree, diagnostics


_Override: TypeAlias = "tuple[list[_Step], YamlNode | None, list[Diagnostic]]"
"""An override's path and value, and the faults of the value, which is None if it cannot be read at all."""


def _read_text(source: SourceText) -> _Override:
    steps, value_start = _split(source)
    value, faults = yaml_tree.read_yaml(source, value_start)
    if value is None and not faults:
        value = YamlScalar(source.place(value_start), None, "")
    return steps, value, faults


def _read_item(path: str, value: Any) -> _Override:
    """Read a path and a Python value. Messages begin with `overrides.` and the path."""
    place = name_place((ARGUMENT, path), ARGUMENT)
    if "=" in path:
        _refuse(place, "a path must not contain '='", "write the value behind the colon: {path: value}")
    steps = [step._replace(place=place) for step in _split(SourceText(OPTION, f"{path}="), place)[0]]
    return steps, *read_value(value, (ARGUMENT, path), ARGUMENT)


class _Step(NamedTuple):
    """One key or index of an override's path."""

    text: str
    place: TextPlace


class _RefusedError(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic


def _refuse(place: TextPlace, message: str, hint: str | None) -> NoReturn:
    raise _RefusedError(place.diagnose(message, "invalid-argument", hint))


def _split(source: SourceText, whole: TextPlace | None = None) -> tuple[list[_Step], int]:
    """The steps of the path and where the value starts. Faults point to `whole` if it is given."""
    path, equals, _ = source.text.partition("=")
    if not equals:
        _refuse(
            whole or source.place(0, len(source.text)),
            "an override must have the form PATH=VALUE",
            "for example, gates.0.min=0.5",
        )
    steps, start = [], 0
    for text in path.split("."):
        place = whole or source.place(start, start + len(text))
        if bracketed := _INDEX.fullmatch(text.strip()):
            _refuse(place, f"{quote(text)} is not a key", f"write {bracketed[1]}.{bracketed[2]}")
        if not text.strip():
            _refuse(place, "a key is missing in the path", "separate keys and indexes with single dots")
        steps.append(_Step(text.strip(), place))
        start += len(text) + 1
    if len(steps) > yaml_tree.MAX_DEPTH:
        _refuse(whole or source.place(0, len(path)), f"the path has more than {yaml_tree.MAX_DEPTH} levels", None)
    return steps, len(path) + 1


def _set(node: YamlNode, steps: Sequence[_Step], value: YamlNode, whole: Sequence[_Step]) -> YamlNode:
    if not steps:
        return value
    if isinstance(node, YamlMapping):
        return _set_entry(node, steps, value, whole)
    if isinstance(node, YamlSequence):
        index = _index(node, steps[0])
        items = list(node.items)
        items[index] = _set(items[index], steps[1:], value, whole)
        return YamlSequence(node.place, items)
    if node.value is None:
        return _set_entry(YamlMapping(node.place), steps, value, whole)
    owner = ".".join(step.text for step in whole[: len(whole) - len(steps)])
    message = f"{quote(owner)} is {quote(node.text)}, which has no keys"
    return _refuse(steps[0].place, message, f"replace the whole value: {owner}=...")


def _set_entry(node: YamlMapping, steps: Sequence[_Step], value: YamlNode, whole: Sequence[_Step]) -> YamlMapping:
    key, rest = _match_key(node, steps)
    entry = node.entries.get(key)
    depth = len(whole) - len(steps)
    child = entry.value if entry else YamlMapping(steps[0].place)
    if entry is None and rest and not depth and key in _LISTS:
        message = f"the spec has no {quote(key)}, so it has no entry {rest[0].text}"
        _refuse(steps[0].place, message, f"add '{key}:' to the spec, or set all of it: {_LISTS[key]}")
    if entry is None and rest and depth == 1 and whole[0].text in NAMED_SECTIONS:
        child = _declare(node, whole[0].text, steps[0]._replace(text=key))
    key_place = entry.key_place if entry and rest else steps[0].place
    return YamlMapping(node.place, {**node.entries, key: YamlEntry(key_place, _set(child, rest, value, whole))})


def _declare(section: YamlMapping, name: str, step: _Step) -> YamlMapping:
    """The block of a model or judge that needs no declaration. Any other undeclared name is refused."""
    defaults = default_blocks(name)
    if step.text not in defaults:
        known = [*dict.fromkeys([*section.entries, *defaults])]
        hint = suggest(step.text, known) or f"there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"
        _refuse(step.place, f"there is no {quote(step.text)} under {name}", hint)
    place = step.place
    entries = {key: YamlEntry(place, YamlScalar(place, text, text)) for key, text in defaults[step.text].items()}
    return YamlMapping(place, entries)


def _match_key(node: YamlMapping, steps: Sequence[_Step]) -> tuple[str, Sequence[_Step]]:
    """The next key of the path, and the rest. An existing key that contains dots wins over its first part."""
    for count in range(len(steps), 1, -1):
        joined = ".".join(step.text for step in steps[:count])
        if joined in node.entries:
            return joined, steps[count:]
    return steps[0].text, steps[1:]


def _index(node: YamlSequence, step: _Step) -> int:
    count = len(node.items)
    fewer = "its only entry is 0" if count else "it is empty"
    there = f"its entries are 0 to {count - 1}" if count > 1 else fewer
    if not (step.text.isascii() and step.text.isdigit()):
        _refuse(step.place, f"{quote(step.text)} is not an index of a list", there)
    if len(step.text) > 6 or int(step.text) >= count:
        _refuse(step.place, f"the list has no entry {step.text}", there)
    return int(step.text)


def add_axes(tree: YamlMapping, texts: Sequence[str], overrides: Overrides) -> tuple[YamlMapping, list[Diagnostic]]:
    """The tree with the axes of the command line, and without those whose path is overridden; and diagnostics."""
    split = [text.partition("=") for text in texts]
    written = [f"axes.{path}{equals}{equals and f'[{values}]'}" for path, equals, values in split]
    tree, diagnostics = override(tree, written, "--sweep")
    fixed = {one.partition("=")[0].strip() for one in ([overrides] if isinstance(overrides, str) else overrides)}
    if (axes := tree.entries.get("axes")) is None or not isinstance(axes.value, YamlMapping):
        return tree, diagnostics  # the check of types says so
    left = {path: entry for path, entry in _flatten(axes.value) if path not in fixed}
    entries = {**tree.entries, "axes": YamlEntry(axes.key_place, YamlMapping(axes.value.place, left))}
    return YamlMapping(tree.place, entries), diagnostics


def apply_axes(tree: YamlMapping, chosen: Mapping[str, int]) -> tuple[YamlMapping, list[Diagnostic]]:
    """The tree with one value of each axis, by default the first, and diagnostics of what is wrong with the axes."""
    diagnostics = [*_check_axes(tree)]
    for path, (place, values) in {} if diagnostics else _list_axes(tree).items():
        steps = [_Step(text, place.narrow(text)) for text in path.split(".")]
        try:  # with a copy, whose variables are filled in on their own
            tree = _set_entry(tree, steps, copy.deepcopy(values[chosen.get(path, 0)]), steps)
        except _RefusedError as refused:
            diagnostics.append(replace(refused.diagnostic, code="wrong-axis"))
    return tree, diagnostics


def list_single_changes(tree: YamlMapping) -> Iterator[dict[str, int]]:
    """For each further value of an axis, the combination that differs from the first one only in it."""
    if not any(_check_axes(tree)):
        yield from ({path: at} for path, (_, values) in _list_axes(tree).items() for at in range(1, len(values)))


def _flatten(axes: YamlMapping, above: str = "") -> Iterator[tuple[str, YamlEntry]]:
    for key, entry in axes.entries.items():
        value, path = entry.value, f"{above}{key}"
        yield from _flatten(value, f"{path}.") if isinstance(value, YamlMapping) else [(path, entry)]


def _list_axes(tree: YamlMapping) -> dict[str, tuple[TextPlace, Sequence[YamlNode]]]:
    """The place and the values of each axis that has both; the check of types tells of the others."""
    axes = tree.entries["axes"].value if "axes" in tree.entries else None
    known = axes.entries.items() if isinstance(axes, YamlMapping) else ()
    listed = ((path, one.key_place, getattr(one.value, "items", ())) for path, one in known)
    return {path: (place, values) for path, place, values in listed if values and _AXIS.search(path)}


def _check_axes(tree: YamlMapping) -> Iterator[Diagnostic]:
    if (count := math.prod(len(values) for _, values in _list_axes(tree).values())) > _MOST_COMBINATIONS:
        message = f"the axes have {count:,} combinations; a sweep has at most {_MOST_COMBINATIONS}"
        yield tree.entries["axes"].key_place.diagnose(message, "wrong-axis", "sweep some axes at a time")


_TYPES = "text, a number, True, False, None, a list or a dict"


def read_value(value: Any, path: KeyPath, name: str) -> tuple[YamlNode, list[Diagnostic]]:
    """The tree of a Python value, and the diagnostics.

    Tuples are lists, paths are text, and numpy's scalars are numbers. The place of a value is its key path; `path` is
    that of the value itself, () for a whole spec, whose messages begin with `name`.
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
        if depth > yaml_tree.MAX_DEPTH:
            return self._refuse(place, f"the spec is nested more than {yaml_tree.MAX_DEPTH} levels deep", "too-large")
        if self._count > yaml_tree.MAX_VALUES:
            return self._refuse(place, f"the spec has more than {yaml_tree.MAX_VALUES:,} values", "too-large")
        if isinstance(value, Mapping):
            return self._read_mapping(value, path, place, depth)
        if isinstance(value, (list, tuple)):
            return YamlSequence(place, [self.read(one, (*path, index), depth + 1) for index, one in enumerate(value)])
        if isinstance(value, os.PathLike):
            return self._read_scalar(os.fspath(value), place)
        is_scalar_of_numpy = getattr(value, "shape", None) == () and hasattr(value, "item")
        return self._read_scalar(value.item() if is_scalar_of_numpy else value, place)

    def _read_mapping(self, value: Mapping[Any, Any], path: KeyPath, place: TextPlace, depth: int) -> YamlMapping:
        entries: dict[str, YamlEntry] = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                self._refuse(place, f"a key must be text, not {cut(repr(key))}", "invalid-yaml", "write it in quotes")
            elif unusable := yaml_tree.UNUSABLE.search(key):
                self._refuse(place, f"the character U+{ord(unusable[0]):04X} cannot be part of a key", "invalid-yaml")
            elif self._count <= yaml_tree.MAX_VALUES:
                entries[key] = YamlEntry(name_place((*path, key), self.name), self.read(inner, (*path, key), depth + 1))
        return YamlMapping(place, entries)

    def _read_scalar(self, value: Any, place: TextPlace) -> YamlScalar:
        if isinstance(value, str) and (unusable := yaml_tree.UNUSABLE.search(value)):
            return self._refuse(
                place, f"the character U+{ord(unusable[0]):04X} cannot be part of a value", "invalid-yaml"
            )
        if isinstance(value, float) and not math.isfinite(value):
            return self._refuse(place, f"{value} is not a number that a spec can use", "wrong-value")
        if isinstance(value, (int, float)) and abs(value) > yaml_tree.LARGEST:
            return self._refuse(
                place, "this number is too large", "wrong-value", f"the largest whole number is {yaml_tree.LARGEST}"
            )
        if value is not None and not isinstance(value, (str, int, float)):
            kind = type(value).__name__
            return self._refuse(
                place, f"{quote(kind)} is not a type that a spec can contain", "wrong-type", f"write {_TYPES}"
            )
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        return YamlScalar(place, value, text)

    def _refuse(self, place: TextPlace, message: str, code: str, hint: str | None = None) -> YamlScalar:
        self.diagnostics.append(place.diagnose(message, code, hint))
        return YamlScalar(place, None, "", faulty=True)


def name_place(path: KeyPath, name: str) -> TextPlace:
    """The place of a value that is in no text: its key path, or `name` for the whole spec."""
    return TextPlace(cut(".".join(map(str, path))) if path else name, NOWHERE, "")
