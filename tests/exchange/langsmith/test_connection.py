"""How the tool is reached, and its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.langsmith.source import (
    LangSmithApi,
    LangSmithConnection,
    split_url,
)
from tests.exchange.langsmith.server import PROJECT, LangSmithServer, feedback, make_id, rag_trace
from tests.models.endpoint import Answer


@pytest.fixture(params=["new", "old"])
def server(request: pytest.FixtureRequest) -> Iterator[LangSmithServer]:
    running = LangSmithServer(is_old=request.param == "old", page=4)
    running.add(*rag_trace(1), *rag_trace(2), *rag_trace(3))
    yield running
    running.close()


@pytest.fixture
def api(server: LangSmithServer) -> Iterator[LangSmithApi]:
    opened = LangSmithApi(LangSmithConnection(url=server.url), "langsmith")
    yield opened
    opened.close()


def test_all_pages_of_runs_are_read(server: LangSmithServer, api: LangSmithApi) -> None:
    found = [one["id"] for page in api.runs(api.find_project("support"), {}) for one in page]
    assert sorted(found) == sorted(server.runs)
    assert api.is_old == server.is_old


def test_the_window_is_asked_for(api: LangSmithApi) -> None:
    window = {"from": "2026-03-01T12:00:20Z", "to": "2026-03-01T12:00:30Z"}
    found = {one["trace_id"] for page in api.runs(PROJECT, window) for one in page}
    assert found == {make_id("t2")}


def test_lists_are_read_to_their_end(server: LangSmithServer, api: LangSmithApi) -> None:
    server.datasets["golden"] = [{"id": make_id(f"e{n}"), "inputs": {}} for n in range(230)]
    assert len(list(api.examples(api.find_dataset("golden")))) == 230
    server.feedback = {make_id(f"f{n}"): feedback(f"f{n}", f"t{n}", "ok", score=1) for n in range(120)}
    assert len(list(api.feedback([make_id(f"t{n}") for n in range(120)]))) == 120


def test_a_list_that_repeats_itself_ends(server: LangSmithServer, api: LangSmithApi) -> None:
    page = [{"id": str(n)} for n in range(100)]
    server.interrupt = lambda asked: Answer(page) if asked.route == "/examples" else None
    assert len(list(api.examples("d"))) == 100


def test_names_that_are_not_there_are_errors(api: LangSmithApi) -> None:
    with pytest.raises(RagevalError, match="there is no tracing project 'nobody' in this workspace"):
        api.find_project("nobody")
    with pytest.raises(RagevalError, match="there is no dataset 'nothing' in this workspace"):
        api.find_dataset("nothing")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(b"<html>", Content_Type="text/html"), "answered 200 with a web page"),
        (Answer({"rows": []}), "the reply has no list"),
        (Answer([]), "the reply has no list"),
        (Answer({"items": [1], "next_cursor": "x", "runs": [1], "cursors": {"next": "x"}}), "the same rows twice"),
        (Answer({"detail": "no"}, 403), "answered 403"),
    ],
)
def test_a_reply_that_is_not_langsmiths_is_an_error(
    server: LangSmithServer, api: LangSmithApi, reply: Any, says: str
) -> None:
    server.interrupt = lambda asked: reply
    with pytest.raises(ServiceError, match=says):
        list(api.runs(PROJECT, {}))


def test_the_url_comes_from_the_node_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://new/")
    monkeypatch.setenv("LANGCHAIN_ENDPOINT", "http://old")
    assert LangSmithConnection(url="http://own/").find_url() == "http://own"
    assert LangSmithConnection().find_url() == "http://new"
    for name in ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"):
        monkeypatch.delenv(name)
    assert LangSmithConnection().find_url() == LangSmithConnection.usual_url


@pytest.mark.parametrize(
    ("url", "host", "older"),
    [
        (LangSmithConnection.usual_url, LangSmithConnection.usual_url, ""),
        ("https://own.example/api/v1", "https://own.example", "/api/v1"),
        ("https://own.example/api", "https://own.example", "/api"),
    ],
)
def test_the_newer_paths_begin_at_the_host(url: str, host: str, older: str) -> None:
    assert split_url(url) == (host, older)


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGSMITH_API_KEY")
    monkeypatch.delenv("LANGCHAIN_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable LANGSMITH_API_KEY"):
        LangSmithApi(LangSmithConnection(), "langsmith")
    monkeypatch.setenv("LANGCHAIN_API_KEY", "lsv2_old")
    LangSmithApi(LangSmithConnection(), "langsmith").close()
