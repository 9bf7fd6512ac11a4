"""Asks the models that write and check questions, or foresees which calls that would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rageval_spec.data.assessment import Criterion, Estimate, Failed, Finding
from rageval_spec.data.call_errors import LimitError
from rageval_spec.endpoints.asking import (
    Question,
    ask,
    estimate_questions,
    join_estimates,
    recall,
    run_all,
    threads_for,
)

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample
    from rageval_spec.plugin import ChatModel, Context, Judge, Progress

T = TypeVar("T")


class Asker(Protocol):
    """Asks models. A result is None if it is not there yet, which only happens while calls are foreseen."""

    def write(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:
        """Ask the model that writes; a reply has about `tokens` tokens."""

    def check(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:
        """Ask the model that checks."""

    def judge(self, samples: Sequence[Sample]) -> list[Finding | Failed | None]:
        """Ask the judge whether the contexts of samples support their answers."""


@dataclass
class Steps:
    """Counts what was asked, for a display of progress. Safe to use from several threads."""

    show: Progress
    done: int = 0
    total: int = 0
    _lock: Any = field(default_factory=Lock)

    def expect(self, count: int) -> None:
        """Expect so many further steps; those that were expected before and did not happen are taken as done."""
        with self._lock:
            self.done = self.total
            self.total += count
            self.show(self.done, self.total, "steps")

    def end(self, count: int = 1) -> None:
        """Count steps that have ended."""
        with self._lock:
            self.done = min(self.total, self.done + count)
            self.show(self.done, self.total, "steps")


@dataclass(frozen=True)
class Models:
    """Who writes and who checks.

    Attributes:
        judge: judges whether an answer is supported, by `criterion`.
    """

    writer: ChatModel[Any]
    checker: ChatModel[Any]
    judge: Judge[Any]
    criterion: Criterion
    context: Context


class RealAsker:
    """Asks the models; replies come from the store where it has them."""

    def __init__(self, models: Models, steps: Steps) -> None:
        """Ask nothing yet."""
        self._models = models
        self._steps = steps
        models.judge.expect([models.criterion])

    def write(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:  # noqa: ARG002
        """Ask the model that writes."""
        return self._ask(self._models.writer, questions)

    def check(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:  # noqa: ARG002
        """Ask the model that checks."""
        return self._ask(self._models.checker, questions)

    def judge(self, samples: Sequence[Sample]) -> list[Finding | Failed | None]:
        """Ask the judge."""
        if not samples:
            return []
        try:
            findings = self._models.judge.assess(self._models.criterion, samples).findings
        except LimitError as error:
            return [self._recall(sample, error) for sample in samples]
        self._steps.end(len(samples))
        return list(findings)

    def _recall(self, sample: Sample, error: LimitError) -> Finding | Failed:
        """What the judge has said of a sample before a limit was reached."""
        judge, criterion = self._models.judge, self._models.criterion
        if judge.estimate(criterion, [sample]).calls:
            return Failed(str(error), is_unfinished=True)
        return judge.assess(criterion, [sample]).findings[0]

    def _ask(self, model: ChatModel[Any], questions: Sequence[Question[T]]) -> list[T | Failed | None]:
        tasks = [partial(self._ask_one, model, question) for question in questions]
        return [*run_all(tasks, threads_for(model, self._models.context))]

    def _ask_one(self, model: ChatModel[Any], question: Question[T]) -> T | Failed:
        found = ask(model, question, self._models.context)
        self._steps.end()
        return found


class ForeseeingAsker:
    """Makes no call. What is stored is used, and the calls for the rest are collected.

    Attributes:
        estimates: the calls that are missing.
    """

    def __init__(self, models: Models) -> None:
        """Collect nothing yet."""
        self._models = models
        self.estimates: list[Estimate] = []
        models.judge.expect([models.criterion])

    @property
    def estimate(self) -> Estimate:
        """All calls that are missing."""
        return join_estimates(self.estimates)

    def write(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:
        """What the model that writes has said already."""
        return self._look_up(self._models.writer, questions, tokens)

    def check(self, questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:
        """What the model that checks has said already."""
        return self._look_up(self._models.checker, questions, tokens)

    def judge(self, samples: Sequence[Sample]) -> list[Finding | Failed | None]:
        """What the judge has said already."""
        judge, criterion = self._models.judge, self._models.criterion
        found: list[Finding | Failed | None] = []
        for sample in samples:
            missing = judge.estimate(criterion, [sample])
            self.estimates.append(missing)
            found.append(None if missing.calls else judge.assess(criterion, [sample]).findings[0])
        return found

    def _look_up(self, model: ChatModel[Any], questions: Sequence[Question[T]], tokens: int) -> list[T | Failed | None]:
        context = self._models.context
        self.estimates.append(estimate_questions(model, model.context.name, questions, context, tokens))
        known = [recall(model, question, context) for question in questions]
        return [None if one.unanswered is not None else one.found for one in known]
