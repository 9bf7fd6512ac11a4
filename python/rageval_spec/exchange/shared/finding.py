"""Finds the tools of exchange: the files of `exchange/`, and entry points in the group `rageval_spec.exchange`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from rageval_spec.exchange.shared.source import Source
    from rageval_spec.exchange.shared.target import Exporter

GROUP = "rageval_spec.exchange"


class Tool(NamedTuple):
    """What a tool's module offers; None for what it does not."""

    word: str
    source: type[Source[Any]] | None
    target: type[Exporter[Any]] | None


@cache
def words() -> tuple[str, ...]:
    """The words of all tools, sorted. Imports none of them."""
    folder = Path(__file__).parent.parent
    own = {file.stem for file in folder.iterdir() if _is_tool(file)}
    return tuple(sorted(own | {entry.name for entry in entry_points(group=GROUP)}))


def _is_tool(file: Path) -> bool:
    if file.name == "shared" or file.name.startswith("_"):
        return False
    return file.suffix == ".py" or (file / "__init__.py").is_file()


@cache
def load(word: str) -> Tool:
    """The tool of a word.

    Raises:
        UsageError: there is no such tool, or its module has neither a source nor a target.
    """
    if word not in words():
        hint = suggest(word, words()) or f"the tools are {', '.join(words())}"
        raise UsageError(f"there is no tool '{word}'; {hint}")
    found = Tool(word, *(getattr(_import(word), name, None) for name in ("SOURCE", "TARGET")))
    if found.source is None and found.target is None:
        raise UsageError(f"the module of the tool '{word}' has neither SOURCE nor TARGET")
    return found


def _import(word: str) -> ModuleType:
    folder = Path(__file__).parent.parent
    if any((folder / name).exists() for name in (f"{word}.py", f"{word}/__init__.py")):
        return import_module(f"rageval_spec.exchange.{word}")
    (entry,) = entry_points(group=GROUP, name=word)
    module: ModuleType = entry.load()
    return module
