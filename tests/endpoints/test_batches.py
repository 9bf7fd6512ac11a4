from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rageval_spec.endpoints.batches import Batches
from rageval_spec.endpoints.endpoint import Endpoint
from rageval_spec.endpoints.tries import Limits, Tries
from rageval_spec.errors import RagevalError
from tests.models.chat_endpoint import ChatServer, QuickClock
from tests.models.endpoint import Answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running = ChatServer(lambda number, body: Answer(body))
    yield running
    running.close()


def build(server: ChatServer, retries: int = 0) -> Batches:
    endpoint = Endpoint(server.url, "models.remote", headers={})
    return Batches(endpoint, Tries(Limits(4, retries), QuickClock()))


def test_every_task_is_posted_and_its_reply_read(server: ChatServer) -> None:
    batches = build(server)
    found = batches.post_all(range(20), lambda n: batches.post({"n": n}, lambda content: content["n"] + 1), 4)
    assert sorted(found) == list(range(1, 21))


def test_after_a_failure_calls_under_way_finish_and_no_other_begins(server: ChatServer) -> None:
    refused = threading.Event()

    def script(number: int, body: dict[str, int]) -> Answer:
        if body["n"] == 0:
            refused.wait(10)
            return Answer(body)
        refused.set()
        return Answer({"error": "no"}, 400)

    server.chat = script
    batches, found = build(server), list[int]()
    with pytest.raises(RagevalError, match="answered 400"):
        for value in batches.post_all(range(500), lambda n: batches.post({"n": n}, lambda content: content["n"]), 2):
            found.append(value)
    assert found in ([0], [])
    assert len(server.calls) < 100


def test_the_error_says_where_and_after_how_many_tries(server: ChatServer) -> None:
    server.chat = lambda number, body: Answer({}, 503)
    batches = build(server, retries=2)
    with pytest.raises(RagevalError, match=r"^models\.remote: http://.* answered 503 .*, after 3 tries"):
        list(batches.post_all([1], lambda n: batches.post({}, lambda content: content), 1))
