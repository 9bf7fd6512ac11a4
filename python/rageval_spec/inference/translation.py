"""Turns errors of checkpoints into those of this program, with advice that depends on where a file is from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.checkpoint_errors import DamagedFile, UnsupportedModel


@contextmanager
def translated() -> Iterator[None]:
    """A context manager for calls to what reads checkpoints, and for reading the tensors that it gave.

    Raises:
        UsageError: the model is not supported.
        DataError: a file is damaged; if it must be downloaded again, the message says how.
    """
    try:
        yield
    except UnsupportedModel as error:
        raise UsageError(str(error)) from error
    except DamagedFile as error:
        raise DataError(error.problem if error.file is None else f"{error.problem}; {say_fetch(error.file)}") from error


def say_fetch(file: Path) -> str:
    """Say what to do if a model's file is damaged or missing: huggingface_hub does not replace files in its cache."""
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
