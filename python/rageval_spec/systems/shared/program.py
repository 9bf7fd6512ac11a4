"""Starts, reads and ends a program that reads questions and writes answers, line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import IO

from rageval_spec.diagnostics import make_visible
from rageval_spec.systems.shared.process_guard import GUARD
from rageval_spec.systems.shared.question_templates import AskError, Variables

_LINES_KEPT, _SHOWN = 20, 300
_LONGEST_LINE = 16 * 2**20
"""The most bytes in an answer."""
_LONGEST_ERROR = 2**16
_LINES_AHEAD = 16
"""Lines to read ahead. A program that writes more is blocked until they are used, as with any pipe."""
_PATIENCE = 5.0
"""Seconds that a program has to exit on its own after its input is closed."""
_LONGEST_PATIENCE = 30.0
_MOMENT = 0.2
"""Seconds to wait for operations that are instant unless a pipe is blocked."""
_GRACE = 1.0
"""Seconds to wait for the exit code of a program that has closed its output."""


class Program:
    """A running program in its own process group, with one thread to read each of its output streams.

    Attributes:
        unnamed: what it got for queries whose answers do not name their query.
    """

    def __init__(self, command: str | list[str], folder: Path, *, shell: bool) -> None:
        """Start the program in a folder."""
        program = command
        if isinstance(command, list) and is_path(command[0]):
            # Relative to the spec's folder, not to the working directory of this process.
            program = [str((folder / command[0]).absolute()), *command[1:]]
        GUARD.prepare()
        self._popen = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            shell=shell,
            start_new_session=True,
        )
        GUARD.add(self._popen.pid)
        self.unnamed: list[Variables] = []
        self._has_answered = self._has_ended = False
        self._slowest = 0.0
        self._is_dropped = Event()
        self._lines: Queue[bytes | None] = Queue(_LINES_AHEAD)
        self._errors: deque[bytes] = deque(maxlen=_LINES_KEPT)
        self._threads = [
            Thread(target=_read_lines, args=arguments, daemon=True)
            for arguments in (
                (self._popen.stdout, self._put_line, _LONGEST_LINE),
                (self._popen.stderr, self._put_error, _LONGEST_ERROR),
            )
        ]
        for thread in self._threads:
            thread.start()

    @property
    def runs(self) -> bool:
        return self._popen.poll() is None and not self._has_ended

    def take_unasked(self) -> bytes | None:
        """A line that the program has written since its last answer; None if there is none."""
        with suppress(Empty):
            while (line := self._lines.get_nowait()) is not None:
                if line.strip():
                    return line
            self._has_ended = True
        return None

    def ask(self, line: bytes, deadline: float, timeout: float, *, ends: bool) -> bytes:
        """Send a line and return the program's first line that is not blank; `AskError` if there is none."""
        start = time.monotonic()
        writer = Thread(target=self._write, args=(line, ends), daemon=True)
        writer.start()  # in a thread: a program that does not read must not block the timeout
        while True:
            try:
                reply = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                message = f"the program gave no answer within {timeout:g} s and was ended"
                if not ends and not self._has_answered:
                    message += (
                        "; it must flush its output after each line; if it reads all questions first, write "
                        "'per: query'"
                    )
                raise AskError(message + self._tail()) from None
            if reply is None:
                raise AskError(self._describe_end())
            if len(reply) >= _LONGEST_LINE:
                raise AskError(
                    f"the program wrote a line of more than {_LONGEST_LINE // 2**20} MiB; an answer must be one line "
                    "of JSON, ended by a line break"
                )
            if reply.strip():
                self._has_answered = True
                self._slowest = max(self._slowest, time.monotonic() - start)
                return reply

    def end(self) -> Sequence[bytes]:
        """Let the program exit on its own, or kill it if it does not. Returns the lines that it still wrote.

        A program that lags behind may still write answers, so it gets time according to its slowest answer.
        """
        self._close_input()
        patience = min(max(_PATIENCE, 2 * self._slowest), _LONGEST_PATIENCE)
        lines = list(self._drain(time.monotonic() + patience))
        self.kill()
        return lines

    def _drain(self, deadline: float) -> Iterator[bytes]:
        while time.monotonic() < deadline and not self._has_ended:
            has_exited = self._popen.poll() is not None
            try:
                line = self._lines.get(timeout=_MOMENT)
            except Empty:
                if has_exited:  # only its child processes still hold the output
                    return
                continue
            if line is None:
                self._has_ended = True
            elif line.strip():
                yield line
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """Kill the program at once, with all processes that it started."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._popen.pid, signal.SIGKILL)
            else:
                self._popen.kill()
        self._popen.wait()
        self._is_dropped.set()
        GUARD.remove(self._popen.pid)
        # A process that it started in a separate session may still hold the pipes. Do not wait for it.
        self._close_input()

    def _close_input(self) -> None:
        """Close the input in a thread, because a thread that is still writing may hold the stream."""
        closer = Thread(target=self._close, daemon=True)
        closer.start()
        closer.join(_MOMENT)

    def _close(self) -> None:
        with suppress(OSError, ValueError):
            assert self._popen.stdin is not None, "it is a pipe"
            self._popen.stdin.close()

    def _write(self, line: bytes, ends: bool) -> None:
        with suppress(OSError, ValueError):  # the end of the program is noticed on its output
            assert self._popen.stdin is not None, "it is a pipe"
            self._popen.stdin.write(line)
            self._popen.stdin.flush()
            if ends:
                self._popen.stdin.close()

    def _put_line(self, line: bytes | None) -> None:
        while not self._is_dropped.is_set():
            with suppress(Full):
                self._lines.put(line, timeout=_MOMENT)
                return
        with suppress(Empty):
            while True:
                self._lines.get_nowait()
        self._lines.put(None)  # wakes a reader that would otherwise wait for ever

    def _put_error(self, line: bytes | None) -> None:
        if line is not None and line.strip():
            self._errors.append(line)

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_GRACE)
        code = self._popen.poll()
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        hint = "; if it answers only one question, write 'per: query'" if self._has_answered else ""
        return f"the program {how} before it answered{hint}{self._tail()}"

    def _tail(self) -> str:
        """The end of the program's error stream, ready to append to a message."""
        if self._popen.poll() is not None:
            self._threads[1].join(_GRACE)
        text = " | ".join(line.decode("utf-8", "replace").strip() for line in list(self._errors))
        return f": {make_visible(text)[-_SHOWN:]}" if text else ""


def _read_lines(stream: IO[bytes] | None, put: Callable[[bytes | None], None], longest: int) -> None:
    """Pass on each line, then close the stream, which no other thread can do while it is being read."""
    with suppress(OSError, ValueError):
        while stream is not None and (line := stream.readline(longest)):
            put(line)
    put(None)
    with suppress(OSError):
        if stream is not None:
            stream.close()


def is_path(word: str) -> bool:
    """Whether a program is given as a path, such as `./rag`, instead of being looked up on the PATH."""
    return len(Path(word).parts) > 1 or "/" in word or os.sep in word
