"""What judges share that ask other judges: handing questions on, and saying what that saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rageval_spec.data.assessment import Criterion, Failed, Finding
from rageval_spec.data.chat import UnfinishedError
from rageval_spec.data.sample import Sample
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.judging.repetition import RepeatedModel
from rageval_spec.plugin import ChatModel, Judge, Model, NoAnswers
from rageval_spec.plugin.names import names_in
from rageval_spec.wording import count_noun

_MILLION = 1_000_000


def assess_or_fail(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample]
) -> tuple[Sequence[Finding | Failed], tuple[Any, ...]]:
    """A judge's findings and notes; a judge that can assess nothing at all has failed on every sample.

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
    """Whether a judge names no model, and asks only judges that name none: it may be asked to see what it says."""
    if names_in(judge.node, "models"):
        return False
    return all(is_free(judge.context.judge(name)) for name in names_in(judge.node, "judges"))


def describe_saving(
    judge: Judge[Any], criterion: Criterion, samples: Sequence[Sample], expected: Sequence[Criterion] = ()
) -> str:
    """What a judge would have asked of samples that it did not get: `saved 360 calls of gpt`; empty for nothing.

    What happens to be answered already has no influence, so that an evaluation that goes on says the same. `expected`
    is what the judge was told to expect.
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
    """The same judge in a world where nothing has been answered yet."""
    models: dict[str, Model[Any]] = {}
    judges: dict[str, Judge[Any]] = {}

    def copy(plugin: Any) -> Any:
        if isinstance(plugin, RepeatedModel):
            return plugin.copy_with(copy)
        context = replace(plugin.context, models=models, judges=judges, answers=NoAnswers())
        return type(plugin)(plugin.node, context)

    models.update({name: copy(model) for name, model in judge.context.models.items()})
    judges.update({name: copy(other) for name, other in judge.context.judges.items()})
    return cast("Judge[Any]", copy(judge))
