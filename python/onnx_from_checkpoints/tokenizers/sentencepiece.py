"""Reads a SentencePiece model, a protobuf `ModelProto`, without the `sentencepiece` package.

The model's pieces become the model of a tokenizer.

Its compiled rules of normalisation are checked, because `tokenizers` reads past the end of damaged ones. The rules
are a trie of UTF-8 bytes, a double array of 32-bit units, and after it the texts that replace what the trie finds,
each ended by a zero byte. Four bytes in front say how many bytes the trie takes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np

from onnx_from_checkpoints.errors import DamagedFile
from onnx_from_checkpoints.onnx_files import BYTES, FIXED32, VARINT, read_fields, read_varint
from onnx_from_checkpoints.tokenizers.special_tokens import SpecialToken

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer


NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""The types of pieces."""

_KINDS: dict[int, Literal["unigram", "bpe"]] = {1: "unigram", 2: "bpe"}
_KIND_NAMES = {3: "word", 4: "char"}
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_FLOAT = struct.Struct("<f")


@dataclass(frozen=True, slots=True)
class SentencePieceModel:
    """What a SentencePiece model says about how texts become pieces.

    Attributes:
        path: the file.
        pieces: each piece with its score, in the order of the ids.
        types: the type of each piece, such as `CONTROL`.
        unknown: the id of the unknown piece.
        byte_fallback: whether characters without a piece are read as their UTF-8 bytes.
        charsmap: SentencePiece's compiled rules of normalisation; empty if texts are read as they are.
    """

    path: Path
    pieces: list[tuple[str, float]]
    types: bytearray
    kind: Literal["unigram", "bpe"]
    unknown: int
    byte_fallback: bool
    charsmap: bytes


_Spec: TypeAlias = dict[tuple[int, int], Any]
"""The numbers and bytes of a message of settings, by field and kind; of a repeated field the last."""


def read_sentencepiece(path: Path) -> SentencePieceModel:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    pieces: list[tuple[str, float]] = []
    types = bytearray()
    specs: dict[int, _Spec] = {_TRAINER: {}, _NORMALIZER: {}}
    try:
        for number, kind, start, stop in read_fields(content, 0, len(content)):
            if kind != BYTES:
                continue
            if number == _PIECES:
                piece, score, type_ = _read_piece(content, start, stop)
                pieces.append((piece, score))
                types.append(type_)
            elif number in specs:
                specs[number] |= _read_spec(content, start, stop)
    except (IndexError, ValueError, struct.error) as error:
        raise DamagedFile(
            f"{path}: is not a SentencePiece model, or is damaged or truncated; download the model again"
        ) from error
    return _check(path, pieces, types, specs[_TRAINER], specs[_NORMALIZER])


def _read_piece(content: bytes, start: int, stop: int) -> tuple[str, float, int]:
    """A piece, its score and its type. Most are 0x0A, size, text, 0x15, score, and are read without a loop."""
    text = start + 2
    if stop - start >= 7 and content[start] == 0x0A and content[start + 1] < 0x80:
        after = text + content[start + 1]
        if after + 5 == stop and content[after] == 0x15:
            return content[text:after].decode(), _FLOAT.unpack_from(content, after + 1)[0], NORMAL
    piece, score, type_ = "", 0.0, NORMAL
    for number, kind, first, last in read_fields(content, start, stop):
        if (number, kind) == (1, BYTES):
            piece = content[first:last].decode()
        elif (number, kind) == (2, FIXED32):
            (score,) = _FLOAT.unpack_from(content, first)
        elif (number, kind) == (3, VARINT):
            type_, _ = read_varint(content, first)
    return piece, score, type_


def _read_spec(content: bytes, start: int, stop: int) -> _Spec:
    return {
        (number, kind): read_varint(content, first)[0] if kind == VARINT else content[first:last]
        for number, kind, first, last in read_fields(content, start, stop)
        if kind in (VARINT, BYTES)
    }


def _check(
    path: Path, pieces: list[tuple[str, float]], types: bytearray, trainer: _Spec, normalizer: _Spec
) -> SentencePieceModel:
    if not pieces:
        raise DamagedFile(f"{path}: is not a SentencePiece model: it has no pieces")
    if not all(piece for piece, _ in pieces) or not all(math.isfinite(score) for _, score in pieces):
        raise DamagedFile(f"{path}: is damaged: a piece is empty, or has no finite score; download the model again")
    if len({piece for piece, _ in pieces}) != len(pieces):
        raise DamagedFile(f"{path}: is damaged: it has the same piece twice; download the model again")
    unknown = trainer.get((40, VARINT), 0)
    if unknown >= len(pieces) or types[unknown] != UNKNOWN:
        raise DamagedFile(
            f"{path}: 'trainer_spec.unk_id' is {unknown}, which is not the unknown piece; download the model again"
        )
    number = trainer.get((3, VARINT), 1)
    if number not in _KINDS:
        _refuse(path, "trainer_spec.model_type", _KIND_NAMES.get(number, str(number)))
    if trainer.get((24, VARINT)):
        _refuse(path, "trainer_spec.treat_whitespace_as_suffix", "true")
    for place, name in ((3, "add_dummy_prefix"), (5, "escape_whitespaces")):
        if not normalizer.get((place, VARINT), 1):
            _refuse(path, f"normalizer_spec.{name}", "false")
    charsmap = normalizer.get((2, BYTES), b"")
    if charsmap and not is_sound(charsmap):
        raise DamagedFile(f"{path}: 'normalizer_spec.precompiled_charsmap' is damaged; download the model again")
    return SentencePieceModel(
        path, pieces, types, _KINDS[number], unknown, bool(trainer.get((35, VARINT), 0)), charsmap
    )


def _refuse(path: Path, key: str, value: str) -> NoReturn:
    raise DamagedFile(
        f"{path}: '{key}' is {value}, which is not supported; save the tokenizer as a tokenizer.json with the "
        "program that made it"
    )


_LABELS = np.arange(1, 256, dtype=np.int64)


def is_sound(charsmap: bytes) -> bool:
    """Whether no text can lead out of the trie or to something else than the beginning of a character."""
    size = int.from_bytes(charsmap[:4], "little")
    if size % 4 or not 4 <= size <= len(charsmap) - 4:
        return False
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    texts = np.frombuffer(charsmap, np.uint8, offset=4 + size)
    values = _find_values(units)
    if values is None or not _is_utf8(texts.tobytes()):
        return False
    return not values.size or bool(values.max() < texts.size and np.all(texts[values] & 0xC0 != 0x80))


def _find_values(units: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The places of all replacements, by walking the trie level by level; None if a step leads out of it."""
    offsets = (units >> 10) << ((units & 0x200) >> 6)
    seen = np.zeros(units.size, np.bool_)
    bases, values = offsets[:1], [np.zeros(0, np.int64)]
    while bases.size:
        if bases.max() >= units.size:
            return None
        bases = bases[~seen[bases]]
        seen[bases] = True
        places = bases[:, None] ^ _LABELS
        if places.size and places.max() >= units.size:
            return None
        places = places[units[places] & 0x800000FF == _LABELS]
        leaves = np.unique(places[units[places] & 0x100 != 0])
        bases = np.unique(places ^ offsets[places])
        ends = leaves ^ offsets[leaves]
        if ends.size and ends.max() >= units.size:
            return None
        values.append(units[ends] & 0x7FFFFFFF)
    return np.concatenate(values)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


SPACE = "\u2581"
"""What SentencePiece writes for a space."""

Pieces = Sequence[tuple[str, float]]


def make_tokenizer(model: SentencePieceModel, pieces: Pieces, unknown: int) -> Tokenizer:
    """A tokenizer without normalisation over `pieces`, which may be the model's in another order.

    As in the tokenizer.json files that transformers writes, a unigram model reads a character without a piece as the
    unknown token, even if the SentencePiece model would read it as bytes.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import BPE, Unigram

    try:
        if model.kind == "unigram":
            return Tokenizer(Unigram(list(pieces), unknown, False))
        vocabulary = {piece: number for number, (piece, _) in enumerate(pieces)}
        return Tokenizer(
            BPE(
                vocabulary,
                list(_find_merges(vocabulary)),
                unk_token=pieces[unknown][0],
                fuse_unk=True,
                byte_fallback=model.byte_fallback,
            )
        )
    except Exception as error:  # tokenizers raises a plain Exception
        raise DamagedFile(f"{model.path}: cannot be turned into a tokenizer: {error}") from error


def make_charsmap(model: SentencePieceModel) -> list[Normalizer]:
    """The model's rules of normalisation, if it has any."""
    from tokenizers.normalizers import Precompiled

    if not model.charsmap:
        return []
    try:
        return [Precompiled(model.charsmap)]
    except Exception as error:
        raise DamagedFile(
            f"{model.path}: 'normalizer_spec.precompiled_charsmap' is damaged; download the model again"
        ) from error


def list_own(model: SentencePieceModel) -> list[SpecialToken]:
    """The pieces that are found in a text before it is split: control pieces, and those that a user defined."""
    return [
        SpecialToken(piece, special=kind == CONTROL, named=f"{model.path}: '{piece}'")
        for (piece, _), kind in zip(model.pieces, model.types, strict=True)
        if kind in (CONTROL, USER_DEFINED)
    ]


def _find_merges(vocabulary: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The pairs of pieces that make a piece, those of the first piece first; among these the more common parts first.

    SentencePiece orders pieces by the order in which it merged them, and ids keep that order.
    """
    for piece in vocabulary:
        parts = [(piece[:place], piece[place:]) for place in range(1, len(piece))]
        known = [part for part in parts if part[0] in vocabulary and part[1] in vocabulary]
        yield from sorted(known, key=lambda part: (vocabulary[part[0]], vocabulary[part[1]]))
