from __future__ import annotations

from collections.abc import Iterator

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.langsmith.connection import LangSmithConnection, connect
from rageval_spec.exchange.langsmith.sending import Sender
from tests.exchange.langsmith.server import LangSmithServer, make_id
from tests.models.endpoint import Answer

FEEDBACK = {"id": make_id("f"), "run_id": make_id("t"), "key": "x", "score": 0.5}


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    running = LangSmithServer()
    running.datasets["golden"] = []
    yield running
    running.close()


@pytest.fixture
def sender(server: LangSmithServer) -> Iterator[Sender]:
    opened = Sender(connect(LangSmithConnection(url=server.url), "langsmith"), "langsmith", "golden")
    yield opened
    opened.close()


def test_feedback_that_is_there_is_changed(server: LangSmithServer, sender: Sender) -> None:
    sender.send([FEEDBACK])
    sender.send([FEEDBACK | {"score": 0.25, "comment": "worse"}])
    assert [(one["score"], one["comment"]) for one in server.feedback.values()] == [(0.25, "worse")]


def test_an_experiment_is_opened_once(server: LangSmithServer, sender: Sender) -> None:
    for _ in range(2):
        sender.send([FEEDBACK | {"experiment": "nightly"}])
    assert [path for path, _ in server.bodies].count("/sessions") == 1


def test_an_experiment_that_is_there_is_found_by_its_name(server: LangSmithServer, sender: Sender) -> None:
    server.sessions["nightly"] = {"id": make_id("earlier"), "name": "nightly"}
    conflict = Answer({"detail": "exists"}, 409)
    server.interrupt = lambda asked: conflict if (asked.method, asked.route) == ("POST", "/sessions") else None
    sender.send([FEEDBACK | {"experiment": "nightly"}])
    assert server.feedback[FEEDBACK["id"]]["session_id"] == make_id("earlier")  # type: ignore[index]


def test_feedback_that_is_refused_is_an_error(server: LangSmithServer, sender: Sender) -> None:
    with pytest.raises(ServiceError, match=r"answered 422 .*at most 4 decimal places"):
        sender.send([FEEDBACK | {"score": 0.123456}])
