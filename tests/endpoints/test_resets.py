from __future__ import annotations

import time
from datetime import UTC, datetime
from email.message import Message

import pytest

from rageval_spec.endpoints.resets import read_reset


def headers(**values: str) -> Message:
    message = Message()
    for name, value in values.items():
        message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ({}, None),
        ({"x_ratelimit_reset_requests": "1m2.5s"}, 62.5),
        ({"x_ratelimit_reset_tokens": "300ms"}, 0.3),
        ({"x_ratelimit_reset_tokens": "12"}, 12),
        ({"x_ratelimit_reset_requests": "9s", "x_ratelimit_reset_tokens": "2s"}, 2),
        (
            {
                "x_ratelimit_reset_requests": "9s",
                "x_ratelimit_remaining_requests": "0",
                "x_ratelimit_reset_tokens": "2s",
            },
            9,
        ),
        ({"x_ratelimit_reset_requests": "soon"}, None),
        ({"x_ratelimit_reset_requests": "3h"}, None),
        ({"x_ratelimit_reset_requests": "0s"}, None),
    ],
)
def test_headers_say_when_a_limit_ends(values: dict[str, str], seconds: float | None) -> None:
    assert read_reset(headers(**values)) == seconds


def test_a_moment_means_a_wait_until_then() -> None:
    moment = datetime.fromtimestamp(time.time() + 100, UTC).isoformat()
    wait = read_reset(headers(anthropic_ratelimit_tokens_reset=moment))
    assert wait is not None
    assert 50 < wait <= 100
