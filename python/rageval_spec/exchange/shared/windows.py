"""Moments as users write them: `7d`, or an ISO 8601 time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,6})\s*([mhdw])")


def _check(text: str | None) -> str | None:
    if text is not None:
        parse_moment(text, datetime(2000, 1, 1, tzinfo=UTC))
    return text


Moment = Annotated[str | None, AfterValidator(_check)]
"""A field of a node: a moment as text, checked and not yet parsed, because `7d` depends on when it is read."""


def parse_moment(text: str, now: datetime) -> datetime:
    """The moment in UTC. `7d` means seven days before `now`; a time without a zone is in UTC.

    Raises:
        ValueError: the text is neither; the message says what to write.
    """
    ago = _AGO.fullmatch(text.strip().lower())
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a moment; write how long ago, such as 30m, 12h, 7d or 2w, or a time: 2026-03-01T12:00:00Z"
        ) from None


def format_moment(moment: datetime) -> str:
    """ISO 8601 in UTC with `Z`: `2026-03-01T12:00:00Z`; microseconds only if there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
