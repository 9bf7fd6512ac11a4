"""Finds column names in a spec that its files do not have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.reading.json_lines import is_list, json_objects
from rageval_spec.reading.recognition import ForeignFileError
from rageval_spec.reading.rows import RowFormat, first_keys

LONGEST_READ = 2**20
"""The most bytes of a JSON file that is read in full to find its keys: any row may add a new key."""
_MOST_SHOWN = 12


def list_columns(
    path: Path,
    form: RowFormat,
    unwrap: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    separator: str | None = None,
) -> Sequence[str] | None:
    """The names of all columns; None if that would take long, or if the file is missing or cannot be read.

    Raises:
        ForeignFileError: the file is in another format.
    """
    try:
        if not path.is_file():
            return None
        if form != "json":
            return first_keys(path, form, separator)
        if path.stat().st_size > LONGEST_READ:
            if not is_list(path):
                next(json_objects(path))
            return None
        return list(dict.fromkeys(name for _, row in json_objects(path) for name in unwrap(row)))
    except ForeignFileError:
        raise
    except (DataError, OSError):
        return None


def find_absent(
    setting: tuple[str, ...], columns: BaseModel, present: Sequence[str] | None, file: str
) -> Iterator[FileFault]:
    """Find the names in a `columns:` block that a file does not have.

    Args:
        setting: the keys that lead to the block in its node.
        present: the names of the file's columns; None if unknown.
    """
    if present is None:
        return
    for part in type(columns).model_fields:
        name = getattr(columns, part)
        if isinstance(name, str) and name not in present:
            what = "nothing at" if name.startswith("$") else "no column"
            yield FileFault((*setting, part), f"{file} has {what} {name!r}", _list_nearest(name, present))


def refuse_absent(path: Path, names: Mapping[str, str | None], present: Collection[str], key: str, told: str) -> None:
    """Refuse all names in a `columns:` block that no row has; `told` is added to the message.

    Raises:
        DataError: no row has one of the names.
    """
    absent = {part: name for part, name in names.items() if name is not None and name not in present}
    if absent:
        wrong = ", ".join(f"'{key}.{part}'" for part in absent)
        raise DataError(f"{path}: no row has {' or '.join(map(repr, absent.values()))}{told}; correct {wrong}")


def _list_nearest(name: str, present: Sequence[str]) -> str:
    from difflib import SequenceMatcher

    def unlikeness(other: str) -> float:
        return -SequenceMatcher(None, name.lower(), other.lower()).ratio()

    if not present:
        return "the file has no columns"
    if len(present) == 1:
        return f"the only column is {present[0]!r}"
    shown = ", ".join(map(repr, sorted(present, key=unlikeness)[:_MOST_SHOWN]))
    return f"the columns are {shown}{', ...' if len(present) > _MOST_SHOWN else ''}"
