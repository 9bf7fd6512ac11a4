"""A function that a spec names as `module:function`: its file, what its text shows, and the function itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.functions.modules import find_beside, find_installed, import_module, is_installed
from rageval_spec.functions.workers import ExitCallError
from rageval_spec.plugin import InputFile
from rageval_spec.reading.python_source import find_parameters, list_names
from rageval_spec.wording import make_visible

_MOST_SHOWN = 200
_LONGEST_MESSAGE = 400


def check_name(text: str, example: str) -> str:
    """Return `text` if it has the form `module:function`.

    Raises:
        ValueError: it has another form; the message shows `example`.
    """
    module, colon, name = text.partition(":")
    steps = [*module.split("."), *name.split(".")]
    if not colon or not all(step.isidentifier() for step in steps):
        raise ValueError(f"write 'module:function', for example {example}")
    return text


@dataclass(frozen=True)
class NamedFunction:
    """A function and the place of its name in a spec.

    Attributes:
        name: `module:function`.
        folder: the spec's folder, where the module is looked up first.
        setting: the key that names the function, for messages: `systems.mine.function`.
    """

    name: str
    folder: Path
    setting: str

    @property
    def module(self) -> str:
        """The name of its module."""
        return self.name.partition(":")[0]

    @property
    def path(self) -> str:
        """Its name inside the module; it can have dots."""
        return self.name.partition(":")[2]

    def inputs(self) -> Sequence[InputFile]:
        """The module's file; none for a module without one, such as a built-in."""
        found = find_beside(self.folder, self.module)
        if found is not None:
            return (InputFile(found, ("function",)),)
        if is_installed(self.module):
            origin = find_installed(self.module)
            return () if origin is None else (InputFile(origin, ("function",)),)
        wanted = self.folder / f"{self.module.replace('.', '/')}.py"
        return (InputFile(wanted, ("function",), hint=f"nor is a module {self.module!r} installed"),)

    def explain_absence(self) -> str | None:
        """Why the module's text cannot have the function; None if it can, or if the module is not beside the spec.

        Imports nothing.

        Raises:
            DataError: the file is not valid Python.
        """
        found = find_beside(self.folder, self.module)
        names = None if found is None else list_names(found)
        name = self.path.partition(".")[0]
        if found is None or names is None or name in names:
            return None
        there = [name for name in names if not name.startswith("_")]
        hint = suggest(name, there) or f"it has {', '.join(there)[:_MOST_SHOWN] or 'no functions'}"
        return f"there is no {name!r} in {found.name}; {hint}"

    def find_parameters(self) -> frozenset[str] | None:
        """The names of its keyword arguments, from the module's text; None if they are unknown. Imports nothing.

        Raises:
            DataError: the file is not valid Python.
        """
        found = find_beside(self.folder, self.module)
        return None if found is None else find_parameters(found, self.path)

    def load(self) -> Callable[..., Any]:
        """Import the module and return the function.

        Raises:
            UsageError: the import failed, or the module has no such function.
        """
        try:
            found: Any = import_module(self.folder.resolve(), self.module)
        except (Exception, SystemExit) as error:
            raise self.complain(f"the import of {self.module} failed: {describe_error(self.module, error)}") from error
        for name in self.path.split("."):
            if not hasattr(found, name):
                there = ", ".join(name for name in vars(found) if not name.startswith("_")) or "nothing"
                raise self.complain(f"there is no {self.path!r} in {self.module}; it has {there[:_MOST_SHOWN]}")
            found = getattr(found, name)
        if not callable(found):
            raise self.complain(f"{self.name} is not a function; its type is {type(found).__name__}")
        function: Callable[..., Any] = found
        return function

    def complain(self, message: str) -> UsageError:
        """An error that begins with the key that names the function."""
        return UsageError(f"{self.setting}: {message}")


def describe_error(what: str, error: BaseException) -> str:
    """A sentence about an exception of a user's code: `checks:cites raised KeyError: 'a'`."""
    if isinstance(error, SystemExit):
        error = ExitCallError(error)
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be read)"
    if isinstance(error, ExitCallError):
        return f"{what} {text}"
    kind = type(error).__name__
    return f"{what} raised {kind}" + (f": {make_visible(text)[:_LONGEST_MESSAGE]}" if text else "")
