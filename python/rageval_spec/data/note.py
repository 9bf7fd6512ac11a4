"""Remarks of an evaluation that a reader of the numbers must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NoteLevel = Literal["note", "warning"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the numbers must know, for example that missing queries score 0.

    Attributes:
        code: the kind of note, for programs.
        dataset, system: the subject of the note; None if it concerns all of them, or none.
        count: the number that the message mentions, if there is one.
        table: figures that the message sums up, a header and rows, for example how many samples each stage passed on.
        level: "warning" if the numbers could mislead a reader who misses the note. Reports show warnings first.
    """

    code: str
    message: str
    dataset: str | None = None
    system: str | None = None
    count: int | None = None
    level: NoteLevel = "note"
    table: tuple[tuple[str, ...], ...] = ()
