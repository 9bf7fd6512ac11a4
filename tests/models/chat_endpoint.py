"""A scripted chat endpoint in a thread, and a clock whose sleeps take no time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rageval_spec.endpoints.pacing import Clock, StoppedError
from tests.models.endpoint import Answer, Server, answer_well

ChatScript = Callable[[int, dict[str, Any]], Answer]


def completion(text: Any = "yes", **choice: Any) -> dict[str, Any]:
    """A reply in OpenAI's form: 7 tokens in, 3 out."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "created": 1700000000,
        "model": "tiny-2026-01-01",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def refusal(message: str, status: int = 400, **error: Any) -> Answer:
    return Answer({"error": {"message": message, "type": "invalid_request_error", **error}}, status)


def say_yes(number: int, body: dict[str, Any]) -> Answer:
    return Answer(completion())


class ChatServer(Server):
    """An endpoint in a thread. `chat` gives the answer to call number n (from 0) with this body."""

    def __init__(self, chat: ChatScript = say_yes) -> None:
        self.chat = chat
        super().__init__(answer_well)

    def answer(self, number: int, content: dict[str, Any]) -> Answer:
        return self.chat(number, content)

    def headers_of(self, number: int) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers[number].items()}


class QuickClock(Clock):
    """A clock on which time passes only through `sleep`, which returns at once."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        if self.is_stopped:
            raise StoppedError
        with self._lock:
            self.slept.append(seconds)
            self.time += max(0.0, seconds)
