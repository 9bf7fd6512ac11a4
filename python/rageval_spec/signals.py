"""How a signal ends the program: within a second, whatever the main thread is doing.

Python raises a signal's exception between two steps of the main thread. A blocking call holds that up, because polars
installs a handler of its own for SIGINT, under which the system restarts a wait for a lock, a queue or a socket instead
of interrupting it. So a second thread listens: C's handler writes the number of each signal to its pipe. It wakes the
main thread with another signal, under which nothing is restarted. Where the main thread has not ended the program
within `GRACE` seconds, as in a kernel or in code that catches every exception, the second thread ends it. That loses
nothing: whatever arrived is in the store already.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, main_thread
from types import FrameType
from typing import NoReturn

GRACE = 0.6
"""Seconds that the main thread has to end the program by itself."""
_NUDGE = 0.05
"""Seconds between two attempts to wake the main thread, which may begin to wait just after one."""
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "terminated, because its terminal is gone"}
_ENDING = {getattr(signal, name): words for name, words in _WORDS.items() if hasattr(signal, name)}
_CLEAN_TERMINAL = b"\r\x1b[2K\x1b[?25h"
"""Erases a line of progress and shows the cursor."""
_EXPLANATIONS: list[Callable[[], str]] = []


class Interrupted(KeyboardInterrupt):
    """A signal wants the program to end.

    Attributes:
        number: the signal.
        explanation: what was spent and how to go on; may be empty.
    """

    def __init__(self, number: int = signal.SIGINT, explanation: str = "") -> None:
        """Keep both."""
        super().__init__(explanation)
        self.number = number
        self.explanation = explanation


def exit_code(number: int) -> int:
    """The exit code of a program that a signal ended, as shells count: 130 for Ctrl-C."""
    return 128 + number


ENDED = frozenset(map(exit_code, _ENDING))
"""The exit codes of a program that a signal ended."""


def understand(error: BaseException | None) -> Interrupted:
    """The interrupt behind an exception, such as the `Abort` that click raises in its place; Ctrl-C by default."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__
    return error or Interrupted()


def describe(interrupt: Interrupted) -> str:
    """`interrupted`, and what is to be said of it."""
    words = _ENDING.get(signal.Signals(interrupt.number), "interrupted")
    return f"{words}; {interrupt.explanation}" if interrupt.explanation else words


@contextmanager
def explained(explain: Callable[[], str]) -> Iterator[None]:
    """Where a signal ends the program meanwhile, `explain` says what was spent and how to go on; empty for nothing.

    Raises:
        Interrupted: with the explanation, in the place of any `KeyboardInterrupt`.
    """
    _EXPLANATIONS.append(explain)
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(getattr(error, "number", signal.SIGINT), explain()) from error
    finally:
        _EXPLANATIONS.remove(explain)


def watch(program: str) -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise `Interrupted` in the main thread, and end the program in any case.

    Signals that whoever started the program lets it ignore (`nohup`) stay ignored. Where there are no such signals, as
    on Windows, nothing changes.
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
    """Of no meaning by itself; that it has arrived interrupts the call that the main thread waits in."""


def _watch(reader: int, program: str) -> None:
    while (number := os.read(reader, 1)[0]) not in _ENDING:
        pass
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        signal.pthread_kill(main_thread().ident or 0, signal.SIGURG)
        if select.select([reader], [], [], _NUDGE)[0] and os.read(reader, 1)[0] in _ENDING:
            break  # who asks twice does not want to wait
    _end(number, program)


def _end(number: int, program: str) -> NoReturn:
    with suppress(Exception):
        explanation = _EXPLANATIONS[-1]() if _EXPLANATIONS else ""
        shown = f"{program}: {describe(Interrupted(number, explanation))}\n"
        os.write(2, (_CLEAN_TERMINAL if os.isatty(2) else b"") + shown.encode("utf-8", "backslashreplace"))
    os._exit(exit_code(number))
