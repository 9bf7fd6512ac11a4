"""Lists the external weight files of an `.onnx` file without loading it, because `validate` needs them.

Only those parts of the protobuf message are parsed that can contain a tensor; weights are skipped.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.protobuf import BYTES, read_fields

_Message: TypeAlias = "Mapping[int, _Message]"

_ENTRY: _Message = {}
_TENSOR: _Message = {13: _ENTRY}
_SPARSE: _Message = {1: _TENSOR, 2: _TENSOR}
_GRAPH: dict[int, _Message] = {5: _TENSOR, 15: _SPARSE}
_ATTRIBUTE: _Message = {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE}
_NODE: _Message = {5: _ATTRIBUTE}
_GRAPH[1] = _NODE
_MODEL: _Message = {7: _GRAPH, 25: {7: _NODE}}
"""The field numbers in ONNX's messages that lead to `TensorProto.external_data`."""

_KEY, _VALUE = 1, 2


def find_external_data(graph: Path) -> tuple[str, ...] | None:
    """The external files with weights of an `.onnx` file, relative to its folder; None if it is not an ONNX model.

    Raises:
        DamagedFile: one of them is outside of the folder.
        OSError: the file cannot be read.
    """
    with graph.open("rb") as stream:
        try:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return None
        with content:
            try:
                found = set(_find_locations(content, 0, len(content), _MODEL))
            except (IndexError, UnicodeDecodeError):
                return None
    return tuple(sorted({_check_inside(graph, name) for name in found}))


def _find_locations(content: mmap.mmap, start: int, end: int, message: _Message) -> Iterator[str]:
    for field, kind, first, last in read_fields(content, start, end):
        inner = message.get(field) if kind == BYTES else None
        if inner is _ENTRY:
            entry = {key: content[a:b] for key, kind, a, b in read_fields(content, first, last) if kind == BYTES}
            if entry.get(_KEY) == b"location":
                yield entry.get(_VALUE, b"").decode()
        elif inner is not None:
            yield from _find_locations(content, first, last, inner)


def _check_inside(graph: Path, name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise DamagedFile(f"{graph}: has weights in '{name}', which is outside of its folder")
    return path.as_posix()
