"""The contract of judges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from rageval_spec.data.assessment import Ability, Assessment, Criterion, Estimate, Failed, Questions
from rageval_spec.errors import UsageError
from rageval_spec.plugin.plugin import N, Node, Plugin

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample


class JudgeNode(Node):
    """A block under `judges:`."""


class Judge(Plugin[N]):
    """Gives verdicts and grades. Safe to use from several threads.

    It gets all samples of a system on a dataset at once, and so may batch them, or ask for many at the same time.
    """

    declared: ClassVar[frozenset[Ability]] = frozenset()
    """What every judge of this class can be asked for; empty where that depends on the judges that it names."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """What this judge can be asked for; known before anything is opened."""
        return self.declared

    @property
    def decides_refusals(self) -> bool:
        """Whether it is shown answers that refuse; metrics of what an answer claims settle them otherwise."""
        return False

    def expect(self, criteria: Sequence[Criterion]) -> None:
        """Told once, before anything is assessed: all criteria that it will be asked for."""

    @abstractmethod
    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        """A finding a sample, in their order; `Failed` where there is none. Never raises for one sample alone.

        The samples have all parts that the criterion reads.

        Raises:
            LimitError: the spec's limits allow no further call.
            RagevalError: nothing can be assessed at all.
        """

    def claims(self, texts: Sequence[tuple[str, str]]) -> Sequence[tuple[str, ...] | Failed]:
        """The claims of texts, each a pair of the question that it answers ("" where there is none) and the text."""
        raise self._cannot("split texts into claims", texts)

    def questions(self, answers: Sequence[str], count: int) -> Sequence[Questions | Failed]:
        """So many questions that each answer would answer."""
        raise self._cannot(f"make up {count} questions", answers)

    def entities(self, texts: Sequence[str]) -> Sequence[tuple[str, ...] | Failed]:
        """The named things in each text, each once."""
        raise self._cannot("list entities", texts)

    def estimate(self, criterion: Criterion, samples: Sequence[Sample]) -> Estimate:  # noqa: ARG002 - costs nothing
        """The calls that `assess` would make and that are not answered yet; makes none."""
        return Estimate()

    def estimate_writing(
        self,
        ability: Literal["claims", "questions", "entities"],  # noqa: ARG002 - costs nothing
        texts: Sequence[tuple[str, str]],  # noqa: ARG002
        count: int = 1,  # noqa: ARG002
    ) -> Estimate:
        """As `estimate`, of what `claims`, `questions` or `entities` would ask; makes no call.

        `texts` are pairs as in `claims`; for the other two the question of a pair is "". `count` is that of
        `questions`.
        """
        return Estimate()

    def _cannot(self, what: str, asked: Sequence[object]) -> UsageError:
        return UsageError(f"judges.{self.context.name} (use: {self.node.use}) cannot {what}, of {len(asked)} texts")
