"""Exceptions, each with the exit code that the command line answers with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

PASSED, GATE_FAILED, SPEC_WRONG, BROKEN, NOTHING_SCORED = 0, 1, 2, 3, 4


class RagevalError(Exception):
    """An evaluation could not go on. The message says where and what to do."""

    exit_code: ClassVar[int] = BROKEN


class DataError(RagevalError):
    """A file or table that was named is there but cannot be used; the message carries `file:line`."""


class UsageError(RagevalError, ValueError):
    """An argument of a public function or of the command line is wrong."""

    exit_code = SPEC_WRONG


class RagevalWarning(UserWarning):
    """Something that a user should know while an evaluation goes on; the command line always shows it."""


class StoreWarning(RagevalWarning):
    """Something in the store is damaged and is computed again."""


class ModelWarning(RagevalWarning):
    """A model is about to be asked for something that it was not made for."""


class NothingScoredError(RagevalError):
    """No metric gave a value for any query."""

    exit_code = NOTHING_SCORED


@contextmanager
def no_exit() -> Iterator[None]:
    """Around a call of a plugin: `sys.exit` in there does not end the program.

    Raises:
        RagevalError: it was called; the message names the function.
    """
    try:
        yield
    except SystemExit as ending:
        raise RagevalError(explain_exit(ending)) from ending


def explain_exit(ending: SystemExit) -> str:
    """Which function of a plugin, or of a user, called `sys.exit`."""
    import traceback

    package = Path(__file__).parent
    frames = traceback.extract_tb(ending.__traceback__)
    last = max(
        (place for place, frame in enumerate(frames) if Path(frame.filename).is_relative_to(package)), default=-1
    )
    caller = frames[min(last + 1, len(frames) - 1)] if frames else None
    who = "a plugin" if caller is None else f"'{caller.name}' ({Path(caller.filename).name}:{caller.lineno})"
    return f"{who} called sys.exit({ending.code!r}); it must return or raise an exception"
