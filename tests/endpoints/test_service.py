from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rageval_spec.endpoints.service import Service, ServiceError, list_pages, quote_part
from rageval_spec.endpoints.tries import Limits
from rageval_spec.plugin.secrets import Secret
from tests.endpoints.api_server import ApiServer, Asked
from tests.models.chat_endpoint import QuickClock
from tests.models.endpoint import Answer, Hangup, Trickle

Reach = Callable[..., Service]
KEY = "sk-very-secret-4711"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    running = ApiServer()
    yield running
    running.close()


@pytest.fixture
def services() -> Iterator[list[Service]]:
    opened: list[Service] = []
    yield opened
    for service in opened:
        service.close()


@pytest.fixture
def reach(services: list[Service], server: ApiServer) -> Callable[..., Service]:
    """Opens a service on the server."""

    def open_service(path: str = "") -> Service:
        headers = {"Authorization": Secret(f"Bearer {KEY}")}
        limits = Limits(2, retries=2, patience=0)
        services.append(
            Service(server.url + path, "import phoenix", headers=headers, limits=limits, clock=QuickClock())
        )
        return services[-1]

    return open_service


def fail(service: Service, method: str = "GET") -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        service.call(method, "/v1/things", b"{}" if method == "POST" else None, repeatable=method == "GET")
    return caught.value


def test_path_and_parameters_are_appended_to_the_url(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer({"path": asked.path})
    service = reach(path="/below/")
    found = service.get(f"/v1/projects/{quote_part('a/b c')}/spans", [("limit", "5"), ("id", "x"), ("id", "y&z")])
    assert found == {"path": "/below/v1/projects/a%2Fb%20c/spans?limit=5&id=x&id=y%26z"}
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_another_content_type_replaces_json(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(b"")
    assert reach().call("PUT", "/file", b"<p>", content_type="text/html") is None
    asked = server.asked[0]
    assert (asked.method, asked.body, asked.headers["content-type"]) == ("PUT", b"<p>", "text/html")


def test_a_web_page_with_status_200_says_that_the_url_may_be_wrong(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(b"<!DOCTYPE html><title>Phoenix</title>", Content_Type="text/html")
    error = fail(reach())
    assert f"import phoenix: {server.url}/v1/things answered 200 with a web page; is url right?" in str(error)
    assert error.status == 200
    assert "DOCTYPE" not in str(error)
    assert len(server.asked) == 1


def test_half_a_reply_is_not_json(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(b'{"data": [{"id": 1}, ')
    assert "answered 200 with something that is not JSON" in str(fail(reach()))


def test_a_refused_call_is_told_with_status_and_content_but_without_the_key(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(f"no project for {KEY}".encode(), 404)
    error = fail(reach())
    assert (error.status, error.content) == (404, b"no project for ***")
    assert "answered 404" in str(error)
    assert KEY not in str(error)


@pytest.mark.parametrize(("status", "calls"), [(401, 1), (404, 1), (409, 1), (422, 1), (429, 3), (503, 3)])
def test_only_what_can_pass_is_tried_again(server: ApiServer, reach: Reach, status: int, calls: int) -> None:
    server.reply = lambda asked: Answer({}, status)
    fail(reach())
    assert len(server.asked) == calls


@pytest.mark.parametrize("answer", [Answer({}, 503), Hangup(20)])
def test_what_must_not_be_sent_twice_is_not(server: ApiServer, reach: Reach, answer: Answer) -> None:
    server.reply = lambda asked: answer
    fail(reach(), "POST")
    assert len(server.asked) == 1


def test_what_must_not_be_sent_twice_is_retried_if_it_was_refused(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer({}, 429) if len(server.asked) == 1 else Answer({"id": 7})
    assert reach().post("/v1/runs", {}, repeatable=False) == {"id": 7}


def test_numbers_that_json_does_not_have_are_null(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(b'{"a": NaN, "b": [Infinity, -Infinity, 1.5]}')
    assert reach().get("/v1/things") == {"a": None, "b": [None, None, 1.5]}


def test_missing_requests_after_close_are_errors(server: ApiServer, reach: Reach) -> None:
    service = reach()
    service.close()
    assert "stopped" in str(fail(service))


def test_pages_follow_the_cursor_to_the_end() -> None:
    pages: dict[str | None, tuple[list[int], str | None]] = {None: ([1], "b"), "b": ([2], "c"), "c": ([3], None)}
    assert list(list_pages(pages.__getitem__, "import phoenix")) == [[1], [2], [3]]


def test_pages_that_go_round_in_circles_end_with_an_error() -> None:
    pages: dict[str | None, tuple[list[int], str | None]] = {None: ([1], "b"), "b": ([2], "b")}
    with pytest.raises(ServiceError, match="gave the page 'b' twice"):
        list(list_pages(pages.__getitem__, "import phoenix"))


def test_a_body_is_plain_json(server: ApiServer, reach: Reach) -> None:
    def echo(asked: Asked) -> Answer:
        content: Any = json.loads(asked.body)
        return Answer({"got": content})

    server.reply = echo
    assert reach().post("/v1/things", {"text": "Übung"}) == {"got": {"text": "Übung"}}
    with pytest.raises(ValueError, match="Out of range"):
        reach().post("/v1/things", {"score": float("nan")})


def test_bytes_are_sent_and_returned_as_they_are(server: ApiServer, reach: Reach) -> None:
    server.reply = lambda asked: Answer(b"\x0a\x00\xff")
    assert reach().send("/v1/traces", b"\x0a\x01", "application/x-protobuf") == b"\x0a\x00\xff"
    assert server.asked[0].body == b"\x0a\x01"
    assert server.asked[0].headers["content-type"] == "application/x-protobuf"
    server.reply = lambda asked: Answer(b"<html>", Content_Type="text/html")
    with pytest.raises(ServiceError, match="answered 200 with a web page; is url right"):
        reach().send("/v1/traces", b"", "application/x-protobuf")


def test_a_tool_that_does_not_reply_in_time_is_asked_only_twice(server: ApiServer, services: list[Service]) -> None:
    server.reply = lambda asked: Trickle({})
    limits = Limits(2, retries=4)
    services.append(Service(server.url, "import phoenix", limits=limits, timeout=0.3, clock=QuickClock()))
    assert "gave no complete reply within 0.3 s, after 2 tries" in str(fail(services[-1]))
