"""Exceptions, each with the exit code that the command line answers with."""

from __future__ import annotations

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
