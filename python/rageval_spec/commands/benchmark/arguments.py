"""The arguments of `benchmark` -> the tree of the spec that they are short for.

A system is written `[NAME=]WORD[:MODEL][,KEY=VALUE...]`, and one that reads others' runs `hybrid:SYSTEM+SYSTEM...` or
`rerank:MODEL@SYSTEM`. What a word takes is told by its node: a key that names a model, a key that names systems. Every
value of the tree has its place in the argument that it comes from, so that messages speak of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn, get_args, get_origin

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.plugin import Node
from rageval_spec.plugin.names import Reference, ReferredSection
from rageval_spec.spec import Spec, load_tree
from rageval_spec.spec.nodes import NAME_PATTERN, VERSION
from rageval_spec.spec.overriding import override
from rageval_spec.spec.places import Place, Source, quote
from rageval_spec.spec.reading import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    read_yaml,
    to_data,
)

SYSTEMS = ("bm25", "dense:minilm", "hybrid:bm25+dense:minilm")
METRICS = ("ndcg@10",)
NAME = "benchmark"

_EMBEDDED = "minilm"
_MODEL_PLUGIN = "onnx"
_OPTION = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)")
_NAMED = re.compile(r"([^:,=@+]+)=")
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f/\\:*?"<>|$\x7f]+')
_LONGEST_NAME = 100
_SAFE_TEXT = re.compile(r"[A-Za-z_][\w./@+-]*")
_PARTS_OF_MODELS = re.compile(r"model.*|onnx|snapshots|[0-9a-f]{40}")
_FOLDERS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; systems and metrics have defaults.

    Attributes:
        split: of every dataset; BEIR's `test` where it is None.
        overrides: values of the spec: `statistics.seed=7`.
        reports: words of reports, the terminal's by default.
    """

    datasets: Sequence[str]
    systems: Sequence[str] = ()
    metrics: Sequence[str] = ()
    split: str | None = None
    overrides: Sequence[str] = ()
    reports: Sequence[str] = ("terminal",)


def load_spec(request: Request) -> Spec:
    """The validated spec.

    Raises:
        SpecError: with all diagnostics; they point into the arguments.
    """
    return load_tree(build_tree(request), path=NAME, overrides=request.overrides)


def write_spec(request: Request) -> str:
    """The spec as YAML text, whose digest is that of `load_spec`.

    Raises:
        SpecError: as `load_spec`.
    """
    load_spec(request)
    tree, _ = override(build_tree(request), request.overrides)
    return write_yaml(tree)


def build_tree(request: Request) -> YamlMapping:
    """The spec that the request is short for.

    Raises:
        SpecError: with everything that is wrong with the arguments, as far as it is not the spec's reader that says so.
    """
    builder = _Builder()
    top = Source(f"rageval-spec {NAME}", "").place(0)
    datasets = builder.read_datasets(_pieces("DATASET", request.datasets), request.split)
    systems = builder.read_systems(_pieces("--system", request.systems or SYSTEMS))
    metrics = [_text(piece.place, piece.text) for piece in _pieces("--metric", request.metrics or METRICS)]
    if builder.faults:
        raise SpecError(builder.faults)
    sections: dict[str, YamlNode] = {
        "version": YamlScalar(top, VERSION, str(VERSION)),
        "name": YamlScalar(top, NAME, NAME),
        "datasets": YamlMapping(top, datasets),
        "models": YamlMapping(top, builder.models.blocks),
        "systems": YamlMapping(top, systems),
        "metrics": YamlSequence(top, [*metrics]),
        "reports": YamlSequence(top, [_text(top, word) for word in request.reports]),
    }
    if not builder.models.blocks:
        del sections["models"]
    return _block(top, sections)


def write_yaml(tree: YamlMapping) -> str:
    """The tree as YAML text that reads back as the same values."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that any reader of YAML might take for something else."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if _SAFE_TEXT.fullmatch(text) else '"')

    Dumper.add_representer(str, represent)
    return yaml.dump(to_data(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of an argument."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> Place:
        return self.source.place(self.start, max(self.end, self.start + 1))

    def cut(self, start: int, end: int | None = None) -> _Piece:
        """A stretch of it, by offsets inside it."""
        return _Piece(self.source, self.start + start, self.end if end is None else self.start + end)

    def partition(self, separator: str) -> tuple[_Piece, _Piece | None]:
        """What stands before the first separator, and what after it; None without one."""
        at = self.text.find(separator)
        return (self, None) if at < 0 else (self.cut(0, at), self.cut(at + len(separator)))

    def split(self, separator: str | re.Pattern[str]) -> list[_Piece]:
        """What stands between the separators."""
        pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
        starts, ends = [0], []
        for match in pattern.finditer(self.text):
            ends.append(match.start())
            starts.append(match.end())
        return [self.cut(start, end) for start, end in zip(starts, [*ends, len(self.text)], strict=True)]


class _RefusedError(Exception):
    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def _refuse(piece: _Piece, message: str, hint: str | None) -> NoReturn:
    raise _RefusedError([piece.place.diagnose(message, "command-line", hint)])


def _pieces(label: str, arguments: Iterable[str]) -> list[_Piece]:
    """The arguments of one option; in messages, `--system:2:6` is the sixth character of its second argument."""
    sources = [Source(label, text, first_line=number) for number, text in enumerate(arguments, start=1)]
    return [_Piece(source, 0, len(source.text)) for source in sources]


def _text(place: Place, text: str) -> YamlScalar:
    """A text that means itself: no variable is filled in."""
    return YamlScalar(place, text.replace("${", "$${"), text)


def _block(place: Place, values: Mapping[str, YamlNode]) -> YamlMapping:
    return YamlMapping(place, {key: YamlEntry(value.place, value) for key, value in values.items()})


def _name_after(text: str) -> str:
    """A text as a name: less what no name may hold."""
    return _NOT_IN_NAMES.sub("-", text).strip(" .-")[:_LONGEST_NAME].rstrip(" .-")


class _Reference(NamedTuple):
    """The key by which a node names blocks of a section."""

    key: str
    many: bool
    default: str | None


class _Shape(NamedTuple):
    """What a word takes after its colon: `MODEL`, `SYSTEM+SYSTEM`, `MODEL@SYSTEM`, or nothing."""

    model: _Reference | None
    systems: _Reference | None

    def describe(self, word: str) -> str:
        """How to write it."""
        reading = "SYSTEM+SYSTEM" if self.systems and self.systems.many else "SYSTEM"
        parts = (*(("MODEL",) if self.model else ()), *((reading,) if self.systems else ()))
        return f"write {word}:{'@'.join(parts)}"


def _shape_of(node_type: type[Node]) -> _Shape:
    return _Shape(_find_reference(node_type, "models"), _find_reference(node_type, "systems"))


def _find_reference(node_type: type[Node], section: ReferredSection) -> _Reference | None:
    """The first key of a node whose value is the name of a block of a section, or a list of such names."""
    mark = Reference(section)
    for name, info in node_type.model_fields.items():
        if mark in info.metadata:
            return _Reference(info.alias or name, False, info.default if isinstance(info.default, str) else None)
        inner = get_args(info.annotation) if get_origin(info.annotation) in (list, tuple) else ()
        if any(mark in getattr(argument, "__metadata__", ()) for argument in inner):
            return _Reference(info.alias or name, True, None)
    return None


class _Models:
    """The blocks under `models:`: one for each model that some system names."""

    def __init__(self) -> None:
        self.blocks: dict[str, YamlEntry] = {}
        self._names: dict[str, str] = {}

    def name(self, piece: _Piece) -> str:
        """What the spec calls a model: `minilm`, a hub id, a folder or an `.onnx` file."""
        text = piece.text
        if text == _EMBEDDED:
            return text
        if text not in self._names:
            self._check(piece)
            self._names[text] = name = self._free_name(_describe_model(text))
            use = YamlScalar(piece.place, _MODEL_PLUGIN, _MODEL_PLUGIN)
            block = _block(piece.place, {"use": use, "model": _text(piece.place, text)})
            self.blocks[name] = YamlEntry(piece.place, block)
        return self._names[text]

    def _check(self, piece: _Piece) -> None:
        text = piece.text
        forms = f"a model is {_EMBEDDED}, a hub id such as intfloat/e5-small-v2, a folder, or an .onnx file"
        if not text:
            _refuse(piece, "the model is missing", forms)
        is_path = Path(text).expanduser().exists()
        if text.lower().endswith(".onnx") and not is_path:
            _refuse(piece, f"there is no file {quote(text)}", None)
        if "/" not in text and not is_path:
            _refuse(piece, f"there is no model {quote(text)}", suggest(text, [_EMBEDDED]) or forms)

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.blocks or name == _EMBEDDED:
            number += 1
            name = f"{wanted}-{number}"
        return name


def _describe_model(text: str) -> str:
    """The part of a model's id or path by which people know it."""
    parts = [part.removesuffix(".onnx") for part in Path(text).parts]
    telling = [part for part in parts if not _PARTS_OF_MODELS.fullmatch(part) and _name_after(part)]
    return _name_after(telling[-1] if telling else parts[-1]) or "model"


@dataclass(slots=True)
class _System:
    """A system that an argument or a part of one describes."""

    name: str
    piece: _Piece
    block: YamlMapping
    components: list[_System] = field(default_factory=list)


class _Builder:
    """Reads arguments; what is wrong with them goes to `faults`."""

    def __init__(self) -> None:
        self.faults: list[Diagnostic] = []
        self.models = _Models()
        self._named: set[str] = set()

    def read_datasets(self, pieces: Sequence[_Piece], split: str | None) -> dict[str, YamlEntry]:
        """The blocks under `datasets:`."""
        entries: dict[str, YamlEntry] = {}
        for piece in pieces:
            try:
                name, folder = _name_dataset(piece)
                _check_folder(folder)
                if name in entries:
                    message = f"another dataset is called {quote(name)} already"
                    _refuse(piece, message, f"give it a name: NAME={piece.text}")
                use = YamlScalar(piece.place, "beir", "beir")
                block = _block(piece.place, {"use": use, "path": _text(folder.place, folder.text)})
                if split is not None:
                    place = Source("--split", split).place(0, len(split))
                    block.entries["split"] = YamlEntry(place, _text(place, split))
                entries[name] = YamlEntry(piece.place, block)
            except _RefusedError as refused:
                self.faults += refused.diagnostics
        return entries

    def read_systems(self, pieces: Sequence[_Piece]) -> dict[str, YamlEntry]:
        """The blocks under `systems:`: those that are listed, then those that these read and nobody listed."""
        self._named = {match[1] for piece in pieces if (match := _NAMED.match(piece.text))}
        listed: dict[str, _System] = {}
        for piece in pieces:
            try:
                system = self._read_system(piece)
                if system.name in listed:
                    _refuse_second(system, listed[system.name])
                listed[system.name] = system
            except _RefusedError as refused:
                self.faults += refused.diagnostics
        systems = dict(listed)
        for system in listed.values():
            self._add_components(system, systems)
        return {name: YamlEntry(system.piece.place, system.block) for name, system in systems.items()}

    def _add_components(self, system: _System, systems: dict[str, _System]) -> None:
        for component in system.components:
            other = systems.setdefault(component.name, component)
            if to_data(other.block) != to_data(component.block):
                message = f"{quote(component.piece.text)} is not the system that is called {quote(component.name)}"
                fault = component.piece.place.diagnose(message, "command-line", "give that one another name")
                self.faults.append(fault)
            self._add_components(component, systems)

    def _read_system(self, piece: _Piece) -> _System:
        head, *options = piece.split(_OPTION)
        named = _NAMED.match(head.text)
        if named is not None:
            head = head.cut(named.end())
        word, target = head.partition(":")
        shape = _shape_of(self._find_node(word))
        block = YamlMapping(piece.place, {"use": YamlEntry(word.place, _text(word.place, word.text))})
        given = {option.partition("=")[0].text for option in options}
        components: list[_System] = []
        if target is None:
            label = _fill_in_default(block, shape, word, given)
        else:
            label, components = self._read_target(block, shape, word, target)
        for option in options:
            _add_option(block, option)
        name = named[1] if named else _name_after(",".join([label, *(option.text for option in options)]))
        return _System(name, piece, block, components)

    def _find_node(self, word: _Piece) -> type[Node]:
        words = registry.words("systems")
        if not word.text:
            _refuse(word, "the system is missing", f"the systems are {', '.join(words)}")
        if word.text not in words:
            known = (*words, *sorted(self._named))
            hint = suggest(word.text, known) or f"the systems are {', '.join(words)}"
            _refuse(word, f"unknown system {quote(word.text)}", hint)
        node_type: type[Node] = registry.load("systems", word.text).node_type
        return node_type

    def _read_target(
        self, block: YamlMapping, shape: _Shape, word: _Piece, target: _Piece
    ) -> tuple[str, list[_System]]:
        """Write what stands after the colon into the block; a label for the whole, and the systems that it reads."""
        if not any(shape):
            _refuse(target, f"{word.text} takes no model", f"its keys come after commas: {word.text},KEY=VALUE")
        model, reading = target, None if shape.model else target
        if shape.model and shape.systems:
            model, reading = target.partition("@")
            if reading is None:
                _refuse(target, f"the system is missing that {word.text} reads", shape.describe(word.text))
        parts = []
        components: list[_System] = []
        if shape.model:
            _add(block, shape.model.key, model, self.models.name(model))
            parts.append(_describe_model(model.text))
        if shape.systems and reading:
            names, components = self._read_components(reading, shape.systems.many)
            _add_names(block, shape.systems, names)
            parts.append("+".join(name for _, name in names))
        return f"{word.text}-{'@'.join(parts)}", components

    def _read_components(self, piece: _Piece, many: bool) -> tuple[list[tuple[_Piece, str]], list[_System]]:
        names: list[tuple[_Piece, str]] = []
        components = []
        for part in piece.split("+") if many else [piece]:
            if part.text in self._named:
                names.append((part, part.text))
                continue
            component = self._read_system(part)
            components.append(component)
            names.append((part, component.name))
        return names, components


def _fill_in_default(block: YamlMapping, shape: _Shape, word: _Piece, given: set[str]) -> str:
    """Write the model that a word has by default into the block, unless it is given; a label for the whole."""
    needed = [reference for reference in shape if reference and reference.key not in given]
    if any(reference.default is None for reference in needed):
        _refuse(word, f"{word.text} needs more than its name", shape.describe(word.text))
    if shape.model not in needed or shape.model is None or shape.model.default is None:
        return word.text
    _add(block, shape.model.key, word, shape.model.default)
    return f"{word.text}-{shape.model.default}"


def _add(block: YamlMapping, key: str, piece: _Piece, text: str) -> None:
    block.entries[key] = YamlEntry(piece.place, _text(piece.place, text))


def _add_names(block: YamlMapping, systems: _Reference, names: Sequence[tuple[_Piece, str]]) -> None:
    nodes = [_text(piece.place, name) for piece, name in names]
    value = YamlSequence(nodes[0].place, [*nodes]) if systems.many else nodes[0]
    block.entries[systems.key] = YamlEntry(nodes[0].place, value)


def _add_option(block: YamlMapping, option: _Piece) -> None:
    """Write `KEY=VALUE` into the block; the value is YAML."""
    key, value = option.partition("=")
    assert value is not None, "an option is found by its '='"
    if key.text in block.entries:
        _refuse(key, f"the key {quote(key.text)} is given twice", None)
    source = Source(option.source.path, option.source.text[: value.end], option.source.first_line)
    node, faults = read_yaml(source, value.start)
    if faults:
        raise _RefusedError(faults)
    block.entries[key.text] = YamlEntry(key.place, node or YamlScalar(value.place, None, ""))


def _refuse_second(system: _System, first: _System) -> NoReturn:
    if to_data(system.block) == to_data(first.block):
        _refuse(system.piece, f"the system {quote(system.name)} is listed twice", "remove one of them")
    _refuse(system.piece, f"another system is called {quote(system.name)} already", "give it another name: NAME=SYSTEM")


def _name_dataset(piece: _Piece) -> tuple[str, _Piece]:
    """The name and the folder of `FOLDER` or `NAME=FOLDER`."""
    before, after = piece.partition("=")
    if after is not None and re.fullmatch(NAME_PATTERN, before.text) and not _path(piece).exists():
        return before.text, after
    name = _path(piece).resolve().name if piece.text else ""
    if not re.fullmatch(NAME_PATTERN, name):
        message = f"{quote(name)} is no name for a dataset" if name else "the folder has no name"
        _refuse(piece, message, f"give it one: NAME={piece.text}")
    return name, piece


def _path(piece: _Piece) -> Path:
    return Path(piece.text).expanduser()


def _check_folder(piece: _Piece) -> None:
    """Refuse a folder that is not in BEIR's layout; whether it is there at all, the spec's reader says."""
    folder = _path(piece)
    if not folder.is_dir() or (folder / "qrels").is_dir():
        return
    inner = sorted(path.parent.name for path in folder.glob("*/qrels"))
    if inner:
        shown = ", ".join(inner[:_FOLDERS_SHOWN]) + (", ..." if len(inner) > _FOLDERS_SHOWN else "")
        _refuse(piece, f"{quote(piece.text)} is no BEIR folder", f"name those that are in it: {shown}")
    _refuse(
        piece,
        f"{quote(piece.text)} is no BEIR folder: it has no folder 'qrels'",
        "one has corpus.jsonl, queries.jsonl, qrels/test.tsv",
    )
