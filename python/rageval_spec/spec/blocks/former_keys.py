"""Keys that an earlier version of the format had. They are read as the keys of today, with a warning.

A node says which keys it had under another name (`former_keys`), and a dataset which of its keys named columns before
`columns:` did (`former_columns`). Nobody else knows of them: what validates a block sees the keys of today.
`rageval-spec upgrade` rewrites the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from inspect import isclass
from typing import NamedTuple, cast

from pydantic import BaseModel

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic
from rageval_spec.errors import UsageError
from rageval_spec.spec.blocks import spec_node
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import SpecNode
from rageval_spec.spec.text.places import TextPlace, quote
from rageval_spec.spec.text.yaml_tree import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, child

COLUMNS = "columns"
_FILES = (".yaml", ".yml")


class FormerKey(NamedTuple):
    """A key of a spec that is written otherwise today.

    Attributes:
        place: of the key.
        keys: what to write in its place: a key, and perhaps one inside of it, as in `columns: {corpus: ...}`.
        message, advice: what users are told, and what to write.
    """

    place: TextPlace
    keys: tuple[str, ...]
    message: str
    advice: str

    def warn(self, *, by_hand: bool = False) -> Diagnostic:
        """What users are told: in a file, how it is rewritten, unless only they can do it."""
        is_file = self.place.path.endswith(_FILES)
        how = " by hand" if by_hand else f", or run: rageval-spec upgrade {self.place.path}" if is_file else ""
        return self.place.diagnose(self.message, "former-key", self.advice + how, "warning")


def adopt_former_keys(tree: YamlMapping) -> tuple[list[FormerKey], list[Diagnostic]]:
    """Move the content of former keys to those of today, in place.

    Returns:
        The former keys, each once however many aliases show it, and the errors of keys that are there twice.
    """
    found: dict[FormerKey, None] = {}
    errors: dict[Diagnostic, None] = {}
    for block, node_type, replace in _list_blocks(tree):
        adopted = _Adoption(block, node_type)
        found.update(dict.fromkeys(adopted.found))
        errors.update(dict.fromkeys(adopted.errors))
        if adopted.found:
            replace(YamlMapping(block.place, adopted.entries, block.size, block.height))
    return list(found), list(errors)


_Block = tuple[YamlMapping, type[BaseModel], Callable[[YamlMapping], None]]


def _list_blocks(tree: YamlMapping) -> Iterator[_Block]:
    """Each block, the node that it is validated as, and what puts another block in its place; the top is the first."""

    def replace_top(block: YamlMapping) -> None:
        tree.entries = block.entries

    yield tree, SpecNode, replace_top
    for key, field in SpecNode.model_fields.items():
        entry = tree.entries.get(field.alias or key)
        if entry is not None and isclass(field.annotation) and issubclass(field.annotation, BaseModel):
            yield from _list_block(entry.value, field.annotation, partial(_set, tree.entries, field.alias or key))
    yield from _list_entries(child(tree, ("gates",)), GateNode)
    for section in (*spec_node.NAMED_SECTIONS, *spec_node.LISTED_SECTIONS):
        yield from _list_entries(child(tree, (section,)), section)
    for path, section in spec_node.INNER_SECTIONS.items():
        yield from _list_entries(child(tree, path), section)
    for key, section in spec_node.SINGLE_SECTIONS.items():
        if key in tree.entries:
            yield from _list_block(tree.entries[key].value, section, partial(_set, tree.entries, key))


def _list_entries(node: YamlNode | None, kind: object) -> Iterator[_Block]:
    if isinstance(node, YamlMapping):
        for key, entry in list(node.entries.items()):
            yield from _list_block(entry.value, kind, partial(_set, node.entries, key))
    elif isinstance(node, YamlSequence):
        for index, item in enumerate(node.items):
            yield from _list_block(item, kind, partial(node.items.__setitem__, index))


def _list_block(node: YamlNode, kind: object, replace: Callable[[YamlMapping], None]) -> Iterator[_Block]:
    """A block, whose `kind` is its node or the section whose words it may use; nothing if it is none."""
    if not isinstance(node, YamlMapping):
        return
    if isinstance(kind, str):
        kind = _find_node_type(cast("registry.Section", kind), node)
    if isclass(kind) and issubclass(kind, BaseModel):
        yield node, kind, replace


def _find_node_type(section: registry.Section, block: YamlMapping) -> object:
    """The node of the plugin that a block names; None if it names none, which is told where the block is validated."""
    word = child(block, ("use",))
    with suppress(UsageError):
        if isinstance(word, YamlScalar) and registry.has_word(section, str(word.value)):
            return registry.load(section, str(word.value)).node_type
    return None


def _set(entries: dict[str, YamlEntry], key: str, value: YamlNode) -> None:
    entries[key] = YamlEntry(entries[key].key_place, value)


class _Adoption:
    """The entries of a block with the keys of today. Aliases can share its content, so it is copied, not changed."""

    def __init__(self, block: YamlMapping, node_type: type[BaseModel]) -> None:
        self.found: list[FormerKey] = []
        self.errors: list[Diagnostic] = []
        renamed: Mapping[str, str] = getattr(node_type, "former_keys", {})
        columns: Mapping[str, str] = getattr(node_type, "former_columns", {})
        self.entries = {key: entry for key, entry in block.entries.items() if key not in {*renamed, *columns}}
        for key in (key for key in renamed if key in block.entries):
            self._rename(key, renamed[key], block.entries[key])
        for key in (key for key in columns if key in block.entries):
            file = columns[key]
            self._add_columns(key, file if file == "corpus" or file in block.entries else "", block.entries[key])

    def _rename(self, key: str, now: str, old: YamlEntry) -> None:
        if now in self.entries:
            message = f"{quote(key)} is the former name of {quote(now)}, which is there as well"
            self.errors.append(old.key_place.diagnose(message, "duplicate-key", "remove one of them"))
        self._note(old.key_place, (now,), f"{quote(key)} is now called {quote(now)}", f"write {now}")
        self.entries.setdefault(now, YamlEntry(old.key_place, old.value))

    def _add_columns(self, key: str, part: str, old: YamlEntry) -> None:
        inside = f"{COLUMNS}: {{{part}: {{...}}}}" if part else f"{COLUMNS}: {{...}}"
        keys = (COLUMNS, part) if part else (COLUMNS,)
        self._note(old.key_place, keys, f"{quote(key)} is now part of '{COLUMNS}'", f"write {inside}")
        value = YamlMapping(old.value.place, {part: YamlEntry(old.key_place, old.value)}) if part else old.value
        present = self.entries.get(COLUMNS)
        if present is None:
            self.entries[COLUMNS] = YamlEntry(old.key_place, value)
        elif isinstance(present.value, YamlMapping) and isinstance(value, YamlMapping):
            for name in (name for name in value.entries if name in present.value.entries):
                message = f"{quote(name)} is defined under both {quote(key)} and '{COLUMNS}'"
                hint = f"keep only the one under '{COLUMNS}'"
                self.errors.append(value.entries[name].key_place.diagnose(message, "duplicate-key", hint))
            merged = YamlMapping(present.value.place, {**value.entries, **present.value.entries})
            self.entries[COLUMNS] = YamlEntry(present.key_place, merged)

    def _note(self, place: TextPlace, keys: tuple[str, ...], message: str, advice: str) -> None:
        self.found.append(FormerKey(place, keys, message, advice))
