""""""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import Message

import pytest

from rageval_spec import registry
from rageval_spec.endpoints.pacing import StoppedError
from rageval_spec.endpoints.tries import (
    PATIENCE,
    BrokenDownError,
    Limits,
    Reply,
    Tries,
    TryError,
    TryFailure,
    classify_status,
    describe_error,
    read_reset,
    read_retry_after,
)
from tests.models.chat_endpoint import QuickClock


def scripted(*outcomes: TryError | str) -> Callable[[], str]:
    """An attempt with these outcomes; the last one repeats."""
    left = list(outcomes)

    def attempt() -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, TryError):
            raise outcome
        return outcome

    return attempt


def busy(**keys: object) -> TryError:
    return TryError("busy", is_temporary=True, **keys)  # type: ignore[arg-type]


def build(retries: int = 3, patience: float = 75.0) -> tuple[Tries, QuickClock]:
    clock = QuickClock()
    return Tries(Limits(4, retries, patience=patience), clock), clock


def test_only_temporary_failures_are_retried() -> None:
    tries, clock = build()
    assert tries.make(scripted(busy(), busy(), "yes")) == "yes"
    assert len(clock.slept) == 2
    with pytest.raises(TryError, match="wrong") as caught:
        tries.make(scripted(TryError("wrong")))
    assert caught.value.tries == 1


def test_tries_end_after_the_allowed_or_sensible_retries() -> None:
    for outcome, tries_made in [(busy(), 4), (busy(most_retries=1), 2)]:
        with pytest.raises(TryError) as caught:
            build()[0].make(scripted(outcome))
        assert caught.value.tries == tries_made


def test_a_lesson_is_not_a_failed_try() -> None:
    tries, clock = build(retries=0)
    assert (
        tries.make(scripted(TryError("less", is_lesson=True), TryError("still less", is_lesson=True), "yes")) == "yes"
    )
    assert clock.slept == []


def test_if_everything_is_refused_tries_end_with_patience_not_with_retries() -> None:
    tries, clock = build(retries=1, patience=30)
    began = clock.now()
    for _ in range(4):
        with pytest.raises(TryError) as caught:
            tries.make(scripted(busy(is_refusal=True)))
    assert caught.value.is_exhausted
    assert clock.now() - began < 90


def test_without_retries_a_refusal_is_final() -> None:
    tries, clock = build(retries=0)
    with pytest.raises(TryError):
        tries.make(scripted(busy(is_refusal=True)))
    assert clock.slept == []


def test_after_many_failures_in_a_row_no_call_is_made() -> None:
    tries, _ = build(retries=0)
    for _ in range(10):
        with pytest.raises(TryError):
            tries.make(scripted(TryError("dead")))
    with pytest.raises(BrokenDownError, match="not asked after 10 failed calls in a row; the last failure: dead"):
        tries.make(scripted("yes"))


def test_failures_that_concern_only_their_request_do_not_open_the_breaker() -> None:
    tries, _ = build(retries=0)
    for _ in range(20):
        with pytest.raises(TryError):
            tries.make(scripted(TryError("too long", is_about_request=True)))
    assert tries.make(scripted("yes")) == "yes"


def test_every_try_is_reserved_before_it_is_made() -> None:
    class Strict:
        def __init__(self) -> None:
            self.reserved = 0

        def begin(self) -> None:
            self.reserved += 1

        def begin_retry(self) -> None:
            if self.reserved == 2:
                raise LookupError("enough")
            self.reserved += 1

    ledger, made = Strict(), [0]

    def attempt() -> str:
        made[0] += 1
        assert made[0] == ledger.reserved
        raise busy()

    with pytest.raises(LookupError):
        build()[0].make(attempt, ledger)
    assert made == [2]


def test_no_try_begins_after_stop() -> None:
    tries, _ = build()
    tries.stop()
    with pytest.raises(StoppedError):
        tries.make(scripted("yes"))
    assert tries.is_stopped


def reply(status: int, reason: str = "", **headers: str) -> Reply:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return Reply(status, reason, message, b"")


@pytest.mark.parametrize(
    ("status", "is_temporary"),
    [(408, True), (429, True), (500, True), (529, True), (400, False), (401, False), (404, False)],
)
def test_statuses_say_whether_a_retry_can_help(status: int, is_temporary: bool) -> None:
    failure = classify_status(reply(status), "base_url")
    assert failure.is_temporary is is_temporary
    assert failure.is_refusal is (status == 429)


def test_a_hint_names_the_key_to_correct() -> None:
    assert classify_status(reply(404, "Not Found"), "base_url").message == (
        "answered 404 Not Found (are base_url and model right?)"
    )
    assert classify_status(reply(404, "Not Found"), "url").message == "answered 404 Not Found (is url right?)"
    moved = classify_status(reply(302, "Found", Location="https://me:word@host/x?token=1"), "url")
    assert moved.message == "answered 302 Found, to https://host/x: write that as url"


def test_an_endpoint_that_asks_to_wait_too_long_has_failed() -> None:
    failure = classify_status(reply(429, Retry_After="86400"), "url")
    assert (failure.is_temporary, failure.wait) == (False, None)
    assert classify_status(reply(429, Retry_After="7"), "url").wait == 7


@pytest.mark.parametrize("value", ["soon", "-3", "nan", ""])
def test_a_senseless_wait_is_ignored(value: str) -> None:
    assert read_retry_after(reply(429, Retry_After=value).headers) is None


def test_connection_errors_are_described_in_words() -> None:
    assert describe_error(ConnectionRefusedError()) == "refuses connections (is it running?)"
    assert describe_error(socket.gaierror(8, "unknown host")) == "cannot be found: unknown host"
    assert describe_error(OSError("\x1b[31mred")) == "broke the connection: OSError: \\x1b[31mred"
    assert TryFailure("broke").reply is None


BLOCKS = [
    (section, word)
    for section in registry.SECTIONS
    for word in registry.words(section)
    if "patience" in registry.load(section, word).node_type.model_fields
]


def test_blocks_that_ask_endpoints_have_the_key() -> None:
    assert {("systems", "http"), ("models", "http"), ("models", "chat")} <= {*BLOCKS}


@pytest.mark.parametrize(("section", "word"), BLOCKS)
def test_patience_is_the_same_key_everywhere(section: registry.Section, word: str) -> None:
    first, this = (registry.load(*block).node_type.model_fields["patience"] for block in (BLOCKS[0], (section, word)))
    assert (this.default, this.description, this.metadata) == (PATIENCE, first.description, first.metadata)


def test_it_outlasts_a_limit_by_the_minute() -> None:
    """An endpoint that refuses everything for a minute is asked again until it answers."""
    clock = QuickClock()
    retries = registry.load("models", "chat").node_type.model_fields["retries"].default
    tries = Tries(Limits(4, retries), clock)
    until = clock.now() + 60

    def answer() -> str:
        if clock.now() < until:
            raise TryError("busy", is_temporary=True, is_refusal=True)
        return "yes"

    assert tries.make(answer) == "yes"
    assert clock.now() <= until + PATIENCE


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
