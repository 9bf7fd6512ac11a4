"""How the tool is reached, and its pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.commands.exchange import read_settings
from rageval_spec.data.traces import Feedback
from rageval_spec.endpoints.service import ServiceError
from rageval_spec.errors import DataError, UsageError
from rageval_spec.exchange.langfuse.source import (
    LangfuseApi,
    LangfuseConnection,
    normalise,
    read_feedback,
    read_list,
    read_mapping,
    tell_kind,
    trace_of,
)
from rageval_spec.plugin.secrets import Secret
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
def api(server: LangfuseServer) -> Iterator[LangfuseApi]:
    opened = LangfuseApi(LangfuseConnection(url=server.url), "langfuse")
    yield opened
    opened.close()


def list_ids(pages: Iterator[list[Any]]) -> list[str]:
    return sorted(row["id"] for page in pages for row in page)


def test_all_pages_are_read(server: LangfuseServer, api: LangfuseApi) -> None:
    assert list_ids(api.observations({}, {})) == sorted(row["id"] for row in server.observations)
    assert len(list_ids(api.scores({}))) == 7
    assert [asked.route.rpartition("/")[2] for asked in server.asked] == 3 * ["observations"] + 2 * ["scores"]


def test_an_older_langfuse_is_asked_by_its_older_paths(server: LangfuseServer, api: LangfuseApi) -> None:
    server.is_old = True
    found = list_ids(api.observations({"from": "2026-03-01T12:00:00Z"}, {"environment": "production"}))
    assert api.is_old
    assert {"t1", "t4", "o10", "o42"} <= set(found)
    assert len(list_ids(api.scores({}))) == 7


def test_the_window_is_asked_for(server: LangfuseServer, api: LangfuseApi) -> None:
    window = {"from": "2026-03-01T12:00:20Z", "to": "2026-03-01T12:00:30Z"}
    assert {row[:2] for row in list_ids(api.observations(window, {}))} == {"o2"}
    assert server.asked[0].parameters["fromStartTime"] == ["2026-03-01T12:00:20Z"]


def test_numbered_pages_end_although_the_server_repeats_one(server: LangfuseServer, api: LangfuseApi) -> None:
    server.items["golden"] = []
    page = {"data": [{"id": "i1"}], "meta": {"page": 1, "totalPages": 10**9}}
    server.interrupt = lambda asked: Answer(page) if asked.route.endswith("dataset-items") else None
    assert len(list(api.dataset_items("golden"))) == 2


def test_a_refusal_is_not_taken_for_an_older_version(server: LangfuseServer, api: LangfuseApi) -> None:
    server.interrupt = lambda asked: Answer({"message": "no"}, 403)
    with pytest.raises(ServiceError, match="answered 403"):
        list(api.observations({}, {}))
    assert not api.is_old


def test_the_url_comes_from_the_node_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGFUSE_BASE_URL", "http://new:3000/")
    monkeypatch.setenv("LANGFUSE_HOST", "http://old:3000")
    assert LangfuseConnection(url="http://own:3000/").find_url() == "http://own:3000"
    assert LangfuseConnection().find_url() == "http://new:3000"
    monkeypatch.delenv("LANGFUSE_BASE_URL")
    assert LangfuseConnection().find_url() == "http://old:3000"
    monkeypatch.delenv("LANGFUSE_HOST")
    assert LangfuseConnection().find_url() == LangfuseConnection.usual_url


def test_a_key_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with pytest.raises(
        UsageError, match="export: there is no secret key; set the environment variable LANGFUSE_SECRET_KEY"
    ):
        LangfuseApi(LangfuseConnection(), "export")
    LangfuseApi(LangfuseConnection(secret_key=Secret("sk-lf-given", "${secret:KEY}")), "export").close()


@pytest.mark.parametrize("url", ["localhost:3000", "http://me:secret-word@langfuse"])
def test_a_url_that_cannot_be_used_is_an_error_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="--url: ") as caught:
        read_settings(LangfuseConnection, {"url": url})
    assert "secret-word" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "keys", [("id", "traceId", "startTime"), ("id", "trace_id", "start_time"), ("ID", "Trace ID", "Start Time")]
)
def test_the_styles_of_names_are_one(keys: tuple[str, str, str]) -> None:
    row = normalise(dict(zip(keys, ("o1", "t1", "2026"), strict=True)) | {"type": "SPAN", "output": ""}, "f:1")
    assert row == {"id": "o1", "traceid": "t1", "starttime": "2026", "type": "SPAN"}
    assert (tell_kind(row), trace_of(row)) == ("observation", "t1")


def test_a_row_without_an_id_is_an_error_with_its_keys() -> None:
    with pytest.raises(DataError, match="f:1: there is no 'id' in this row of Langfuse; its keys are question, answer"):
        normalise({"question": "q", "answer": "a"}, "f:1")


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ({"value": 0.5, "dataType": "NUMERIC"}, Feedback("x", 0.5)),
        ({"value": "0.5", "dataType": "NUMERIC"}, Feedback("x", 0.5)),
        ({"value": True, "dataType": "BOOLEAN"}, Feedback("x", 1.0)),
        ({"value": 0, "stringValue": "False", "dataType": "BOOLEAN"}, Feedback("x", 0.0)),
        ({"value": "kind", "dataType": "CATEGORICAL"}, Feedback("x", None, "kind")),
        (
            {"value": 0, "stringValue": "kind", "dataType": "CATEGORICAL", "source": "EVAL"},
            Feedback("x", None, "kind", None, "program"),
        ),
        ({"value": float("nan"), "dataType": "NUMERIC", "comment": "odd"}, Feedback("x", None, None, "odd")),
        ({"value": [1], "dataType": "NUMERIC", "authorUserId": "u"}, Feedback("x", author="u")),
    ],
)
def test_scores_of_all_types_and_versions(score: dict[str, Any], expected: Feedback) -> None:
    assert read_feedback(normalise({"id": "s", "name": "x", **score}, "f:1")) == expected


def test_the_subject_of_a_new_score_names_its_trace() -> None:
    row = {"id": "s", "name": "x", "value": 1, "dataType": "NUMERIC"}
    assert trace_of(row | {"subject": {"kind": "trace", "id": "t1"}, "datatype": "N"}) == "t1"
    assert trace_of(row | {"subject": {"kind": "observation", "id": "o1", "traceId": "t1"}, "datatype": "N"}) == "t1"
    assert trace_of(row | {"subject": {"kind": "session", "id": "s1"}, "datatype": "N"}) is None


def test_mappings_and_lists_are_read_from_text_too() -> None:
    assert read_mapping('{"input": 3}') == read_mapping([{"key": "input", "value": 3}]) == {"input": 3}
    assert read_mapping("3") == read_mapping(None) == {}
    assert read_list("['a','b']") == read_list('["a", "b"]') == read_list(["a", "b"]) == ["a", "b"]
    assert read_list("[") == read_list(5) == []


@given(st.dictionaries(st.sampled_from(["id", "name", "value", "dataType", "subject", "traceId", "type"]), JSON))
def test_no_row_breaks_the_reading(found: dict[str, Any]) -> None:
    try:
        row = normalise(found, "f:1")
    except DataError:
        return
    tell_kind(row), trace_of(row), read_feedback(row)
