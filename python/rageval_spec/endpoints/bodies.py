"""Reads the bodies of replies in bounded memory: decompressed in pieces, one large body at a time."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse, IncompleteRead
from threading import Lock

from rageval_spec.endpoints.failures import Failure, TooLargeError

MOST_BYTES = 64 * 2**20
"""The most bytes of a decompressed body, unless a caller sets a lower limit."""
LARGE = 2**20
"""A body of more bytes waits until no other large body is in memory."""
_PIECE = 2**16
_PAUSE = 0.05
_ZLIB_OR_GZIP = 47
_ENCODINGS = frozenset({"", "identity"})
_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
_gate = Lock()


class Body:
    """The body of one call. Only one body at a time may be read beyond `LARGE` bytes."""

    def __init__(self, most: int, is_closed: Callable[[], bool]) -> None:
        """Read nothing yet; waiting ends when `is_closed` returns True."""
        self._most = most
        self._is_closed = is_closed
        self._is_large = False
        self.waited = 0.0

    def read(self, response: HTTPResponse, extend: Callable[[float], None]) -> bytes:
        """The whole body, decompressed; `extend` gets the seconds that were spent waiting for other large bodies.

        Raises:
            Failure: the body is larger than the limit, or compressed in a way that was not asked for.
            IncompleteRead: the body ends too early.
        """
        pieces: list[bytes] = []
        total = 0
        for piece in _decompress(_read_pieces(response), response.headers.get("Content-Encoding", "")):
            total += len(piece)
            if total > self._most:
                raise TooLargeError(
                    f"replied with more than {_format_size(self._most)}, which is the limit for a reply"
                )
            if total > LARGE and not self._is_large:
                extend(self._wait_for_gate())
            pieces.append(piece)
        if response.length:
            raise IncompleteRead(b"", response.length)
        return b"".join(pieces)

    def release(self) -> None:
        """Let the next large body be read, because this one is processed."""
        if self._is_large:
            self._is_large = False
            _gate.release()

    def _wait_for_gate(self) -> float:
        began = time.monotonic()
        while not _gate.acquire(timeout=_PAUSE):
            if self._is_closed():
                raise Failure("is no longer asked")
        self._is_large = True
        return time.monotonic() - began


@contextmanager
def hold_body(most: int, is_closed: Callable[[], bool]) -> Iterator[Body]:
    """A body that is released at the end of the block."""
    body = Body(most, is_closed)
    try:
        yield body
    finally:
        body.release()


def _read_pieces(response: HTTPResponse) -> Iterator[bytes]:
    while piece := response.read(_PIECE):
        yield piece


def _decompress(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Decompress the pieces, because some servers compress unasked. No decompressed piece is large."""
    encoding = encoding.strip().lower()
    if encoding in _ENCODINGS:
        yield from pieces
        return
    if encoding not in _COMPRESSED:
        raise Failure(f"replied in the encoding {encoding[:20]!r}, which was not asked for")
    stream = zlib.decompressobj(_ZLIB_OR_GZIP)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                yield stream.decompress(rest, _PIECE)
                rest = stream.unconsumed_tail
    except zlib.error as error:
        raise Failure(f"replied with damaged {encoding}: {error}", is_temporary=True) from None
    if not stream.eof:
        raise IncompleteRead(b"")


def _format_size(size: int) -> str:
    return f"{size // 2**20} MiB" if size >= 2**20 else f"{size} bytes"
