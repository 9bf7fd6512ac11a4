"""What judges share that ask other judges: handing questions on, and saying what that saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast

from rageval_spec.data.assessment import Ability, Criterion, Estimate, Failed, Finding, Questions
from rageval_spec.data.chat import UnfinishedError
from rageval_spec.data.sample import Sample
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.judging.repetition import RepeatedModel
from rageval_spec.plugin import ChatModel, Judge, JudgeNode, Model, NoAnswers
from rageval_spec.plugin.names import names_in
from rageval_spec.wording import count_noun

WritingAbility = Literal["claims", "questions", "entities"]
KINDS: frozenset[Ability] = frozenset({"support", "usefulness", "grade"})
"""Abilities that are kinds of criteria; the others are writing."""
_MILLION = 1_000_000

N = TypeVar("N", bound=JudgeNode)
T = TypeVar("T")
Q = TypeVar("Q")


class ComposedJudge(Judge[N]):
    """A judge made of others.

    It can assess what all of them can. Claims, questions and entities are written by the first of them that can, and
    where that one failed by the next.
    """

    expected: Sequence[Criterion] = ()
    """What `expect` was told."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The judges that it asks, in order."""

    @property
    def members(self) -> Sequence[Judge[Any]]:
        """The judges of these names.

        Raises:
            UsageError: there is no judge of one of them.
        """
        return [self.context.judge(name) for name in self.names]

    @property
    def abilities(self) -> frozenset[Ability]:
        """The kinds of criteria that all can assess, and whatever any of them can write."""
        each = [member.abilities for member in self.members]
        return frozenset.intersection(*each) & KINDS | frozenset[Ability]().union(*each) - KINDS

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Tell all of them."""
        self.expected = criteria
        for member in self.members:
            member.expect(criteria)

    def check(self) -> str | None:
        """Whether there is anything that all can assess."""
        if KINDS & self.abilities:
            return None
        able = [f"{m.context.name}: {', '.join(sorted(KINDS & m.abilities)) or 'nothing'}" for m in self.members]
        return f"its judges have no kind of criterion in common ({'; '.join(able)})"

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of texts, by the first judge that can split them."""
        return self._write("claims", texts, lambda judge, part: judge.claims(part))

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        """Questions that answers would answer, by the first judge that can make them up."""
        return self._write("questions", answers, lambda judge, part: judge.questions(part, count))

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        """The named things in texts, by the first judge that can list them."""
        return self._write("entities", texts, lambda judge, part: judge.entities(part))

    def estimate_writing(self, ability: WritingAbility, texts: Sequence[tuple[str, str]], count: int = 1) -> Estimate:
        """The calls of the first judge that can write it; failures are not foreseen."""
        writers = self._writers(ability)
        return writers[0].estimate_writing(ability, texts, count) if writers else Estimate()

    def _writers(self, ability: WritingAbility) -> list[Judge[Any]]:
        return [member for member in self.members if ability in member.abilities]

    def _write(
        self,
        ability: WritingAbility,
        texts: Sequence[Q],
        ask: Callable[[Judge[Any], Sequence[Q]], Sequence[T | Failed]],
    ) -> list[T | Failed]:
        writers = self._writers(ability)
        if not writers:
            raise self._cannot(f"write {ability}", texts)
        written = list(ask(writers[0], texts))
        for writer in writers[1:]:
            waiting = [place for place, found in enumerate(written) if isinstance(found, Failed)]
            if waiting:
                for place, found in zip(waiting, ask(writer, [texts[place] for place in waiting]), strict=True):
                    written[place] = found
        return written


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


def scale_score(score: float, criterion: Criterion) -> float:
    """A finding's score in [0, 1], whatever the criterion's scale is."""
    if criterion.kind != "grade" or criterion.scale is None:
        return score
    lowest, highest = criterion.scale
    return (score - lowest) / (highest - lowest)


def unscale_score(score: float, criterion: Criterion) -> float:
    """What `scale_score` was given."""
    if criterion.kind != "grade" or criterion.scale is None:
        return score
    lowest, highest = criterion.scale
    return (1 - score) * lowest + score * highest  # exact at both ends


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
