"""What the metrics of answers share: naming a judge, asking it, and turning what it finds into measurements.

A file of `metrics/` that asks a judge one thing of each sample says what it asks, and which samples need no judge:

    class Faithfulness(JudgedMetric[FaithfulnessNode]):
        def criteria(self) -> Sequence[Criterion]:
            return (ANSWER_IN_CONTEXTS,)

Metrics that ask the same use the same criterion, so that no judge is asked twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from rageval_spec import registry
from rageval_spec.data.assessment import Ability, Estimate, Failed, Finding
from rageval_spec.errors import UsageError
from rageval_spec.metrics.shared.findings import collect_notes, first_failure, measure_failure, measure_finding
from rageval_spec.plugin import AnswerMetric, Judge, JudgeName, Measured, Measurement, MetricNode
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample


class JudgedNode(MetricNode):
    """A node of a metric that a judge decides."""

    judge: JudgeName = Field(
        description="Who decides: a block under `judges:`, or a judge that needs no keys, such as overlap."
    )


class OptionallyJudgedNode(MetricNode):
    """A node of a metric that a judge decides, or a rule (`by`)."""

    judge: JudgeName | None = Field(
        default=None, description="Who decides where `by` leaves it to a judge: a block under `judges:`, or its word."
    )


J = TypeVar("J", bound=JudgedNode | OptionallyJudgedNode)

TASKS: Mapping[Ability, str] = {
    "support": "say which claims of a text are supported",
    "usefulness": "say which of several texts are useful",
    "grade": "grade a sample as a whole",
    "claims": "split a text into claims",
    "questions": "make up questions that an answer would answer",
    "entities": "list the named things in a text",
}
"""What an ability is in words."""


class JudgedMetric(AnswerMetric[J]):
    """A metric that asks a judge of all samples at once, those excepted that need none.

    With one criterion the judge's score is the value; a metric that asks more, or counts otherwise, has its own
    `measure` or `ask`.
    """

    @property
    def judge(self) -> Judge[Any]:
        """Whom it asks.

        Raises:
            UsageError: its node names none, or one that is not there.
        """
        if self.node.judge is None:
            raise UsageError(f"{self.context.name}: it needs a judge; name one with 'judge:'")
        return self.context.judge(self.node.judge)

    def judges(self) -> Sequence[Judge[Any]]:
        """The judge that its node names, if a judge is asked at all."""
        return (self.judge,) if self.needed_abilities() else ()

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """What its judge must be able to do: all of one of these sets; nothing where no judge is asked."""
        return (frozenset[Ability]({"support"}),)

    def check(self) -> str | None:
        """Whether the judge is there where one is asked, and able to do what is asked of it."""
        needed = self.needed_abilities()
        if not needed and self.node.judge is None:
            return None
        if not needed:
            return f"no judge is asked with these keys; leave out 'judge: {self.node.judge}'"
        try:
            judge = self.judge
        except UsageError as error:
            return str(error)
        return None if any(one <= judge.abilities for one in needed) else explain_inability(judge, needed)

    def can(self, *abilities: Ability) -> bool:
        """Whether the judge has all of these abilities."""
        return {*abilities} <= self.judge.abilities

    def settle(self, sample: Sample) -> Measurement | None:  # noqa: ARG002 - for metrics that know such samples
        """What is known without asking anybody; None where the judge must be asked."""
        return None

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Settle what needs no judge, and ask of the rest at once."""
        settled = [self.settle(sample) for sample in samples]
        waiting = [sample for sample, known in zip(samples, settled, strict=True) if known is None]
        asked = self.ask(waiting) if waiting else Measured(())
        rest = iter(asked.measurements)
        return Measured([next(rest) if known is None else known for known in settled], asked.notes)

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls for the samples that are not settled."""
        return self.estimate_asking([sample for sample in samples if self.settle(sample) is None])

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Have every criterion assessed, and measure each sample by its findings."""
        criteria = self.criteria()
        assessments = [self.judge.assess(criterion, samples) for criterion in criteria]
        found = zip(*(assessment.findings for assessment in assessments), strict=True)
        measurements = [
            measure_failure(failed) if (failed := first_failure(findings)) else self.measure(_only(findings))
            for findings in found
        ]
        return Measured(measurements, collect_notes(criteria, assessments))

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `ask` would make and that are not answered yet; makes none."""
        return super().estimate(samples)

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        """The measurement of a sample of which a judge found this, one finding a criterion."""
        return measure_finding(findings[0])


class ConditionalJudge(JudgedMetric[J]):
    """A metric that asks a judge only where its keys say so (`by: judge`)."""

    @property
    @abstractmethod
    def asks_judge(self) -> bool:
        """Whether its keys leave the decision to a judge."""

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """As `able_to`, where a judge is asked."""
        return self.able_to() if self.asks_judge else ()

    def able_to(self) -> Sequence[frozenset[Ability]]:
        """What the judge must be able to do where it is asked: all of one of these sets."""
        return super().needed_abilities()


def explain_inability(judge: Judge[Any], needed: Sequence[frozenset[Ability]]) -> str:
    """What the judge lacks of the first thing that would do, and which judges have any that would."""
    task = TASKS[min(needed[0] - judge.abilities)]
    able = dict.fromkeys(word for abilities in needed for word in list_able_judges(abilities))
    return f"the judge '{judge.context.name}' (use: {judge.node.use}) cannot {task}; use {list_choices([*able])}"


def list_able_judges(abilities: frozenset[Ability]) -> list[str]:
    """The words of installed judges that declare all of these abilities, sorted; those that do not import are none."""
    able: list[str] = []
    for word in registry.words("judges"):
        with suppress(UsageError):
            if abilities <= registry.load("judges", word).declared:
                able.append(word)
    return able


def _only(findings: Sequence[Finding | Failed]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if isinstance(finding, Finding))
