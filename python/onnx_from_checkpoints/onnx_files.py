"""Reads `.onnx` files without loading their weights, and writes a graph's large constants beside it.

Protobuf's wire format is read field by field, without a schema and without copying what is skipped. To list the
external weight files of a graph, only those parts of the message are parsed that can contain a tensor; weights are
skipped.

A graph with its constants would need the model's size of memory twice: once itself, and once as the bytes that are
written. So large constants are written to the file beside the graph one by one, while the graph is built. Inside of
`written_beside`, they are on the disk as soon as they are made.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from onnx_from_checkpoints.errors import DamagedFile

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray


VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5


def read_fields(content: bytes | mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the message in `content[start:end]`.

    Yields:
        Number, kind (`VARINT`, ...), and the place of the value: the offsets of its first byte and past its last one.
        The bytes of a `BYTES` field are its content without the length.

    Raises:
        IndexError: a field is incomplete, or of a kind that protobuf no longer writes.
    """
    while start < end:
        tag, start = read_varint(content, start)
        kind = tag & 7
        if kind == BYTES:
            size, start = read_varint(content, start)
            stop = start + size
        elif kind == VARINT:
            _, stop = read_varint(content, start)
        elif kind in (FIXED64, FIXED32):
            stop = start + (8 if kind == FIXED64 else 4)
        else:
            raise IndexError
        if stop > end:
            raise IndexError
        yield tag >> 3, kind, start, stop
        start = stop
    if start != end:
        raise IndexError


def read_varint(content: bytes | mmap.mmap, start: int) -> tuple[int, int]:
    """The unsigned number at `start`, and the offset past it. Raises IndexError if it is incomplete or too long."""
    value = shift = 0
    while True:
        byte = content[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, start
        shift += 7
        if shift > 63:
            raise IndexError


def start_field(number: int, size: int) -> bytes:
    """What precedes the content of a `BYTES` field of `size` bytes."""
    return _write_varint(number << 3 | BYTES) + _write_varint(size)


def _write_varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


_Message: TypeAlias = "Mapping[int, _Message]"

_ENTRY: _Message = {}
_TENSOR: _Message = {13: _ENTRY}
_SPARSE: _Message = {1: _TENSOR, 2: _TENSOR}
_GRAPH_FIELD: dict[int, _Message] = {5: _TENSOR, 15: _SPARSE}
_ATTRIBUTE: _Message = {5: _TENSOR, 6: _GRAPH_FIELD, 10: _TENSOR, 11: _GRAPH_FIELD, 22: _SPARSE, 23: _SPARSE}
_NODE: _Message = {5: _ATTRIBUTE}
_GRAPH_FIELD[1] = _NODE
_MODEL: _Message = {7: _GRAPH_FIELD, 25: {7: _NODE}}
"""The field numbers in ONNX's messages that lead to `TensorProto.external_data`."""

_KEY, _VALUE = 1, 2


def find_external_data(graph: Path) -> tuple[str, ...] | None:
    """The external files with weights of an `.onnx` file, relative to its folder; None if it is not an ONNX model."""
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


EXTERNAL_FROM = 1024
"""The smallest array, in bytes, that moves to the separate file if there is one."""
_ALIGNED = 4096
"""Constants begin at multiples of a page, so that they can be mapped."""
_WRITTEN_AT_ONCE = 16_000_000
_GRAPH, _CONSTANT, _VALUES = 7, 5, 9
"""The numbers of `ModelProto.graph`, `GraphProto.initializer` and `TensorProto.raw_data` in ONNX's messages."""

_FILE: ContextVar[IO[bytes] | None] = ContextVar("the file beside the graph", default=None)
_KEPT: ContextVar[bool] = ContextVar("whether constants have values", default=True)


@contextmanager
def without_values() -> Iterator[None]:
    """Leave out the values of constants that `make_constant` makes: the graph is built to see whether it can be."""
    token = _KEPT.set(False)
    try:
        yield
    finally:
        _KEPT.reset(token)


@contextmanager
def written_beside(path: Path | None) -> Iterator[None]:
    """Write constants that `make_constant` makes to the file, if they are large; None keeps them in the graph.

    The file must be in the graph's folder, because the graph refers to it by name.
    """
    if path is None:
        yield
        return
    with path.open("wb") as stream:
        token = _FILE.set(stream)
        try:
            yield
        finally:
            _FILE.reset(token)
    if path.stat().st_size == 0:
        path.unlink()


def make_constant(name: str, values: NDArray[Any]) -> onnx.TensorProto:
    """A constant of a graph, whose values are in the file beside it if there is one and the constant is large."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    if not _KEPT.get():
        return onnx.TensorProto(name=name)
    stream = _FILE.get()
    if stream is None or values.nbytes < EXTERNAL_FROM:
        return numpy_helper.from_array(np.asarray(values, order="C"), name)
    shape, kind = values.shape, helper.np_dtype_to_tensor_dtype(values.dtype)
    if values.dtype.isbuiltin != 1:  # numpy gives no buffer of bfloat16, and has a byte for each integer of 4 bits
        packed = numpy_helper.from_array(np.asarray(values, order="C"), name).raw_data
        values = np.frombuffer(packed, np.uint8)
    stream.write(b"\0" * (-stream.tell() % _ALIGNED))
    start = stream.tell()
    rows = max(1, _WRITTEN_AT_ONCE * len(values) // values.nbytes)
    for first in range(0, len(values), rows):
        stream.write(np.asarray(values[first : first + rows], order="C").data)
    found = onnx.TensorProto(name=name, dims=shape, data_type=kind, data_location=onnx.TensorProto.EXTERNAL)
    places = {"location": Path(stream.name).name, "offset": start, "length": stream.tell() - start}
    for key, value in places.items():
        found.external_data.add(key=key, value=str(value))
    return found


def save_whole(model: onnx.ModelProto, target: Path) -> None:
    """Write the graph and the constants beside it, which are in `target`'s folder, as one file.

    The constants are copied from file to file, so that they are not in memory.
    """
    import onnx

    constants = [_start_constant(tensor) for tensor in model.graph.initializer]
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    del rest.graph.initializer[:]
    nodes = rest.graph.SerializeToString()
    rest.ClearField("graph")
    size = len(nodes) + sum(len(start) + (place.length if place else 0) for start, place in constants)
    with target.open("wb") as stream:
        stream.write(rest.SerializeToString() + start_field(_GRAPH, size) + nodes)
        for start, place in constants:
            stream.write(start)
            if place is not None:
                _copy_values(target.with_name(place.file), place, stream)


class _Place(NamedTuple):
    """Where the values of a constant are in the file beside the graph."""

    file: str
    offset: int
    length: int


def _start_constant(tensor: onnx.TensorProto) -> tuple[bytes, _Place | None]:
    """The bytes of a constant in a graph, and the place of its values, which must follow, if they are in a file."""
    import onnx
    from onnx.external_data_helper import uses_external_data

    if not uses_external_data(tensor):
        content = tensor.SerializeToString()
        return start_field(_CONSTANT, len(content)) + content, None
    entries = {entry.key: entry.value for entry in tensor.external_data}
    place = _Place(entries["location"], int(entries["offset"]), int(entries["length"]))
    facts = onnx.TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type).SerializeToString()
    content = facts + start_field(_VALUES, place.length)
    return start_field(_CONSTANT, len(content) + place.length) + content, place


def _copy_values(path: Path, place: _Place, stream: IO[bytes]) -> None:
    with path.open("rb") as values:
        values.seek(place.offset)
        for first in range(0, place.length, _WRITTEN_AT_ONCE):
            stream.write(values.read(min(_WRITTEN_AT_ONCE, place.length - first)))


_INTEGER_PRODUCTS = (b"QuantizeLinear", b"DynamicQuantize", b"MatMulInteger", b"QAttention")
"""Parts of the names of operators, of which every graph with integer products has one."""


def is_quantized(path: Path) -> bool:
    """Whether an `.onnx` file has products of integers, judging by the names in it; False if it cannot be read."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(name) >= 0 for name in _INTEGER_PRODUCTS)
    except (OSError, ValueError):  # which mmap raises for an empty file
        return False
