"""A server in a thread of its own."""

import socket
import urllib.error
import urllib.request

import pytest

from rageval_spec.endpoints.http_server import Server
from rageval_spec.errors import RagevalError
from rageval_spec.serving.server import Page, make_app


def test_pages_are_made_when_they_are_asked_for() -> None:
    made = iter([Page(b"first"), Page(b"busy", status=503)])
    server = Server(make_app({"/page": lambda: next(made)}), "127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"{server.url}/page", timeout=5) as reply:
            assert reply.read() == b"first"
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(f"{server.url}/page", timeout=5)
        with error.value as refused:
            assert (refused.code, refused.read()) == (503, b"busy")
    finally:
        server.close()


def test_health_needs_no_token() -> None:
    server = Server(make_app({"/healthz": lambda: Page(b"ok"), "/page": lambda: Page(b"x")}, token="t"), "127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"{server.url}/healthz", timeout=5) as reply:
            assert reply.read() == b"ok"
        with pytest.raises(urllib.error.HTTPError, match="401") as error:
            urllib.request.urlopen(f"{server.url}/page", timeout=5)
        error.value.close()
    finally:
        server.close()


def test_an_address_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(RagevalError, match="cannot listen"):
        Server(make_app({}), "127.0.0.1", taken.getsockname()[1])
