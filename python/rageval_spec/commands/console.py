"""A command's output: results on standard output, messages on standard error, one per line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError

PROGRAM = "rageval-spec"
DEBUG = "RAGEVAL_DEBUG"
_RESERVED: list[TextIO] = []


@contextmanager
def reserve_output() -> Iterator[None]:
    """Let only `write` reach standard output, which keeps results parseable.

    Anything else that is printed there, whether by plugins, a user's functions or programs that they start, goes to
    standard error.
    """
    output = sys.stdout
    if output is None:
        yield
        return
    output.flush()
    with _divert(output) as reserved, redirect_stdout(sys.stderr):
        _RESERVED.append(reserved)
        try:
            yield
        finally:
            _RESERVED.remove(reserved)


@contextmanager
def _divert(output: TextIO) -> Iterator[TextIO]:
    """Point standard output, which child processes inherit, to standard error; yield a stream to the old target."""
    try:
        number, target = output.fileno(), sys.stderr.fileno()
        kept = os.dup(number)
    except (OSError, ValueError, AttributeError):  # a stream in memory, or no error stream
        yield output
        return
    os.dup2(target, number)
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as reserved:
            yield reserved
    finally:
        with suppress(OSError):
            os.dup2(kept, number)
        os.close(kept)


def show(text: str) -> None:
    """Write text for people to standard output, with control characters escaped."""
    write(make_visible(text, keep="\n\t"))


def write(content: str | bytes) -> None:
    """Write to standard output. If the reader has gone away, the output is dropped and the exit code stays the same.

    Raises:
        RagevalError: standard output is closed, or the disk behind it is full.
    """
    output = _RESERVED[-1] if _RESERVED else sys.stdout
    if output is None:
        raise RagevalError("standard output is closed")
    try:
        output.flush()
        output.buffer.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
        output.buffer.flush()
    except BrokenPipeError:
        forget(output)
    except OSError as error:
        forget(output)
        raise RagevalError(f"standard output cannot be written: {error.strerror or error}") from error


def write_form(text: str, form: str) -> None:
    """Write JSON unchanged, and other text with its control characters escaped."""
    if form == "json":
        write(text)
    else:
        show(text)


def tell(message: str) -> None:
    """Write a line to standard error, with control characters escaped. A closed stream is not an error."""
    import click

    try:
        click.echo(make_visible(message, keep="\n\t"), err=True)
    except OSError:  # the reader or the terminal is gone
        forget(sys.stderr)


def complain(diagnostics: Iterable[object]) -> None:
    """Write diagnostics to standard error, each with its source line and caret."""
    for diagnostic in diagnostics:
        tell(str(diagnostic))


def report(error: BaseException, message: str) -> None:
    """Write the error that ended a command to standard error, after its traceback if RAGEVAL_DEBUG is set."""
    from rageval_spec.diagnostics import SpecError

    trace(error)
    tell(message if isinstance(error, SpecError) else f"{PROGRAM}: {message}")


def trace(error: BaseException) -> None:
    """Write the traceback to standard error if RAGEVAL_DEBUG is set."""
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        traceback.print_exception(error)


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:  # noqa: ARG001
    """Write a Python warning as one line (replaces `warnings.showwarning`)."""
    tell(f"{PROGRAM}: warning: {message}")


def forget(stream: TextIO) -> None:
    """Discard what is still in the stream's buffer, so that flushing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
