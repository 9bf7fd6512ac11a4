"""The files that documents are read from, by which a change of the documents is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rageval_spec.generation.documents import CORPORA, HTML, MARKDOWN, TEXT
from rageval_spec.reading.files import find_file, format_of


def list_files(path: Path) -> list[Path]:
    """The files that `documents.read_documents` reads, in order: no hidden ones, and none that it has no reader for.

    So a store or results in the same folder change nothing. Empty if there is nothing to read.
    """
    corpus = find_file(path / "corpus.jsonl") if path.is_dir() else path
    if corpus.is_file() and (corpus == path or format_of(corpus) in CORPORA):
        return [corpus]
    return sorted(_walk(path)) if path.is_dir() else []


def _walk(folder: Path) -> Iterator[Path]:
    """The readable files below a folder; links to folders are followed once."""
    visited = {folder.resolve()}
    for place, folders, files in os.walk(folder, followlinks=True):
        here = Path(place)
        folders[:] = [name for name in sorted(folders) if not name.startswith(".") and _is_new(here / name, visited)]
        for name in files:
            is_read = not name.startswith(".") and format_of(here / name) in MARKDOWN | HTML | TEXT | {"pdf"}
            if is_read and os.access(here / name, os.R_OK) and (here / name).is_file():
                yield here / name


def _is_new(folder: Path, visited: set[Path]) -> bool:
    real = folder.resolve()
    is_new = real not in visited
    visited.add(real)
    return is_new
