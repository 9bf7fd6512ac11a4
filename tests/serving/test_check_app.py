"""Checks over HTTP: outcomes, requests that are none, limits, the token, and a description that is true."""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import jsonschema
import pytest

from rageval_spec.endpoints.http_server import Server
from rageval_spec.serving.answer_check import AnswerCheck
from rageval_spec.serving.server import LARGEST, LONGEST, MOST_CONTEXTS, CheckLimits, describe_api, make_check_app
from tests.serving.test_answer_check import CONTEXTS, RIGHT, WRONG, make_check

HEAD = b"POST /check HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t0ken\r\n"
ASKED = {"question": "Who wrote it?", "contexts": CONTEXTS, "answer": RIGHT}


@contextmanager
def serving(check: AnswerCheck, limits: CheckLimits | None = None) -> Iterator[Server]:
    made = Server(make_check_app(check, "bot", "t0ken", limits), "127.0.0.1", 0)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(make_check(tmp_path)) as made:
        yield made


def ask(server: Server, body: Any, path: str = "/check", token: str | None = "Bearer t0ken") -> tuple[int, Any]:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {} if token is None else {"Authorization": token}
    request = urllib.request.Request(server.url + path, content, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def is_healthy(server: Server) -> bool:
    with urllib.request.urlopen(f"{server.url}/healthz", timeout=5) as reply:
        return bool(reply.read() == b"ok\n")


def test_an_answer_gets_its_outcome(server: Server) -> None:
    status, found = ask(server, ASKED)
    assert (status, found["outcome"]) == (200, "accept")
    assert found["seconds"] > 0
    assert ask(server, ASKED | {"answer": WRONG})[1]["outcome"] == "reject"
    assert ask(server, {"question": "Who?", "answer": RIGHT})[1]["outcome"] == "person"


SURROGATE = b'{"question": "q", "answer": "half \\ud83d of one"}'


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"NaN", "not an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"question": ' + b'{"a": ' * 100_000, "not JSON"),
        (b'{"question": ' + b"9" * 10_000 + b"}", "not JSON"),
        (b'{"question": "caf\xe9", "answer": "a"}', "not JSON in UTF-8"),
        (b"\x1f\x8b\x08\x00", "not JSON"),
        (b"[]", "not an object"),
        (b'{"question": NaN, "answer": "a"}', "'question' is missing or not a text"),
        ({"question": "q"}, "'answer' is missing"),
        ({"question": ["q"], "answer": "a"}, "'question' is missing or not a text"),
        ({"question": "q", "answer": None}, "'answer' is missing or not a text"),
        ({"question": "q", "answer": "a", "contexts": "c"}, "'contexts' is not a list of texts"),
        ({"question": "q", "answer": "a", "contexts": {}}, "'contexts' is not a list of texts"),
        ({"question": "q", "answer": "a", "contexts": ["c", 1]}, "'contexts', number 2, is missing or not a text"),
        ({"question": "q", "answer": "a", "context": ["c"]}, "the key 'context' is not known"),
        ({"\u001b[2J": "q"}, r"the key '\x1b[2J' is not known"),
        ({"\ud800": "q"}, "is not known"),
        (SURROGATE, r"'answer' has half of a character, '\ud83d'"),
    ],
)
def test_a_request_that_is_none_is_told_what_to_send(server: Server, body: Any, told: str) -> None:
    status, found = ask(server, body)
    assert status == 400
    assert told in found["error"]
    assert "; send " in found["error"]
    assert ask(server, ASKED)[0] == 200


@pytest.mark.parametrize(
    "answer",
    ["\x00", "\u202e", "\ufeff", "a\u0301" * 1000, "<script>", "{{ x }}", "\N{SHARK}" * 99, " " * 9999, ". " * 50_000],
)
def test_odd_texts_have_an_outcome(server: Server, answer: str) -> None:
    status, found = ask(server, {"question": answer, "contexts": [answer, ""], "answer": answer})
    assert (status, found["outcome"] in ("accept", "person", "reject")) == (200, True)


def test_what_is_not_there_is_told_what_is(server: Server) -> None:
    status, found = ask(server, None)
    assert (status, found["error"].partition(";")[0]) == (405, "Method Not Allowed")
    status, found = ask(server, ASKED, "/chekc")
    assert (status, found["error"]) == (
        404, "Not Found; there are POST /check and GET /openapi.json, /healthz, /ready"
    )  # fmt: skip


@pytest.mark.parametrize(
    "token", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic t0ken", "t0ken", "Bearer t0kenx"]
)
def test_without_the_token_nothing_is_checked(server: Server, token: str | None) -> None:
    for path, body in (("/check", ASKED), ("/check", b"{"), ("/openapi.json", None), ("/other", None)):
        status, found = ask(server, body, path, token)
        assert (status, found["error"]) == (401, "send the server's token: authorization: Bearer TOKEN")
    assert is_healthy(server)


def test_requests_beyond_a_limit_are_told_the_limit(server: Server) -> None:
    text = "x" * (LONGEST + 1)
    for change, told in (
        ({"contexts": ["c"] * (MOST_CONTEXTS + 1)}, "there are 101 contexts; at most 100 are taken"),
        ({"answer": text}, "'answer' has 100,001 characters; at most 100,000 are taken"),
        ({"contexts": ["c", text]}, "'contexts', number 2, has 100,001 characters; at most 100,000 are taken"),
    ):
        assert ask(server, ASKED | change) == (422, {"error": told})
    told = "a request has at most 1,048,576 bytes; send fewer or shorter contexts"
    assert ask(server, b"x" * (LARGEST + 1)) == (413, {"error": told})
    assert ask(server, ASKED | {"contexts": ["c" * (LARGEST // MOST_CONTEXTS - 100)] * MOST_CONTEXTS})[0] == 200


@pytest.mark.parametrize("length", ["99999999999999999999", "1048577", "9" * 5000])
def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(server: Server, length: str) -> None:
    with closing(connect(server)) as raw:
        raw.sendall(HEAD + f"Content-Length: {length}\r\n\r\n".encode())
        assert raw.recv(100).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


def test_a_body_in_pieces_has_the_same_limit(server: Server) -> None:
    with closing(connect(server)) as raw:
        raw.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(LARGEST // 0x10000 + 1):
            raw.sendall(piece)
        assert raw.recv(100).startswith(b"HTTP/1.1 413")


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 10)


class SlowCheck(AnswerCheck):
    """A check whose judge takes until the gate opens; `begun` counts the checks."""

    gate: Event
    begun: Semaphore

    def check(self, question: str, contexts: Any, answer: str) -> dict[str, Any]:
        self.begun.release()
        assert self.gate.wait(20)
        return super().check(question, contexts, answer)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[SlowCheck]:
    plain, gate = make_check(tmp_path), Event()
    made = SlowCheck(plain.metrics, plain.bounds)
    vars(made).update(gate=gate, begun=Semaphore(0))
    yield made
    gate.set()


def test_a_slow_judge_holds_up_neither_health_nor_the_refusal_of_more_checks(slow: SlowCheck) -> None:
    with serving(slow, CheckLimits(at_once=2, most=2)) as server, ThreadPoolExecutor(2) as pool:
        running = [pool.submit(ask, server, ASKED) for _ in range(2)]
        assert all(slow.begun.acquire(timeout=10) for _ in running)
        assert ask(server, ASKED) == (503, {"error": "at most 2 checks are taken at a time; try again in a second"})
        assert is_healthy(server)
        slow.gate.set()
        assert [one.result()[0] for one in running] == [200, 200]
        assert ask(server, ASKED)[0] == 200


def test_a_check_that_takes_too_long_is_answered_and_keeps_its_place_until_it_ends(
    slow: SlowCheck,
) -> None:
    with serving(slow, CheckLimits(at_once=1, most=1, seconds=0.05)) as server:
        assert ask(server, ASKED) == (503, {"error": "the check took longer than 0.05 s; hold the answer back"})
        assert ask(server, ASKED)[1]["error"].startswith("at most 1 checks")
        assert is_healthy(server)
        slow.gate.set()
        while ask(server, ASKED)[0] != 200:
            pass


def test_a_body_that_does_not_come_is_answered(tmp_path: Path) -> None:
    with serving(make_check(tmp_path), CheckLimits(patience=0.1)) as server, closing(connect(server)) as raw:
        raw.sendall(HEAD + b"Content-Length: 9\r\n\r\nabc")
        assert is_healthy(server)
        reply = b"".join(iter(lambda: raw.recv(1000), b""))
        assert reply.startswith(b"HTTP/1.1 408")
        assert b"the request did not come within 0.1 s" in reply


def test_a_client_that_leaves_is_no_error_of_the_server(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        with closing(connect(server)) as raw:
            raw.sendall(HEAD + b"Content-Length: 9\r\n\r\nabc")
    assert ask(server, ASKED)[0] == 200
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def test_what_is_asked_and_answered_fits_the_description(server: Server) -> None:
    status, api = ask(server, None, "/openapi.json")
    assert (status, api) == (200, json.loads(json.dumps(describe_api("bot", has_token=True))))

    def validator(found: Any) -> jsonschema.Draft202012Validator:
        schema = found["content"]["application/json"]["schema"]
        return jsonschema.Draft202012Validator({**schema, "components": api["components"]})

    described = api["paths"]["/check"]["post"]
    takes = validator(described["requestBody"])
    for body, expected in (
        (ASKED, 200),
        (ASKED | {"answer": WRONG}, 200),
        (ASKED | {"contexts": None}, 200),
        ({"question": "q", "answer": ""}, 200),
        ({"question": "q"}, 400),
        (ASKED | {"more": 1}, 400),
        (ASKED | {"contexts": [1]}, 400),
        (ASKED | {"contexts": ["c"] * 101}, 422),
        (ASKED | {"answer": "x" * 100_001}, 422),
    ):
        status, found = ask(server, body)
        assert status == expected
        assert takes.is_valid(body) == (status == 200)
        validator(described["responses"][str(status)]).validate(found)
    assert set(described["responses"]) == {"200", "400", "401", "408", "413", "422", "503"}
    assert described["security"] == [{"token": []}]
    assert api["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    assert "security" not in describe_api("bot", has_token=False)["paths"]["/check"]["post"]
