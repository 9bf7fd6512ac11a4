"""Small E5S1 files with random weights."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPACE = "\u2581"
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
PIECES = {
    SPACE: -4.0, "a": -3.0, "b": -3.5, "ab": -5.0, "abc": -6.0, f"{SPACE}a": -3.25, f"{SPACE}ab": -7.0, "\u00e9": -5.0,
    "c": -4.5, "query": -2.0, f"{SPACE}query": -1.5, ":": -1.0, "passage": -2.0, "\u65e5": -6.0, "\u672c": -6.0,
    "\u65e5\u672c": -9.0, "\u0301": -8.0,
}  # fmt: skip
RULES = {"\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u200b": "", "\uff41": "a", "\uff42": "b", "\ufb01": "fi",
         "\x01": "", "\u00bd": "1\u20442", "\u3000": " ", "\U0001d41a": "a"}  # fmt: skip
HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 64, 2, 4, 96, 48, 2


def list_tensors(vocabulary: int) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """The name and the shape of each tensor, and whether it is in blocks."""
    yield "emb.word", (vocabulary, HIDDEN), True
    yield "emb.pos", (POSITIONS, HIDDEN), False
    yield "emb.type", (TYPES, HIDDEN), False
    norms = ["emb.ln"]
    for layer in range(LAYERS):
        for part in ("q", "k", "v", "ao"):
            yield f"l{layer}.{part}.w", (HIDDEN, HIDDEN), True
            yield f"l{layer}.{part}.b", (HIDDEN,), False
        yield f"l{layer}.fi.w", (INNER, HIDDEN), True
        yield f"l{layer}.fi.b", (INNER,), False
        yield f"l{layer}.fo.w", (HIDDEN, INNER), True
        yield f"l{layer}.fo.b", (HIDDEN,), False
        norms += [f"l{layer}.aln", f"l{layer}.oln"]
    for norm in norms:
        yield f"{norm}.w", (HIDDEN,), False
        yield f"{norm}.b", (HIDDEN,), False


def write_e5s1(
    path: Path,
    pieces: Mapping[str, float] = PIECES,
    rules: Mapping[str, str] = RULES,
    *,
    change: Mapping[str, NDArray[np.uint8]] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Write a file, and return its tensors as float32.

    `change` has other blocks of tensors by name: bytes [blocks, 18].
    """
    random = np.random.default_rng(7)
    scored = [*((name, 0.0) for name in SPECIAL), *pieces.items(), ("<mask>", 0.0)]
    vocabulary = len(scored) + 2
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, INNER, vocabulary, POSITIONS, TYPES, 1e-12, 32)
    texts = [piece.encode() for piece, _ in scored]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4")
    head += struct.pack("<5iQ", len(texts), 0, 2, 1, 3, int(ends[-1])) + ends.tobytes()
    head += np.array([score for _, score in scored], "<f4").tobytes() + b"".join(texts)
    listed = b"".join(_pack_rule(ord(one), [*map(ord, text)]) for one, text in rules.items())
    head += struct.pack("<iI", len(rules), len(listed)) + listed
    found: dict[str, NDArray[np.float32]] = {}
    contents: list[bytes] = []
    entries: list[tuple[bytes, int, int]] = []
    for name, shape, in_blocks in list_tensors(vocabulary):
        count = int(np.prod(shape))
        if in_blocks:
            blocks = random.integers(0, 256, (count // 32, 18)).astype(np.uint8)
            blocks[:, :2] = random.uniform(0.01, 0.1, count // 32).astype("<f2")[:, None].view(np.uint8)
            blocks = (change or {}).get(name, blocks)
            found[name] = dequantize(blocks).reshape(shape)
            contents.append(blocks.tobytes())
        else:
            found[name] = random.normal(size=shape).astype("<f4")
            contents.append(found[name].tobytes())
        entries.append((name.encode(), int(in_blocks), count))
    size = len(head) + 4 + sum(2 + len(name) + 21 for name, _, _ in entries)
    head += struct.pack("<i", len(entries))
    for (named, kind, count), data in zip(entries, contents, strict=True):
        size += -size % 64
        head += struct.pack("<H", len(named)) + named + struct.pack("<BIQQ", kind, count, size, len(data))
        size += len(data)
    for data in contents:
        head += b"\0" * (-len(head) % 64) + data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head)
    return found


def _pack_rule(character: int, replacement: Sequence[int]) -> bytes:
    return struct.pack(f"<IB{len(replacement)}I", character, len(replacement), *replacement)


def dequantize(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The slow and obvious way."""
    values = []
    for block in blocks:
        (scale,) = struct.unpack("<e", block[:2].tobytes())
        values += [(int(byte) % 16 - 8) * scale for byte in block[2:]]
        values += [(int(byte) // 16 - 8) * scale for byte in block[2:]]
    return np.array(values, np.float32)
