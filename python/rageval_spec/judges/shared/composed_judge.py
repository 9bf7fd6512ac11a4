"""Base class of judges that ask other judges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rageval_spec.data.findings import Ability, Criterion, Estimate, Failed, Questions
from rageval_spec.plugin import Judge, JudgeNode
from rageval_spec.plugin.block_names import names_in

if TYPE_CHECKING:
    from rageval_spec.data.judge_calibration import JudgeCalibration

WritingAbility = Literal["claims", "questions", "entities"]
KINDS: frozenset[Ability] = frozenset({"support", "usefulness", "grade"})
"""The abilities to assess a kind of criterion; the other abilities write something."""

N = TypeVar("N", bound=JudgeNode)
T = TypeVar("T")
Q = TypeVar("Q")


class ComposedJudge(Judge[N]):
    """A judge that asks other judges.

    It can assess what all of them can assess. Claims, questions and entities come from the first of them that can write
    them; where that judge fails, from the next one.
    """

    expected: Sequence[Criterion] = ()
    """The criteria that `expect` received."""

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the judges that it asks, in order."""

    @property
    def members(self) -> Sequence[Judge[Any]]:
        """The judges with these names, in order."""
        return [self.context.judge(name) for name in self.names]

    @property
    def abilities(self) -> frozenset[Ability]:
        """The kinds of criteria that all members can assess, and everything that any member can write."""
        each = [member.abilities for member in self.members]
        return frozenset.intersection(*each) & KINDS | frozenset[Ability]().union(*each) - KINDS

    @property
    def scale(self) -> tuple[float, float] | None:
        scales = {leaf.scale for leaf in list_leaves(self)}
        return scales.pop() if len(scales) == 1 else None

    @property
    def values(self) -> Mapping[str, tuple[float, ...]]:
        return next((leaf.values for leaf in list_leaves(self) if leaf.values), {})

    @property
    def reads_criteria(self) -> bool:
        return any(leaf.reads_criteria for leaf in list_leaves(self))

    @property
    def shows_references(self) -> bool:
        return any(leaf.shows_references for leaf in list_leaves(self))

    @cached_property
    def calibrations(self) -> Mapping[str, JudgeCalibration]:
        """What the calibration that the node names holds for this judge, by the criterion's digest."""
        from rageval_spec.judging.calibrated_judge import find_entries

        return find_entries(self)

    def expect(self, criteria: Sequence[Criterion]) -> None:
        self.expected = criteria
        for member in self.members:
            member.expect(criteria)

    def check(self) -> str | None:
        if KINDS & self.abilities:
            return None
        able = [f"{m.context.name}: {', '.join(sorted(KINDS & m.abilities)) or 'nothing'}" for m in self.members]
        return f"its judges have no kind of criterion in common ({'; '.join(able)})"

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        return self._write("claims", texts, lambda judge, part: judge.claims(part))

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        return self._write("questions", answers, lambda judge, part: judge.questions(part, count))

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        return self._write("entities", texts, lambda judge, part: judge.entities(part))

    def estimate_writing(self, ability: WritingAbility, texts: Sequence[tuple[str, str]], count: int = 1) -> Estimate:
        """The calls of the first judge that can write it; does not foresee failures."""
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
        if not (writers := self._writers(ability)):
            raise self._cannot(f"write {ability}", texts)
        written = list(ask(writers[0], texts))
        for writer in writers[1:]:
            if waiting := [place for place, found in enumerate(written) if isinstance(found, Failed)]:
                for place, found in zip(waiting, ask(writer, [texts[place] for place in waiting]), strict=True):
                    written[place] = found
        return written


def list_leaves(judge: Judge[Any]) -> Iterator[Judge[Any]]:
    """The judges at the bottom that exist; a spec that is being checked can have cycles and undeclared names."""
    waiting, seen = [judge], set[str]()
    while waiting:
        one = waiting.pop()
        names = names_in(one.node, "judges")
        if not names:
            yield one
        waiting += [one.context.judges[name] for name in names if name in one.context.judges and name not in seen]
        seen.update(names)
