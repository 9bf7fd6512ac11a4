"""What a line of an application's own log says that users thought of the answer.

A column `feedback` holds `{"thumbs": 0}`, `[{"name": "thumbs", "value": 0}]` or a word such as `thumbs_down`. Columns
`feedback.thumbs`, `thumbs`, `thumbs_down`, `thumbs_up` and `rating` hold one value each. Names are compared in snake
case. Yes and no are 1 and 0, and so are the words of a thumb.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from rageval_spec.data.traces import Feedback
from rageval_spec.recorded import values
from rageval_spec.recorded.answers_and_steps import is_missing

LIKES = frozenset({"thumbs_up", "thumbs-up", "up", "like", "positive", "good", "👍"})
DISLIKES = frozenset({"thumbs_down", "thumbs-down", "down", "dislike", "negative", "bad", "👎"})
_THUMBS = "thumbs"
_COLUMNS = {_THUMBS: _THUMBS, "rating": "rating", "user_rating": "rating"}
_FLAGS = {"thumbs_down": 0.0, "thumbs_up": 1.0}
"""Columns that say something only where they are true."""
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
_SOURCES = {one: one for one in ("user", "annotator", "program")} | {"human": "annotator", "llm": "program"}
_WANTED = 'feedback: write {"thumbs": 0}, or [{"name": "thumbs", "value": 0}]'


def is_feedback(spelled: str) -> bool:
    """Whether a column holds nothing but feedback; its name is in snake case."""
    return spelled in ("feedback", "user_feedback") or spelled.startswith("feedback.")


def read_feedback(row: Mapping[str, Any], spell: Any) -> tuple[list[Feedback], list[str]]:
    """The feedback of a line, one for each name, and what is not understood.

    `spell` writes a name in snake case.
    """
    found: dict[str, Feedback] = {}
    doubts: list[str] = []
    for column, name in _find_columns(tuple(row), spell):
        value = row[column]
        try:
            for one in () if is_missing(value) else _read_column(name, value):
                found.setdefault(one.name, one)
        except ValueError:
            doubts.append(f"'{column}' is not {_WANTED}; it is {values.show(value)}")
    return [*found.values()], doubts


@lru_cache(maxsize=256)
def _find_columns(names: tuple[str, ...], spell: Any) -> tuple[tuple[str, str], ...]:
    """The columns that hold feedback, and their names in snake case; of `feedback.NAME`, NAME stays as it is."""
    parts = ((column, *column.partition(".")) for column in names)
    spelled = ((column, spell(first) + dot + rest) for column, first, dot, rest in parts)
    return tuple((column, name) for column, name in spelled if is_feedback(name) or name in _COLUMNS or name in _FLAGS)


def _read_column(name: str, value: Any) -> Iterator[Feedback]:
    if name in _FLAGS:
        said = str(value).strip().lower()
        if said not in _YES | _NO:
            raise ValueError(said)
        if said in _YES:
            yield Feedback(_THUMBS, _FLAGS[name], name, source="user")
    elif name in _COLUMNS or name.startswith("feedback."):
        yield from _read_value(_COLUMNS.get(name, name.removeprefix("feedback.")), value)
    else:
        yield from _read_any(values.open_text(value))


def _read_any(value: Any) -> Iterator[Feedback]:
    """What the column `feedback` holds. Raises `ValueError` if that is none of the known forms."""
    if isinstance(value, list):
        for one in value:
            yield from _read_any(one)
    elif not isinstance(value, Mapping):
        is_thumb = isinstance(value, bool) or str(value).strip().lower() in LIKES | DISLIKES
        yield from _read_value(_THUMBS if is_thumb else "rating" if _is_number(value) else "comment", value)
    elif "name" in value or {"value", "score", "label", "comment"} & value.keys():
        yield from _read_value(values.read_text(value.get("name")) or _THUMBS, value)
    else:
        for name, one in value.items():
            yield from _read_value(str(name), one)


def _read_value(name: str, value: Any) -> Iterator[Feedback]:
    said = value if isinstance(value, Mapping) else {"value": value}
    number, label = next((said[key] for key in ("value", "score") if not is_missing(said.get(key))), None), None
    if isinstance(number, bool):
        number = float(number)
    elif isinstance(number, str) and not _is_number(number):
        number, label = None, number
    elif number is not None and not _is_number(number):
        raise ValueError(name)
    label, comment = label or values.read_text(said.get("label")), values.read_text(said.get("comment"))
    if number is None and (word := (label or "").strip().lower()) in LIKES | DISLIKES:
        number = float(word in LIKES)
    source: Any = "user" if said.get("source") is None else _SOURCES.get(str(said["source"]).lower(), "unknown")
    if number is not None or label is not None or comment is not None:
        yield Feedback(name, values.read_number(number), label, comment, source, values.read_text(said.get("author")))
    elif isinstance(value, Mapping) and {*value} - {"name", "value", "score", "label", "comment", "source", "author"}:
        raise ValueError(name)


def _is_number(value: Any) -> bool:
    return values.read_number(value) is not None
