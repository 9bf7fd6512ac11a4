"""A terminal of its own for a program, which a test reads and types into; Windows has none."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_PATIENCE = 30.0


@dataclass
class Terminal:
    """A program in a terminal, and all that it wrote there."""

    process: subprocess.Popen[bytes]
    keyboard: int
    screen: str = ""

    def wait_for(self, text: str) -> None:
        """Read until the text is on the screen since the last call."""
        seen = ""
        end = time.monotonic() + _PATIENCE
        while text not in seen:
            assert time.monotonic() < end, f"{text!r} did not come; the screen has {self.screen!r}"
            seen += self._read()
            assert text in seen or self.process.poll() is None or self._has_more(), self.screen
        assert text in seen

    def type(self, text: str) -> None:
        """Type keys: `\\n` is the return key, `\\x03` Ctrl-C, `\\x04` the end of the input."""
        os.write(self.keyboard, text.encode())

    def finish(self) -> int:
        """Read until the program ends; its exit code."""
        end = time.monotonic() + _PATIENCE
        while self.process.poll() is None or self._has_more():
            assert time.monotonic() < end, self.screen
            self._read()
        return self.process.wait()

    def _has_more(self) -> bool:
        return bool(select.select([self.keyboard], [], [], 0)[0]) and bool(self._read())

    def _read(self) -> str:
        if not select.select([self.keyboard], [], [], 0.1)[0]:
            return ""
        with suppress(OSError):  # Linux says so when the program has ended
            read = os.read(self.keyboard, 4096).decode("utf-8", "replace")
            self.screen += read
            return read
        return ""


@contextmanager
def open_terminal(
    *arguments: str, folder: Path, columns: int = 80, output: Path | None = None, **environment: str
) -> Iterator[Terminal]:
    """The product with these arguments in a terminal; standard output goes to a file instead if one is named."""
    pty = pytest.importorskip("pty")
    import fcntl
    import struct
    import termios

    keyboard, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [sys.executable, "-m", "rageval_spec", *arguments]
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS", "DISPLAY")}
    target = other if output is None else os.open(output, os.O_WRONLY | os.O_CREAT)
    process = subprocess.Popen(
        command, stdin=other, stdout=target, stderr=other, cwd=folder, start_new_session=True,
        env={**kept, "TERM": "xterm", **environment}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(other)
    try:
        yield Terminal(process, keyboard)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)


def remove_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
