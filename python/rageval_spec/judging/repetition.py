"""The same judge asked again: its chat models give a further sample of each reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rageval_spec.data.assessment import Estimate
from rageval_spec.data.chat import ChatReply, ChatRequest
from rageval_spec.plugin import ChatModel, Judge, Model
from rageval_spec.plugin.names import names_in

_NUMBERED = " repeat "
"""In a call's key, before the number of its sample."""


class RepeatedModel(ChatModel[Any]):
    """A chat model whose every reply is a further sample; kept replies of the model itself are none of its."""

    def __init__(self, model: ChatModel[Any], repeat: int) -> None:
        """Ask `model` for the sample that is so many further on; 0 is what it gives everybody."""
        super().__init__(model.node, model.context)
        self._model = model
        self._repeat = repeat

    def copy_with(self, copy: Callable[[Any], Any]) -> RepeatedModel:
        """The same sample of a copy of the model, which `copy` makes."""
        model = self._model
        return RepeatedModel(model.copy_with(copy) if isinstance(model, RepeatedModel) else copy(model), self._repeat)

    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        """As the model, of its further sample."""
        return self._model.ask(self._renumber(request), fresh=fresh)

    def find(self, request: ChatRequest) -> ChatReply | None:
        """As the model, of its further sample."""
        return self._model.find(self._renumber(request))

    @property
    def price(self) -> tuple[float, float] | None:
        """The model's."""
        return self._model.price

    def _renumber(self, request: ChatRequest) -> ChatRequest:
        return replace(request, repeat=request.repeat + self._repeat)


def asks_chat(judge: Judge[Any]) -> bool:
    """Whether a judge, or one that it asks, names a chat model: others say the same each time."""
    models = (judge.context.models.get(name) for name in names_in(judge.node, "models"))
    if any(isinstance(model, ChatModel) for model in models):
        return True
    return any(asks_chat(judge.context.judge(name)) for name in names_in(judge.node, "judges"))


def count_repeats(judge: Judge[Any]) -> int:
    """How many samples of one reply a judge may ask for by itself: several where panels sit in it, at any depth."""
    others = (count_repeats(judge.context.judge(name)) for name in names_in(judge.node, "judges"))
    own: int = getattr(judge.node, "repeats", 1)
    return own * max(others, default=1)


def repeat_judge(judge: Judge[Any], repeat: int) -> Judge[Any]:
    """The same judge with further samples of its chat models' replies.

    Each number that it asks for itself is moved by `repeat`, which must be a multiple of `count_repeats` for the
    samples to be others than its own.
    """
    models: Mapping[str, Model[Any]] = {
        name: RepeatedModel(model, repeat) if isinstance(model, ChatModel) else model
        for name, model in judge.context.models.items()
    }
    judges: dict[str, Judge[Any]] = {}
    for name, other in judge.context.judges.items():
        judges[name] = type(other)(other.node, replace(other.context, models=models, judges=judges))
    return type(judge)(judge.node, replace(judge.context, models=models, judges=judges))


def number_calls(estimate: Estimate, repeat: int) -> Estimate:
    """The calls of a judge that `repeat_judge` made, which are none of the judge's own."""
    return Estimate(
        {
            model: {_move(key, repeat): tokens for key, tokens in calls.items()}
            for model, calls in estimate.calls.items()
        }
    )


def _move(key: str, repeat: int) -> str:
    """The key of a call that is so many samples further on, however many panels have moved it already."""
    own, sign, number = key.rpartition(_NUMBERED)
    return f"{own}{sign}{int(number) + repeat}" if sign else f"{key}{_NUMBERED}{repeat}"
