"""The arguments of `benchmark` -> the tree of the equivalent spec.

A system is written `[NAME=]WORD[:MODEL][,KEY=VALUE...]`; one that reads the runs of others is written
`hybrid:SYSTEM+SYSTEM...` or `rerank:MODEL@SYSTEM`. Which form a word takes follows from the keys of its node that
name a model or systems. The models that systems name become blocks under `models:`.

Each value of the tree has a place in the argument that it comes from, so that messages point into the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn, get_args, get_origin

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.errors import expand_home
from rageval_spec.plugin import Node
from rageval_spec.plugin.block_names import Reference, ReferredSection
from rageval_spec.spec import Spec, load_tree
from rageval_spec.spec.blocks.spec_node import NAME_PATTERN, VERSION
from rageval_spec.spec.overrides import override
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import SourceText, TextPlace, quote

_EMBEDDED = "minilm"
_MODEL_PLUGIN = "onnx"
_PARTS_OF_MODELS = re.compile(r"model.*|onnx|snapshots|[0-9a-f]{40}")


class ModelBlocks:
    """The blocks under `models:`, one for each model that a system names."""

    def __init__(self) -> None:
        self.blocks: dict[str, yaml_tree.YamlEntry] = {}
        self._names: dict[str, str] = {}

    def name(self, piece: ArgumentPiece) -> str:
        """The name in the spec of a model that is given as `minilm`, a hub id, a folder or an `.onnx` file."""
        text = piece.text
        if text == _EMBEDDED:
            return text
        if text not in self._names:
            self._check(piece)
            self._names[text] = name = self._free_name(describe_model(text))
            use = yaml_tree.YamlScalar(piece.place, _MODEL_PLUGIN, _MODEL_PLUGIN)
            block = make_block(piece.place, {"use": use, "model": write_text(piece.place, text)})
            self.blocks[name] = yaml_tree.YamlEntry(piece.place, block)
        return self._names[text]

    def _check(self, piece: ArgumentPiece) -> None:
        text = piece.text
        forms = f"a model is {_EMBEDDED}, a hub id such as intfloat/e5-small-v2, a folder, or an .onnx file"
        if not text:
            refuse(piece, "the name of a model is missing", forms)
        is_path = expand_home(text).exists()
        if text.lower().endswith(".onnx") and not is_path:
            refuse(piece, f"there is no file {quote(text)}", None)
        if "/" not in text and not is_path:
            refuse(piece, f"there is no model {quote(text)}", suggest(text, [_EMBEDDED]) or forms)

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.blocks or name == _EMBEDDED:
            number += 1
            name = f"{wanted}-{number}"
        return name


def describe_model(text: str) -> str:
    """The part of a model's id or path that people know it by."""
    parts = [part.removesuffix(".onnx") for part in Path(text).parts]
    telling = [part for part in parts if not _PARTS_OF_MODELS.fullmatch(part) and name_after(part)]
    return name_after(telling[-1] if telling else parts[-1]) or "model"


_NOT_IN_NAMES = re.compile(r'[\x00-\x1f/\\:*?"<>|$\x7f]+')
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class ArgumentPiece:
    """A slice of an argument."""

    source: SourceText
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> TextPlace:
        return self.source.place(self.start, max(self.end, self.start + 1))

    def cut(self, start: int, end: int | None = None) -> ArgumentPiece:
        """A slice of this piece, by offsets inside it."""
        return ArgumentPiece(self.source, self.start + start, self.end if end is None else self.start + end)

    def partition(self, separator: str) -> tuple[ArgumentPiece, ArgumentPiece | None]:
        """The pieces before and after the first separator; the second is None without a separator."""
        at = self.text.find(separator)
        return (self, None) if at < 0 else (self.cut(0, at), self.cut(at + len(separator)))

    def split(self, separator: str | re.Pattern[str]) -> list[ArgumentPiece]:
        """The pieces between the separators."""
        pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
        starts, ends = [0], []
        for match in pattern.finditer(self.text):
            ends.append(match.start())
            starts.append(match.end())
        return [self.cut(start, end) for start, end in zip(starts, [*ends, len(self.text)], strict=True)]


class RefusedError(Exception):
    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def refuse(piece: ArgumentPiece, message: str, hint: str | None) -> NoReturn:
    raise RefusedError([piece.place.diagnose(message, "command-line", hint)])


def read_pieces(label: str, arguments: Iterable[str]) -> list[ArgumentPiece]:
    """The arguments of one option. In messages, `--system:2:6` is the sixth character of the second argument."""
    sources = [SourceText(label, text, first_line=number) for number, text in enumerate(arguments, start=1)]
    return [ArgumentPiece(source, 0, len(source.text)) for source in sources]


def write_text(place: TextPlace, text: str) -> yaml_tree.YamlScalar:
    """A text as a YAML scalar in which no variable is filled in."""
    return yaml_tree.YamlScalar(place, text.replace("${", "$${"), text)


def make_block(place: TextPlace, values: Mapping[str, yaml_tree.YamlNode]) -> yaml_tree.YamlMapping:
    return yaml_tree.YamlMapping(place, {key: yaml_tree.YamlEntry(value.place, value) for key, value in values.items()})


def name_after(text: str) -> str:
    """A name made of a text, without the characters that names cannot contain."""
    return _NOT_IN_NAMES.sub("-", text).strip(" .-")[:_LONGEST_NAME].rstrip(" .-")


SYSTEMS = ("bm25", "dense:minilm", "hybrid:bm25+dense:minilm")
METRICS = ("ndcg@10",)
NAME = "benchmark"

_OPTION = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)")
_NAMED = re.compile(r"([^:,=@+]+)=")
_SAFE_TEXT = re.compile(r"[A-Za-z_][\w./@+-]*")
_FOLDERS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BenchmarkRequest:
    """What the command line asks for. If `systems` or `metrics` is empty, the defaults are used.

    Attributes:
        split: the split of every dataset; None means BEIR's `test`.
        overrides: values that override the spec, for example `statistics.seed=7`.
        reports: the words under `reports:`.
    """

    datasets: Sequence[str]
    systems: Sequence[str] = ()
    metrics: Sequence[str] = ()
    split: str | None = None
    overrides: Sequence[str] = ()
    reports: Sequence[str] = ("terminal",)


def load_spec(request: BenchmarkRequest) -> Spec:
    """The validated spec.

    Raises:
        SpecError: the arguments are wrong; its diagnostics point into them.
    """
    return load_tree(build_tree(request), path=NAME, overrides=request.overrides)


def write_spec(request: BenchmarkRequest) -> str:
    """The spec as YAML text. It has the same digest as the spec of `load_spec`.

    Raises:
        SpecError: as `load_spec`.
    """
    load_spec(request)
    tree, _ = override(build_tree(request), request.overrides)
    return write_yaml(tree)


def build_tree(request: BenchmarkRequest) -> yaml_tree.YamlMapping:
    """The tree of the spec that is equivalent to the request.

    Raises:
        SpecError: the arguments cannot be turned into a spec. The reader of specs checks the rest.
    """
    builder = _Builder()
    top = SourceText(f"rageval-spec {NAME}", "").place(0)
    datasets = builder.read_datasets(read_pieces("DATASET", request.datasets), request.split)
    systems = builder.read_systems(read_pieces("--system", request.systems or SYSTEMS))
    metrics = [write_text(piece.place, piece.text) for piece in read_pieces("--metric", request.metrics or METRICS)]
    if builder.faults:
        raise SpecError(builder.faults)
    sections: dict[str, yaml_tree.YamlNode] = {
        "version": yaml_tree.YamlScalar(top, VERSION, str(VERSION)),
        "name": yaml_tree.YamlScalar(top, NAME, NAME),
        "datasets": yaml_tree.YamlMapping(top, datasets),
        "models": yaml_tree.YamlMapping(top, builder.models.blocks),
        "systems": yaml_tree.YamlMapping(top, systems),
        "metrics": yaml_tree.YamlSequence(top, [*metrics]),
        "reports": yaml_tree.YamlSequence(top, [write_text(top, word) for word in request.reports]),
    }
    if not builder.models.blocks:
        del sections["models"]
    return make_block(top, sections)


def write_yaml(tree: yaml_tree.YamlMapping) -> str:
    """The tree as YAML text that reads back as the same values."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that some YAML reader might not read as text."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if _SAFE_TEXT.fullmatch(text) else '"')

    Dumper.add_representer(str, represent)
    return yaml.dump(yaml_tree.to_data(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


@dataclass(slots=True)
class _System:
    """A system described by an argument or by part of one."""

    name: str
    piece: ArgumentPiece
    block: yaml_tree.YamlMapping
    components: list[_System] = field(default_factory=list)


class _Builder:
    """Reads arguments, and collects diagnostics in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Diagnostic] = []
        self.models = ModelBlocks()
        self._named: set[str] = set()

    def read_datasets(self, pieces: Sequence[ArgumentPiece], split: str | None) -> dict[str, yaml_tree.YamlEntry]:
        """The blocks under `datasets:`."""
        entries: dict[str, yaml_tree.YamlEntry] = {}
        for piece in pieces:
            try:
                name, folder = _name_dataset(piece)
                _check_folder(folder)
                if name in entries:
                    message = f"another dataset is already named {quote(name)}"
                    refuse(piece, message, f"give this one another name: NAME={piece.text}")
                use = yaml_tree.YamlScalar(piece.place, "beir", "beir")
                block = make_block(piece.place, {"use": use, "path": write_text(folder.place, folder.text)})
                if split is not None:
                    place = SourceText("--split", split).place(0, len(split))
                    block.entries["split"] = yaml_tree.YamlEntry(place, write_text(place, split))
                entries[name] = yaml_tree.YamlEntry(piece.place, block)
            except RefusedError as refused:
                self.faults += refused.diagnostics
        return entries

    def read_systems(self, pieces: Sequence[ArgumentPiece]) -> dict[str, yaml_tree.YamlEntry]:
        """The blocks under `systems:`: first the listed systems, then those that they read and that are not listed."""
        self._named = {match[1] for piece in pieces if (match := _NAMED.match(piece.text))}
        listed: dict[str, _System] = {}
        for piece in pieces:
            try:
                system = self._read_system(piece)
                if system.name in listed:
                    _refuse_second(system, listed[system.name])
                listed[system.name] = system
            except RefusedError as refused:
                self.faults += refused.diagnostics
        systems = dict(listed)
        for system in listed.values():
            self._add_components(system, systems)
        return {name: yaml_tree.YamlEntry(system.piece.place, system.block) for name, system in systems.items()}

    def _add_components(self, system: _System, systems: dict[str, _System]) -> None:
        for component in system.components:
            other = systems.setdefault(component.name, component)
            if yaml_tree.to_data(other.block) != yaml_tree.to_data(component.block):
                message = f"another system with different settings is already named {quote(component.name)}"
                fault = component.piece.place.diagnose(message, "command-line", "give that system another name")
                self.faults.append(fault)
            self._add_components(component, systems)

    def _read_system(self, piece: ArgumentPiece) -> _System:
        head, *options = piece.split(_OPTION)
        named = _NAMED.match(head.text)
        if named is not None:
            head = head.cut(named.end())
        word, target = head.partition(":")
        shape = shape_of(self._find_node(word))
        block = yaml_tree.YamlMapping(
            piece.place, {"use": yaml_tree.YamlEntry(word.place, write_text(word.place, word.text))}
        )
        given = {option.partition("=")[0].text for option in options}
        components: list[_System] = []
        if target is None:
            label = _fill_in_default(block, shape, word, given)
        else:
            label, components = self._read_target(block, shape, word, target)
        for option in options:
            _add_option(block, option)
        name = named[1] if named else name_after(",".join([label, *(option.text for option in options)]))
        return _System(name, piece, block, components)

    def _find_node(self, word: ArgumentPiece) -> type[Node]:
        words = registry.words("systems")
        if not word.text:
            refuse(word, "the name of a system is missing", f"the systems are {', '.join(words)}")
        if word.text not in words:
            known = (*words, *sorted(self._named))
            hint = suggest(word.text, known) or f"the systems are {', '.join(words)}"
            refuse(word, f"unknown system {quote(word.text)}", hint)
        node_type: type[Node] = registry.load("systems", word.text).node_type
        return node_type

    def _read_target(
        self, block: yaml_tree.YamlMapping, shape: ArgumentShape, word: ArgumentPiece, target: ArgumentPiece
    ) -> tuple[str, list[_System]]:
        """Write what follows the colon into the block. Returns the system's label, and the systems that it reads."""
        if not any(shape):
            refuse(target, f"{word.text} takes no model", f"write its keys after commas: {word.text},KEY=VALUE")
        model, reading = target, None if shape.model else target
        if shape.model and shape.systems:
            model, reading = target.partition("@")
            if reading is None:
                refuse(target, f"{word.text} needs a system whose results it reads", shape.describe(word.text))
        parts = []
        components: list[_System] = []
        if shape.model:
            _add(block, shape.model.key, model, self.models.name(model))
            parts.append(describe_model(model.text))
        if shape.systems and reading:
            names, components = self._read_components(reading, shape.systems.many)
            _add_names(block, shape.systems, names)
            parts.append("+".join(name for _, name in names))
        return f"{word.text}-{'@'.join(parts)}", components

    def _read_components(
        self, piece: ArgumentPiece, many: bool
    ) -> tuple[list[tuple[ArgumentPiece, str]], list[_System]]:
        names: list[tuple[ArgumentPiece, str]] = []
        components = []
        for part in piece.split("+") if many else [piece]:
            if part.text in self._named:
                names.append((part, part.text))
                continue
            component = self._read_system(part)
            components.append(component)
            names.append((part, component.name))
        return names, components


def _fill_in_default(block: yaml_tree.YamlMapping, shape: ArgumentShape, word: ArgumentPiece, given: set[str]) -> str:
    """Write the word's default model into the block, unless a model is given. Returns a label for the system."""
    needed = [reference for reference in shape if reference and reference.key not in given]
    if any(reference.default is None for reference in needed):
        refuse(word, f"{word.text} cannot be used without a target", shape.describe(word.text))
    if shape.model not in needed or shape.model is None or shape.model.default is None:
        return word.text
    _add(block, shape.model.key, word, shape.model.default)
    return f"{word.text}-{shape.model.default}"


def _add(block: yaml_tree.YamlMapping, key: str, piece: ArgumentPiece, text: str) -> None:
    block.entries[key] = yaml_tree.YamlEntry(piece.place, write_text(piece.place, text))


def _add_names(
    block: yaml_tree.YamlMapping, systems: SystemReference, names: Sequence[tuple[ArgumentPiece, str]]
) -> None:
    nodes = [write_text(piece.place, name) for piece, name in names]
    value = yaml_tree.YamlSequence(nodes[0].place, [*nodes]) if systems.many else nodes[0]
    block.entries[systems.key] = yaml_tree.YamlEntry(nodes[0].place, value)


def _add_option(block: yaml_tree.YamlMapping, option: ArgumentPiece) -> None:
    """Write `KEY=VALUE` into the block. The value is YAML."""
    key, value = option.partition("=")
    assert value is not None, "an option is found by its '='"
    if key.text in block.entries:
        refuse(key, f"the key {quote(key.text)} is given twice", None)
    source = SourceText(option.source.path, option.source.text[: value.end], option.source.first_line)
    node, faults = yaml_tree.read_yaml(source, value.start)
    if faults:
        raise RefusedError(faults)
    block.entries[key.text] = yaml_tree.YamlEntry(key.place, node or yaml_tree.YamlScalar(value.place, None, ""))


def _refuse_second(system: _System, first: _System) -> NoReturn:
    if yaml_tree.to_data(system.block) == yaml_tree.to_data(first.block):
        refuse(system.piece, f"the system {quote(system.name)} is listed twice", "remove one of them")
    hint = "give this one another name: NAME=SYSTEM"
    refuse(system.piece, f"another system is already named {quote(system.name)}", hint)


def _name_dataset(piece: ArgumentPiece) -> tuple[str, ArgumentPiece]:
    """The name and the folder of `FOLDER` or `NAME=FOLDER`."""
    before, after = piece.partition("=")
    if after is not None and re.fullmatch(NAME_PATTERN, before.text) and not _path(piece).exists():
        return before.text, after
    name = _path(piece).resolve().name if piece.text else ""
    if not re.fullmatch(NAME_PATTERN, name):
        message = f"{quote(name)} is not a valid name for a dataset" if name else "the folder has no name"
        refuse(piece, message, f"give the dataset a name: NAME={piece.text}")
    return name, piece


def _path(piece: ArgumentPiece) -> Path:
    return expand_home(piece.text)


def _check_folder(piece: ArgumentPiece) -> None:
    """Refuse a folder that is not in BEIR's layout. The reader of specs checks whether it exists."""
    folder = _path(piece)
    if not folder.is_dir() or (folder / "qrels").is_dir():
        return
    inner = sorted(path.parent.name for path in folder.glob("*/qrels"))
    if inner:
        shown = ", ".join(inner[:_FOLDERS_SHOWN]) + (", ..." if len(inner) > _FOLDERS_SHOWN else "")
        refuse(piece, f"{quote(piece.text)} is not a BEIR folder", f"name the BEIR folders in it: {shown}")
    refuse(
        piece,
        f"{quote(piece.text)} is not a BEIR folder: it has no folder 'qrels'",
        "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv",
    )


class SystemReference(NamedTuple):
    """The key in which a node names blocks of a section."""

    key: str
    many: bool
    default: str | None


class ArgumentShape(NamedTuple):
    """What a word takes after its colon: `MODEL`, `SYSTEM+SYSTEM`, `MODEL@SYSTEM`, or nothing."""

    model: SystemReference | None
    systems: SystemReference | None

    def describe(self, word: str) -> str:
        """How to write a system with this word."""
        reading = "SYSTEM+SYSTEM" if self.systems and self.systems.many else "SYSTEM"
        parts = (*(("MODEL",) if self.model else ()), *((reading,) if self.systems else ()))
        return f"write {word}:{'@'.join(parts)}"


def shape_of(node_type: type[Node]) -> ArgumentShape:
    return ArgumentShape(_find_reference(node_type, "models"), _find_reference(node_type, "systems"))


def _find_reference(node_type: type[Node], section: ReferredSection) -> SystemReference | None:
    """The first key of a node that takes the name of a block of a section, or a list of such names."""
    mark = Reference(section)
    for name, info in node_type.model_fields.items():
        if mark in info.metadata:
            return SystemReference(info.alias or name, False, info.default if isinstance(info.default, str) else None)
        inner = get_args(info.annotation) if get_origin(info.annotation) in (list, tuple) else ()
        if any(mark in getattr(argument, "__metadata__", ()) for argument in inner):
            return SystemReference(info.alias or name, True, None)
    return None
