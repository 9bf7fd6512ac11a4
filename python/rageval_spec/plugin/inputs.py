"""The input files that a plugin's node names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file that a node names.

    Attributes:
        key: the path of YAML keys and indexes inside the node that leads to the file's name.
        hint: what a message adds if the file is missing, such as the files that do exist.
    """

    path: Path
    key: tuple[str | int, ...]
    kind: Literal["file", "folder"] = "file"
    hint: str | None = None


def digest_content(file: InputFile) -> str:
    """The sha256 of a file's content, or of a folder's file names and contents, in hex."""
    if file.kind == "folder":
        from rageval_spec.store.file_digests import digest_path

        return digest_path(file.path)
    with file.path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
