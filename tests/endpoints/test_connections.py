"""Bodies are read in bounded memory, whatever a server sends."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest

from rageval_spec.endpoints import endpoint as connections
from rageval_spec.endpoints.endpoint import Body, Connections, Endpoint, HttpRequest
from rageval_spec.endpoints.tries import Reply, TryFailure
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
    with closing(Body(2**20, lambda: connections.is_closed)) as body:
        return connections.exchange(HttpRequest("POST", b"{}", query), body)


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
    with pytest.raises(TryFailure) as caught:
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
    connections, failures = build(server), list[TryFailure]()

    def fail() -> None:
        with pytest.raises(TryFailure) as caught:
            ask(connections)
        failures.append(caught.value)

    thread = threading.Thread(target=fail)
    thread.start()
    assert asked.wait(10)
    connections.close()
    thread.join(10)
    release.set()
    assert len(failures) == 1
    with pytest.raises(TryFailure, match="is no longer asked"):
        ask(connections)


MIB = 2**20
Open = Callable[..., Endpoint]


@pytest.fixture
def reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    servers: list[ChatServer] = []
    opened: list[Endpoint] = []

    def start(answer: Answer, most: int = 4 * MIB) -> Endpoint:
        servers.append(ChatServer(lambda number, body: answer))
        opened.append(Endpoint(servers[-1].url, "models.judge", headers={}, most_bytes=most))
        return opened[-1]

    yield start
    for endpoint in opened:
        endpoint.close()
    for server in servers:
        server.close()


def fetch(endpoint: Endpoint) -> bytes:
    with endpoint.exchange(b"{}") as reply:
        return reply.content


def test_a_reply_above_the_limit_is_refused(reach: Open) -> None:
    with pytest.raises(TryFailure, match="replied with more than 4 MiB, which is the limit for a reply"):
        fetch(reach(Answer(b"x" * (4 * MIB + 1))))
    assert len(fetch(reach(Answer(b"x" * (4 * MIB))))) == 4 * MIB


@pytest.mark.parametrize(
    ("encoding", "compress"), [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_compressed_replies_are_read_and_bombs_are_not(
    reach: Open, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    content = b'{"a": 1}' * 1000
    assert fetch(reach(Answer(compress(content), Content_Encoding=encoding))) == content
    bomb = reach(Answer(compress(bytes(200 * MIB)), Content_Encoding=encoding))
    tracemalloc.start()
    with pytest.raises(TryFailure, match="more than 4 MiB"):
        fetch(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * MIB


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"\x1f\x8bnonsense" * 5, "gzip", "replied with damaged gzip"),
        (b"whatever", "br", "replied in the encoding 'br', which was not asked for"),
        (gzip.compress(b"whole", mtime=0)[:-9], "gzip", "broke the connection: IncompleteRead"),
    ],
)
def test_a_body_that_cannot_be_decompressed_is_a_failure(
    reach: Open, content: bytes, encoding: str, message: str
) -> None:
    with pytest.raises(TryFailure) as caught:
        fetch(reach(Answer(content, Content_Encoding=encoding)))
    assert message in caught.value.message


def test_only_one_large_reply_is_in_memory_at_a_time(reach: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = reach(Answer(b"x" * (3 * MIB)))
    held, most, lock = 0, 0, threading.Lock()

    def ask(number: int) -> None:
        nonlocal held, most
        with endpoint.exchange(b"{}"):
            with lock:
                held += 1
                most = max(most, held)
            with lock:
                held -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))
    assert most == 1
    assert not connections._gate.locked()


def test_small_replies_do_not_wait_for_a_large_one(reach: Open) -> None:
    with reach(Answer(b"x" * (2 * MIB))).exchange(b"{}"):
        assert fetch(reach(Answer(b"small"))) == b"small"


@pytest.mark.parametrize(
    ("pieces", "content"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"], b"body"),
        ([b"HTTP/1.1 200 OK\r\nConten", b"t-Length: 4\r\n\r\nbody"], b"body"),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nConnection: keep-alive\r\n\r\nb", b"o", b"dy"], b"body"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"], b"body"),
        ([b"HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nContent-Length: 4\r\n\r\nbody"], b"body"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], b""),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"], b"body"),
    ],
)
def test_a_reply_is_the_same_however_it_arrives(pieces: list[bytes], content: bytes) -> None:
    ours, theirs = socket.socketpair()

    def send() -> None:
        for piece in pieces:
            theirs.sendall(piece)
            time.sleep(0.01)

    sender = threading.Thread(target=send)
    sender.start()
    timed = connections._TimedSocket(ours, time.monotonic() + 10)
    head, found = connections._receive(timed, "POST", Body(2**20, lambda: False))
    sender.join()
    assert (head.status, head.reason, found, head.will_close) == (200, "OK", content, False)
    ours.close()
    theirs.close()
