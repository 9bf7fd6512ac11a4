"""Protobuf's wire format: varints, tags and lengths, read with bounds and written canonically.

OTLP uses little of protobuf, so these functions replace a dependency. A message is read in place, as `data` with a
start and a stop: nothing is copied before a field is wanted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_MOST_BITS = 64
_HIGHEST = (1 << 64) - 1
_SIGN = 1 << 63


class WireError(ValueError):
    """Bytes that are not the message they should be. `offset` counts from the start of the data."""

    def __init__(self, message: str, offset: int) -> None:
        """Say what is wrong, and at which byte."""
        super().__init__(message)
        self.offset = offset


def read_varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and the place after it.

    Raises:
        WireError: the data end inside the number, or it has more than ten bytes.
    """
    start, value, shift = at, 0, 0
    while at < stop:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _HIGHEST, at
        shift += 7
        if shift >= _MOST_BITS:
            raise WireError("a number has more than ten bytes", start)
    raise WireError("the data end inside a number", start)


def read_length(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """The start and the stop of a field that begins with its length.

    Raises:
        WireError: the field would end after `stop`.
    """
    if at < stop and data[at] < 0x80:  # most are short; a call would cost more than the reading
        length, start = data[at], at + 1
    else:
        length, start = read_varint(data, at, stop)
    if length > stop - start:
        raise WireError(f"a field of {length:,} bytes has only {stop - start:,} left", at)
    return start, start + length


def read_fields(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field of a message: its number, its wire type, and its start and stop.

    The start of a varint is its value. Whoever does not know a number passes over it, as protobuf asks.

    Raises:
        WireError: the bytes are not a protobuf message.
    """
    while at < stop:
        tag, after = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at, stop)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise WireError("a field has the number 0", at)
        if kind == LENGTH:
            start, at = read_length(data, after, stop)
            yield number, kind, start, at
        elif kind == VARINT:
            value, at = read_varint(data, after, stop)
            yield number, kind, value, at
        elif kind in _WIDTHS:
            at = after + _WIDTHS[kind]
            if at > stop:
                raise WireError("the data end inside a number", after)
            yield number, kind, after, at
        else:
            raise WireError(f"a field has the wire type {kind}, which OTLP does not use", at)


def read_fixed64(data: bytes, at: int) -> int:
    """The unsigned number in the eight bytes at `at`."""
    return int.from_bytes(data[at : at + 8], "little")


def read_double(data: bytes, at: int) -> float:
    """The float in the eight bytes at `at`."""
    number: float = struct.unpack_from("<d", data, at)[0]
    return number


def read_text(data: bytes, start: int, stop: int) -> str:
    """The text of a field.

    Raises:
        WireError: the bytes are not UTF-8.
    """
    try:
        return data[start:stop].decode()
    except UnicodeDecodeError as error:
        raise WireError("a text is not UTF-8", start + error.start) from error


def to_signed(value: int) -> int:
    """A varint read as a signed number of 64 bits."""
    return value - (1 << 64) if value & _SIGN else value


def write_varint(value: int) -> bytes:
    """A number of up to 64 bits; a negative one takes ten bytes."""
    value &= _HIGHEST
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def write_message(number: int, content: bytes) -> bytes:
    """A field with a message, which is written even if it is empty."""
    return write_varint(number << 3 | LENGTH) + write_varint(len(content)) + content


def write_bytes(number: int, content: bytes) -> bytes:
    """A field with bytes; nothing if there are none, as proto3 asks."""
    return write_message(number, content) if content else b""


def write_text(number: int, text: str) -> bytes:
    """A field with text; nothing if it is empty. Half a surrogate pair, which UTF-8 cannot hold, becomes `?`."""
    return write_bytes(number, text.encode("utf-8", "replace"))


def write_number(number: int, value: int) -> bytes:
    """A varint field; nothing for 0."""
    return write_varint(number << 3 | VARINT) + write_varint(value) if value else b""


def write_fixed64(number: int, value: int) -> bytes:
    """A field of eight bytes; nothing for 0."""
    return write_varint(number << 3 | FIXED64) + value.to_bytes(8, "little") if value else b""


def write_double(number: int, value: float) -> bytes:
    """A field with a float, also for 0: it stands in a `oneof`, where the field's presence says what is meant."""
    return write_varint(number << 3 | FIXED64) + struct.pack("<d", value)
