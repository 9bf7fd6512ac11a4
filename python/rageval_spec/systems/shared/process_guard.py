"""Kills programs whose parent has ended for any reason: a killed process does not end the programs that it started.

The guard is a small separate process. It learns which process groups are running, one per line, through a pipe whose
other end only the parent holds. When the pipe closes, the parent has ended, and the guard kills the remaining groups.
The guard runs this file, so it imports only the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from threading import Lock


class Guard:
    """Starts the guard process when there is something to guard. Thread-safe.

    Does nothing on systems without process groups, such as Windows.
    """

    def __init__(self) -> None:
        """Start no process yet."""
        self._pipe: int | None = None
        self._lock = Lock()

    def prepare(self) -> None:
        """Start the guard before a program, which is then unguarded only until `add`."""
        with self._lock, suppress(OSError):
            if self._pipe is None and hasattr(os, "killpg") and sys.executable:
                self._pipe = _start()

    def add(self, group: int) -> None:
        """Kill this process group when the parent ends."""
        self._write(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Stop guarding a group that has ended: a new group may get its number."""
        self._write(f"-{group}\n")

    def _write(self, line: str) -> None:
        with self._lock, suppress(OSError):
            if self._pipe is not None:
                os.write(self._pipe, line.encode("ascii"))


def _start() -> int:
    """Start the process in its own group, so that Ctrl-C does not end it. Returns our end of its pipe."""
    reader, writer = os.pipe()
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", __file__],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
    except OSError:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    return writer


GUARD = Guard()
"""The guard of this process."""


def _watch() -> None:
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        sign, group = line[:1], int(line[1:])
        if sign == b"+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _watch()
