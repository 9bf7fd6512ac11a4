"""Requests that were received, in a file, so that nothing is lost once it was acknowledged.

The file has the layout of a collector's file exporter: each request in protobuf, after its length in four bytes. So it
can be imported as any other file.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import IO

from rageval_spec.errors import RagevalError

_LENGTH = 4


class Spool:
    """Appends requests to a file; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, and remove what a kill left of a request at its end: that one was never acknowledged.

        Raises:
            RagevalError: the file cannot be written, or another receiver is writing to it.
        """
        self.path = path
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream: IO[bytes] | None = path.open("ab+")
            _claim(self._stream, path)
            self.found = _trim(self._stream)
        except OSError as error:
            raise RagevalError(f"{path}: cannot be written: {error.strerror or error}") from error

    def add(self, request: bytes) -> bool:
        """Append a request. Returns True once it is on the disk; False if the spool is closed.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        with self._lock:
            if self._stream is None:
                return False
            before = self._stream.tell()
            try:
                self._stream.write(len(request).to_bytes(_LENGTH, "big") + request)
                self._stream.flush()
                os.fsync(self._stream.fileno())
            except OSError:
                self._stream.truncate(before)
                raise
            return True

    def close(self) -> None:
        """Take no further request."""
        with self._lock:
            if self._stream is not None:
                self._stream.close()
                self._stream = None

    def retire(self) -> None:
        """Rename the file, so that the next receiver starts anew; the one before it is deleted."""
        self.close()
        if self.path.exists():
            self.path.replace(self.path.with_suffix(".done"))


def _claim(stream: IO[bytes], path: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise RagevalError(f"{path}: another receiver is writing to this file; listen at another address") from None


def _trim(stream: IO[bytes]) -> int:
    """Cut off an incomplete request at the end; returns how many are complete."""
    stream.seek(0, os.SEEK_END)
    size = stream.tell()
    at = count = 0
    while at + _LENGTH <= size:
        stream.seek(at)
        end = at + _LENGTH + int.from_bytes(stream.read(_LENGTH), "big")
        if end > size:
            break
        at, count = end, count + 1
    stream.truncate(at)
    stream.seek(0, os.SEEK_END)
    return count
