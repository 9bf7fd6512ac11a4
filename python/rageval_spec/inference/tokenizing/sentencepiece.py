"""Reads a SentencePiece model, a protobuf `ModelProto`, without the `sentencepiece` package."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn

from rageval_spec.inference.checkpoint_errors import DamagedFile
from rageval_spec.inference.protobuf import BYTES, FIXED32, VARINT, read_fields, read_varint
from rageval_spec.inference.tokenizing.charsmap import is_sound

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

    def of_type(self, *types: int) -> Iterator[tuple[str, int]]:
        """Pieces of these types, each with its type, in the order of their ids."""
        return ((self.pieces[place][0], kind) for place, kind in enumerate(self.types) if kind in types)


@dataclass(slots=True)
class _Spec:
    """A message of settings: the numbers and bytes of its fields, by number; of a repeated field the last."""

    numbers: dict[int, int] = field(default_factory=dict)
    texts: dict[int, bytes] = field(default_factory=dict)


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """Read a SentencePiece model.

    Raises:
        DamagedFile: the file is damaged, is not a SentencePiece model, or uses what is not supported here.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"{path}: cannot be read: {error.strerror or error}") from error
    pieces: list[tuple[str, float]] = []
    types = bytearray()
    trainer, normalizer = _Spec(), _Spec()
    try:
        for number, kind, start, stop in read_fields(content, 0, len(content)):
            if kind != BYTES:
                continue
            if number == _PIECES:
                piece, score, type_ = _read_piece(content, start, stop)
                pieces.append((piece, score))
                types.append(type_)
            elif number in (_TRAINER, _NORMALIZER):
                _read_spec(trainer if number == _TRAINER else normalizer, content, start, stop)
    except (IndexError, ValueError, struct.error) as error:
        raise DamagedFile(
            f"{path}: is not a SentencePiece model, or is damaged or truncated; download the model again"
        ) from error
    return _check(path, pieces, types, trainer, normalizer)


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


def _read_spec(spec: _Spec, content: bytes, start: int, stop: int) -> None:
    for number, kind, first, last in read_fields(content, start, stop):
        if kind == VARINT:
            spec.numbers[number], _ = read_varint(content, first)
        elif kind == BYTES:
            spec.texts[number] = content[first:last]


def _check(
    path: Path, pieces: list[tuple[str, float]], types: bytearray, trainer: _Spec, normalizer: _Spec
) -> SentencePieceModel:
    if not pieces:
        raise DamagedFile(f"{path}: is not a SentencePiece model: it has no pieces")
    if not all(piece for piece, _ in pieces) or not all(math.isfinite(score) for _, score in pieces):
        raise DamagedFile(f"{path}: is damaged: a piece is empty, or has no finite score; download the model again")
    if len({piece for piece, _ in pieces}) != len(pieces):
        raise DamagedFile(f"{path}: is damaged: it has the same piece twice; download the model again")
    unknown = trainer.numbers.get(40, 0)
    if unknown >= len(pieces) or types[unknown] != UNKNOWN:
        raise DamagedFile(
            f"{path}: 'trainer_spec.unk_id' is {unknown}, which is not the unknown piece; download the model again"
        )
    number = trainer.numbers.get(3, 1)
    if number not in _KINDS:
        _refuse(path, "trainer_spec.model_type", _KIND_NAMES.get(number, str(number)))
    if trainer.numbers.get(24):
        _refuse(path, "trainer_spec.treat_whitespace_as_suffix", "true")
    for place, name in ((3, "add_dummy_prefix"), (5, "escape_whitespaces")):
        if not normalizer.numbers.get(place, 1):
            _refuse(path, f"normalizer_spec.{name}", "false")
    charsmap = normalizer.texts.get(2, b"")
    if charsmap and not is_sound(charsmap):
        raise DamagedFile(f"{path}: 'normalizer_spec.precompiled_charsmap' is damaged; download the model again")
    return SentencePieceModel(path, pieces, types, _KINDS[number], unknown, bool(trainer.numbers.get(35, 0)), charsmap)


def _refuse(path: Path, key: str, value: str) -> NoReturn:
    raise DamagedFile(
        f"{path}: '{key}' is {value}, which is not supported; save the tokenizer as a tokenizer.json with the "
        "program that made it"
    )
