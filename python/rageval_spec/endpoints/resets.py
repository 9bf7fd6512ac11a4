"""Reads from the providers' headers when a rate limit ends."""

from __future__ import annotations

import re
import time
from datetime import datetime
from email.message import Message

from rageval_spec.endpoints.failures import MOST_PATIENCE

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def read_reset(headers: Message) -> float | None:
    """Seconds until a rate limit ends, from `x-ratelimit-reset-*` or Anthropic's headers; None if they do not say.

    If headers say how much of each limit remains, the longest wait of the exhausted limits counts. Otherwise the
    shortest wait of all limits counts.
    """
    waits: list[float] = []
    spent: list[float] = []
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for prefix in ("x-ratelimit", "anthropic-ratelimit"):
            name = f"{prefix}-reset-{kind}" if prefix == "x-ratelimit" else f"{prefix}-{kind}-reset"
            wait = _read_duration(headers.get(name, ""))
            if wait is None or not 0 < wait <= MOST_PATIENCE:
                continue
            waits.append(wait)
            rest = f"{prefix}-remaining-{kind}" if prefix == "x-ratelimit" else f"{prefix}-{kind}-remaining"
            if headers.get(rest, "").strip() == "0":
                spent.append(wait)
    return max(spent) if spent else min(waits, default=None)


def _read_duration(text: str) -> float | None:
    """The seconds in `1m2.5s`, `20ms` or `12`, or until a moment such as `2026-01-31T12:00:00Z`."""
    text = text.strip()
    if not text:
        return None
    if (match := _DURATION.fullmatch(text)) is not None:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
