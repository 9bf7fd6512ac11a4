"""Ends programs whose parent is gone, however it went: a killed process ends nothing that it has started.

The guard is a small process of its own. It is told the process groups that run, a line each, through a pipe whose
other end only the parent has. When the pipe closes, the parent is gone, and the guard kills the groups that are left.
This file is what it runs, so it imports nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from threading import Lock


class Guard:
    """Starts the process when there is something to guard. Safe to use from several threads.

    There is none where the system has no process groups, as on Windows.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pipe: int | None = None
        self._lock = Lock()

    def prepare(self) -> None:
        """Be there before a program is started: it is unguarded only until the next line is written."""
        with self._lock, suppress(OSError):
            if self._pipe is None and hasattr(os, "killpg") and sys.executable:
                self._pipe = _start()

    def add(self, group: int) -> None:
        """Kill this process group when the parent is gone."""
        self._write(f"+{group}\n")

    def remove(self, group: int) -> None:
        """Leave it alone: it has ended, and another one may get its number."""
        self._write(f"-{group}\n")

    def _write(self, line: str) -> None:
        with self._lock, suppress(OSError):
            if self._pipe is not None:
                os.write(self._pipe, line.encode("ascii"))


def _start() -> int:
    """Start the process, in a group of its own, so that a terminal's Ctrl-C does not end it; our end of its pipe."""
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
"""That of this process."""


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
