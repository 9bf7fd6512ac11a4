"""The arguments of `benchmark` -> the tree of the equivalent spec.

A system is a word of `systems:`, with a model after a colon if it takes one: `bm25`, `dense:intfloat/e5-small-v2`. One
that reads other systems reads those before it: `hybrid` all, `rerank:MODEL` the last. Which keys take the model and the
systems follows from the node of the word. Each value has its place in the argument that it comes from, so that messages
point into the command line. `--set` changes what the words do not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias, get_args, get_origin

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, SpecError, suggest
from rageval_spec.errors import expand_home
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import Node
from rageval_spec.plugin.block_names import Reference, ReferredSection
from rageval_spec.spec import Spec, load_tree
from rageval_spec.spec.blocks.spec_node import NAME_PATTERN, VERSION
from rageval_spec.spec.overrides import override
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import SourceText, TextPlace, quote

SYSTEMS = ("bm25", "dense:minilm", "hybrid")
METRICS = ("ndcg@10",)
NAME = "benchmark"
_EMBEDDED = "minilm"
_MODEL_PLUGIN = "onnx"
_MODEL_FORMS = f"a model is {' or '.join(EMBEDDED)}, a hub id such as intfloat/e5-small-v2, a folder, or an .onnx file"
_PARTS_OF_MODELS = compile_later(r"model.*|onnx|snapshots|[0-9a-f]{40}")
_NOT_IN_NAMES = compile_later(r'[\x00-\x1f/\\:*?"<>|$\x7f]+')
_LONGEST_NAME = 100
_SAFE_TEXT = compile_later(r"[A-Za-z_][\w./@+-]*")
_FOLDERS_SHOWN = 5
_Blocks: TypeAlias = dict[str, yaml_tree.YamlEntry]
"""The blocks of a section by name."""


def load_spec(tree: yaml_tree.YamlMapping, overrides: Sequence[str] = ()) -> Spec:
    """The validated spec of a tree of `build_tree`; what is wrong points into the arguments."""
    return load_tree(tree, path=NAME, overrides=overrides)


def write_spec(tree: yaml_tree.YamlMapping, overrides: Sequence[str] = ()) -> str:
    """The spec as YAML text. It has the same digest as the spec of `load_spec`, whose errors it raises."""
    load_spec(deepcopy(tree), overrides)
    return write_yaml(override(tree, overrides)[0])


def build_tree(
    datasets: Sequence[str],
    systems: Sequence[str] = (),
    metrics: Sequence[str] = (),
    split: str | None = None,
    reports: Sequence[str] = ("terminal",),
) -> yaml_tree.YamlMapping:
    """The tree of the spec that is equivalent to the arguments of the command line.

    Raises:
        SpecError: the arguments cannot be turned into a spec. The reader of specs checks the rest.
    """
    top = SourceText(f"rageval-spec {NAME}", "").place(0)
    collections: _Blocks = {}
    retrievers: _Blocks = {}
    models: _Blocks = {}
    faults = [*_read_datasets(datasets, split, collections), *_read_systems(systems or SYSTEMS, retrievers, models)]
    if faults:
        raise SpecError(faults)
    measures = [_write(one.place(0, len(one.text)), one.text) for one in _list("--metric", metrics or METRICS)]
    sections: dict[str, yaml_tree.YamlNode] = {
        "version": yaml_tree.YamlScalar(top, VERSION, str(VERSION)),
        "name": yaml_tree.YamlScalar(top, NAME, NAME),
        "datasets": yaml_tree.YamlMapping(top, collections),
        **({"models": yaml_tree.YamlMapping(top, models)} if models else {}),
        "systems": yaml_tree.YamlMapping(top, retrievers),
        "metrics": yaml_tree.YamlSequence(top, [*measures]),
        "reports": yaml_tree.YamlSequence(top, [_write(top, word) for word in reports]),
    }
    return _block(top, sections)


def write_yaml(tree: yaml_tree.YamlMapping) -> str:
    """The tree as YAML text that reads back as the same values."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes every text that some YAML reader might not read as text."""

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, None if _SAFE_TEXT.fullmatch(text) else '"')

    Dumper.add_representer(str, represent)
    return yaml.dump(yaml_tree.to_data(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _list(option: str, arguments: Sequence[str]) -> list[SourceText]:
    """The arguments of one option. In messages, `--system:2:6` is the sixth character of the second argument."""
    return [SourceText(option, text, first_line=number) for number, text in enumerate(arguments, start=1)]


def _read_datasets(arguments: Sequence[str], split: str | None, blocks: _Blocks) -> Iterator[Diagnostic]:
    """Add the blocks under `datasets:`; yields what is wrong with them."""
    for argument in _list("DATASET", arguments):
        name, folder = _name_dataset(argument.text)
        place = argument.place(0, max(1, len(argument.text)))
        path = argument.place(len(argument.text) - len(folder), max(1, len(argument.text)))
        if not re.fullmatch(NAME_PATTERN, name):
            message = f"{quote(name)} is not a valid name for a dataset" if name else "the folder has no name"
            yield place.diagnose(message, "invalid-argument", f"give the dataset a name: NAME={folder}")
        elif name in blocks:
            message = f"another dataset is already named {quote(name)}"
            yield place.diagnose(message, "invalid-argument", f"give this one another name: NAME={argument.text}")
        elif fault := _find_fault(expand_home(folder)):
            yield path.diagnose(f"{quote(folder)} is not a BEIR folder{fault[0]}", "invalid-argument", fault[1])
        else:
            keys: dict[str, yaml_tree.YamlNode] = {"use": _write(place, "beir"), "path": _write(path, folder)}
            if split is not None:
                keys["split"] = _write(SourceText("--split", split).place(0, len(split)), split)
            blocks[name] = yaml_tree.YamlEntry(place, _block(place, keys))


def _name_dataset(text: str) -> tuple[str, str]:
    """The name and the folder of `FOLDER` or `NAME=FOLDER`."""
    before, separator, after = text.partition("=")
    if separator and re.fullmatch(NAME_PATTERN, before) and not expand_home(text).exists():
        return before, after
    return (expand_home(text).resolve().name if text else ""), text


def _find_fault(folder: Path) -> tuple[str, str] | None:
    """Why a folder is not in BEIR's layout, and what to write. The reader of specs checks whether it exists."""
    if not folder.is_dir() or (folder / "qrels").is_dir():
        return None
    if inner := sorted(path.parent.name for path in folder.glob("*/qrels")):
        shown = ", ".join(inner[:_FOLDERS_SHOWN]) + (", ..." if len(inner) > _FOLDERS_SHOWN else "")
        return "", f"name the BEIR folders in it: {shown}"
    return ": it has no folder 'qrels'", "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv"


def _read_systems(arguments: Sequence[str], blocks: _Blocks, models: _Blocks) -> Iterator[Diagnostic]:
    """Add the blocks under `systems:` and those of their models; yields what is wrong with them."""
    words = registry.words("systems")
    for argument in _list("--system", arguments):
        word, separator, model = argument.text.partition(":")
        place, target = argument.place(0, max(1, len(word))), argument.place(len(word) + 1, len(argument.text))
        if word not in words:
            hint = suggest(word, words) or f"the systems are {', '.join(words)}"
            message = f"unknown system {quote(word)}" if word else "the name of a system is missing"
            yield place.diagnose(message, "invalid-argument", hint)
            continue
        node_type = registry.load("systems", word).node_type
        takes, reads = find_reference(node_type, "models"), find_reference(node_type, "systems")
        if separator and takes is None:
            hint = f"for other settings, write --set systems.{word}.KEY=VALUE"
            yield target.diagnose(f"{word} takes no model", "invalid-argument", hint)
            continue
        model = model if separator or takes is None else takes.default or ""
        if takes is not None and (fault := _find_model_fault(model)):
            yield (target if separator else place).diagnose(fault[0], "invalid-argument", fault[1])
            continue
        keys: dict[str, yaml_tree.YamlNode] = {"use": _write(place, word)}
        if takes is not None:
            keys[takes.key] = _write(target if separator else place, _name_model(model, target, models))
        if reads is not None:
            others = [*blocks] if reads.many else [*blocks][-1:]
            if len(others) < (2 if reads.many else 1):
                what = "at least two systems" if reads.many else "a system"
                hint = f"write {what} before it: --system bm25 --system dense:{_EMBEDDED} --system {argument.text}"
                yield place.diagnose(f"{word} needs {what} that it reads", "invalid-argument", hint)
                continue
            named: list[yaml_tree.YamlNode] = [_write(place, name) for name in others]
            keys[reads.key] = yaml_tree.YamlSequence(place, named) if reads.many else named[0]
        name = f"{word}-{describe_model(model)}" if takes is not None else word
        if name in blocks:
            hint = "remove one of them, or write a spec: --spec prints one to begin with"
            yield place.diagnose(f"the system {quote(name)} is listed twice", "invalid-argument", hint)
            continue
        blocks[name] = yaml_tree.YamlEntry(place, _block(place, keys))


def _find_model_fault(model: str) -> tuple[str, str | None] | None:
    """Why a text is not a model, and what to write."""
    is_path = expand_home(model).exists() if model else False
    if not model:
        return "the name of a model is missing", _MODEL_FORMS
    if model.lower().endswith(".onnx") and not is_path:
        return f"there is no file {quote(model)}", None
    if "/" not in model and not is_path and model not in EMBEDDED:
        return f"there is no model {quote(model)}", suggest(model, [*EMBEDDED]) or _MODEL_FORMS
    return None


def _name_model(model: str, place: TextPlace, models: _Blocks) -> str:
    """The name of a model's block under `models:`, which is added if it is not there."""
    if model == _EMBEDDED:
        return model
    block = _block(place, {"use": _write(place, _MODEL_PLUGIN), "model": _write(place, model)})
    own = describe_model(model)
    names = (own if number == 1 else f"{own}-{number}" for number in count(1))
    free = (name for name in names if name != _EMBEDDED)
    for name in free:
        known = models.setdefault(name, yaml_tree.YamlEntry(place, block)).value
        if yaml_tree.to_data(known) == yaml_tree.to_data(block):
            return name
    raise AssertionError("there is always another name")


def describe_model(text: str) -> str:
    """The part of a model's id or path that people know it by."""
    parts = [part.removesuffix(".onnx") for part in Path(text).parts]
    telling = [part for part in parts if not _PARTS_OF_MODELS.fullmatch(part) and _name_after(part)]
    return _name_after(telling[-1] if telling else parts[-1]) or "model"


def _name_after(text: str) -> str:
    """A name made of a text, without the characters that names cannot contain."""
    return _NOT_IN_NAMES.sub("-", text).strip(" .-")[:_LONGEST_NAME].rstrip(" .-")


def _write(place: TextPlace, text: str) -> yaml_tree.YamlScalar:
    """A text as a YAML scalar in which no variable is filled in."""
    return yaml_tree.YamlScalar(place, text.replace("${", "$${"), text)


def _block(place: TextPlace, values: Mapping[str, yaml_tree.YamlNode]) -> yaml_tree.YamlMapping:
    return yaml_tree.YamlMapping(place, {key: yaml_tree.YamlEntry(value.place, value) for key, value in values.items()})


class SystemReference(NamedTuple):
    """The key in which a node names blocks of a section."""

    key: str
    many: bool
    default: str | None


def find_reference(node_type: type[Node], section: ReferredSection) -> SystemReference | None:
    """The first key of a node that takes the name of a block of a section, or a list of such names."""
    mark = Reference(section)
    for name, info in node_type.model_fields.items():
        if mark in info.metadata:
            return SystemReference(info.alias or name, False, info.default if isinstance(info.default, str) else None)
        inner = get_args(info.annotation) if get_origin(info.annotation) in (list, tuple) else ()
        if any(mark in getattr(argument, "__metadata__", ()) for argument in inner):
            return SystemReference(info.alias or name, True, None)
    return None
