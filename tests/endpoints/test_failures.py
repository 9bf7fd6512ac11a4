from __future__ import annotations

import socket
from email.message import Message

import pytest

from rageval_spec.endpoints.failures import Failure, Reply, describe_error, judge_status, read_retry_after


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
    failure = judge_status(reply(status), "base_url")
    assert failure.is_temporary is is_temporary
    assert failure.is_refusal is (status == 429)


def test_a_hint_names_the_key_to_correct() -> None:
    assert judge_status(reply(404, "Not Found"), "base_url").message == (
        "answered 404 Not Found (are base_url and model right?)"
    )
    assert judge_status(reply(404, "Not Found"), "url").message == "answered 404 Not Found (is url right?)"
    moved = judge_status(reply(302, "Found", Location="https://me:word@host/x?token=1"), "url")
    assert moved.message == "answered 302 Found, to https://host/x: write that as url"


def test_an_endpoint_that_asks_to_wait_too_long_has_failed() -> None:
    failure = judge_status(reply(429, Retry_After="86400"), "url")
    assert (failure.is_temporary, failure.wait) == (False, None)
    assert judge_status(reply(429, Retry_After="7"), "url").wait == 7


@pytest.mark.parametrize("value", ["soon", "-3", "nan", ""])
def test_a_senseless_wait_is_ignored(value: str) -> None:
    assert read_retry_after(reply(429, Retry_After=value).headers) is None


def test_connection_errors_are_described_in_words() -> None:
    assert describe_error(ConnectionRefusedError()) == "refuses connections (is it running?)"
    assert describe_error(socket.gaierror(8, "unknown host")) == "cannot be found: unknown host"
    assert describe_error(OSError("\x1b[31mred")) == "broke the connection: OSError: \\x1b[31mred"
    assert Failure("broke").reply is None
