"""What lines of an application's own log say beside question and answer: when, how long, who, and what users said.

Names are compared in snake case, so `userId` is `user_id`. A unit at the end of a name counts: `latency_ms`. A moment
is ISO 8601 text, in UTC if it names no zone, or a number since 1970 whose unit its size shows; a length without a unit
is in seconds.

Feedback is a column `feedback` with `{"thumbs": 0}`, `[{"name": "thumbs", "value": 0}]` or a word such as
`thumbs_down`, or a column `feedback.thumbs`, `thumbs`, `thumbs_down`, `thumbs_up` or `rating` with one value. Yes and
no are 1 and 0, and so are the words of a thumb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from rageval_spec.data.traces import Feedback
from rageval_spec.libraries import compile_later
from rageval_spec.recorded import values
from rageval_spec.recorded.answers_and_steps import is_missing

MOMENTS: Mapping[str, tuple[str, ...]] = {
    "started": (
        "started", "started_at", "start_time", "start", "timestamp", "@timestamp", "created_at", "created", "time",
        "ts", "datetime", "date", "event_time", "asked_at",
    ),
    "ended": ("ended", "ended_at", "end_time", "end", "finished_at", "completed_at"),
}  # fmt: skip
LENGTHS = ("seconds", "latency", "duration", "elapsed", "elapsed_time", "response_time", "total_time")
TEXTS: Mapping[str, tuple[str, ...]] = {
    "user": ("user", "user_id", "userid", "end_user", "end_user_id", "enduser_id", "uid"),
    "session": ("session", "session_id", "conversation", "conversation_id", "thread_id", "chat_id"),
    "model": ("model", "model_name", "model_id"),
}
_NESTED = frozenset({*TEXTS["user"], *TEXTS["session"], "started", "started_at", "timestamp"})
"""What is read from the object `metadata` of a line too; other times in it, such as `date`, can be those of a text."""
_UNITS: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "micros", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanos", "nanoseconds"), 1e-9),
}
_NAME_WITH_UNIT = compile_later(rf"(.+)_({'|'.join(_UNITS)})")
_LENGTH = compile_later(rf"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*({'|'.join(_UNITS)})?", re.IGNORECASE)
_CLOCK = compile_later(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_EPOCH = compile_later(r"\d{9,19}(?:\.\d+)?")
_SIZES = ((1e11, 1.0), (1e14, 1e-3), (1e17, 1e-6), (float("inf"), 1e-9))
"""Up to which number a moment is in seconds, milliseconds, microseconds and nanoseconds since 1970."""
_FIRST_YEAR, _LAST_YEAR = 2000, 2100
_SLOW = 120.0
"""Seconds above which a length without a unit is more likely in milliseconds."""


class LogFields(NamedTuple):
    """The parts of a line, None for those that cannot be read, and what is doubtful about its values."""

    parts: dict[str, Any]
    doubts: list[str]


class _Field(NamedTuple):
    name: str
    unit: float | None


def read_fields(row: Mapping[str, Any], spell: Any) -> LogFields:
    """`started` (as ISO 8601 in UTC), `seconds`, `user`, `session` and `model` of a line, those that it has.

    `spell` writes a name in snake case. Who and when can also be in an object `metadata`. If a line has no length, its
    beginning and its end give it.
    """
    nested = row.get("metadata")
    if isinstance(nested, Mapping):
        row = {**{name: value for name, value in nested.items() if spell(name) in _NESTED}, **row}
    found = LogFields({}, [])
    moments: dict[str, datetime] = {}
    for part, field in _find_fields(tuple(row), spell):
        value = row[field.name]
        if value is None or value == "" or found.parts.get(part) is not None:
            continue
        read: Any
        if part in MOMENTS:
            read, wanted = read_moment(value, field.unit), "a time: write 2026-11-28T02:38:22Z, or seconds since 1970"
            if read is not None:
                moments[part] = read
            read = values.write_time(read)
        elif part == "seconds":
            read, wanted = read_length(value, field.unit), "a length of time: write a number of seconds, or 320ms"
            if read is not None and read > _SLOW and field.unit is None and not isinstance(value, str):
                doubt = f"'{field.name}' is {value}, which is read as seconds; rename milliseconds to {field.name}_ms"
                found.doubts.append(doubt)
        else:
            inner = value.get("id", value.get(f"{part}_id")) if isinstance(value, Mapping) else value
            read, wanted = values.read_text(inner), "text or a number"
        found.parts[part] = read
        if read is None:
            found.doubts.append(f"'{field.name}' is not {wanted}; it is {values.show(value)}")
    found.parts.pop("ended", None)
    if found.parts.get("seconds") is None and len(moments) == len(MOMENTS):
        seconds = (moments["ended"] - moments["started"]).total_seconds()
        if seconds >= 0:
            found.parts["seconds"] = seconds
        else:
            found.doubts.append(f"it ended {-seconds:g} seconds before it started")
    return found


def read_moment(value: Any, unit: float | None = None) -> datetime | None:
    """A moment in UTC, from ISO 8601 text or a number since 1970; None for others, and for years far from ours.

    `unit` is that of a number, in seconds; without one, ten digits are seconds, 13 milliseconds, and so on.
    """
    is_number = not isinstance(value, str) or _EPOCH.fullmatch(value.strip())
    if not is_number and isinstance(value, str):
        moment = values.read_time(value)
    else:
        number = values.read_number(value)
        if number is None or number <= 0:
            return None
        size = unit or next(size for most, size in _SIZES if number < most)
        try:
            moment = datetime.fromtimestamp(round(number * size, 6), UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return moment if moment is not None and _FIRST_YEAR <= moment.year <= _LAST_YEAR else None


def read_length(value: Any, unit: float | None = None) -> float | None:
    """Seconds, from a number in `unit` seconds, or from text such as `3.2`, `320 ms` and `0:00:03.2`."""
    if isinstance(value, str):
        if clock := _CLOCK.fullmatch(value.strip()):
            return int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3])
        written = _LENGTH.fullmatch(value.strip())
        if written is None:
            return None
        value, unit = written[1], _UNITS[written[2].lower()] if written[2] else unit
    number = values.read_number(value)
    return number * (unit or 1.0) if number is not None and number >= 0 else None


@lru_cache(maxsize=256)
def _find_fields(names: tuple[str, ...], spell: Any) -> tuple[tuple[str, _Field], ...]:
    """The fields of lines with these names, by part, the best first."""
    spelled = {spell(name): name for name in reversed(names)}
    known: dict[str, _Field] = {one: _Field(name, None) for one, name in spelled.items()}
    timed = {*LENGTHS, *(name for some in MOMENTS.values() for name in some)}
    for one, name in spelled.items():
        if (match := _NAME_WITH_UNIT.fullmatch(one)) and match[1] in timed:
            known.setdefault(match[1], _Field(name, _UNITS[match[2]]))
    parts = {**MOMENTS, "seconds": LENGTHS, **TEXTS}
    return tuple((part, known[one]) for part, wanted in parts.items() for one in wanted if one in known)


LIKES = frozenset({"thumbs_up", "thumbs-up", "up", "like", "positive", "good", "👍"})
DISLIKES = frozenset({"thumbs_down", "thumbs-down", "down", "dislike", "negative", "bad", "👎"})
_THUMBS = "thumbs"
_OPINIONS = {_THUMBS: _THUMBS, "rating": "rating", "user_rating": "rating"}
_FLAGS = {"thumbs_down": 0.0, "thumbs_up": 1.0}
"""Columns that say something only where they are true."""
_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
_SPEAKERS = {one: one for one in ("user", "annotator", "program")} | {"human": "annotator", "llm": "program"}
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
    for column, name in _find_opinions(tuple(row), spell):
        value = row[column]
        try:
            for one in () if is_missing(value) else _read_column(name, value):
                found.setdefault(one.name, one)
        except ValueError:
            doubts.append(f"'{column}' is not {_WANTED}; it is {values.show(value)}")
    return [*found.values()], doubts


@lru_cache(maxsize=256)
def _find_opinions(names: tuple[str, ...], spell: Any) -> tuple[tuple[str, str], ...]:
    """The columns that hold feedback, and their names in snake case; of `feedback.NAME`, NAME stays as it is."""
    parts = ((column, *column.partition(".")) for column in names)
    spelled = ((column, spell(first) + dot + rest) for column, first, dot, rest in parts)
    return tuple((column, name) for column, name in spelled if is_feedback(name) or name in _OPINIONS or name in _FLAGS)


def _read_column(name: str, value: Any) -> Iterator[Feedback]:
    if name in _FLAGS:
        said = str(value).strip().lower()
        if said not in _YES | _NO:
            raise ValueError(said)
        if said in _YES:
            yield Feedback(_THUMBS, _FLAGS[name], name, source="user")
    elif name in _OPINIONS or name.startswith("feedback."):
        yield from _read_value(_OPINIONS.get(name, name.removeprefix("feedback.")), value)
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
    source: Any = "user" if said.get("source") is None else _SPEAKERS.get(str(said["source"]).lower(), "unknown")
    if number is not None or label is not None or comment is not None:
        yield Feedback(name, values.read_number(number), label, comment, source, values.read_text(said.get("author")))
    elif isinstance(value, Mapping) and {*value} - {"name", "value", "score", "label", "comment", "source", "author"}:
        raise ValueError(name)


def _is_number(value: Any) -> bool:
    return values.read_number(value) is not None
