"""YAML text -> a tree in which every key and value has its place, or diagnostics of what is wrong with the text.

This is YAML 1.1 as PyYAML reads it, restricted to what a spec needs: one document, one tag (`!!str`), keys that are
text. Keys are kept as they are written (`on: lower` is the key `on`, not `true`). The tree is built from the parser's
events rather than by recursion. Limits on depth and size count what aliases expand to, so no text can exhaust the
stack or the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import yaml

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.spec.places import Place, Source, cut, quote
from rageval_spec.spec.scalars import ScalarValue, Trap, resolve_scalar
from rageval_spec.spec.syntax import explain_syntax_error

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 50
MAX_VALUES = 100_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAG = "tag:yaml.org,2002:str"
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
UNUSABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that no key and no value of a spec can contain."""


@dataclass(slots=True)
class YamlScalar:
    """A scalar: its value, and its text as the parser returns it.

    Attributes:
        plain: whether it was written without quotes.
        faulty: whether it was already diagnosed; further messages on its value are suppressed.
        from_environment: whether part of its text came from a variable.
    """

    place: Place
    value: ScalarValue
    text: str
    plain: bool = False
    faulty: bool = False
    from_environment: bool = False
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class YamlSequence:
    """A list. `size` counts the values in it and `height` the levels below it, with aliases expanded."""

    place: Place
    items: list[YamlNode] = field(default_factory=list)
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class YamlEntry:
    """A key with its value."""

    key_place: Place
    value: YamlNode


@dataclass(slots=True)
class YamlMapping:
    """A mapping whose keys are text, with merge keys resolved."""

    place: Place
    entries: dict[str, YamlEntry] = field(default_factory=dict)
    size: int = 1
    height: int = 0


YamlNode: TypeAlias = YamlScalar | YamlSequence | YamlMapping


def read_yaml(source: Source, start: int = 0) -> tuple[YamlNode | None, list[Diagnostic]]:
    """Read the text from character `start` on.

    Returns:
        The tree, and the diagnostics. The tree is None if the text is empty, or cannot be read to its end.
    """
    if len(source.text) > MAX_CHARACTERS:
        message = f"the spec has {len(source.text):,} characters; the limit is {MAX_CHARACTERS:,}"
        return None, [source.place(0).diagnose(message, "too-large", "is this a data file?")]
    if unprintable := _NOT_YAML.search(source.text):
        character = f"U+{ord(unprintable[0]):04X}"
        message = f"the character {character} cannot be part of a YAML text"
        hint = "is this a data file?" if unprintable[0] == "\0" else "remove it"
        return None, [source.place(unprintable.start()).diagnose(message, "character", hint)]
    builder = _Builder(source)
    try:
        builder.build(" " * start + source.text[start:])
    except yaml.MarkedYAMLError as error:
        return None, [*builder.diagnostics, explain_syntax_error(source, error)]
    except _CannotGoOnError:
        return None, builder.diagnostics
    return builder.root, builder.diagnostics


def to_data(node: YamlNode) -> Any:
    """The values of a tree without their places, in the form that a JSON Schema validates."""
    if isinstance(node, YamlMapping):
        return {key: to_data(entry.value) for key, entry in node.entries.items()}
    if isinstance(node, YamlSequence):
        return [to_data(item) for item in node.items]
    return node.value


def walk_scalars(node: YamlNode) -> Iterator[YamlScalar]:
    """All scalars of a tree in order. A scalar that aliases share appears once."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, YamlScalar):
            yield current
        elif isinstance(current, YamlSequence):
            waiting += reversed(current.items)
        else:
            waiting += reversed([entry.value for entry in current.entries.values()])


class _CannotGoOnError(Exception):
    """The rest of the text cannot be read; the last diagnostic says why."""


class _Key(NamedTuple):
    text: str
    place: Place
    merges: bool


@dataclass(slots=True)
class _Frame:
    """A collection that is being read. `key` is the key whose value comes next."""

    node: YamlSequence | YamlMapping
    anchor: str | None
    key: _Key | None = None
    merged: list[tuple[Place, YamlNode]] = field(default_factory=list)


class _Builder:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: YamlNode | None = None
        self.diagnostics: list[Diagnostic] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, YamlNode | None] = {}
        self._documents = 0

    def build(self, text: str) -> None:
        """Follow the parser to the end of the text."""
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.ScalarEvent):
                self._read_scalar(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._close()
            elif isinstance(event, yaml.AliasEvent):
                self._read_alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._start_document(event)

    def _report(self, place: Place, message: str, code: str, hint: str | None = None) -> None:
        self.diagnostics.append(place.diagnose(message, code, hint))

    def _place(self, event: Any) -> Place:
        return self.source.place(event.start_mark.index, event.end_mark.index)

    def _start_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            hint = "a spec must be a single document"
            self._report(self._place(event), "a second YAML document starts here", "documents", hint)
            raise _CannotGoOnError

    def _read_scalar(self, event: Any) -> None:
        place = self._place(event)
        self._check_tag(event, place)
        if self._wants_key():
            self._take_key(event.value, place, plain=event.implicit[0])
            return
        scalar = YamlScalar(place, event.value, event.value, plain=event.implicit[0] and event.tag is None)
        if unusable := UNUSABLE.search(event.value):
            message = f"the character U+{ord(unusable[0]):04X} cannot be part of a value"
            self._report(place, message, "character", "remove the escape")
            scalar.faulty = True
        elif scalar.plain:
            resolved = resolve_scalar(event.value)
            if isinstance(resolved, Trap):
                self._report(place, resolved.message, resolved.code, resolved.hint)
                scalar.faulty = True
            else:
                scalar.value = resolved
        self._finish(scalar, event.anchor)

    def _open(self, event: Any) -> None:
        place = self._place(event)
        self._check_tag(event, place)
        if self._wants_key():
            hint = "quote a value that starts with '{' or '['" if event.flow_style else "write text before the ':'"
            self._report(place, "a key must be text", "key", hint)
            raise _CannotGoOnError
        self._check_depth(place, 1)
        node = YamlMapping(place) if isinstance(event, yaml.MappingStartEvent) else YamlSequence(place)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._frames.append(_Frame(node, event.anchor))

    def _close(self) -> None:
        frame = self._frames.pop()
        if isinstance(frame.node, YamlMapping):
            self._merge(frame.node, frame.merged)
        self._finish(frame.node, frame.anchor)

    def _read_alias(self, event: Any) -> None:
        place = self._place(event)
        name = event.anchor
        if self._wants_key():
            self._report(place, "a key must be text", "key", "an alias ('*name') cannot be a key")
            raise _CannotGoOnError
        if name not in self._anchors:
            message = f"there is no anchor {quote('&' + name)} above"
            self._report(place, message, "alias", f'if the * is part of the text, quote it: "*{cut(name)}"')
            self._attach(YamlScalar(place, None, f"*{name}", faulty=True))
            return
        node = self._anchors[name]
        if node is None:
            self._report(place, f"the alias {quote('*' + name)} is inside the block that it refers to", "alias")
            raise _CannotGoOnError
        self._check_depth(place, node.height)
        self._attach(node)

    def _wants_key(self) -> bool:
        return bool(self._frames) and isinstance(self._frames[-1].node, YamlMapping) and self._frames[-1].key is None

    def _take_key(self, text: str, place: Place, plain: bool) -> None:
        if plain and not text:
            self._report(place, "a key is missing before ':'", "key")
        if unusable := UNUSABLE.search(text):
            self._report(place, f"the character U+{ord(unusable[0]):04X} cannot be part of a key", "character")
            raise _CannotGoOnError
        frame = self._frames[-1]
        key = frame.key = _Key(text, place, merges=plain and text == "<<")
        if isinstance(frame.node, YamlMapping) and text in frame.node.entries and not key.merges:
            first = frame.node.entries[text].key_place.position.line
            message = f"the key {quote(text)} is already defined on line {first}"
            self._report(place, message, "duplicate-key", "remove one of them")

    def _finish(self, node: YamlNode, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        self._attach(node)

    def _attach(self, node: YamlNode) -> None:
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        parent = frame.node
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)
        if parent.size > MAX_VALUES:
            message = f"the spec has more than {MAX_VALUES:,} values with its aliases expanded"
            self._report(node.place, message, "too-large")
            raise _CannotGoOnError
        if isinstance(parent, YamlSequence):
            parent.items.append(node)
        elif frame.key is not None:
            key, frame.key = frame.key, None
            if key.merges:
                frame.merged.append((key.place, node))
            else:
                parent.entries.setdefault(key.text, YamlEntry(key.place, node))

    def _merge(self, target: YamlMapping, merged: list[tuple[Place, YamlNode]]) -> None:
        """Resolve merge keys. Keys of the mapping itself win, then those of the mapping that is merged first."""
        for place, node in merged:
            mappings = node.items if isinstance(node, YamlSequence) else [node]
            for mapping in mappings:
                if not isinstance(mapping, YamlMapping):
                    self._report(place, "'<<' can merge only mappings", "merge", "write `<<: *name`")
                    break
                for key, entry in mapping.entries.items():
                    target.entries.setdefault(key, entry)

    def _check_depth(self, place: Place, more: int) -> None:
        if len(self._frames) + more > MAX_DEPTH:
            self._report(place, f"the spec is nested more than {MAX_DEPTH} levels deep", "too-deep")
            raise _CannotGoOnError

    def _check_tag(self, event: Any, place: Place) -> None:
        if event.tag is None or (event.tag == _STRING_TAG and isinstance(event, yaml.ScalarEvent)):
            return
        written = event.tag.replace("tag:yaml.org,2002:", "!!")
        hint = "a spec cannot include other files" if "include" in written else "remove it"
        self._report(place, f"the tag {quote(written)} has no meaning in a spec", "tag", hint)
