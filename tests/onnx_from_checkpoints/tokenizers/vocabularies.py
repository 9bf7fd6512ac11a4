"""Model folders with the vocabularies that models had before tokenizer.json, and SentencePiece models byte by byte."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from tests.onnx_from_checkpoints.folders import write_json

GOLDEN = Path(__file__).parent / "golden"
FAMILIES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


def copy_golden(name: str, folder: Path, **files: object) -> list[str]:
    """Copy a model of `golden`, with JSON files replaced; `tokenizer_config={}` writes tokenizer_config.json.

    Returns:
        The names of the files.
    """
    shutil.copytree(GOLDEN / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected.json"))
    for file, content in files.items():
        write_json(folder / f"{file}.json", content)
    return sorted(path.name for path in folder.iterdir())


def field(number: int, content: bytes) -> bytes:
    """A field with bytes in protobuf's wire format."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
    """A piece of a SentencePiece model; as in real ones, the usual kind is left out."""
    content = field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
    return field(1, content + (b"" if kind == 1 else number_field(3, kind)))


def sentencepiece_model(pieces: Sequence[bytes], trainer: bytes = b"", normalizer: bytes = b"") -> bytes:
    return b"".join(pieces) + field(2, trainer) + field(3, normalizer)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes([value])
    return bytes([value & 0x7F | 0x80]) + _varint(value >> 7)
