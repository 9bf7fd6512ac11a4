from __future__ import annotations

import pytest

from rageval_spec.exchange.shared.spans import SECOND, Span, format_nanoseconds, seconds_of


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        (SECOND, 3 * SECOND, 2.0),
        (SECOND, SECOND, None),
        (0, SECOND, None),
        (2 * SECOND, SECOND, None),
        (SECOND, 0, None),
    ],
)
def test_seconds(start: int, end: int, seconds: float | None) -> None:
    assert seconds_of(Span("1" * 32, "2" * 16, start=start, end=end)) == seconds


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (1_772_366_400_000_000_000, "2026-03-01T12:00:00Z"),
        (1_772_366_400_123_456_789, "2026-03-01T12:00:00.123456Z"),
        (0, None),
        ((1 << 64) - 1, "2554-07-21T23:34:33.709551Z"),
        (10**21, None),
    ],
)
def test_times(time: int, text: str | None) -> None:
    assert format_nanoseconds(time) == text
