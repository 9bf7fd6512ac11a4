"""YAML text -> a tree in which every key and value has its place, or diagnostics for the author of the text.

This is YAML 1.1 as PyYAML reads it, restricted to what a spec needs: one document, one tag (`!!str`), keys that are
text. Keys are kept as they are written (`on: lower` is the key `on`, not `true`). The tree is built from the parser's
events rather than by recursion. Limits on depth and size count what aliases expand to, so no text can exhaust the
stack or the memory.

Values without quotes are resolved as PyYAML does, except for readings that nobody intends. Three readings of YAML 1.1
are errors for every key: `12:30` (750 in base 60), `010` (8 in base 8) and dates. Others are errors depending on the
type of the key: `no` for text, `1e3` for a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import yaml

from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import Diagnostic
from rageval_spec.libraries import compile_later
from rageval_spec.spec.text.places import SourceText, TextPlace, cut, quote

ScalarValue: TypeAlias = str | int | float | bool | None

_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
_TRUE = frozenset({"yes", "true", "on"})
_PREFIXES = {"0x": 16, "0b": 2}
LARGEST = 2**63 - 1
"""The largest number that a spec can use."""
_LONGEST_NUMBER = 40
_YAML_1_2_NUMBER = compile_later(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")


class Trap(NamedTuple):
    """A scalar that YAML reads differently from what its author meant."""

    message: str
    code: str
    hint: str


def resolve_scalar(text: str) -> ScalarValue | Trap:
    """The value of a scalar without quotes."""
    kind = _kind(text)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in _TRUE
    if kind == "timestamp":
        return Trap(f"YAML reads {cut(text)} as a date", "ambiguous-value", f'quote it: "{cut(text)}"')
    if kind == "int":
        return _resolve_integer(text)
    return _resolve_float(text) if kind == "float" else text


def is_number_elsewhere(text: str) -> bool:
    """Whether YAML 1.2 reads a text of YAML 1.1 as a number: `1e3`, `0o17`."""
    return bool(_YAML_1_2_NUMBER.fullmatch(text)) and _kind(text) == "str"


def spell_number(text: str) -> str:
    """How to write such a number so that both versions read it as a number: `1000` for `1e3`."""
    value = int(text[:_LONGEST_NUMBER], 0) if text.startswith("0o") else float(text)
    if not math.isfinite(value) or abs(value) > LARGEST:
        return "a number that is not so large"
    if value == int(value):
        return str(int(value))
    spelled = repr(value)
    return spelled if "e" not in spelled else f"{value:.20f}".rstrip("0")


def is_word_for_boolean(text: str) -> bool:
    """Whether YAML 1.1 reads `text` as true or false and YAML 1.2 does not: `no`, `on`."""
    return text.lower() not in ("true", "false") and _kind(text) == "bool"


def _kind(text: str) -> str:
    candidates = _RESOLVERS.get(text[:1], ())
    return next((tag.rpartition(":")[2] for tag, pattern in candidates if pattern.match(text)), "str")


def _resolve_integer(text: str) -> ScalarValue | Trap:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace("_", "")
    if ":" in digits:
        return _base_60(text)
    if len(digits) > _LONGEST_NUMBER:
        return _too_large()
    base = _PREFIXES.get(digits[:2])
    if base is None and len(digits) > 1 and digits[0] == "0":
        octal, decimal = int(digits, 8), digits.lstrip("0") or "0"
        hint = f'write {decimal}, or quote it: "{text}"'
        return Trap(
            f"YAML 1.1 reads {text} as {octal} (base 8); YAML 1.2 reads it as {decimal}", "ambiguous-value", hint
        )
    if base is not None and len(digits) == 2:
        return text
    value = sign * (int(digits[2:], base) if base else int(digits))
    return value if abs(value) <= LARGEST else _too_large()


def _resolve_float(text: str) -> ScalarValue | Trap:
    if ":" in text:
        return _base_60(text)
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        return Trap(f"{text} is not a number that a spec can use", "wrong-value", f'quote it if it is text: "{text}"')
    value = float(text.replace("_", ""))
    return value if math.isfinite(value) else _too_large()


def _base_60(text: str) -> Trap:
    return Trap(f"YAML reads {cut(text)} as a number in base 60", "ambiguous-value", f'quote it: "{cut(text)}"')


def _too_large() -> Trap:
    return Trap("this number is too large", "wrong-value", f"the largest whole number is {LARGEST}")


MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 50
TOO_DEEP = f"the spec is nested more than {MAX_DEPTH} levels deep"
MAX_VALUES = 100_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAG = "tag:yaml.org,2002:str"
_NOT_YAML = compile_later("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
UNUSABLE = compile_later("[\0\ud800-\udfff]")
"""Characters that no key and no value of a spec can contain."""


@dataclass(slots=True)
class YamlScalar:
    """A scalar: its value, and its text as the parser returns it.

    Attributes:
        plain: whether it was written without quotes.
        faulty: whether it was already diagnosed; further messages on its value are suppressed.
        from_environment: whether part of its text came from a variable.
    """

    place: TextPlace
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

    place: TextPlace
    items: list[YamlNode] = field(default_factory=list)
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class YamlEntry:
    key_place: TextPlace
    value: YamlNode


@dataclass(slots=True)
class YamlMapping:
    """A mapping whose keys are text, with merge keys resolved."""

    place: TextPlace
    entries: dict[str, YamlEntry] = field(default_factory=dict)
    size: int = 1
    height: int = 0


YamlNode: TypeAlias = YamlScalar | YamlSequence | YamlMapping


def read_yaml(source: SourceText, start: int = 0) -> tuple[YamlNode | None, list[Diagnostic]]:
    """The tree from character `start` on (None if there is none, or it cannot be read to its end), and diagnostics."""
    if len(source.text) > MAX_CHARACTERS:
        message = f"the spec has {len(source.text):,} characters; the limit is {MAX_CHARACTERS:,}"
        return None, [source.place(0).diagnose(message, "too-large", "is this a data file?")]
    if unprintable := _NOT_YAML.search(source.text):
        character = f"U+{ord(unprintable[0]):04X}"
        message = f"the character {character} cannot be part of a YAML text"
        hint = "is this a data file?" if unprintable[0] == "\0" else "remove it"
        return None, [source.place(unprintable.start()).diagnose(message, "invalid-yaml", hint)]
    builder = _Builder(source)
    try:
        builder.build(" " * start + source.text[start:])
    except yaml.MarkedYAMLError as error:
        message, advice, offset = _explain(source.text, error)
        return None, [*builder.diagnostics, source.place(offset).diagnose(message, "invalid-yaml", advice)]
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


def child(node: YamlNode, path: Sequence[str | int]) -> YamlNode | None:
    """What a path of keys and indexes leads to; None if there is nothing."""
    current: YamlNode | None = node
    for step in path:
        if isinstance(current, YamlMapping) and step in current.entries:
            current = current.entries[str(step)].value
        elif isinstance(current, YamlSequence) and isinstance(step, int) and step < len(current.items):
            current = current.items[step]
        else:
            return None
    return current


def walk_scalars(node: YamlNode) -> Iterator[YamlScalar]:
    """All scalars of a tree in order. A scalar that aliases share appears once."""
    return (scalar for _, scalar in walk_named(node))


def walk_named(node: YamlNode) -> Iterator[tuple[str, YamlScalar]]:
    """All scalars of a tree in order, each with the key that it is under, as in `walk_scalars`."""
    seen: set[int] = set()
    waiting: list[tuple[str, YamlNode]] = [("", node)]
    while waiting:
        name, current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, YamlScalar):
            yield name, current
        elif isinstance(current, YamlSequence):
            waiting += [(name, item) for item in reversed(current.items)]
        else:
            waiting += [(key, entry.value) for key, entry in reversed(current.entries.items())]


class _CannotGoOnError(Exception):
    """The rest of the text cannot be read; the last diagnostic says why."""


class _Key(NamedTuple):
    text: str
    place: TextPlace
    merges: bool


@dataclass(slots=True)
class _Frame:
    """A collection that is being read. `key` is the key whose value comes next."""

    node: YamlSequence | YamlMapping
    anchor: str | None
    key: _Key | None = None
    merged: list[tuple[TextPlace, YamlNode]] = field(default_factory=list)


class _Builder:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.root: YamlNode | None = None
        self.diagnostics: list[Diagnostic] = []
        self._frames: list[_Frame] = []
        self._anchors: dict[str, YamlNode | None] = {}
        self._documents = 0

    def build(self, text: str) -> None:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.ScalarEvent):
                self._read_scalar(event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._open(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                frame = self._frames.pop()
                if isinstance(frame.node, YamlMapping):
                    self._merge(frame.node, frame.merged)
                self._attach(frame.node, frame.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._read_alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    hint = "a spec must be a single document"
                    raise self._refuse(self._place(event), "a second YAML document starts here", "invalid-yaml", hint)

    def _report(self, place: TextPlace, message: str, code: str, hint: str | None = None) -> None:
        self.diagnostics.append(place.diagnose(message, code, hint))

    def _refuse(self, place: TextPlace, message: str, code: str, hint: str | None = None) -> _CannotGoOnError:
        self._report(place, message, code, hint)
        return _CannotGoOnError()

    def _place(self, event: Any) -> TextPlace:
        return self.source.place(event.start_mark.index, event.end_mark.index)

    def _read_scalar(self, event: Any) -> None:
        place = self._place(event)
        self._check_tag(event, place)
        if self._wants_key():
            self._take_key(event.value, place, plain=event.implicit[0])
            return
        scalar = YamlScalar(place, event.value, event.value, plain=event.implicit[0] and event.tag is None)
        if unusable := UNUSABLE.search(event.value):
            message = f"the character U+{ord(unusable[0]):04X} cannot be part of a value"
            self._report(place, message, "invalid-yaml", "remove the escape")
            scalar.faulty = True
        elif scalar.plain:
            resolved = resolve_scalar(event.value)
            if isinstance(resolved, Trap):
                self._report(place, resolved.message, resolved.code, resolved.hint)
                scalar.faulty = True
            else:
                scalar.value = resolved
        self._attach(scalar, event.anchor)

    def _open(self, event: Any) -> None:
        place = self._place(event)
        self._check_tag(event, place)
        if self._wants_key():
            hint = "quote a value that starts with '{' or '['" if event.flow_style else "write text before the ':'"
            raise self._refuse(place, "a key must be text", "invalid-yaml", hint)
        self._check_depth(place, 1)
        node = YamlMapping(place) if isinstance(event, yaml.MappingStartEvent) else YamlSequence(place)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._frames.append(_Frame(node, event.anchor))

    def _read_alias(self, event: Any) -> None:
        place = self._place(event)
        name = event.anchor
        if self._wants_key():
            raise self._refuse(place, "a key must be text", "invalid-yaml", "an alias ('*name') cannot be a key")
        if name not in self._anchors:
            message = f"there is no anchor {quote('&' + name)} above"
            self._report(place, message, "invalid-yaml", f'if the * is part of the text, quote it: "*{cut(name)}"')
            self._attach(YamlScalar(place, None, f"*{name}", faulty=True))
            return
        node = self._anchors[name]
        if node is None:
            raise self._refuse(
                place, f"the alias {quote('*' + name)} is inside the block that it refers to", "invalid-yaml"
            )
        self._check_depth(place, node.height)
        self._attach(node)

    def _wants_key(self) -> bool:
        return bool(self._frames) and isinstance(self._frames[-1].node, YamlMapping) and self._frames[-1].key is None

    def _take_key(self, text: str, place: TextPlace, plain: bool) -> None:
        if plain and not text:
            self._report(place, "a key is missing before ':'", "invalid-yaml")
        if unusable := UNUSABLE.search(text):
            raise self._refuse(place, f"the character U+{ord(unusable[0]):04X} cannot be part of a key", "invalid-yaml")
        frame = self._frames[-1]
        key = frame.key = _Key(text, place, merges=plain and text == "<<")
        if isinstance(frame.node, YamlMapping) and text in frame.node.entries and not key.merges:
            first = frame.node.entries[text].key_place.position.line
            message = f"the key {quote(text)} is already defined on line {first}"
            self._report(place, message, "duplicate-key", "remove one of them")

    def _attach(self, node: YamlNode, anchor: str | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        parent = frame.node
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)
        if parent.size > MAX_VALUES:
            message = f"the spec has more than {MAX_VALUES:,} values with its aliases expanded"
            raise self._refuse(node.place, message, "too-large")
        if isinstance(parent, YamlSequence):
            parent.items.append(node)
        elif frame.key is not None:
            key, frame.key = frame.key, None
            if key.merges:
                frame.merged.append((key.place, node))
            else:
                parent.entries.setdefault(key.text, YamlEntry(key.place, node))

    def _merge(self, target: YamlMapping, merged: list[tuple[TextPlace, YamlNode]]) -> None:
        """Resolve merge keys. Keys of the mapping itself win, then those of the mapping that is merged first."""
        for place, node in merged:
            mappings = node.items if isinstance(node, YamlSequence) else [node]
            for mapping in mappings:
                if not isinstance(mapping, YamlMapping):
                    self._report(place, "'<<' can merge only mappings", "invalid-yaml", "write `<<: *name`")
                    break
                for key, entry in mapping.entries.items():
                    target.entries.setdefault(key, entry)

    def _check_depth(self, place: TextPlace, more: int) -> None:
        if len(self._frames) + more > MAX_DEPTH:
            raise self._refuse(place, TOO_DEEP, "too-large")

    def _check_tag(self, event: Any, place: TextPlace) -> None:
        if event.tag is None or (event.tag == _STRING_TAG and isinstance(event, yaml.ScalarEvent)):
            return
        written = event.tag.replace("tag:yaml.org,2002:", "!!")
        hint = "a spec cannot include other files" if "include" in written else "remove it"
        self._report(place, f"the tag {quote(written)} has no meaning in a spec", "invalid-yaml", hint)


_Finding: TypeAlias = tuple[str, str | None, int]
"""A message, a hint, and where the message points."""


def _explain(text: str, error: yaml.MarkedYAMLError) -> _Finding:
    problem, context = error.problem or "", error.context or ""
    at = 0 if error.problem_mark is None else int(error.problem_mark.index)
    opened = at if error.context_mark is None else int(error.context_mark.index)
    character = text[at : at + 1]
    if character == "\t" and ("tab" in problem or "cannot start any token" in problem):
        return ("a tab cannot indent YAML", "indent with spaces", at)
    if "tab character" in problem:
        tab = text.find("\t", at)
        return ("a tab cannot indent YAML", "indent with spaces", tab if tab >= 0 else at)
    if text[max(0, at - 1) : at + 1] == "${":
        return ("a variable inside { } or [ ] needs quotes", 'write "${NAME}"', at - 1)
    if "cannot start any token" in problem:
        return (f"text cannot start with {quote(character)}", "put it in quotes", at)
    if "quoted scalar" in context:
        return _explain_quoted(text, problem, at, opened)
    if "simple key" in context:
        advice = "write 'key: value'; quote text that spans several lines"
        return ("the ':' after this key is missing", advice, opened)
    if "nesting depth" in problem:  # newer versions of libyaml bound it themselves
        return (TOO_DEEP, None, at)
    if "flow" in context:
        return _explain_flow(text, at, opened)
    for pattern, message, hint in _BLOCK_FINDINGS:
        if re.search(pattern, f"{problem} {context}"):
            return (message, hint, at)
    return (f"this is not YAML: {problem}", None, at)


def _explain_quoted(text: str, problem: str, at: int, opened: int) -> _Finding:
    if "escape" in problem or "hexadecimal" in problem or "Unicode" in problem:
        backslash = text.rfind("\\", opened, at + 1)
        shown = quote(text[backslash : backslash + 2])
        hint = "in double quotes, write \\\\ for a backslash, or use single quotes"
        return (f"{shown} is not a valid escape sequence", hint, max(backslash, opened))
    return ("this quote is not closed", "add the closing quote", opened)


def _explain_flow(text: str, at: int, opened: int) -> _Finding:
    opening = text[opened : opened + 1]
    if opening not in ("{", "[") or at >= len(text.rstrip()):
        pair = {"{": "}", "[": "]"}.get(opening)
        if pair:
            return (f"this {quote(opening)} is not closed", f"add {quote(pair)}", opened)
        return ("the text ends inside { } or [ ]", "add the missing bracket", at)
    closing = "}" if opening == "{" else "]"
    message = f"{quote(',')} or {quote(closing)} is missing before this"
    line = text.count("\n", 0, opened) + 1
    still_open = f"the {quote(opening)} on line {line} is not closed" if "\n" in text[opened:at] else None
    return (message, still_open or "quote text that contains , : [ ] { }", at)


_BLOCK_FINDINGS = (
    (
        "mapping values are not allowed",
        "a ':' is not allowed here",
        "indent this line like its neighbours, or quote text that contains ': '",
    ),
    (
        "expected '-' indicator|<block end>.*block collection",
        "this line is part of a list but does not begin with '- '",
        None,
    ),
    (
        "expected key|expected <block end>",
        "this line does not continue the mapping above it",
        "indent it like the other keys, or quote the whole value",
    ),
    ("sequence entries are not allowed", "a '-' is not allowed here", 'put the list on the next line, or quote "-"'),
    ("expected node content|expected the node content", "this is not allowed here", "remove it, or quote it"),
    ("scanning an alias|scanning an anchor", "a name is missing after '*' or '&'", "quote text that starts with them"),
    (
        "parsing a tag|scanning a tag|tag handle",
        "tags ('!...') have no meaning in a spec",
        "quote text that starts with '!'",
    ),
    ("block scalar", "nothing can follow '|' or '>' on this line", "put the text on the next line"),
    ("directive|incompatible YAML|YAML document", "a line that starts with '%' is a directive", "remove it"),
    ("document start", "a second YAML document starts here", "a spec must be a single document"),
    ("maximum depth|nesting", "the text is nested too deeply", None),
)
