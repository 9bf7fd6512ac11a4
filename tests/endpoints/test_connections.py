from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest

from rageval_spec.endpoints.bodies import hold_body
from rageval_spec.endpoints.connections import Connections, Request
from rageval_spec.endpoints.failures import Failure, Reply
from tests.models.chat_endpoint import ChatServer, say_yes
from tests.models.endpoint import Answer, Hangup, Trickle


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(say_yes)
    yield running
    running.close()


def build(server: ChatServer, timeout: float = 10.0) -> Connections:
    return Connections(urlsplit(f"{server.url}/v1?a=1"), None, {"x-team": "eval"}, timeout)


def ask(connections: Connections, query: str = "") -> Reply:
    with hold_body(2**20, lambda: connections.is_closed) as body:
        return connections.exchange(Request("POST", b"{}", query), body)


def test_a_connection_is_kept_for_the_next_request(server: ChatServer) -> None:
    connections = build(server)
    assert {ask(connections, "b=2").status for _ in range(3)} == {200}
    assert server.connections == 1
    assert server.paths == ["/v1?a=1&b=2"] * 3
    assert server.headers_of(0)["x-team"] == "eval"
    connections.close()


def test_an_idle_connection_that_the_server_closed_is_not_a_failure(server: ChatServer) -> None:
    class Closing(Answer):
        def write(self, handler: BaseHTTPRequestHandler) -> None:
            super().write(handler)
            handler.close_connection = True  # without saying so

    server.chat = lambda number, body: Closing({})
    connections = build(server)
    assert [ask(connections).status for _ in range(3)] == [200] * 3
    connections.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Hangup(), "broke the connection: RemoteDisconnected"),
        (Hangup(20), "broke the connection: IncompleteRead"),
        (Trickle({}), "gave no complete reply within 0.3 s"),
    ],
)
def test_an_incomplete_reply_is_a_temporary_failure(server: ChatServer, answer: Answer, message: str) -> None:
    server.chat = lambda number, body: answer
    connections = build(server, timeout=0.3)
    with pytest.raises(Failure) as caught:
        ask(connections)
    assert message in caught.value.message
    assert caught.value.is_temporary
    connections.close()


def test_closing_ends_the_calls_under_way(server: ChatServer) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait(number: int, body: dict[str, object]) -> Answer:
        asked.set()
        release.wait(10)
        return Answer({})

    server.chat = wait
    connections, failures = build(server), list[Failure]()

    def fail() -> None:
        with pytest.raises(Failure) as caught:
            ask(connections)
        failures.append(caught.value)

    thread = threading.Thread(target=fail)
    thread.start()
    assert asked.wait(10)
    connections.close()
    thread.join(10)
    release.set()
    assert len(failures) == 1
    with pytest.raises(Failure, match="is no longer asked"):
        ask(connections)
