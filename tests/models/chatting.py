"""A chat model, an endpoint for it, and questions for its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rageval_spec.data.chat import CallError, ChatRequest, Message
from rageval_spec.endpoints import pacing
from rageval_spec.models.chat import Chat, ChatNode
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import Secret
from rageval_spec.store.store import MemoryAnswers
from tests.models.chat_endpoint import ChatScript, ChatServer, QuickClock, say_yes
from tests.models.endpoint import Answer

KEY = "sk-very-secret-4711"
SCHEMA = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"], "additionalProperties": False}

Serve = Callable[..., ChatServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ChatServer] = []

    def start(script: ChatScript = say_yes) -> ChatServer:
        servers.append(ChatServer(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> QuickClock:
    quick = QuickClock()
    monkeypatch.setattr(pacing, "Clock", lambda: quick)
    return quick


def build(url: str, context: Context | None = None, **keys: Any) -> Chat:
    node = ChatNode.model_validate({"use": "chat", "base_url": url, "model": "tiny", **keys})
    return Chat(node, context or Context("judge", answers=MemoryAnswers()))


def check_keys_of_headers(build: Callable[..., Any]) -> None:
    """Check what of `headers` is part of a model's key; without headers, the key is that of earlier versions."""
    none, first, second = (build(headers={} if to is None else {"X-Route": to}) for to in (None, "a", "b"))
    assert len({one.key for one in (none, first, second)}) == 3
    assert build(headers={"x-route": "a"}).key == first.key
    assert "headers" not in none.content()["node"]
    old, new = (build(headers={"X-Key": Secret(key, "Bearer ${secret:T}")}) for key in ("old", "new"))
    assert old.key == new.key != build(headers={"X-Key": Secret("old", "Bearer ${secret:U}")}).key
    assert "sk-written-out" not in str(build(headers={"X-Key": "sk-written-out"}).content())


def question(text: str = "Is it so?", **keys: Any) -> ChatRequest:
    return ChatRequest((Message("system", "Judge."), Message("user", text)), **keys)


def fails(model: Chat, request: ChatRequest | None = None) -> str:
    """The message of the error that `ask` raises."""
    with pytest.raises(CallError) as caught:
        model.ask(request or question())
    return str(caught.value)


def always(answer: Answer) -> ChatScript:
    return lambda number, body: answer


def in_turn(*answers: Answer) -> ChatScript:
    """A script of these answers, followed by good ones."""
    return lambda number, body: answers[number] if number < len(answers) else say_yes(number, body)
