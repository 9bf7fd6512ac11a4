from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.exchange.langfuse.api import Api
from rageval_spec.exchange.langfuse.connection import LangfuseConnection, connect
from tests.exchange.langfuse.server import LangfuseServer, rag_trace, score
from tests.models.endpoint import Answer


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    running = LangfuseServer(page=5)
    running.observations = [one for number in range(1, 5) for one in rag_trace(number)]
    running.scores = {f"s{n}": score(n, "t1", "thumbs", 1.0) for n in range(7)}
    yield running
    running.close()


@pytest.fixture
def api(server: LangfuseServer) -> Iterator[Api]:
    service = connect(LangfuseConnection(url=server.url), "langfuse")
    yield Api(service, "langfuse")
    service.close()


def list_ids(pages: Iterator[list[Any]]) -> list[str]:
    return sorted(row["id"] for page in pages for row in page)


def test_all_pages_are_read(server: LangfuseServer, api: Api) -> None:
    assert list_ids(api.observations({}, {})) == sorted(row["id"] for row in server.observations)
    assert len(list_ids(api.scores({}))) == 7
    assert [asked.route.rpartition("/")[2] for asked in server.asked] == 3 * ["observations"] + 2 * ["scores"]


def test_an_older_langfuse_is_asked_by_its_older_paths(server: LangfuseServer, api: Api) -> None:
    server.is_old = True
    found = list_ids(api.observations({"from": "2026-03-01T12:00:00Z"}, {"environment": "production"}))
    assert api.is_old
    assert {"t1", "t4", "o10", "o42"} <= set(found)
    assert len(list_ids(api.scores({}))) == 7


def test_the_window_is_asked_for(server: LangfuseServer, api: Api) -> None:
    window = {"from": "2026-03-01T12:00:20Z", "to": "2026-03-01T12:00:30Z"}
    assert {row[:2] for row in list_ids(api.observations(window, {}))} == {"o2"}
    assert server.asked[0].parameters["fromStartTime"] == ["2026-03-01T12:00:20Z"]


def test_numbered_pages_end_although_the_server_repeats_one(server: LangfuseServer, api: Api) -> None:
    server.items["golden"] = []
    page = {"data": [{"id": "i1"}], "meta": {"page": 1, "totalPages": 10**9}}
    server.interrupt = lambda asked: Answer(page) if asked.route.endswith("dataset-items") else None
    assert len(list(api.dataset_items("golden"))) == 2


def test_a_refusal_is_not_taken_for_an_older_version(server: LangfuseServer, api: Api) -> None:
    server.interrupt = lambda asked: Answer({"message": "no"}, 403)
    with pytest.raises(ServiceError, match="answered 403"):
        list(api.observations({}, {}))
    assert not api.is_old
