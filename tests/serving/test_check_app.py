"""Checks over HTTP: outcomes, requests that are none, the token, and a description that is valid."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.endpoints.http_server import Server
from rageval_spec.serving.answer_check import LARGEST, describe_api, make_check_app
from tests.serving.test_answer_check import CONTEXTS, GATES, RIGHT, make_check


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(make_check_app(make_check(tmp_path, gates=GATES), "bot", "t0ken"), "127.0.0.1", 0)
    yield made
    made.close()


def ask(server: Server, body: Any, path: str = "/check", token: str | None = "t0ken") -> tuple[int, Any]:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(server.url + path, content, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_an_answer_gets_its_outcome(server: Server) -> None:
    status, found = ask(server, {"question": "Who wrote it?", "contexts": CONTEXTS, "answer": RIGHT})
    assert (status, found["outcome"]) == (200, "accept")
    assert found["seconds"] > 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"[]", "not an object"),
        ({"question": "q"}, "'answer' is missing"),
        ({"question": "q", "answer": "a", "contexts": "c"}, "'contexts' is not a list of texts"),
        ({"question": "q", "answer": "a", "context": ["c"]}, "the key 'context' is not known"),
        (b'{"question": "' + b"x" * LARGEST + b'", "answer": "a"}', "at most 1,048,576 bytes"),
    ],
)
def test_a_request_that_is_none_is_told_what_to_send(server: Server, body: Any, told: str) -> None:
    status, found = ask(server, body)
    assert status == 400
    assert told in found["error"]


def test_the_token_is_needed(server: Server) -> None:
    for token in (None, "wrong"):
        status, found = ask(server, {"question": "q", "answer": "a"}, token=token)
        assert (status, found["error"]) == (401, "send the server's token: authorization: Bearer TOKEN")


def test_the_description_names_the_path_and_the_outcomes(server: Server) -> None:
    status, found = ask(server, None, "/openapi.json")
    assert status == 200
    assert found == json.loads(json.dumps(describe_api("bot", "t0ken")))
    schema = found["paths"]["/check"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["properties"]["outcome"]["enum"] == ["accept", "person", "reject"]
