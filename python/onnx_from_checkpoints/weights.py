"""Reads a model's tensors by their names in its architecture, from safetensors files or an E5S1 file.

Each tensor is read from the mapped file when it is asked for. So a model larger than the memory can be read, tensor
by tensor. Everything that can be wrong with a file's header is checked at once; that a tensor holds only finite
numbers, when it is read. Shapes are checked against config.json.
"""

from __future__ import annotations

import json
import math
import mmap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from onnx_from_checkpoints.e5s1 import BLOCK, E5File, read_e5s1
from onnx_from_checkpoints.errors import DamagedFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class Weights:
    """Tensors by name. The prefix that models with a head put before their encoder's names is left out."""

    _OLD_NAMES = ((".LayerNorm.weight", ".LayerNorm.gamma"), (".LayerNorm.bias", ".LayerNorm.beta"))

    def __init__(self, tensors: Mapping[str, NDArray[Any]], known: str = "embeddings.word_embeddings.weight") -> None:
        """Find the prefix from the full name of the tensor `known`, which every model of the architecture has."""
        self._tensors = tensors
        found = sorted(name.removesuffix(known) for name in tensors if name.endswith(known))
        self._prefix = found[0] if found else ""
        self._read_names: set[str] = set()
        self._passed_over: tuple[str, ...] = ()

    @property
    def names(self) -> Collection[str]:
        return self._tensors.keys()

    def read(self, name: str, *shape: int | None) -> Array:
        """A tensor of the encoder as float32; None in `shape` allows any size."""
        return self._read(self._prefix + name, shape)

    def read_table(self, name: str, *shape: int | None) -> Array | Blocks:
        """As `read`, but a tensor in blocks remains so."""
        found = self._find(self._prefix + name, shape)
        return found if isinstance(found, Blocks) else found.astype(np.float32, copy=False)

    def size(self, name: str, dimensions: int) -> tuple[int, ...]:
        """The shape of a tensor of the encoder, where config.json does not say it."""
        return self.read(name, *[None] * dimensions).shape

    def count_layers(self, layer: str) -> int:
        """The number of layers; `layer` is the prefix of a layer's tensors, with `{}` for its number."""
        start = self._prefix + layer.partition("{}")[0]
        numbers = {name.removeprefix(start).partition(".")[0] for name in self._tensors if name.startswith(start)}
        return max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)

    def refuse_layers(self, layer: str, count: int) -> None:
        """Refuse weights with more layers than `count`, which config.json has: the model would run without them."""
        most = self.count_layers(layer)
        if most > count:
            start = self._prefix + layer.partition("{}")[0]
            raise DamagedFile(f"the weights have {most} layers ('{start}{most - 1}'), but config.json has {count}")

    def has(self, name: str) -> bool:
        return self._prefix + name in self._tensors

    def pass_over(self, *starts: str) -> None:
        """Say that the tensors of the encoder whose names begin so cannot change what the graph gives."""
        self._passed_over += tuple(self._prefix + start for start in starts)

    def pass_over_heads(self) -> None:
        """Say that tensors beside the encoder do not count; without a prefix before its names, there are none."""
        if self._prefix:
            self._passed_over += tuple(name for name in self._tensors if not name.startswith(self._prefix))

    def refuse_unread(self) -> None:
        """Refuse tensors that nothing has read or passed over: the model would run without them.

        So a head or a layer of the repository's own code is never left out without a word. Tensors that hold no floats
        do not count, nor do the frequencies of rotary positions (`inv_freq`), which are computed.
        """
        unread = [
            name
            for name in sorted(self._tensors.keys() - self._read_names)
            if not name.startswith(self._passed_over)
            and not name.endswith("inv_freq")
            and self._tensors[name].dtype.kind == "f"
        ]
        if unread:
            shown = ", ".join(f"'{name}'" for name in unread[:_MOST_NAMED])
            more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
            raise DamagedFile(
                f"the weights have {shown}{more}, which nothing in a model with this config.json reads; without "
                f"{'it' if len(unread) == 1 else 'them'}, its numbers would be those of another model"
            )

    def read_head(self, name: str, *shape: int | None) -> Array:
        """A tensor of the classifier, whose names have no prefix; otherwise like `read`."""
        return self._read(name, shape)

    def read_linear(self, name: str, inputs: int, outputs: int) -> tuple[Array, Array]:
        """The weight [inputs, outputs], to multiply from the right, and the bias [outputs]."""
        return self.read(f"{name}.weight", outputs, inputs).T, self.read(f"{name}.bias", outputs)

    def _read(self, name: str, shape: tuple[int | None, ...]) -> Array:
        return self._find(name, shape).astype(np.float32, copy=False)

    def _find(self, name: str, shape: tuple[int | None, ...]) -> NDArray[Any] | Blocks:
        expected = list(shape)
        # Old checkpoints name the tensors of norms differently.
        others = (name.removesuffix(new) + old for new, old in self._OLD_NAMES if name.endswith(new))
        stored = next((one for one in (name, *others) if one in self._tensors), name)
        tensor = self._tensors.get(stored)
        if tensor is None:
            needed = "" if None in expected else f", which must have the shape {expected} according to config.json"
            raise DamagedFile(
                f"the weights have no tensor '{name}'{needed}; use weights and a config.json of one model"
            )
        fits = len(tensor.shape) == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            raise DamagedFile(
                f"the tensor '{name}' has the shape {list(tensor.shape)}, but must have {expected} according to "
                "config.json"
            )
        if tensor.dtype.kind != "f":
            raise DamagedFile(f"the tensor '{name}' holds {tensor.dtype}, not floating-point numbers")
        self._read_names.add(stored)
        return tensor


_MOST_NAMED = 3
"""How many tensors a message names."""
_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
_KINDS |= {"BF16": "<u2", "BOOL": "?"}
_FLOATS = ("F64", "F32", "F16", "BF16")
_POINTER = b"version "
"""How the text begins that Git LFS leaves in place of a file; as a length, it is longer than any header."""
_SIZE_OF_LENGTH = 8
"""A file begins with the length of its header, in so many bytes."""
_LONGEST_HEADER = 100_000_000
_CHECKED_AT_ONCE = 1 << 20
_MOST_MAPPED = 64_000_000
"""After reading so many bytes, the pages of the file are given back: they count as the process's memory."""


class _Entry(NamedTuple):
    """Where a tensor is: bytes `start` to `end` of the file."""

    path: Path
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


class Tensors(Mapping[str, "NDArray[Any]"]):
    """The tensors of safetensors files by name, read-only; bfloat16 becomes float32."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Read the headers; see `read_weights` for the errors."""
        self._entries: dict[str, _Entry] = {}
        self._contents: dict[Path, np.memmap[Any, Any]] = {}
        self._touched = 0
        for path in files:
            for name, entry in _read_header(path).items():
                if name in self._entries:
                    raise DamagedFile(f"{path}: has the tensor '{name}', which is also in {self._entries[name].path}")
                self._entries[name] = entry

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._find(name)
        part = np.asarray(self._open(entry)[entry.start : entry.end])
        values: NDArray[Any] = part.view(_KINDS[entry.kind]).reshape(entry.shape)
        if entry.kind == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        if values.dtype.kind == "f" and not _is_finite(values):
            raise DamagedFile(f"{entry.path}: '{name}' holds NaN or infinity", file=entry.path)
        return values

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def file_of(self, name: str) -> Path:
        return self._entries[name].path

    def count_bytes(self) -> int:
        """The size of all tensors in float32."""
        return sum(4 * math.prod(entry.shape) for entry in self._entries.values())

    def find_commonest_kind(self) -> str:
        """The type, such as `F16`, that takes up most of the files; "" without tensors."""
        sizes = Counter[str]()
        for entry in self._entries.values():
            sizes[entry.kind] += entry.end - entry.start
        return max(sizes, key=lambda kind: sizes[kind], default="")

    def _find(self, name: str) -> _Entry:
        entry = self._entries[name]
        if entry.kind not in _KINDS:
            raise DamagedFile(f"{entry.path}: '{name}' is of type {entry.kind}, which is not supported")
        return entry

    def _open(self, entry: _Entry) -> np.memmap[Any, Any]:
        """The content of the file; pages that were read before are dropped now and then, and read again if in use."""
        if self._touched > _MOST_MAPPED and hasattr(mmap, "MADV_DONTNEED"):
            self._touched = 0
            for content in self._contents.values():
                content._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        self._touched += entry.end - entry.start
        if entry.path not in self._contents:
            self._contents[entry.path] = np.memmap(entry.path, np.uint8, "r")
        return self._contents[entry.path]


_BLOCK = np.dtype([("scale", "<f2"), ("bits", "u1", BLOCK // 2)])


class Blocks:
    """A tensor of Q4_0, [rows, columns] with whole blocks in each row; see `e5s1`. It has values when they are read."""

    dtype = np.dtype(np.float32)

    def __init__(self, content: NDArray[np.uint8], shape: tuple[int, ...], name: str) -> None:
        """Refuse scales that are not finite; `name` is the tensor's for messages."""
        self.shape = shape
        self._bits, self._scales = (content.view(_BLOCK)[field] for field in ("bits", "scale"))
        if not _is_finite(self._scales):
            raise DamagedFile(f"{name} has a scale that is NaN or infinity")

    def astype(self, kind: type[np.float32], copy: bool = False) -> Array:  # noqa: ARG002 - as of arrays
        values = _unpack(self._bits).astype(kind)
        values -= 8
        values *= self._scales[:, None]
        return values.reshape(self.shape)

    def pack(self) -> tuple[NDArray[np.uint8], Array]:
        """Bits, two neighbours in a byte with the first in its low bits [rows, columns / 2], and scales of blocks."""
        packed = np.empty_like(self._bits)
        for start in range(0, len(packed), _CHECKED_AT_ONCE):
            values = _unpack(self._bits[start : start + _CHECKED_AT_ONCE])
            packed[start : start + _CHECKED_AT_ONCE] = values[:, 0::2] | values[:, 1::2] << 4
        rows = self.shape[0]
        return packed.reshape(rows, -1), self._scales.astype(np.float32).reshape(rows, -1)


def _unpack(bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate((bits & 15, bits >> 4), axis=1)


class _E5Tensors(Tensors):
    """The tensors of an E5S1 file."""

    def __init__(self, path: Path) -> None:
        super().__init__(())
        self._entries = {name: _Entry(path, *place) for name, place in read_e5s1(path).tensors.items()}

    def __getitem__(self, name: str) -> Any:
        entry = self._entries[name]
        if entry.kind in _KINDS:
            return super().__getitem__(name)
        return Blocks(np.asarray(self._open(entry)[entry.start : entry.end]), entry.shape, f"{entry.path}: '{name}'")


class _Blank(np.ndarray[Any, Any]):
    """A tensor of zeros of which only the shape counts: products with it are not computed."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        left, *others = arrays = [np.asarray(each) for each in inputs]
        if ufunc is np.matmul:
            return _make_blank((*left.shape[:-1], *others[0].shape[1:]))
        return getattr(ufunc, method)(*arrays, **options)


def _make_blank(shape: tuple[int, ...], kind: str = "<f4") -> NDArray[Any]:
    return np.broadcast_to(np.zeros((), kind), shape).view(_Blank)


class _Outlines(Tensors):
    """Tensors with the names, kinds and shapes of those in the files; values are not read and take no memory."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._find(name)
        return _make_blank(entry.shape, "<f4" if entry.kind in _FLOATS else _KINDS[entry.kind])


def read_weights(files: Iterable[Path], index: Path | None = None, *, outlined: bool = False) -> Tensors:
    """Read the tensors of safetensors files, or of one E5S1 file, by name.

    Args:
        files: the files.
        index: the file that says which of them has which tensor, if there is one.
        outlined: whether only the headers are read: the tensors have their shapes, and zeros for values.

    Raises:
        DamagedFile: a file is damaged or truncated, or two have a tensor of the same name, or the index names a tensor
            that its file does not have. The message names the file, and the tensor if there is one.
    """
    if (files := list(files)) and files[0].name.endswith(E5File.ENDING):
        return _E5Tensors(files[0])
    tensors = _Outlines(files) if outlined else Tensors(files)
    if index is not None:
        for name, file in json.loads(index.read_text("utf-8-sig"))["weight_map"].items():
            if name not in tensors or tensors.file_of(name) != index.parent / file:
                raise DamagedFile(f"{index}: says that {file} has the tensor '{name}', but it has none", file=index)
    return tensors


def _is_finite(values: NDArray[Any]) -> bool:
    flat = values.reshape(-1)
    return all(
        bool(np.isfinite(flat[start : start + _CHECKED_AT_ONCE]).all())
        for start in range(0, len(flat), _CHECKED_AT_ONCE)
    )


def _read_header(path: Path) -> dict[str, _Entry]:
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start_of_file = stream.read(_SIZE_OF_LENGTH)
            if start_of_file == _POINTER:
                raise DamagedFile(f"{path}: is only a pointer of Git LFS; run `git lfs pull` in its folder")
            length = int.from_bytes(start_of_file, "little")
            left = size - _SIZE_OF_LENGTH
            if left < 0:
                _refuse(path, f"it has only {size} bytes")
            if length > min(left, _LONGEST_HEADER):
                _refuse(path, f"its header should have {length} bytes, but only {left} follow")
            header = stream.read(length)
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}", file=path) from error
    start = _SIZE_OF_LENGTH + length
    entries = {name: _read_entry(path, name, value, start) for name, value in _parse(path, header).items()}
    _check_places(path, entries, start, size)
    return entries


def _parse(path: Path, header: bytes) -> dict[str, Any]:
    """The entries of the header, but for the metadata."""

    def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            _refuse(path, f"its header has '{next(name for name in names if names.count(name) > 1)}' twice")
        return found

    try:
        content = json.loads(header, object_pairs_hook=refuse_twice)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        _refuse(path, "its header is not a JSON object")
    content.pop("__metadata__", None)
    return dict(content)


def _read_entry(path: Path, name: str, value: Any, start: int) -> _Entry:
    fields = value if isinstance(value, dict) else {}
    kind, shape, places = fields.get("dtype"), _counts(fields.get("shape")), _counts(fields.get("data_offsets"))
    if not isinstance(kind, str) or shape is None or places is None or len(places) != len(("start", "end")):
        _refuse(path, f"'{name}' needs a dtype, a shape and two data_offsets")
    entry = _Entry(path, kind, tuple(shape), start + places[0], start + places[1])
    if kind in _KINDS:
        needed = math.prod(shape) * np.dtype(_KINDS[kind]).itemsize
        if needed != entry.end - entry.start:
            _refuse(path, f"'{name}' needs {needed} bytes for {kind} {shape}, but has {entry.end - entry.start}")
    return entry


def _counts(value: object) -> list[int] | None:
    """The value if it is a list of whole numbers of at least 0; JSON's true and false are none."""
    return value if isinstance(value, list) and all(type(one) is int and one >= 0 for one in value) else None


def _check_places(path: Path, entries: Mapping[str, _Entry], start: int, size: int) -> None:
    """Refuse tensors that overlap, that end after the file, or that leave bytes out."""
    reached, before = start, ""
    for name, entry in sorted(entries.items(), key=lambda pair: (pair[1].start, pair[1].end)):
        if entry.end > size:
            _refuse(path, f"'{name}' ends at byte {entry.end}, but the file has only {size}")
        if entry.start < reached:
            _refuse(path, f"'{name}' overlaps '{before}'")
        if entry.start > reached:
            _refuse(path, f"{entry.start - reached} bytes before '{name}' belong to no tensor")
        reached, before = entry.end, name
    if reached < size:
        _refuse(path, f"the last {size - reached} bytes belong to no tensor")


def _refuse(path: Path, detail: str) -> NoReturn:
    raise DamagedFile(f"{path}: is damaged or truncated ({detail})", file=path)
