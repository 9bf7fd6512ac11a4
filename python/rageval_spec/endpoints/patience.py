"""How long calls are patient with an endpoint that refuses them all: the key `patience` of the blocks that have one."""

from __future__ import annotations

PATIENCE = 75.0
"""Seconds, by default: limits are by the minute, and few endpoints say so."""
PATIENCE_TEXT = (
    "Seconds for which the endpoint may refuse every call with 429 (too many requests) before calls fail. Until then "
    "calls slow down and are tried again, however many `retries` there are; 0 retries means no retry after 429 either."
)
