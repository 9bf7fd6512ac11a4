from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator

import pytest

from rageval_spec.endpoints.endpoint import Endpoint
from rageval_spec.endpoints.tries import TryFailure, WrongReplyError
from rageval_spec.plugin.secrets import Secret
from tests.models.chat_endpoint import ChatServer
from tests.models.endpoint import Answer

KEY = "sk-very-secret-4711"
Open = Callable[..., Endpoint]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def reach() -> Iterator[Open]:
    """An endpoint that gives the same reply to every request."""
    servers: list[ChatServer] = []
    opened: list[Endpoint] = []

    def start(answer: Answer, path: str = "/v1", **keys: object) -> Endpoint:
        servers.append(ChatServer(lambda number, body: answer))
        headers = {"Authorization": Secret(f"Bearer {KEY}")}
        opened.append(Endpoint(servers[-1].url + path, "models.judge", headers=headers, **keys))  # type: ignore[arg-type]
        return opened[-1]

    yield start
    for endpoint in opened:
        endpoint.close()
    for server in servers:
        server.close()


def explain(endpoint: Endpoint) -> str:
    """The message about a call that fails."""
    with pytest.raises(TryFailure) as caught, endpoint.exchange(b"{}") as reply:
        endpoint.read(reply, lambda content: content)
    return endpoint.explain(caught.value, 1)


def test_a_key_that_a_reply_repeats_is_masked(reach: Open) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    basic = b64encode(f"user:{KEY}".encode()).decode()
    content = f'{{"answer": "{KEY} {basic} {escaped}", "cut": "{KEY[:-1]}"}}'.encode()
    with reach(Answer(content)).exchange(b"{}") as reply:
        text = json.dumps(json.loads(reply.content))
    assert KEY[:10] not in text
    assert basic[:12] not in text
    assert text.count("***") == 4


@pytest.mark.parametrize("space", [0, 190, 12_790, 12_799, 20_000])
def test_a_shortened_reply_does_not_end_in_a_part_of_the_key(reach: Open, space: int) -> None:
    message = explain(reach(Answer(b" " * space + KEY.encode() + b" is wrong", 401)))
    assert KEY[:6] not in message


def test_a_key_in_the_query_of_a_url_is_never_shown(reach: Open) -> None:
    endpoint = reach(Answer({"error": "the key tell-nobody-42 is wrong"}, 401), "/v1?api_key=tell-nobody-42")
    message = explain(endpoint)
    assert "tell-nobody" not in message
    assert "the key *** is wrong" in message


def test_credentials_that_a_proxy_echoes_are_masked(reach: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    basic = b64encode(b"me:hidden-word").decode()
    proxy = ChatServer(lambda number, body: Answer({"error": f"who is me:hidden-word ({basic})?"}, 407))
    monkeypatch.setenv("http_proxy", proxy.url.replace("://", "://me:hidden-word@"))
    endpoint = Endpoint("http://nowhere.invalid/v1", "models.judge", headers={})
    message = explain(endpoint)
    endpoint.close()
    proxy.close()
    assert "answered 407" in message
    assert "hidden-word" not in message
    assert basic not in message


def test_a_wrong_reply_says_why(reach: Open) -> None:
    def refuse(content: object) -> object:
        raise WrongReplyError("with no list")

    endpoint = reach(Answer({"a": 1}))
    with pytest.raises(TryFailure, match="answered 200, but with no list"), endpoint.exchange(b"{}") as reply:
        endpoint.read(reply, refuse)
    assert explain(reach(Answer(b"<html>"))).endswith("answered 200 with something that is not JSON: <html>")


def test_a_failure_keeps_only_the_beginning_of_a_long_reply(reach: Open) -> None:
    endpoint = reach(Answer(b"x" * 5_000_000, 500))
    with endpoint.exchange(b"{}") as reply:
        failure = endpoint.judge(reply)
    assert failure.reply is not None
    assert len(failure.reply.content) < 200_000
