"""Notes as a reader needs them: warnings first, and what is true of several metrics, systems or datasets said once.

The JSON report has every note by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rageval_spec.data.evaluation import Evaluation, Note, NoteLevel

_FEWEST_ALIKE = 4
"""So many notes that differ in their numbers alone are said as one."""
_NAMES_SHOWN = 5

_Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class SharedNote:
    """One or more notes that say the same.

    Attributes:
        datasets, systems, metrics: whose it is; empty where it is about all of them, or about none.
        message: what they say; of notes with other numbers, the one with the highest count.
        alike: how many further notes say this with other numbers.
    """

    code: str
    level: NoteLevel
    datasets: _Names
    systems: _Names
    metrics: _Names
    message: str
    count: int
    alike: int = 0

    def __str__(self) -> str:
        """`golden, bm25 and dense: 2 of 40 queries are not in the run and score 0`."""
        place = ", ".join(_list_names(names) for names in (self.datasets, self.systems, self.metrics) if names)
        more = f" ({self.alike} more notes say this with other numbers)" if self.alike else ""
        return f"{place}: {self.message}{more}" if place else f"{self.message}{more}"


def share_notes(evaluation: Evaluation) -> list[SharedNote]:
    """The notes of an evaluation, warnings first; otherwise in their order."""
    notes = [_read(note, evaluation.metrics) for note in evaluation.notes]
    for axis in ("metrics", "systems", "datasets"):
        notes = _join(notes, axis)
    notes = _gather_alike(notes)
    return sorted(notes, key=lambda note: note.level != "warning")


def _read(note: Note, metrics: Sequence[str]) -> SharedNote:
    """A note by itself; the metric that its message begins with is taken out of it."""
    metric = next((name for name in metrics if note.message.startswith(f"{name}: ")), None)
    return SharedNote(
        note.code,
        note.level,
        (note.dataset,) if note.dataset else (),
        (note.system,) if note.system else (),
        (metric,) if metric else (),
        note.message.removeprefix(f"{metric}: ") if metric else note.message,
        note.count or 0,
    )


def _join(notes: Sequence[SharedNote], axis: str) -> list[SharedNote]:
    """Notes that differ in the names of one axis alone as one, at the place of the first, with the names of all."""
    found: dict[SharedNote, list[str]] = {}
    for note in notes:
        names = getattr(note, axis)
        alike = _rename(note, axis, ("",) if names else ())
        found.setdefault(alike, []).extend(names)
    return [_rename(note, axis, tuple(dict.fromkeys(names))) for note, names in found.items()]


def _rename(note: SharedNote, axis: str, names: _Names) -> SharedNote:
    changes: dict[str, Any] = {axis: names}
    return replace(note, **changes)


def _gather_alike(notes: Sequence[SharedNote]) -> list[SharedNote]:
    """Notes that differ in their numbers and in whose they are: where there are many, the one of the highest count."""
    groups: dict[tuple[str, NoteLevel, str], list[SharedNote]] = {}
    for note in notes:
        groups.setdefault((note.code, note.level, re.sub(r"\d+(\.\d+)?", "#", note.message)), []).append(note)
    return [shown for group in groups.values() for shown in _shorten(group)]


def _shorten(group: Sequence[SharedNote]) -> Iterable[SharedNote]:
    if len({(note.datasets, note.systems, note.metrics) for note in group}) < _FEWEST_ALIKE:
        return group
    most = max(group, key=lambda note: note.count)
    return [replace(most, alike=len(group) - 1)]


def _list_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b, c, d, e and 5 others`."""
    shown = list(names[:_NAMES_SHOWN])
    more = len(names) - len(shown)
    last = f"{more} others" if more > 1 else names[-1] if more else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last
