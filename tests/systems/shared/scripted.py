"""A system that answers according to a script, and forty questions for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rageval_spec.plugin import Answers, Context
from rageval_spec.plugin.budget import Budget
from rageval_spec.plugin.plugin import ResumeRule, say_nothing
from rageval_spec.recorded.answers_and_steps import AnswerRow
from rageval_spec.store.store import MemoryAnswers
from rageval_spec.systems.shared.answering_system import AnsweringNode, AnsweringSystem

Say = Callable[[Mapping[str, Any]], AnswerRow]


class Scripted(AnsweringSystem[AnsweringNode]):
    """Answers with the script's result for a question."""

    node_type = AnsweringNode

    def __init__(self, say: Say, context: Context, variables: frozenset[str], **keys: Any) -> None:
        super().__init__(AnsweringNode(use="scripted", **keys), context)
        self.say = say
        self.told: list[Mapping[str, Any]] = []
        self.closed = 0
        self.code_files: dict[str, str] = {}
        self._variables = variables

    @property
    def variables(self) -> frozenset[str]:
        return self._variables

    def digest_code(self) -> dict[str, str]:
        return self.code_files

    def ask(self, told: Mapping[str, Any]) -> AnswerRow:
        self.told.append(told)
        return self.say(told)

    def close(self, *, at_once: bool = False) -> None:
        self.closed += 1


def echo(told: Mapping[str, Any]) -> AnswerRow:
    return AnswerRow(told["question"].upper(), contexts=("a", "b"), context_ids=("1", "2"), cost=0.25)


def scripted(
    say: Say = echo,
    *,
    answers: Answers | None = None,
    budget: Budget | None = None,
    tell: Callable[[str], None] = say_nothing,
    variables: frozenset[str] = frozenset({"question"}),
    resume: ResumeRule | None = None,
    code_files: Mapping[str, str] | None = None,
    **keys: Any,
) -> Scripted:
    context = Context(
        "tested",
        answers=answers or MemoryAnswers(),
        budget=budget or Budget(),
        concurrency=4,
        tell=tell,
        resume=resume or ResumeRule(),
    )
    system = Scripted(say, context, variables, **keys)
    system.code_files = dict(code_files or {})
    return system


QUESTIONS = {f"q{number}": f"question {number}" for number in range(40)}
