"""Base class of judges that ask other judges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from rageval_spec.data.assessment import Ability, Criterion, Estimate, Failed, Questions
from rageval_spec.plugin import Judge, JudgeNode

WritingAbility = Literal["claims", "questions", "entities"]
KINDS: frozenset[Ability] = frozenset({"support", "usefulness", "grade"})
"""Abilities that are kinds of criteria; the others are writing."""

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
