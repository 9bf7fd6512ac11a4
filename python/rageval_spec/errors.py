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


class UnusablePathError(UsageError):
    """A path that no file can have, or that may not be followed. `path` is what the user wrote."""

    def __init__(self, path: str, reason: str) -> None:
        """`reason` is what the operating system says about the path."""
        super().__init__(f"{shorten(path)!r} cannot be used as a path: {reason}")
        self.path = path


def check_path(path: Path, written: str | None = None) -> None:
    """Check that the operating system can follow a path, whether or not there is anything.

    Raises `UnusablePathError` if a name is too long, links lead in a circle, or a folder may not be read.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:  # a ValueError: a null character, or half of a surrogate pair
        reason = getattr(error, "strerror", None) or str(error)
        raise UnusablePathError(str(path) if written is None else written, reason) from None


def expand_home(path: str | Path) -> Path:
    """The path with `~` expanded. Raises `UnusablePathError` if it is the home of a user who does not exist."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UnusablePathError(str(path), "there is no such user") from None


def describe_os_error(error: OSError) -> str:
    """What the operating system refused, and for which file: `'data/x': Permission denied`."""
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and error.filename is None:
        try:
            Path.cwd()
        except FileNotFoundError:
            return "the current folder no longer exists; change to another one"
    return reason if error.filename is None else f"{shorten(str(error.filename))!r}: {reason}"


def shorten(path: str) -> str:
    """A path as a message shows it: a long one without its middle."""
    return path if len(path) <= _LONGEST_PATH else f"{path[: _LONGEST_PATH // 2]}…{path[-_LONGEST_PATH // 2 :]}"


_LONGEST_PATH = 120


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
    own = [place for place, frame in enumerate(frames) if Path(frame.filename).is_relative_to(package)]
    caller = frames[min(max(own, default=-1) + 1, len(frames) - 1)] if frames else None
    who = "a plugin" if caller is None else f"'{caller.name}' ({Path(caller.filename).name}:{caller.lineno})"
    return f"{who} called sys.exit({ending.code!r}); it must return or raise an exception"


def hide_password(text: str) -> str:
    """The text with `***` in place of the passwords in URLs."""
    import re

    text = re.sub(r"(?<=://)([^/@:\s]*:)[^/\n]*(?=@)", r"\1***", text)
    return re.sub(r"([?&](?:ssl)?password=)[^&\s]*", r"\1***", text)


def describe_fault(url: str, error: Exception) -> str:
    """What a database's driver says, without the password, of which it repeats parts if it cannot read the URL."""
    if url.partition("://")[2].partition("/")[0].count("@") > 1 or any(map(str.isspace, url)):
        return "the URL cannot be read; write '@', ':', '/' and spaces in its password as %40, %3A, %2F and %20"
    return hide_password(" ".join(str(error).split()))
