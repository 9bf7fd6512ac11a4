"""Finds the plugin of a word: the file `<section>/<word>.py` of this package, its tool of exchange, or an entry point.

The module constant `PLUGIN` of such a file is the plugin class. Another distribution adds a word with an entry point
in the group `rageval_spec.<section>`, whose name is the word and whose value is the class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rageval_spec.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Section = Literal["datasets", "systems", "models", "judges", "labels", "metrics", "reports", "engines", "notifiers"]
SECTIONS: tuple[Section, ...] = get_args(Section)
_KINDS: Mapping[Section, str] = {section: section.removesuffix("s").capitalize() for section in SECTIONS} | {
    "labels": "Labels"
}
"""The name of each section's contract class in `rageval_spec.plugin`."""


_TOOL_FILES: Mapping[Section, str] = {"datasets": "source.py", "systems": "source.py", "reports": "target.py"}
"""The file with which the folder of a tool in `exchange/` gives its word to a section."""


def name_one(section: str) -> str:
    """What messages call one block of a section: `dataset`, `source of labels`."""
    return "source of labels" if section == "labels" else section.removesuffix("s")


@cache
def words(section: Section) -> tuple[str, ...]:
    """All words that `use:` accepts in a section, sorted. Imports no plugin."""
    return tuple(sorted({*builtin_words(section), *_entry_points(section)}))


@cache
def builtin_words(section: Section) -> frozenset[str]:
    """The words that this package itself provides. Imports no plugin and reads no entry points."""
    folder = Path(__file__).parent / section
    return _tool_words(section) | {file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")}


def has_word(section: Section, word: str) -> bool:
    """Whether `use:` accepts a word. Reads entry points, which takes long, only if this package has no such word."""
    return word in builtin_words(section) or word in words(section)


@cache
def _tool_words(section: Section) -> frozenset[str]:
    if section not in _TOOL_FILES:
        return frozenset()
    tools = (Path(__file__).parent / "exchange").glob(f"*/{_TOOL_FILES[section]}")
    return frozenset(file.parent.name for file in tools)


@cache
def load(section: Section, word: str) -> Any:
    """The plugin class of a word.

    Raises `UsageError` if there is no such word, or its plugin cannot be imported or is not a plugin of this section.
    The message names the file or the distribution and says what to write there.
    """
    if word in _tool_words(section):
        return import_module("rageval_spec.exchange.shared.contracts").make_plugin(section, word)
    if word in builtin_words(section):
        module = import_module(f"rageval_spec.{section}.{word}")
        return _check(section, getattr(module, "PLUGIN", None), f"{section}/{word}.py", "PLUGIN")
    entry = _entry_points(section).get(word)
    if entry is None:
        raise UsageError(f"{section}: no '{word}'; the known words are {', '.join(words(section))}")
    return _check(section, _import(section, entry), _describe(section, entry), f"'{entry.value}'")


def _import(section: Section, entry: EntryPoint) -> Any:
    if not re.fullmatch(r"[\w.]+\s*:\s*[\w.]+", entry.value):
        example = (
            f'[project.entry-points."rageval_spec.{section}"] {entry.name} = "package.module:{_KINDS[section]}Class"'
        )
        raise UsageError(f"{_describe(section, entry)}: '{entry.value}' does not name a class; write {example}")
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        message = f"{_describe(section, entry)} ('{entry.value}') cannot be imported: {type(error).__name__}: {error}"
        raise UsageError(message) from error


def _check(section: Section, plugin: Any, where: str, name: str) -> Any:
    """Return the plugin if it is a complete subclass of the section's contract, else raise `UsageError`."""
    kind = f"rageval_spec.plugin.{_KINDS[section]}"
    if not isinstance(plugin, type):
        found = "None" if plugin is None else f"of type {type(plugin).__name__}"
        raise UsageError(f"{where}: {name} is {found}, not a class; name a subclass of {kind}")
    contracts = [base for base in plugin.__mro__ if base.__module__.startswith("rageval_spec.plugin.")]
    if _KINDS[section] not in [base.__name__ for base in contracts]:
        raise UsageError(f"{where}: {plugin.__name__} is not a subclass of {kind}")
    missing = sorted(getattr(plugin, "__abstractmethods__", ()))
    missing += ["info"] if section == "metrics" and not hasattr(plugin, "info") else []
    if missing:
        raise UsageError(f"{where}: {plugin.__name__} must define {', '.join(missing)}")
    return plugin


def _describe(section: Section, entry: EntryPoint) -> str:
    """`metrics: the plugin 'tone' of acme-metrics 1.2`."""
    dist = getattr(entry, "dist", None)
    return f"{section}: the plugin '{entry.name}'" + (f" of {dist.name} {dist.version}" if dist is not None else "")


@cache
def _entry_points(section: Section) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=f"rageval_spec.{section}")}
