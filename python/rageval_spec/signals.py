"""Ends the program within a second of a signal, whatever the main thread is doing.

Python raises a signal's exception between two steps of the main thread. A blocking call can delay this without limit:
polars installs its own handler for SIGINT, and under that handler the system restarts a wait for a lock, a queue or a
socket instead of interrupting it. Therefore a second thread listens. Python's handler in C writes the number of each
signal to a pipe; the thread reads it and wakes the main thread with another signal (SIGURG), which does not restart
waits. If the main thread has not ended the program after `GRACE` seconds, for example in a kernel or in code that
catches every exception, the second thread ends it. Nothing is lost, because replies are stored as they arrive.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import NoReturn

GRACE = 0.6
"""Seconds that the main thread has to end the program itself."""
_NUDGE = 0.05
"""Seconds between attempts to wake the main thread, which can start a new wait just after an attempt."""
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated, because its terminal is gone"}
_ENDING = {getattr(signal, name): words for name, words in _WORDS.items() if hasattr(signal, name)}
_CLEAN_TERMINAL = b"\r\x1b[2K\x1b[?25h"
"""Erases the progress line and shows the cursor again."""
_EXPLANATIONS: list[Callable[[], str]] = []


class Interrupted(KeyboardInterrupt):
    """A signal asks the program to end.

    Attributes:
        number: the number of the signal.
        explanation: what was spent and how to continue; can be empty.
    """

    def __init__(self, number: int = signal.SIGINT, explanation: str = "") -> None:
        """The signal is SIGINT (Ctrl-C) by default, and there is no explanation."""
        super().__init__(explanation)
        self.number = number
        self.explanation = explanation


def exit_code(number: int) -> int:
    """The exit code that shells give to a program ended by signal `number`: 130 for Ctrl-C."""
    return 128 + number


ENDED = frozenset(map(exit_code, _ENDING))
"""The exit codes of programs that one of these signals ended."""


def understand(error: BaseException | None) -> Interrupted:
    """The interrupt that caused an exception, for example the `Abort` that click raises; Ctrl-C if there is none."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__
    return error or Interrupted()


def describe(interrupt: Interrupted) -> str:
    """A sentence for the user: `interrupted`, followed by the explanation, if there is one."""
    words = _ENDING.get(signal.Signals(interrupt.number), "interrupted")
    return f"{words}; {interrupt.explanation}" if interrupt.explanation else words


@contextmanager
def explained(explain: Callable[[], str]) -> Iterator[None]:
    """If a signal ends the program inside this context, tell the user what `explain` returns.

    `explain` says what was spent and how to continue; it returns "" if there is nothing to say.

    Raises:
        Interrupted: with the explanation, in place of any `KeyboardInterrupt`.
    """
    _EXPLANATIONS.append(explain)
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(getattr(error, "number", signal.SIGINT), explain()) from error
    finally:
        _EXPLANATIONS.remove(explain)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """The first signal inside this context calls `stop` instead of ending the program; the next one ends it.

    `stop` runs in the main thread between two of its steps, so it should only set a flag. Outside the main thread, and
    on systems without these signals, this does nothing.
    """
    if os.name != "posix" or current_thread() is not main_thread():
        yield
        return
    descriptor = signal.set_wakeup_fd(-1)
    handlers = {number: signal.getsignal(number) for number in _ENDING}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)

    def take(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as Python calls handlers
        restore()
        stop()

    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, take)
    try:
        yield
    finally:
        restore()


def watch(program: str) -> None:
    """From now on, SIGINT, SIGTERM and SIGHUP raise `Interrupted` in the main thread and always end the program.

    A signal that the program was started to ignore (by `nohup`, for example) stays ignored. On systems without these
    signals, for example Windows, this does nothing. `program` is the name that the last message begins with.
    """
    if os.name != "posix":
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGURG, _ignore)
    Thread(target=_watch, args=(reader, program), name="signals", daemon=True).start()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as Python calls handlers
    raise Interrupted(number)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Does nothing: the arrival of the signal already interrupts the call in which the main thread waits."""


def _watch(reader: int, program: str) -> None:
    while (number := os.read(reader, 1)[0]) not in _ENDING:
        pass
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGURG)
        if select.select([reader], [], [], _NUDGE)[0] and os.read(reader, 1)[0] in _ENDING:
            break  # a second signal: the user does not want to wait
    _end(number, program)


def _end(number: int, program: str) -> NoReturn:
    with suppress(Exception):
        explanation = _EXPLANATIONS[-1]() if _EXPLANATIONS else ""
        shown = f"{program}: {describe(Interrupted(number, explanation))}\n"
        os.write(2, (_CLEAN_TERMINAL if os.isatty(2) else b"") + shown.encode("utf-8", "backslashreplace"))
    os._exit(exit_code(number))
