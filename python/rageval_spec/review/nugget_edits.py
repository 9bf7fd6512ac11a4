"""Banks of nuggets on the review page, and what people changed there: applied to the file that the page was made from.

A page's file has each edited question as it was and as it is now. So people can edit different questions of one bank
at a time, and nobody overwrites what another changed meanwhile: such a question is a conflict, and nothing is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rageval_spec.data.evidence.nuggets import NUGGETS, Nugget, parse_nuggets
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.reading.label_files import VERSION
from rageval_spec.reading.nugget_banks import read_banks, replace_nuggets
from rageval_spec.review.criteria import ReviewCriterion
from rageval_spec.review.tasks import ReviewSheet, ReviewTask

FORMAT = "rageval-nuggets"
"""What the file of a page with nuggets calls itself."""
_GUIDELINES = """Vital: an answer without this fact is not a good one.
Okay: worth having, and no good answer needs it.
One nugget is one fact. Split what an answer could have in part; merge nuggets that say the same.
Write a fact so that it can be checked without the question: names instead of 'it'.
A nugget can be a question with answers. One of them is enough (OR), or all are needed (AND)."""


def build_bank_sheet(path: Path) -> ReviewSheet:
    """The sheet on which people edit the nuggets of a file; its questions are in the file's order.

    Raises DataError: the file is no file of nuggets.
    """
    tasks = (
        ReviewTask(path.name, "", one.query_id, one.question, json.dumps([nugget.dump() for nugget in one.nuggets]))
        for one in read_banks(path).values()
    )
    asked = ReviewCriterion(NUGGETS, "nuggets", "Are these the facts that a good answer has?", _GUIDELINES)
    return ReviewSheet(
        path.name, "", hashlib.sha256(path.read_bytes()).hexdigest(), tuple(tasks), (asked,), "", subject="nuggets"
    )


@dataclass(frozen=True, slots=True)
class BankEdit:
    """What a person made of the nuggets of one question; equal `was` and `now` if they are right as they are.

    `previous` is the sha256 of the file that the page was made from.
    """

    query_id: str
    was: tuple[Nugget, ...]
    now: tuple[Nugget, ...]
    by: str
    time: str
    previous: str


def read_edits(path: Path) -> list[BankEdit] | None:
    """The edits in the file that a page with nuggets saved; None if the file is something else.

    Raises DataError: what was edited cannot be nuggets; the message has the place.
    """
    try:
        saved = json.loads(path.read_bytes())
    except (ValueError, OSError, RecursionError):
        return None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        return None
    if saved.get("version") != VERSION:
        raise DataError(f"{path}: the file has version {saved.get('version')}; this program reads version {VERSION}")
    labels = saved.get("labels")
    if not isinstance(labels, list) or not labels:
        raise DataError(f"{path}: nothing was edited or checked; check some questions on the page, and save it again")
    known = str(saved.get("annotator") or ""), str(saved.get("previous") or "")
    return [_read_edit(one, f"{path}: label {number}", *known) for number, one in enumerate(labels, 1)]


def _read_edit(label: Any, place: str, by: str, previous: str) -> BankEdit:
    value = label.get("value") if isinstance(label, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(label.get("query_id"), str) or not by:
        raise DataError(f"{place} has no question, no nuggets or no person; save the file again from its page")
    query_id = label["query_id"]
    was, now = (parse_nuggets(value.get(key), f"{place}, query {query_id!r}: {key}") for key in ("was", "now"))
    return BankEdit(query_id, was, now, by, str(label.get("time") or ""), previous)


@dataclass(frozen=True, slots=True)
class EditedBank:
    """A file of nuggets with edits: its new content, the changes by question, and the questions that were right.

    With `conflicts`, each a text of several lines, there is nothing to write.
    """

    content: bytes
    changes: Mapping[str, Sequence[str]]
    confirmed: int
    conflicts: Sequence[str]


def apply_edits(path: Path, edits: Iterable[BankEdit]) -> EditedBank:
    """Apply edits to a JSON Lines file of nuggets, one after another. Lines that nobody changed stay byte for byte.

    Raises DataError: the file is no file of nuggets, or not plain JSON Lines.
    """
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise DataError(f"{path}: edits go into a plain .jsonl file; unpack it, or save it with one question a line")
    banks, lines = read_banks(path), path.read_bytes().split(b"\n")
    current = {query_id: bank.nuggets for query_id, bank in banks.items()}
    filled = [at for at, line in enumerate(lines) if line.strip()]
    places = dict(zip(banks, filled, strict=True))
    changes, conflicts, confirmed = dict[str, list[str]](), list[str](), 0
    for edit in edits:
        there = current.get(edit.query_id)
        if there == edit.now:
            confirmed += edit.was == edit.now
        elif there != edit.was:
            conflicts.append(_explain(edit, there, path))
        else:
            current[edit.query_id], at = edit.now, places[edit.query_id]
            history = {"by": edit.by, "time": edit.time, "previous": edit.previous}
            row = replace_nuggets(json.loads(lines[at].decode("utf-8-sig")), edit.now, history)
            lines[at] = json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace")
            changes.setdefault(edit.query_id, []).extend(list_changes(edit.was, edit.now))
    return EditedBank(b"\n".join(lines), changes, confirmed, conflicts)


def _explain(edit: BankEdit, there: Sequence[Nugget] | None, path: Path) -> str:
    """Both changes of a question since the page was made."""
    if there is None:
        return f"{edit.query_id}: the question is no longer in {path}"
    sides = ((f"in {path} since then", list_changes(edit.was, there)), (edit.by, list_changes(edit.was, edit.now)))
    told = [f"{edit.query_id}: two people changed its nuggets"]
    for name, changes in sides:
        told += [f"  {name}:", *(f"    {change}" for change in changes or ["nothing: right as they were"])]
    return "\n".join(told)


def list_changes(was: Sequence[Nugget], now: Sequence[Nugget]) -> list[str]:
    """`- 'old' (vital)`, `~ 'was' (okay) → 'is' (vital)`, `+ 'new' (vital)`: what changed, by the nuggets' ids."""
    before, after = ({one.id: one for one in ones} for ones in (was, now))
    gone = [f"- {_show(one)}" for key, one in before.items() if key not in after]
    both = ((one, after[key]) for key, one in before.items() if key in after)
    others = [f"~ {_show(one)} → {_show(other)}" for one, other in both if one != other]
    return [*gone, *others, *(f"+ {_show(one)}" for key, one in after.items() if key not in before)]


def _show(nugget: Nugget) -> str:
    answers = [f" {nugget.aggregator} ".join(nugget.answers)] if nugget.answers else []
    return f"'{nugget.text}' ({'; '.join([nugget.importance, *answers])})"
