"""What lines of an application's own log say beside question and answer: when, how long, who, in which conversation.

Names are compared in snake case, so `userId` is `user_id`. A unit at the end of a name counts: `latency_ms`. A moment
is ISO 8601 text, in UTC if it names no zone, or a number since 1970 whose unit its size shows; a length without a unit
is in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from rageval_spec.recorded import values

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
_NAME_WITH_UNIT = re.compile(rf"(.+)_({'|'.join(_UNITS)})")
_LENGTH = re.compile(rf"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*({'|'.join(_UNITS)})?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_EPOCH = re.compile(r"\d{9,19}(?:\.\d+)?")
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
