"""Finds plugins: the file `<section>/<word>.py` of this package first, then entry points.

A plugin module says which class serves its word in a module constant `PLUGIN`. Other distributions add a word with
an entry point in the group `rageval_spec.<section>` whose name is the word and whose object is the class.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Section = Literal["datasets", "systems", "models", "judges", "metrics", "reports", "engines"]
SECTIONS: tuple[Section, ...] = get_args(Section)


@cache
def words(section: Section) -> tuple[str, ...]:
    """All words that `use:` may say in a section, sorted. Imports no plugin."""
    return tuple(sorted({*builtin_words(section), *_entry_points(section)}))


@cache
def builtin_words(section: Section) -> frozenset[str]:
    """The words of this package itself. Imports no plugin and asks no other distribution."""
    folder = Path(__file__).parent / section
    return frozenset(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))


@cache
def load(section: Section, word: str) -> Any:
    """The plugin class of a word.

    Raises:
        UsageError: no such word, or an entry point that does not import.
    """
    if word in builtin_words(section):
        return import_module(f"rageval_spec.{section}.{word}").PLUGIN
    entry = _entry_points(section).get(word)
    if entry is None:
        raise UsageError(f"{section}: no '{word}'; known are {', '.join(words(section))}")
    try:
        return entry.load()
    except Exception as error:
        raise UsageError(f"{section}: the plugin '{word}' ({entry.value}) does not import: {error}") from error


@cache
def _entry_points(section: Section) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=f"rageval_spec.{section}")}
