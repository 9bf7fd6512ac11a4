"""The fields of an application's own log: names, units and moments, and what is said of those that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.reading.column_names import normalise
from rageval_spec.recorded.log_fields import read_fields

MOMENT = "2026-11-28T02:38:22Z"


def read(row: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    return read_fields(row, normalise)


@pytest.mark.parametrize("name", ["started", "timestamp", "@timestamp", "created_at", "createdAt", "time", "ts"])
@pytest.mark.parametrize(
    "written",
    [
        MOMENT,
        "2026-11-28 02:38:22",
        "2026-11-28T03:38:22+01:00",
        1795833502,
        1795833502000,
        "1795833502000",
        1795833502000000,
        1795833502000000000,
    ],
)
def test_a_moment_is_read_under_its_usual_names_and_in_its_unit(name: str, written: Any) -> None:
    assert read({name: written}) == ({"started": MOMENT}, [])


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        ({"latency": 1.5}, 1.5),
        ({"latency_ms": 320}, 0.32),
        ({"latencyMs": "320"}, 0.32),
        ({"duration_ns": 2_000_000_000}, 2.0),
        ({"responseTime": "320 ms"}, 0.32),
        ({"elapsed": "0:00:03.5"}, 3.5),
        ({"startTime": MOMENT, "endTime": "2026-11-28T02:38:24.500Z"}, 2.5),
        ({"start_time_ms": 1795833502000, "end_time_ms": 1795833502750}, 0.75),
        ({"latency": 2, "start": MOMENT, "end": MOMENT}, 2),
    ],
)
def test_a_length_is_in_seconds_whatever_its_unit(row: dict[str, Any], seconds: float) -> None:
    parts, doubts = read(row)
    assert parts["seconds"] == pytest.approx(seconds)
    assert doubts == []


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        ({"user_id": 42}, {"user": "42"}),
        ({"userId": "u1", "sessionId": "s"}, {"user": "u1", "session": "s"}),
        ({"user": {"id": "u1", "mail": "a@b"}}, {"user": "u1"}),
        ({"metadata": {"userId": "u1", "session": "s", "date": "1999"}}, {"user": "u1", "session": "s"}),
        ({"metadata": {"user": "u2"}, "user": "u1"}, {"user": "u1"}),
        ({"user": None, "user_id": "u1", "conversation_id": "c"}, {"user": "u1", "session": "c"}),
    ],
)
def test_users_and_conversations_are_found(row: dict[str, Any], parts: dict[str, str]) -> None:
    assert read(row) == (parts, [])


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"timestamp": "yesterday"}, "'timestamp' is not a time: write 2026-11-28T02:38:22Z"),
        ({"time": 1.2}, "'time' is not a time"),
        ({"ts_ms": 1795833502}, "'ts_ms' is not a time"),
        ({"latency": "fast"}, "'latency' is not a length of time"),
        ({"duration": -1}, "'duration' is not a length of time"),
        ({"user": {"mail": "a@b"}}, "'user' is not text or a number"),
        ({"start": MOMENT, "end": "2026-11-28T02:38:21Z"}, "it ended 1 seconds before it started"),
        ({"latency": 850}, "'latency' is 850, which is read as seconds; rename milliseconds to latency_ms"),
    ],
)
def test_what_cannot_be_understood_is_said(row: dict[str, Any], told: str) -> None:
    _, (doubt,) = read(row)
    assert doubt.startswith(told)


def test_a_name_that_can_be_read_stands_in_for_one_that_cannot() -> None:
    parts, doubts = read({"timestamp": "yesterday", "created_at": MOMENT})
    assert parts == {"started": MOMENT}
    assert len(doubts) == 1
