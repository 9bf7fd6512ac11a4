"""What is said where a file lacks columns: which are missing, which there are, and what to write instead.

A `columns:` block that a spec needs for a file is written ready to copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.reading.column_meanings import answers_in, find_rivals
from rageval_spec.reading.column_names import (
    QUESTION_IDS,
    QUESTIONS,
    REFERENCES,
    WORDS,
    AnswerColumns,
    RecordColumn,
    is_of_system,
    says_gold,
)
from rageval_spec.recorded.json_path import MOST_SHOWN, list_keys
from rageval_spec.wording import list_choices


def choose_keys(place: str, columns: Iterable[RecordColumn], present: Sequence[str]) -> dict[RecordColumn, str]:
    """The name of each column that the file has. Raises DataError: one that must be there is missing, or twice."""
    keys: dict[RecordColumn, str] = {}
    absent: list[RecordColumn] = []
    for column in columns:
        key = next((name for name in column.known if name in present), None)
        if key is not None and present.count(key) > 1:
            raise DataError(f"{place}: '{key}' is listed twice")
        if key is not None:
            keys[column] = key
        elif column.required or column.mapped:
            absent.append(column)
    if absent:
        message, hint = explain_absent(absent, present, keys.values())
        raise DataError(f"{place}: {message}" + (f"; {hint}" if hint else ""))
    return keys


def explain_absent(
    absent: Sequence[RecordColumn], present: Sequence[str], taken: Collection[str] = ()
) -> tuple[str, str | None]:
    """A message (which columns are missing, and which exist) and a hint (the mapping to write, or what to correct)."""
    wrong = [column for column in absent if column.mapped]
    there = f"the columns are {list_keys(present)}" if len(present) != 1 else f"the only column is {present[0]!r}"
    there = there if present else "the file has no columns"
    message = f"no column {_list_known(wrong or absent)}; {there}"
    if wrong:
        return message, f"correct {' and '.join(repr(column.key) for column in wrong)}"
    setting = absent[0].setting
    names = guess_names([column.name for column in absent], present, taken)
    advice = [_advise(absent, names)] if setting else []
    advice += dict.fromkeys(column.advice for column in absent if column.advice)
    return message, ", or ".join(advice) or None


def _advise(absent: Sequence[RecordColumn], names: Mapping[str, str]) -> str:
    if len(names) == len(absent):
        return f"write {write_mapping(absent[0].setting, names)}"
    return f"name {'it' if len(absent) == 1 else 'them'} in {' and '.join(repr(column.key) for column in absent)}"


def _list_known(columns: Iterable[RecordColumn]) -> str:
    return " and no column ".join(list_choices([f"'{name}'" for name in column.known]) for column in columns)


def find_absent(
    setting: tuple[str, ...], columns: BaseModel, present: Sequence[str] | None, file: str
) -> Iterator[FileFault]:
    """Find the names in a `columns:` block, to which the keys `setting` lead, that a file does not have."""
    if present is None:
        return
    for part in type(columns).model_fields:
        name = getattr(columns, part)
        if isinstance(name, str) and name not in present:
            what = "nothing at" if name.startswith("$") else "no column"
            yield FileFault((*setting, part), f"{file} has {what} {name!r}", _list_nearest(name, present))


def refuse_absent(path: Path, names: Mapping[str, str | None], present: Collection[str], key: str, told: str) -> None:
    """Raise DataError for names in a `columns:` block that no row has; `told` is added to the message."""
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
    shown = ", ".join(map(repr, sorted(present, key=unlikeness)[:MOST_SHOWN]))
    return f"the columns are {shown}{', ...' if len(present) > MOST_SHOWN else ''}"


def write_mapping(setting: Sequence[str], names: Mapping[str, str]) -> str:
    """The block as YAML on one line: `columns: {queries: {text: Frage}}`; `setting` has the keys that lead to it."""
    import yaml

    content: object = dict(names)
    for key in reversed(setting):
        content = {key: content}
    text: str = yaml.safe_dump(content, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6)
    return text.strip()[1:-1]


_LIKE = 0.6


def guess_names(wanted: Iterable[str], present: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Guess a different column of the file for each wanted part. Parts for which no column is left are omitted.

    Columns whose name resembles the part's, or contains one of its usual words, come first. The remaining columns go
    to the other parts in file order, except columns that resemble a part that was not requested. For gold answers, no
    column is guessed that has what a system said, and none of several that resemble them; for a system's answers, none
    that has what people said. With the same column as both, every answer would be right.
    """
    free = [name for name in dict.fromkeys(present) if name and name not in taken]
    guessed: dict[str, str] = {}
    parts = [*wanted]
    likely = [name for name in free if _likeness("reference", name) >= _LIKE and not is_of_system(name)]
    sure = [name for name in likely if says_gold(name)]
    if len(likely) > 1 and len(sure) != 1:
        parts = [part for part in parts if part != "reference"]
    gold = sure if len(likely) > 1 else [name for name in free if not is_of_system(name)]
    for part in parts:
        pool = [name for name in free if part != "reference" or name in gold]
        pool = [name for name in pool if part != "answer" or not says_gold(name)]
        near = max(pool, key=lambda name, part=part: _likeness(part, name), default=None)  # type: ignore[misc]
        if near is not None and _likeness(part, near) >= _LIKE:
            guessed[part] = near
            free.remove(near)
    free = [name for name in free if all(_likeness(other, name) < _LIKE for other in WORDS)]
    for part in parts:
        left = [name for name in free if part != "reference" or name in gold]
        left = [name for name in left if part != "answer" or not says_gold(name)]
        if part not in guessed and left:
            guessed[part] = left[0]
            free.remove(left[0])
    return {part: guessed[part] for part in parts if part in guessed}


def _likeness(part: str, name: str) -> float:
    from difflib import SequenceMatcher

    folded = name.casefold().replace("-", "_").replace(" ", "_")
    if folded.endswith("_id") and not part.endswith("_id"):
        return 0.0
    words = WORDS.get(part, ())
    for place, word in enumerate(words):
        if word in folded.split("_"):
            return 2 - place / 100
        if len(word) > 3 and word in folded:
            return 1 - place / 100
    return SequenceMatcher(None, part, folded).ratio()


_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")


def guess_question(rows: Sequence[Mapping[str, object]], present: Sequence[str]) -> str | None:
    """The column in which more than half of the values end in a question mark; None if there is none."""
    counts = {name: sum(str(row.get(name, "")).rstrip().endswith(_QUESTION_MARKS) for row in rows) for name in present}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and 2 * counts[best] > len(rows) else None


def explain_rivals(rivals: Sequence[str], part: str, setting: str = "columns") -> tuple[str, str]:
    """Why a file with rivals of `answer`, for a dataset's `reference` or a system's `answer`, is refused; a remedy."""
    if rivals[0] in REFERENCES:
        ways = [write_mapping(setting.split("."), {part: name}) for name in rivals]
        listed = " or ".join(map(repr, rivals))
        return f"the gold answers may be in {listed}, and nothing says which", f"write {' or '.join(ways)}"
    says, other = ("gold answers", "a system's") if part == "reference" else ("system's answers", "the gold answer")
    listed = " or ".join(map(repr, ("answer", *rivals)))
    rival, own = (write_mapping(setting.split("."), {part: name}) for name in (rivals[0], "answer"))
    return (
        f"the {says} may be in {listed}, and nothing shows which",
        f"write {rival} if 'answer' is {other}, or else {own}",
    )


def explain_ambiguity(columns: AnswerColumns, present: Sequence[str]) -> tuple[str, str] | None:
    """Why no column certainly has a system's answers, and what to write; None if one does."""
    if columns.answer is not None or answers_in(present) or not (rivals := find_rivals(present, "answer")):
        return None
    return explain_rivals(rivals, "answer")


NO_ANSWERS = "name a file with answers"
"""The advice if no column can be one of answers."""


def advise_answers(present: Sequence[str]) -> str:
    """What to write for a file without known columns of answers. Gold answers are never proposed as answers."""
    gold = [name for name in present if name in REFERENCES or "expected" in name.lower() or name.startswith("assert")]
    asked = [name for name in QUESTIONS if name != "text"]
    wanted = ("answer",) if any(name in present for name in QUESTION_IDS) else ("answer", "query_id")
    guessed = guess_names(wanted, present, (*gold, *asked, *QUESTION_IDS, "vars", "inputs"))
    if "answer" not in guessed:
        return NO_ANSWERS
    return f"write {write_mapping(('columns',), guessed)}"
