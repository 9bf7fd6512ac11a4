"""Composes judges: asks other judges, or the same judge several times.

A judge that asks others passes samples on, and describes the calls that this saved. When a judge is asked again, its
chat models give another sample of each reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from rageval_spec.data.chat import ChatReply, ChatRequest, UnfinishedError
from rageval_spec.data.findings import Assessment, Criterion, Estimate, Failed
from rageval_spec.data.outcomes import digest_texts
from rageval_spec.data.samples import Sample
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.plugin import ChatModel, Judge, Model
from rageval_spec.plugin.block_names import names_in
from rageval_spec.store.store import NoAnswers
from rageval_spec.wording import count_noun

TO_A_PERSON = "sent to a person"
"""How the reason of a sample begins that a person must decide."""
REJECTED = "rejected at"
"""How the reason of a sample begins that a judge of stages rejected."""


def assess_or_fail(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], *, is_last: bool = False
) -> Assessment:
    """A judge's assessment. If it can assess nothing, it has failed on every sample; the last judge raises the error.

    Stops, wrong specs and wrong files are raised in any case: another judge must not hide them.
    """
    if not samples:
        return Assessment(())
    try:
        return judge.assess(criterion, samples)
    except RagevalError as error:
        if is_last or isinstance(error, UnfinishedError | UsageError | DataError):
            raise
        return Assessment([Failed(f"{judge.context.name}: {error}")] * len(samples))


def _list_named(judge: Judge[Any]) -> Iterator[Model[Any] | None]:
    """The models that a judge and the judges that it asks name; None for one that the spec does not have."""
    yield from (judge.context.models.get(name) for name in names_in(judge.node, "models"))
    for name in names_in(judge.node, "judges"):
        yield from _list_named(judge.context.judge(name))


def is_free(judge: Judge[Any]) -> bool:
    """Whether neither a judge nor the judges that it asks name a model, so that an estimate can ask it."""
    return not [*_list_named(judge)]


Saving: TypeAlias = "tuple[str, str, int, int]"
"""A call that was not made: the model's name, a digest of the call, and its expected tokens in and out."""


def list_savings(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], expected: Sequence[Criterion] = ()
) -> tuple[Saving, ...]:
    """The calls that a judge would have made for samples that it did not get, as facts for `describe_savings`.

    Stored replies make no difference, so a resumed evaluation says the same. `expected` is what the judge's `expect`
    received.
    """
    if not samples:
        return ()
    forgetful = _forget(judge)
    if expected:
        forgetful.expect(expected)
    calls = forgetful.estimate(criterion, samples).calls
    return tuple(
        (name, digest_texts([key]), one.input, one.output) for name, of in calls.items() for key, one in of.items()
    )


def describe_saving(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], expected: Sequence[Criterion] = ()
) -> str:
    """What `describe_savings` says of the calls of `list_savings`."""
    return describe_savings(list_savings(judge, criterion, samples, expected), list_prices(judge))


def list_prices(judge: Judge[Any]) -> tuple[tuple[str, float, float], ...]:
    """The names of the chat models with a price that a judge asks, with their dollars per million tokens in and out."""
    models = judge.context.models.items()
    return tuple((name, *one.price) for name, one in models if isinstance(one, ChatModel) and one.price is not None)


def describe_savings(savings: Iterable[Saving], prices: Iterable[tuple[str, float, float]]) -> str:
    """The calls that a judge did not have to make: `saved 360 calls of gpt`; "" for none. Equal calls are one."""
    known = {name: (read, written) for name, read, written in prices}
    calls: dict[str, dict[str, tuple[int, int]]] = {}
    for name, key, read, written in savings:
        calls.setdefault(name, {})[key] = (read, written)
    parts = [_describe_calls(name, [*of.values()], known.get(name)) for name, of in calls.items()]
    return f"saved {' and '.join(parts)}" if parts else ""


def _describe_calls(name: str, calls: Sequence[tuple[int, int]], price: tuple[float, float] | None) -> str:
    read, written = (sum(side) for side in zip(*calls, strict=True))
    cost = "" if price is None else f", {(read * price[0] + written * price[1]) / 1_000_000:.2g} USD"
    return f"{count_noun(len(calls), 'call')} of {name} (about {read + written:,} tokens{cost})"


def _forget(judge: Judge[Any]) -> Judge[Any]:
    models: dict[str, Model[Any]] = {}
    judges: dict[str, Judge[Any]] = {}

    def copy(plugin: Any) -> Any:
        if isinstance(plugin, RepeatedModel):
            return plugin.copy_with(copy)
        context = replace(plugin.context, models=models, judges=judges, answers=NoAnswers())
        return plugin.copy_with(context) if isinstance(plugin, Judge) else type(plugin)(plugin.node, context)

    models.update({name: copy(model) for name, model in judge.context.models.items()})
    judges.update({name: copy(other) for name, other in judge.context.judges.items()})
    return cast("Judge[Any]", copy(judge))


_NUMBERED = " repeat "
"""Separates a call's key from the number of its sample."""


class RepeatedModel(ChatModel[Any]):
    """A chat model that gives another sample of each reply; it does not use the stored replies of the model itself."""

    def __init__(self, model: ChatModel[Any], repeat: int) -> None:
        """Ask `model` for sample number `repeat` of each reply; number 0 is the model's ordinary reply."""
        super().__init__(model.node, model.context)
        self._model = model
        self._repeat = repeat

    @property
    def original(self) -> ChatModel[Any]:
        """The model that is repeated, at whatever depth."""
        return self._model.original if isinstance(self._model, RepeatedModel) else self._model

    def copy_with(self, copy: Callable[[Any], Any]) -> RepeatedModel:
        """The same sample number of a copy of the model, which `copy` makes."""
        model = self._model
        return RepeatedModel(model.copy_with(copy) if isinstance(model, RepeatedModel) else copy(model), self._repeat)

    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        return self._model.ask(self._renumber(request), fresh=fresh)

    def find(self, request: ChatRequest) -> ChatReply | None:
        return self._model.find(self._renumber(request))

    @property
    def price(self) -> tuple[float, float] | None:
        return self._model.price

    @property
    def may_have_failed(self) -> bool:
        return self._model.may_have_failed

    @property
    def sample(self) -> int:
        """The number of the sample, counted over all models that this one repeats."""
        return self._model.sample + self._repeat

    def _renumber(self, request: ChatRequest) -> ChatRequest:
        return replace(request, repeat=request.repeat + self._repeat)


def asks_chat(judge: Judge[Any]) -> bool:
    """Whether a judge, or one that it asks, names a chat model. Other judges say the same each time."""
    return any(isinstance(model, ChatModel) for model in _list_named(judge))


def count_repeats(judge: Judge[Any]) -> int:
    """How many samples of one reply a judge asks for by itself: more than one if it contains panels, at any depth."""
    others = (count_repeats(judge.context.judge(name)) for name in names_in(judge.node, "judges"))
    own: int = getattr(judge.node, "repeats", 1)
    return own * max(others, default=1)


def repeat_judge(judge: Judge[Any], repeat: int) -> Judge[Any]:
    """A copy of the judge that gets other samples of its chat models' replies.

    The number of each sample is moved by `repeat`, which must be a multiple of `count_repeats`, so that no sample is
    one of the judge's own.
    """
    models: Mapping[str, Model[Any]] = {
        name: RepeatedModel(model, repeat) if isinstance(model, ChatModel) else model
        for name, model in judge.context.models.items()
    }
    judges: dict[str, Judge[Any]] = {}
    for name, other in judge.context.judges.items():
        judges[name] = other.copy_with(replace(other.context, models=models, judges=judges))
    return judge.copy_with(replace(judge.context, models=models, judges=judges))


def number_calls(estimate: Estimate, repeat: int) -> Estimate:
    """The calls of a judge that `repeat_judge` made; they differ from the calls of the judge itself."""
    calls = estimate.calls.items()
    moved = {model: {_move(key, repeat): tokens for key, tokens in each.items()} for model, each in calls}
    return Estimate(moved, estimate.reads)


def _move(key: str, repeat: int) -> str:
    """The key of a call with its sample number moved by `repeat`, even if panels have moved it already."""
    own, sign, number = key.rpartition(_NUMBERED)
    return f"{own}{sign}{int(number) + repeat}" if sign else f"{key}{_NUMBERED}{repeat}"
