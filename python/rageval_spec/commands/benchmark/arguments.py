"""The arguments of `benchmark` -> the tree of the equivalent spec.

A system is written `[NAME=]WORD[:MODEL][,KEY=VALUE...]`; one that reads the runs of others is written
`hybrid:SYSTEM+SYSTEM...` or `rerank:MODEL@SYSTEM`. Which form a word takes follows from the keys of its node that name
a model or systems. Each value of the tree has a place in the argument that it comes from, so that messages point into
the command line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from rageval_spec import registry
from rageval_spec.commands.benchmark.models import Models, describe_model
from rageval_spec.commands.benchmark.pieces import (
    Piece,
    RefusedError,
    make_block,
    name_after,
    read_pieces,
    refuse,
    write_text,
)
from rageval_spec.commands.benchmark.shapes import Shape, SystemReference, shape_of
from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.plugin import Node
from rageval_spec.spec import Spec, load_tree
from rageval_spec.spec.nodes import NAME_PATTERN, VERSION
from rageval_spec.spec.overriding import override
from rageval_spec.spec.places import Source, quote
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

_OPTION = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_]*=)")
_NAMED = re.compile(r"([^:,=@+]+)=")
_SAFE_TEXT = re.compile(r"[A-Za-z_][\w./@+-]*")
_FOLDERS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Request:
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


def load_spec(request: Request) -> Spec:
    """The validated spec.

    Raises:
        SpecError: the arguments are wrong; its diagnostics point into them.
    """
    return load_tree(build_tree(request), path=NAME, overrides=request.overrides)


def write_spec(request: Request) -> str:
    """The spec as YAML text. It has the same digest as the spec of `load_spec`.

    Raises:
        SpecError: as `load_spec`.
    """
    load_spec(request)
    tree, _ = override(build_tree(request), request.overrides)
    return write_yaml(tree)


def build_tree(request: Request) -> YamlMapping:
    """The tree of the spec that is equivalent to the request.

    Raises:
        SpecError: the arguments cannot be turned into a spec. The reader of specs checks the rest.
    """
    builder = _Builder()
    top = Source(f"rageval-spec {NAME}", "").place(0)
    datasets = builder.read_datasets(read_pieces("DATASET", request.datasets), request.split)
    systems = builder.read_systems(read_pieces("--system", request.systems or SYSTEMS))
    metrics = [write_text(piece.place, piece.text) for piece in read_pieces("--metric", request.metrics or METRICS)]
    if builder.faults:
        raise SpecError(builder.faults)
    sections: dict[str, YamlNode] = {
        "version": YamlScalar(top, VERSION, str(VERSION)),
        "name": YamlScalar(top, NAME, NAME),
        "datasets": YamlMapping(top, datasets),
        "models": YamlMapping(top, builder.models.blocks),
        "systems": YamlMapping(top, systems),
        "metrics": YamlSequence(top, [*metrics]),
        "reports": YamlSequence(top, [write_text(top, word) for word in request.reports]),
    }
    if not builder.models.blocks:
        del sections["models"]
    return make_block(top, sections)


def write_yaml(tree: YamlMapping) -> str:
    """The tree as YAML text that reads back as the same values."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that some YAML reader might not read as text."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if _SAFE_TEXT.fullmatch(text) else '"')

    Dumper.add_representer(str, represent)
    return yaml.dump(to_data(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


@dataclass(slots=True)
class _System:
    """A system described by an argument or by part of one."""

    name: str
    piece: Piece
    block: YamlMapping
    components: list[_System] = field(default_factory=list)


class _Builder:
    """Reads arguments, and collects diagnostics in `faults`."""

    def __init__(self) -> None:
        self.faults: list[Diagnostic] = []
        self.models = Models()
        self._named: set[str] = set()

    def read_datasets(self, pieces: Sequence[Piece], split: str | None) -> dict[str, YamlEntry]:
        """The blocks under `datasets:`."""
        entries: dict[str, YamlEntry] = {}
        for piece in pieces:
            try:
                name, folder = _name_dataset(piece)
                _check_folder(folder)
                if name in entries:
                    message = f"another dataset is already named {quote(name)}"
                    refuse(piece, message, f"give this one another name: NAME={piece.text}")
                use = YamlScalar(piece.place, "beir", "beir")
                block = make_block(piece.place, {"use": use, "path": write_text(folder.place, folder.text)})
                if split is not None:
                    place = Source("--split", split).place(0, len(split))
                    block.entries["split"] = YamlEntry(place, write_text(place, split))
                entries[name] = YamlEntry(piece.place, block)
            except RefusedError as refused:
                self.faults += refused.diagnostics
        return entries

    def read_systems(self, pieces: Sequence[Piece]) -> dict[str, YamlEntry]:
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
        return {name: YamlEntry(system.piece.place, system.block) for name, system in systems.items()}

    def _add_components(self, system: _System, systems: dict[str, _System]) -> None:
        for component in system.components:
            other = systems.setdefault(component.name, component)
            if to_data(other.block) != to_data(component.block):
                message = f"another system with different settings is already named {quote(component.name)}"
                fault = component.piece.place.diagnose(message, "command-line", "give that system another name")
                self.faults.append(fault)
            self._add_components(component, systems)

    def _read_system(self, piece: Piece) -> _System:
        head, *options = piece.split(_OPTION)
        named = _NAMED.match(head.text)
        if named is not None:
            head = head.cut(named.end())
        word, target = head.partition(":")
        shape = shape_of(self._find_node(word))
        block = YamlMapping(piece.place, {"use": YamlEntry(word.place, write_text(word.place, word.text))})
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

    def _find_node(self, word: Piece) -> type[Node]:
        words = registry.words("systems")
        if not word.text:
            refuse(word, "the name of a system is missing", f"the systems are {', '.join(words)}")
        if word.text not in words:
            known = (*words, *sorted(self._named))
            hint = suggest(word.text, known) or f"the systems are {', '.join(words)}"
            refuse(word, f"unknown system {quote(word.text)}", hint)
        node_type: type[Node] = registry.load("systems", word.text).node_type
        return node_type

    def _read_target(self, block: YamlMapping, shape: Shape, word: Piece, target: Piece) -> tuple[str, list[_System]]:
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

    def _read_components(self, piece: Piece, many: bool) -> tuple[list[tuple[Piece, str]], list[_System]]:
        names: list[tuple[Piece, str]] = []
        components = []
        for part in piece.split("+") if many else [piece]:
            if part.text in self._named:
                names.append((part, part.text))
                continue
            component = self._read_system(part)
            components.append(component)
            names.append((part, component.name))
        return names, components


def _fill_in_default(block: YamlMapping, shape: Shape, word: Piece, given: set[str]) -> str:
    """Write the word's default model into the block, unless a model is given. Returns a label for the system."""
    needed = [reference for reference in shape if reference and reference.key not in given]
    if any(reference.default is None for reference in needed):
        refuse(word, f"{word.text} cannot be used without a target", shape.describe(word.text))
    if shape.model not in needed or shape.model is None or shape.model.default is None:
        return word.text
    _add(block, shape.model.key, word, shape.model.default)
    return f"{word.text}-{shape.model.default}"


def _add(block: YamlMapping, key: str, piece: Piece, text: str) -> None:
    block.entries[key] = YamlEntry(piece.place, write_text(piece.place, text))


def _add_names(block: YamlMapping, systems: SystemReference, names: Sequence[tuple[Piece, str]]) -> None:
    nodes = [write_text(piece.place, name) for piece, name in names]
    value = YamlSequence(nodes[0].place, [*nodes]) if systems.many else nodes[0]
    block.entries[systems.key] = YamlEntry(nodes[0].place, value)


def _add_option(block: YamlMapping, option: Piece) -> None:
    """Write `KEY=VALUE` into the block. The value is YAML."""
    key, value = option.partition("=")
    assert value is not None, "an option is found by its '='"
    if key.text in block.entries:
        refuse(key, f"the key {quote(key.text)} is given twice", None)
    source = Source(option.source.path, option.source.text[: value.end], option.source.first_line)
    node, faults = read_yaml(source, value.start)
    if faults:
        raise RefusedError(faults)
    block.entries[key.text] = YamlEntry(key.place, node or YamlScalar(value.place, None, ""))


def _refuse_second(system: _System, first: _System) -> NoReturn:
    if to_data(system.block) == to_data(first.block):
        refuse(system.piece, f"the system {quote(system.name)} is listed twice", "remove one of them")
    hint = "give this one another name: NAME=SYSTEM"
    refuse(system.piece, f"another system is already named {quote(system.name)}", hint)


def _name_dataset(piece: Piece) -> tuple[str, Piece]:
    """The name and the folder of `FOLDER` or `NAME=FOLDER`."""
    before, after = piece.partition("=")
    if after is not None and re.fullmatch(NAME_PATTERN, before.text) and not _path(piece).exists():
        return before.text, after
    name = _path(piece).resolve().name if piece.text else ""
    if not re.fullmatch(NAME_PATTERN, name):
        message = f"{quote(name)} is not a valid name for a dataset" if name else "the folder has no name"
        refuse(piece, message, f"give the dataset a name: NAME={piece.text}")
    return name, piece


def _path(piece: Piece) -> Path:
    return Path(piece.text).expanduser()


def _check_folder(piece: Piece) -> None:
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
