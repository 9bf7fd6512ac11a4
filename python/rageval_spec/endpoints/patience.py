"""The key `patience` of nodes with an endpoint: how long calls wait while the endpoint refuses all of them."""

from __future__ import annotations

PATIENCE = 75.0
"""The default, in seconds: most rate limits are per minute, though few endpoints say so."""
PATIENCE_TEXT = (
    "How many seconds the endpoint may refuse every call with 429 (too many requests) before calls fail. Until then "
    "calls slow down and are retried, even beyond `retries`. With `retries: 0`, a 429 is not retried either."
)
