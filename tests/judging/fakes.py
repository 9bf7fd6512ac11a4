"""A chat model whose replies a test writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from rageval_spec.data.chat import ChatReply, ChatRequest
from rageval_spec.plugin import ChatModel, Context, ModelNode
from rageval_spec.plugin.budget import Budget

Answer = str | dict[str, Any] | ChatReply | Exception


class FakeChatModel(ChatModel[ModelNode]):
    """Stores replies as a real model does: equal requests share one call.

    `answer` is a function of the request, or the replies in the order of the calls.
    """

    def __init__(
        self,
        answer: Callable[[ChatRequest], Answer] | Iterable[Answer],
        budget: Budget | None = None,
        name: str = "llm",
    ) -> None:
        super().__init__(ModelNode(use="chat"), Context(name))
        self.budget = budget
        self.calls: list[ChatRequest] = []
        self.kept: dict[bytes, ChatReply] = {}
        self._lock = Lock()
        if callable(answer):
            self._answer = answer
        else:
            replies = iter(answer)
            self._answer = lambda _: next(replies)

    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        with self._lock:
            if request.digest in self.kept and not fresh:
                return replace(self.kept[request.digest], reused=True)
            if self.budget is not None:
                self.budget.try_call()
            self.calls.append(request)
            answer = self._answer(request)
            if isinstance(answer, Exception):
                raise answer
            reply = answer if isinstance(answer, ChatReply) else ChatReply(_write(answer), finish="stop")
            self.kept[request.digest] = reply
            return reply

    def find(self, request: ChatRequest) -> ChatReply | None:
        return self.kept.get(request.digest)

    @property
    def price(self) -> tuple[float, float] | None:
        return None


def _write(answer: str | dict[str, Any]) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


def context_with(model: ChatModel[Any], folder: Path = Path(), **changes: Any) -> Context:
    """The context of a judge whose node names the model."""
    return Context("strict", folder, models={model.context.name: model}, **changes)


def text_of(request: ChatRequest) -> str:
    """All text that the model reads."""
    return "\n".join(message.content for message in request.messages)
