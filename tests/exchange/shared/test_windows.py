"""Moments as users write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rageval_spec.exchange.shared.windows import format_moment, parse_moment

NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("7d", "2026-03-01T12:00:00Z"),
        (" 12 H ", "2026-03-08T00:00:00Z"),
        ("30m", "2026-03-08T11:30:00Z"),
        ("2w", "2026-02-22T12:00:00Z"),
        ("2026-03-01", "2026-03-01T00:00:00Z"),
        ("2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00Z"),
        ("2026-03-01T12:00:00.250Z", "2026-03-01T12:00:00.250000Z"),
    ],
)
def test_a_moment_is_in_utc(text: str, moment: str) -> None:
    assert format_moment(parse_moment(text, NOW)) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7x", "-7d", "2026-13-01", "999999w"])
def test_anything_else_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="is not a moment; write how long ago, such as 30m"):
        parse_moment(text, NOW)
