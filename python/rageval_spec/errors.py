"""Exceptions, each with the exit code that the command line returns for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

PASSED, GATE_FAILED, SPEC_WRONG, BROKEN, NOTHING_SCORED = 0, 1, 2, 3, 4


class RagevalError(Exception):
    """An evaluation could not continue. The message says where and what to do."""

    exit_code: ClassVar[int] = BROKEN


class DataError(RagevalError):
    """A file or table exists but cannot be used; the message names the file and, where known, the line."""


class UsageError(RagevalError, ValueError):
    """An argument of a public function or of the command line is wrong."""

    exit_code = SPEC_WRONG


class RagevalWarning(UserWarning):
    """Something that a user should know while an evaluation is running; the command line always shows it."""


class StoreWarning(RagevalWarning):
    """Something in the store is damaged and will be computed again, or could not be stored."""


class ModelWarning(RagevalWarning):
    """A model is about to be used for something that it does not support well."""


class NothingScoredError(RagevalError):
    """No metric gave a value for any query."""

    exit_code = NOTHING_SCORED


@contextmanager
def no_exit() -> Iterator[None]:
    """A context manager for calls to plugins: `sys.exit` inside it does not end the program.

    Raises:
        RagevalError: the plugin called `sys.exit`; the message names the function.
    """
    try:
        yield
    except SystemExit as ending:
        raise RagevalError(explain_exit(ending)) from ending


def explain_exit(ending: SystemExit) -> str:
    """A sentence that names the function, of a plugin or a user, that called `sys.exit`."""
    import traceback

    package = Path(__file__).parent
    frames = traceback.extract_tb(ending.__traceback__)
    last = max(
        (place for place, frame in enumerate(frames) if Path(frame.filename).is_relative_to(package)), default=-1
    )
    caller = frames[min(last + 1, len(frames) - 1)] if frames else None
    who = "a plugin" if caller is None else f"'{caller.name}' ({Path(caller.filename).name}:{caller.lineno})"
    return f"{who} called sys.exit({ending.code!r}); it must return or raise an exception"
