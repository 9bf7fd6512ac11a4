"""Makes ONNX files from other files, once, and caches them: graphs built from weights, and quantised graphs.

`<cache>/models/<key>/` holds a file and a manifest with its sha256; the key is the digest of everything the file is
made of. A folder is written under another name and then renamed, so it is never incomplete. Several processes can
share a cache; the first to rename wins, and equal keys mean equal files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from onnx_from_checkpoints import TOKENIZER, find_external_data, read_tokenizer
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.inference import model_files
from rageval_spec.inference.embedded_models import EMBEDDED, NOTICE
from rageval_spec.inference.model_files import ModelFiles, named, say_fetch, translated
from rageval_spec.store.disk import CACHE, InputFile, find_cache, sweep, write_flushed

if TYPE_CHECKING:
    from onnx_from_checkpoints import Configuration

Precision = Literal["fp32", "int8"]
Fingerprint = Callable[[InputFile], str]

QUANTISER = "4"
"""Increase this when the same graph would be quantised differently: then cached graphs and stored answers of int8
models are made again."""
GRAPH, DATA, MANIFEST = "model.onnx", "model.onnx_data", "manifest.json"
MOST_BYTES_IN_ONE_FILE = 1_500_000_000
"""Larger weights are written to a separate file, because a protobuf message is limited to 2 GiB."""
_MAPPED_FROM = 50_000_000
"""In the cache, larger weights are written to a separate file: memory-mapped, they load in a third of the time."""
_OWN_GRAPH = "2"
"""Stands for the version of the builder in the key of a quantised graph that was not built here."""


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model in the cache.

    Attributes:
        key: the name of its folder.
        name: the name of the model that it was first made for, as the spec gave it.
        bytes: the total size of its files.
    """

    key: str
    name: str
    precision: Precision
    bytes: int
    folder: Path


def provide_graph(
    source: ModelFiles, configuration: Configuration, precision: Precision, fingerprint: Fingerprint
) -> Path:
    """Return the `.onnx` file to open: the model's own, or one from the cache, which is made first if necessary.

    Raises `UsageError` if the packages of the extra `onnx` are not installed, also for a file that need not be made.
    """
    model_files.require_packages()
    return _Form(source, configuration, precision, fingerprint).provide()


@dataclass(frozen=True, slots=True)
class _Form:
    """A model in one precision."""

    source: ModelFiles
    configuration: Configuration
    precision: Precision
    fingerprint: Fingerprint

    def provide(self) -> Path:
        source = self.source
        if self._is_as_stored:
            return source.path(source.weights[0])
        folder = find_cache() / "models" / self._find_key()
        if not _is_whole(folder):
            with _explained(folder, f"set {CACHE} to another folder"):
                _make(folder, {"name": source.location.name, "precision": self.precision}, self._make)
        return folder / GRAPH

    def export(self, target: Path) -> None:
        """Write the graph for other programs, and its external weights if it has any."""
        if self._is_as_stored:
            graph = self.provide()
            _copy(graph, target)
            with translated():
                beside = find_external_data(graph) or ()
            for name in beside:
                _copy(graph.parent / name, target.parent / name)
            return
        self._make(target, exported=True)
        _join(target)

    @property
    def _is_as_stored(self) -> bool:
        return self.source.format == "onnx" and self.precision == "fp32"

    def _make(self, target: Path, *, exported: bool = False) -> None:
        """Build or quantise the graph, for this program or to be exported to others.

        A graph to quantise has no tables: looking up a projection takes as long as its integer product.
        """
        from onnx_from_checkpoints import quantize

        if not exported:
            _write_notice(self.source, target.parent)
        single_up_to = 0 if exported else min(MOST_BYTES_IN_ONE_FILE, _MAPPED_FROM)
        if self.precision == "fp32":
            self._build(target, padded=exported, tabled=not exported, single_up_to=single_up_to)
            return
        with TemporaryDirectory(dir=target.parent) as folder:
            whole = self.source.path(self.source.weights[0])
            if self.source.format != "onnx":
                whole = Path(folder) / GRAPH
                self._build(whole, padded=exported, tabled=False, single_up_to=0)
            with translated():
                quantize(whole, target, signed=not exported, single_up_to=single_up_to)

    def _build(self, target: Path, *, padded: bool, tabled: bool, single_up_to: int) -> None:
        """Build a graph; weights of more than `single_up_to` bytes are written to a file of their own."""
        import onnx

        from onnx_from_checkpoints import build_graph, read_weights, written_beside

        configuration = self.configuration
        with translated():
            weights = read_weights(*self.source.list_weights())
        beside = target.with_name(DATA) if weights.count_bytes() > single_up_to else None
        with named(self.source), translated(), written_beside(beside):
            model = build_graph(
                configuration.encoder,
                weights,
                task=configuration.task,
                padded=padded,
                tabled=tabled,
                replies=self._find_replies(),
                bare=configuration.is_bare,
            )
        onnx.save_model(model, target)

    def _find_replies(self) -> tuple[int, ...]:
        """The ids of the tokens that stand for the labels of a model that writes text; none for other models."""
        from rageval_spec.inference.tokens import find_reply_ids

        replies, source = self.configuration.replies, self.source
        return find_reply_ids(source.tokenizer_folder, source.tokenizer, replies) if replies else ()

    def _find_key(self) -> str:
        """The digest of everything that the file is made of."""
        from onnx_from_checkpoints import find_architecture

        source, configuration = self.source, self.configuration
        with named(source), translated():
            built = _OWN_GRAPH if source.format == "onnx" else find_architecture(configuration.encoder).VERSION
        names = [*source.weights, *(name for name in source.configuration if name == "config.json")]
        content: dict[str, Any] = {
            "precision": self.precision,
            "task": configuration.task,
            "builders": [built, QUANTISER if self.precision == "int8" else ""],
            "files": [self.fingerprint(InputFile(source.path(name), ("model",))) for name in names],
        }
        if configuration.replies and source.format == "safetensors":
            with named(source):
                content["replies"] = self._find_replies()
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def export_model(
    source: ModelFiles, configuration: Configuration, target: Path, precision: Precision, fingerprint: Fingerprint
) -> Path:
    """Write a folder that `use: onnx` can read: the graph, the tokenizer files and the configuration files.

    A tokenizer that is built from a vocabulary is also written as a tokenizer.json.
    A graph that is built from weights has the input `attention_mask`, because other programs pad the texts of a batch.
    Weights of int8 are stored as uint8, which other programs multiply exactly on every processor.

    Returns:
        The path of the `.onnx` file in the folder.
    """
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise UsageError(f"{target}: already exists; name a new folder")
    model_files.require_packages()
    if source.format == "e5s1":
        raise UsageError(f"{source.location.name}: cannot be exported: other programs cannot read its tokenizer")
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    with _explained(target, "name another folder"):
        try:
            (part / "onnx").mkdir(parents=True)
            _Form(source, configuration, precision, fingerprint).export(part / "onnx" / GRAPH)
            for name in dict.fromkeys((*source.tokenizer, *source.configuration)):
                _copy(source.path(name), part / name)
            _write_tokenizer(source, part)
            _write_notice(source, part)
            with suppress(FileNotFoundError):
                target.rmdir()
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target / "onnx" / GRAPH


def _write_notice(source: ModelFiles, target: Path) -> None:
    """Write whose the weights of an embedded model are, and under which license, beside a graph with them."""
    if source.location.kind == "embedded":
        (target / NOTICE).write_text(EMBEDDED[source.location.name].write_notice(), "utf-8")


def _write_tokenizer(source: ModelFiles, target: Path) -> None:
    """Write the tokenizer.json of a model that has only a vocabulary; nothing if its tokenizer cannot be built."""
    if TOKENIZER in source.tokenizer:
        return
    with translated():
        found = read_tokenizer(source.tokenizer_folder, source.tokenizer)
    if found is not None:
        (target / TOKENIZER).write_text(found.tokenizer.to_str(), "utf-8")


def _join(graph: Path) -> None:
    """Move the weights beside a graph into it, so that there is one file, unless they are too large for that."""
    import onnx

    from onnx_from_checkpoints import save_whole

    beside = graph.with_name(DATA)
    if beside.is_file() and beside.stat().st_size <= MOST_BYTES_IN_ONE_FILE:
        save_whole(onnx.load_model(graph, load_external_data=False), graph)
        beside.unlink()


def list_cached() -> tuple[CachedModel, ...]:
    """The models in the cache, sorted by name and precision; incomplete folders are skipped."""
    folder = find_cache() / "models"
    try:
        found = [_describe(path) for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return ()
    return tuple(sorted(filter(None, found), key=lambda model: (model.name, model.precision, model.key)))


def _make(folder: Path, facts: Mapping[str, str], make: Callable[[Path], None]) -> None:
    """Write the content to a temporary folder and rename that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    sweep(folder.parent.glob(".*.part"))
    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    part.mkdir()
    try:
        make(part / GRAPH)
        files = {path.name: _digest(path) for path in sorted(part.iterdir())}
        write_flushed(part / MANIFEST, json.dumps({**facts, "files": files}, indent=1, ensure_ascii=False).encode())
        _publish(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _publish(part: Path, folder: Path) -> None:
    """Rename `part` to `folder`. A damaged folder is replaced; an intact one from another process is equally good."""
    for _ in range(2):
        try:
            part.rename(folder)
        except OSError:
            if not folder.exists():
                raise
            if _is_whole(folder):
                return
            aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
            with suppress(OSError):
                folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            return
    part.rename(folder)


def _is_whole(folder: Path) -> bool:
    """Whether all files still have the digests in the manifest."""
    files = (_read_manifest(folder) or {}).get("files")
    if not isinstance(files, dict) or GRAPH not in files:
        return False
    try:
        return all(_digest(folder / name, flush=False) == digest for name, digest in files.items())
    except OSError:
        return False


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _describe(folder: Path) -> CachedModel | None:
    manifest = _read_manifest(folder) or {}
    files, precision = manifest.get("files"), manifest.get("precision")
    if not isinstance(files, dict) or precision not in ("fp32", "int8"):
        return None
    try:
        size = sum((folder / name).stat().st_size for name in files)
    except OSError:
        return None
    return CachedModel(folder.name, str(manifest.get("name", "")), precision, size, folder)


def _digest(path: Path, flush: bool = True) -> str:
    """The sha256 of a file; with `flush`, the file is first written through to the disk."""
    with path.open("rb") as stream:
        if flush:
            os.fsync(stream.fileno())
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.open("rb").close()
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror or error}; {say_fetch(source)}") from error
    shutil.copyfile(source, target)


@contextmanager
def _explained(folder: Path, instead: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RagevalError(f"cannot write to {folder.parent}: {error.strerror or error}; {instead}") from error
