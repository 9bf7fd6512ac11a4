"""Claims on questions: processes that share a store wait for each other's calls, so that each question is asked once.

A claim is a lock on one byte of a file that stays empty; the position of the byte is a hash of the question. The
operating system frees the locks of a process when it ends for any reason, so a killed process blocks no other one and
claims need not expire.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock

FILE = "calls.lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)


class Claims:
    """The claims of this process. If the file cannot be locked, every claim is granted.

    Claims do not exclude the threads of one process from each other; those share their questions in memory.
    """

    def __init__(self, folder: Path, prepare: Callable[[], object]) -> None:
        """`prepare` creates the folder; it is called at the first claim."""
        self._path = folder / FILE
        self._prepare = prepare
        self._file: int | None = None
        self._lock = Lock()

    def claim(self, model: str, question: bytes) -> bool:
        """Whether this process can ask a question now; False while another process is asking it."""
        try:
            import fcntl

            file = self._open() if self._file is None else self._file
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(model, question))
        except OSError as error:
            return error.errno not in _TAKEN
        except ImportError:
            return True
        return True

    def release(self, model: str, question: bytes) -> None:
        """Let other processes ask the question, which was answered or failed."""
        if self._file is None:
            return
        import fcntl

        try:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(model, question))
        except OSError:
            return

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _open(self) -> int:
        with self._lock:
            if self._file is None:
                self._prepare()
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            return self._file


def _place(model: str, question: bytes) -> int:
    return (int.from_bytes(hashlib.sha256(question).digest()[:8], "big") ^ _hash_model(model)) >> 2


@cache
def _hash_model(model: str) -> int:
    return int.from_bytes(hashlib.sha256(model.encode()).digest()[:8], "big")
