"""Loads the tokenizer of a model: its tokenizer.json, or one built from its vocabulary."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.tokenizing.adjusting import adjust
from rageval_spec.inference.tokenizing.families import find_family
from rageval_spec.inference.tokenizing.settings import Settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PARALLEL = "TOKENIZERS_PARALLELISM"
TOKENIZER = "tokenizer.json"


class Loaded(NamedTuple):
    """A tokenizer, and the file that it is from or that its vocabulary is from."""

    tokenizer: Tokenizer
    path: Path


def load_fast(folder: Path, names: Collection[str]) -> Loaded | None:
    """Load a model's tokenizer; None if it has no tokenizer.json, and its family is not known here.

    Args:
        folder: the model's root.
        names: the tokenizer files in it.

    Raises:
        DamagedFile: a file is missing or damaged, or the files belong to different models.
    """
    tame_forks()
    if TOKENIZER in names:
        path = folder / TOKENIZER
        tokenizer = _read(path)
        adjust(tokenizer, path, Settings(folder))
        return Loaded(tokenizer, path)
    settings = Settings(folder)
    family = find_family(settings)
    if family is None:
        return None
    missing = [name for name in family.FILES if name not in names]
    if missing:
        raise DamagedFile(
            f"{folder}: its tokenizer needs {' and '.join(family.FILES)}, but {missing[0]} is missing; "
            "download the model again"
        )
    paths = tuple(folder / name for name in family.FILES)
    return Loaded(family.build(paths, settings), paths[0])


def tame_forks() -> None:
    """Let tokenizers use threads, but not in forked children, where they would hang. Without this it warns."""
    if _PARALLEL not in os.environ:
        os.environ[_PARALLEL] = "true"
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
            os.register_at_fork(after_in_child=lambda: os.environ.__setitem__(_PARALLEL, "false"))


def _read(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{path}: is not a tokenizer: {error}") from error
