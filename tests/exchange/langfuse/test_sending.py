from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.langfuse.connection import LangfuseConnection, connect
from rageval_spec.exchange.langfuse.sending import MOST_BYTES, Sender
from tests.exchange.langfuse.server import LangfuseServer
from tests.models.endpoint import Answer

TIME = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    running = LangfuseServer()
    yield running
    running.close()


@pytest.fixture
def sender(server: LangfuseServer) -> Iterator[Sender]:
    opened = Sender(connect(LangfuseConnection(url=server.url), "langfuse"), "langfuse", None, TIME)
    yield opened
    opened.close()


def test_the_version_is_asked_for_once(server: LangfuseServer, sender: Sender) -> None:
    for number in range(3):
        sender.send([{"id": f"s{number}", "traceId": "t", "name": "x", "value": 1.0}])
    assert [asked.method for asked in server.asked] == ["GET", "POST", "POST", "POST"]


def test_batches_are_no_larger_than_langfuse_takes(server: LangfuseServer, sender: Sender) -> None:
    comment = "x" * (MOST_BYTES // 3)
    sender.send([{"id": f"s{n}", "traceId": "t", "name": "x", "value": 1.0, "comment": comment} for n in range(5)])
    assert [len(body) for _, body in server.bodies] == [2, 2, 1]


def test_a_refused_trace_of_an_older_version_is_an_error(server: LangfuseServer) -> None:
    server.is_old = True
    server.items["golden"] = [{"id": "i"}]
    refused = Answer({"successes": [], "errors": [{"id": "e", "status": 400, "message": "bad trace"}]}, 207)
    server.interrupt = lambda asked: refused if asked.route.endswith("/ingestion") else None
    sender = Sender(connect(LangfuseConnection(url=server.url), "langfuse"), "langfuse", "golden", TIME)
    answer: dict[str, Any] = {"item": "i", "run": "r", "traceId": "t", "input": {}, "output": {}, "error": None}
    with pytest.raises(ServiceError, match=r"Langfuse refused 1 of 1 traces: .*bad trace"):
        sender.send([answer])
    sender.close()
