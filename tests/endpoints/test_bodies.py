"""Bodies are read in bounded memory, whatever a server sends."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rageval_spec.endpoints import bodies
from rageval_spec.endpoints.endpoint import Endpoint
from rageval_spec.endpoints.failures import Failure
from tests.models.chat_endpoint import ChatServer
from tests.models.endpoint import Answer

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
    with pytest.raises(Failure, match="replied with more than 4 MiB, which is the limit for a reply"):
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
    with pytest.raises(Failure, match="more than 4 MiB"):
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
    with pytest.raises(Failure) as caught:
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
    assert not bodies._gate.locked()


def test_small_replies_do_not_wait_for_a_large_one(reach: Open) -> None:
    with reach(Answer(b"x" * (2 * MIB))).exchange(b"{}"):
        assert fetch(reach(Answer(b"small"))) == b"small"
