"""Shows the progress of long work: redrawn in place on a terminal, elsewhere as a plain line every 30 seconds."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import Console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress as Drawing
    from rich.progress import TaskID


PATIENCE = 1.0
"""Seconds of work before progress is first drawn."""
INTERVAL = 30.0
"""Seconds between two lines of output that cannot be redrawn, for example the log of a CI pipeline."""
_INTERVAL_IN_NOTEBOOK = 1.0
"""Seconds between two states of the line in the output of a notebook's cell, each in place of the one before."""
_SURE = 1.0
"""Seconds of work before the remaining time can be estimated."""
_TEXTS = ("description", "fields[count]")


class ProgressDisplay:
    """A context manager that shows on standard error what is being done, how far it is and how long it takes.

    On a terminal it draws one line for each label once the work has lasted a second, and erases the lines at the end;
    `NO_COLOR` turns colours off. In a pipe or on a dumb terminal it writes a plain line every 30 seconds and does not
    import rich. In a notebook it shows one line, which it replaces every second and erases at the end. With
    `quiet` it shows nothing.
    """

    def __init__(self, *, quiet: bool = False, patience: float = PATIENCE, interval: float | None = None) -> None:
        self._enabled = not quiet
        self._draws = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._patience = patience
        self._in_notebook = type(sys.stderr).__module__.partition(".")[0] == "ipykernel"
        usual = _INTERVAL_IN_NOTEBOOK if self._in_notebook else INTERVAL
        self._interval = usual if interval is None else interval
        self._width = 0
        self._counts: dict[str, tuple[int, int | None]] = {}
        self._units: dict[str, str] = {}
        self._starts: dict[str, tuple[float, int]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._drawing: Drawing | None = None
        self._lock = Lock()
        self._timer: Timer | None = None
        self._ended = Event()
        self.describe_spending: Callable[[], str] | None = None
        """Returns what was spent so far, such as `$0.12`; "" for nothing. It is shown beside what costs money."""

    def __enter__(self) -> Self:
        if self._enabled and not self._draws:
            Thread(target=self._report, name="progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        with self._lock:
            self._enabled = False
            self._replace("")
            self._stop()

    def counting(self, label: str, unit: str | None = None) -> Progress:
        """A `Progress` that updates the count of this label. With a unit, for example "texts", the rate is shown."""
        if unit is not None:
            self._units[label] = unit

        def show(done: int, total: int, unit: str | None = None) -> None:
            if unit is not None:
                self._units[label] = unit
            self._update(label, done, total)

        return show

    def announce(self, label: str) -> None:
        """Show a step whose progress cannot be counted; it ends when the next step is announced."""
        if self._enabled:
            with self._lock:
                for other, (_, total) in list(self._counts.items()):
                    if total is None:
                        self._remove(other)
            self._update(label, 0, None)

    @contextmanager
    def showing(self, label: str) -> Iterator[None]:
        """Show a step whose progress cannot be counted, for as long as this context lasts."""
        self._update(label, 0, None)
        try:
            yield
        finally:
            with self._lock:
                self._remove(label)

    def tell(self, message: str) -> None:
        """Write a sentence to standard error that stays visible, unless `quiet`."""
        if not self._enabled:
            return
        message = make_visible(message)
        with self._lock:
            if self._drawing is None:
                self._replace("")
                _write(message)
            else:
                self._drawing.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def _update(self, label: str, done: int, total: int | None) -> None:
        if not self._enabled:
            return
        with self._lock:
            self._counts[label] = (done, total)
            self._starts.setdefault(label, (time.monotonic(), done))
            if self._draws and self._timer is None:
                self._timer = Timer(self._patience, self._start)
                self._timer.daemon = True
                self._timer.start()
            self._draw(label)
            if total is not None and done >= total:
                self._remove(label)

    def _report(self) -> None:
        """Write a line every `interval` seconds, until the end."""
        while not self._ended.wait(self._interval):
            with self._lock:
                line = "; ".join(map(self._describe, self._counts))
                if not self._enabled:
                    return
                if self._in_notebook:
                    self._replace(make_visible(line))
                elif line:
                    _write(line)

    def _replace(self, line: str) -> None:
        """In a notebook, show this line in place of the last one; "" erases that."""
        if self._in_notebook and (line or self._width):
            _write(f"\r{line:<{self._width}}" + ("" if line else "\r"), end="")
            self._width = len(line)

    def _describe(self, label: str) -> str:
        """`minilm: 1,200/5,000 texts, 40/s, 2 min left`, or `read golden: 45 s so far` if nothing can be counted."""
        done, total = self._counts[label]
        so_far = f"{name_seconds(time.monotonic() - self._starts[label][0])} so far"
        return f"{label}: {so_far if total is None else self._count(label, done, total)}"

    def _start(self) -> None:
        from rich.progress import Progress as Drawing
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), *(TextColumn(f"{{task.{name}}}", markup=False) for name in _TEXTS))
        with self._lock:
            if not self._enabled or not self._counts or self._drawing is not None:
                return
            self._drawing = Drawing(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._drawing.start()
            for label in self._counts:
                self._draw(label)

    def _stop(self) -> None:
        """Erase the lines and forget them. What is done next is drawn once it has lasted."""
        if self._timer is not None:
            self._timer.cancel()
        if self._drawing is not None:
            self._drawing.stop()
        self._timer = self._drawing = None
        self._tasks.clear()

    def _draw(self, label: str) -> None:
        if self._drawing is None:
            return
        done, total = self._counts[label]
        if label not in self._tasks:
            self._tasks[label] = self._drawing.add_task(make_visible(label), total=total, count="")
        count = "" if total is None else self._count(label, done, total)
        self._drawing.update(self._tasks[label], completed=done, total=total, count=count)

    def _count(self, label: str, done: int, total: int) -> str:
        """`1,400/5,000 texts, 200/s, 18 s left`; the rate ignores what was already done at the label's first update."""
        unit, (start, first) = self._units.get(label), self._starts[label]
        seconds, moved = time.monotonic() - start, done - first
        texts = [f"{done:,}/{total:,}" + (f" {unit}" if unit else "")]
        if moved > 0 and seconds > 0:
            texts += [f"{moved / seconds:,.0f}/s"] if unit else []
            texts += [f"{name_seconds((total - done) * seconds / moved)} left"] if seconds >= _SURE else []
        texts += [self.describe_spending()] if self.describe_spending is not None else []
        return ", ".join(filter(None, texts))

    def _remove(self, label: str) -> None:
        self._counts.pop(label, None)
        self._starts.pop(label, None)
        task = self._tasks.pop(label, None)
        if self._drawing is not None and task is not None:
            self._drawing.remove_task(task)
        if not self._counts:
            self._stop()


def _write(message: str, end: str = "\n") -> None:
    """Write to standard error, even if it is closed."""
    with suppress(OSError, ValueError, AttributeError):
        print(message, end=end, file=sys.stderr, flush=True)


def name_seconds(seconds: float) -> str:
    """`45 s`, `12 min` or `2 h 5 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Progress(Protocol):
    """Called while something long runs. It draws on a terminal; in a pipe it writes a line now and then."""

    def __call__(self, done: int, total: int, unit: str | None = None) -> None:
        """Show that `done` of `total` are done.

        `unit` names what is counted, such as "pairs", if it is not what the plugin usually counts.
        """


def ignore_progress(done: int, total: int, unit: str | None = None) -> None:
    pass
