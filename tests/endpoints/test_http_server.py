"""Addresses to listen at, tokens, and senders that are slow."""

import socket
import urllib.request
from contextlib import closing

import pytest

from rageval_spec.endpoints.http_server import Server, is_local, knows_token, read_token, split_address
from rageval_spec.errors import UsageError
from rageval_spec.serving.server import Page, make_app


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:4318", ("127.0.0.1", 4318)),
        ("4000", ("127.0.0.1", 4000)),
        (":4000", ("127.0.0.1", 4000)),
        ("[::1]:5", ("::1", 5)),
        ("[::]", ("::", 1234)),
        ("localhost", ("localhost", 1234)),
        ("10.0.0.7", ("10.0.0.7", 1234)),
    ],
)
def test_an_address_without_a_port_has_that_of_who_listens(text: str, address: tuple[str, int]) -> None:
    assert split_address(text, 1234) == address


@pytest.mark.parametrize(
    "text", ["", " ", "localhost:", "localhost:http", "localhost:65536", "http://localhost", "::1"]
)
def test_what_is_no_address_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address; write a host and a port: 127\.0\.0\.1:1234"):
        split_address(text, 1234)


def test_addresses_of_this_machine() -> None:
    assert [is_local(one) for one in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::")] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("sent", "is_known"),
    [
        (b"Bearer t0k\xc3\xa9n", True),
        (b"bearer  t0k\xc3\xa9n ", True),
        (b"", False),
        (b"Bearer", False),
        (b"Bearer t0k", False),
        (b"Basic t0k\xc3\xa9n", False),
        (b"t0k\xc3\xa9n", False),
    ],
)
def test_tokens(sent: bytes, is_known: bool) -> None:
    assert knows_token(sent, "t0k\u00e9n") is is_known


def test_a_token_is_that_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVE_TOKEN", " t0ken\n")
    assert (read_token("SERVE_TOKEN"), read_token(None)) == ("t0ken", None)
    for value in ("", " \n"):
        monkeypatch.setenv("SERVE_TOKEN", value)
        with pytest.raises(UsageError, match="--token-env SERVE_TOKEN: the variable is empty"):
            read_token("SERVE_TOKEN")
    monkeypatch.delenv("SERVE_TOKEN")
    with pytest.raises(UsageError, match="--token-env SERVE_TOKEN: the variable is not set"):
        read_token("SERVE_TOKEN")


@pytest.mark.parametrize(
    "begun", [b"", b"GET /page", b"POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"]
)
def test_a_sender_that_stops_is_cut_off_and_holds_nobody_up(begun: bytes) -> None:
    server = Server(make_app({"/page": lambda: Page(b"x")}), "127.0.0.1", 0, patience=0.2)
    try:
        port = int(server.url.rpartition(":")[2])
        with closing(socket.create_connection(("127.0.0.1", port), 10)) as slow:
            slow.sendall(begun)
            with urllib.request.urlopen(f"{server.url}/page", timeout=5) as reply:
                assert reply.read() == b"x"
            while slow.recv(1000):
                pass
    finally:
        server.close()


def test_replies_do_not_wait_for_the_clients_to_acknowledge_their_heads() -> None:
    """The system gives connections the setting of the socket that listens."""
    server = Server(make_app({}), "127.0.0.1", 0)
    try:
        assert server._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        server.close()
