"""Groups notes for people: warnings first, and one line for a message about several metrics, systems or datasets.

The JSON report has every note separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.data.note import Note, NoteLevel

_FEWEST_ALIKE = 4
"""From this number on, notes that differ only in their numbers are shown as one."""
_NAMES_SHOWN = 5

_Names: TypeAlias = tuple[str, ...]


class SharedNote(NamedTuple):
    """One or more notes with the same message.

    Attributes:
        datasets, systems, metrics: the subjects of the note; empty if it concerns all of them, or none.
        message: the message; if the notes differ in their numbers, that of the note with the highest count.
        highest: that count; 0 if the message mentions no number.
        alike: the number of further notes that differ only in their numbers.
    """

    code: str
    level: NoteLevel
    datasets: _Names
    systems: _Names
    metrics: _Names
    message: str
    highest: int
    alike: int = 0

    def __str__(self) -> str:
        """`golden, bm25 and dense: 2 of 40 queries are not in the run and score 0`."""
        place = ", ".join(_list_names(names) for names in (self.datasets, self.systems, self.metrics) if names)
        more = f" (and {self.alike} similar notes with other numbers)" if self.alike else ""
        return f"{place}: {self.message}{more}" if place else f"{self.message}{more}"


def share_notes(evaluation: Evaluation) -> list[SharedNote]:
    """The grouped notes of an evaluation, warnings first, otherwise in their order."""
    notes = [_read(note, evaluation.metrics) for note in evaluation.notes]
    for axis in ("metrics", "systems", "datasets"):
        notes = _join(notes, axis)
    notes = _gather_alike(notes)
    return sorted(notes, key=lambda note: note.level != "warning")


def _read(note: Note, metrics: Sequence[str]) -> SharedNote:
    """A single note; if its message begins with the name of a metric, that moves to `metrics`."""
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
    """Merge notes that differ only in the names of one axis; the merged note takes the place of the first."""
    found: dict[SharedNote, list[str]] = {}
    for note in notes:
        names = getattr(note, axis)
        alike = _rename(note, axis, ("",) if names else ())
        found.setdefault(alike, []).extend(names)
    return [_rename(note, axis, tuple(dict.fromkeys(names))) for note, names in found.items()]


def _rename(note: SharedNote, axis: str, names: _Names) -> SharedNote:
    changes: dict[str, Any] = {axis: names}
    return note._replace(**changes)


def _gather_alike(notes: Sequence[SharedNote]) -> list[SharedNote]:
    """Reduce many notes that differ only in their numbers and subjects to the one with the highest count."""
    groups: dict[tuple[str, NoteLevel, str], list[SharedNote]] = {}
    for note in notes:
        groups.setdefault((note.code, note.level, re.sub(r"\d+(\.\d+)?", "#", note.message)), []).append(note)
    return [shown for group in groups.values() for shown in _shorten(group)]


def _shorten(group: Sequence[SharedNote]) -> Iterable[SharedNote]:
    if len({(note.datasets, note.systems, note.metrics) for note in group}) < _FEWEST_ALIKE:
        return group
    most = max(group, key=lambda note: note.highest)
    return [most._replace(alike=len(group) - 1)]


def _list_names(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b, c, d, e and 5 others`."""
    shown = list(names[:_NAMES_SHOWN])
    more = len(names) - len(shown)
    last = f"{more} others" if more > 1 else names[-1] if more else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last
