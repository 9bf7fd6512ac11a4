"""Shows on a terminal how far something long has come; silent in a pipe and for anything under a second."""

from __future__ import annotations

import os
import sys
import time
from threading import Lock, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Drawing
    from rich.progress import TaskID

    from rageval_spec.plugin import Progress

PATIENCE = 1.0
"""Seconds of work that nobody needs to hear of."""
_TEXTS = ("description", "fields[count]")


class ProgressDisplay:
    """A context manager that draws a line for each label on the error stream, from one second on.

    Nothing is drawn, and rich is not even imported, where `quiet` is true, the error stream is no terminal, or the
    terminal is dumb. `NO_COLOR` gives lines without colour.
    """

    def __init__(self, *, quiet: bool = False, patience: float = PATIENCE) -> None:
        """Draw nothing yet."""
        self._enabled = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._patience = patience
        self._quiet = quiet
        self._counts: dict[str, tuple[int, int | None]] = {}
        self._units: dict[str, str] = {}
        self._starts: dict[str, tuple[float, int]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._drawing: Drawing | None = None
        self._lock = Lock()
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        """Start to count the seconds."""
        if self._enabled:
            self._timer = Timer(self._patience, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the lines away."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._enabled = False
            if self._drawing is not None:
                self._drawing.stop()
                self._drawing = None

    def counting(self, label: str, unit: str | None = None) -> Progress:
        """A `Progress` that moves the count of this label; with a unit, such as "texts", their rate is shown too."""
        if unit is not None:
            self._units[label] = unit

        def show(done: int, total: int) -> None:
            self._update(label, done, total)

        return show

    def announce(self, label: str) -> None:
        """Say what is being done where nothing can be counted; it is over when the next thing is announced."""
        if self._enabled:
            with self._lock:
                for other, (_, total) in list(self._counts.items()):
                    if total is None:
                        self._remove(other)
            self._update(label, 0, None)

    def tell(self, message: str) -> None:
        """Write a sentence to the error stream that stays there, unless `quiet`."""
        if self._quiet:
            return
        with self._lock:
            if self._drawing is None:
                print(message, file=sys.stderr, flush=True)
            else:
                self._drawing.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _update(self, label: str, done: int, total: int | None) -> None:
        if not self._enabled:
            return
        with self._lock:
            self._counts[label] = (done, total)
            self._starts.setdefault(label, (time.monotonic(), done))
            self._draw(label)
            if total is not None and done >= total:
                self._remove(label)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Drawing
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), *(TextColumn(f"{{task.{name}}}", markup=False) for name in _TEXTS))
        with self._lock:
            if not self._enabled:
                return
            self._drawing = Drawing(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._drawing.start()
            for label in self._counts:
                self._draw(label)

    def _draw(self, label: str) -> None:
        if self._drawing is None:
            return
        done, total = self._counts[label]
        if label not in self._tasks:
            self._tasks[label] = self._drawing.add_task(label, total=total, count="")
        count = "" if total is None else f"{done}/{total}{self._rate(label, done)}"
        self._drawing.update(self._tasks[label], completed=done, total=total, count=count)

    def _rate(self, label: str, done: int) -> str:
        """` texts, 210/s`: what came since the label first moved, because what came before took no time."""
        unit, (start, first) = self._units.get(label), self._starts[label]
        seconds = time.monotonic() - start
        if unit is None:
            return ""
        return f" {unit}" if done == first or seconds <= 0 else f" {unit}, {(done - first) / seconds:,.0f}/s"

    def _remove(self, label: str) -> None:
        self._counts.pop(label, None)
        self._starts.pop(label, None)
        task = self._tasks.pop(label, None)
        if self._drawing is not None and task is not None:
            self._drawing.remove_task(task)
