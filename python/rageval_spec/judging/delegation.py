"""Shared by judges that ask other judges: passes samples on, and describes the calls that this saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rageval_spec.data.assessment import Criterion, Failed, Finding
from rageval_spec.data.call_errors import UnfinishedError
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.judging.repetition import RepeatedModel
from rageval_spec.plugin import ChatModel, Judge, Model, NoAnswers
from rageval_spec.plugin.names import names_in
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample

_MILLION = 1_000_000


def assess_or_fail(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]
) -> tuple[Sequence[Finding | Failed], tuple[Any, ...]]:
    """A judge's findings and notes. If the judge can assess nothing, it has failed on every sample.

    Raises:
        UnfinishedError: the evaluation stopped: its limits allow no further call, or it was interrupted.
        UsageError, DataError: the spec or a file is wrong, which another judge must not hide.
    """
    if not samples:
        return (), ()
    try:
        assessment = judge.assess(criterion, samples)
    except (UnfinishedError, UsageError, DataError):
        raise
    except RagevalError as error:
        return [Failed(f"{judge.context.name}: {error}")] * len(samples), ()
    return assessment.findings, assessment.notes


def is_free(judge: Judge[Any]) -> bool:
    """Whether neither a judge nor the judges that it asks name a model, so that an estimate can ask it."""
    if names_in(judge.node, "models"):
        return False
    return all(is_free(judge.context.judge(name)) for name in names_in(judge.node, "judges"))


def describe_saving(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], expected: Sequence[Criterion] = ()
) -> str:
    """The calls that a judge would have made for samples that it did not get: `saved 360 calls of gpt`; "" for none.

    Stored replies make no difference, so a resumed evaluation says the same. `expected` is what the judge's `expect`
    received.
    """
    if not samples:
        return ""
    forgetful = _forget(judge)
    if expected:
        forgetful.expect(expected)
    calls = forgetful.estimate(criterion, samples).calls
    parts = [_describe_calls(judge.context.models.get(name), name, tokens) for name, tokens in calls.items() if tokens]
    return f"saved {' and '.join(parts)}" if parts else ""


def _describe_calls(model: Model[Any] | None, name: str, calls: Mapping[str, Any]) -> str:
    read, written = sum(call.input for call in calls.values()), sum(call.output for call in calls.values())
    price = model.price if isinstance(model, ChatModel) else None
    cost = "" if price is None else f", {(read * price[0] + written * price[1]) / _MILLION:.2g} USD"
    return f"{count_noun(len(calls), 'call')} of {name} (about {read + written:,} tokens{cost})"


def _forget(judge: Judge[Any]) -> Judge[Any]:
    """A copy of the judge whose store of replies is empty."""
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
