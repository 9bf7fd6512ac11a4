"""How the tool is reached, and its pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.braintrust.source import CLOUD, BraintrustApi, BraintrustConnection, find_url
from tests.exchange.braintrust.server import BraintrustServer, rag_trace
from tests.models.endpoint import Answer


@pytest.fixture
def api(server: BraintrustServer) -> Iterator[BraintrustApi]:
    opened = BraintrustApi(BraintrustConnection(url=server.url), "braintrust")
    yield opened
    opened.close()


def test_all_pages_of_rows_are_read(server: BraintrustServer, api: BraintrustApi) -> None:
    server.add("experiment", "nightly", *rag_trace(1), *rag_trace(2), *rag_trace(3))
    identity = api.find("experiment", "support", "nightly")
    assert len([one for page in api.rows("experiment", identity) for one in page]) == 12


def test_names_that_are_not_there_are_errors(api: BraintrustApi) -> None:
    with pytest.raises(RagevalError, match="there is no experiment 'x' in the project 'support'"):
        api.find("experiment", "support", "x")
    with pytest.raises(RagevalError, match="there is no project 'y'"):
        api.find("project_logs", "y", None)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(b"<html>", Content_Type="text/html"), "answered 200 with a web page"),
        (Answer({"data": []}), "the reply has no list 'events'"),
        (Answer({"events": [{"id": "1"}], "cursor": "x"}), "gave the same rows twice"),
    ],
)
def test_a_reply_that_is_not_braintrusts_is_an_error(
    server: BraintrustServer, api: BraintrustApi, reply: Answer, says: str
) -> None:
    server.interrupt = lambda asked: reply
    with pytest.raises(ServiceError, match=says):
        list(api.rows("experiment", "e"))


def test_rows_that_are_not_taken_are_an_error(server: BraintrustServer, api: BraintrustApi) -> None:
    server.interrupt = lambda asked: Answer({"row_ids": ["a"]})
    with pytest.raises(ServiceError, match="Braintrust took 1 of 2 rows"):
        api.insert("experiment", "e", [{"id": "a"}, {"id": "b"}])


def test_the_url_comes_from_the_node_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAINTRUST_API_URL", "http://own/")
    assert find_url(BraintrustConnection(url="http://node/")) == "http://node"
    assert find_url(BraintrustConnection()) == "http://own"
    monkeypatch.delenv("BRAINTRUST_API_URL")
    assert find_url(BraintrustConnection()) == CLOUD


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAINTRUST_API_KEY")
    with pytest.raises(UsageError, match="set the environment variable BRAINTRUST_API_KEY"):
        BraintrustApi(BraintrustConnection(), "braintrust")
