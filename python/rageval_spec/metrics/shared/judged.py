"""Base classes of answer metrics with a judge: name the judge, ask it, and turn its findings into measurements.

A metric that asks a judge one thing about each sample declares the criteria, and which samples need no judge:

    class Faithfulness(JudgedMetric[FaithfulnessNode]):
        def criteria(self) -> Sequence[Criterion]:
            return (ANSWER_IN_CONTEXTS,)

Metrics with the same question use the same criterion, so that no judge is asked twice.
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
from rageval_spec.metrics.shared.findings import (
    collect_notes,
    first_failure,
    measure_failure,
    measure_finding,
    sign_details,
)
from rageval_spec.plugin import AnswerMetric, Judge, JudgeName, Measured, Measurement, MetricNode
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    from rageval_spec.data.sample import Sample
    from rageval_spec.plugin.metric import DataPart


class JudgedNode(MetricNode):
    """The keys of a metric with a judge."""

    judge: JudgeName = Field(
        description="The judge that decides: a name under `judges:`, or a judge without required keys, such as overlap."
    )


class OptionallyJudgedNode(MetricNode):
    """The keys of a metric with a judge or a rule, as `by` says."""

    judge: JudgeName | None = Field(
        default=None,
        description="The judge that decides if `by` asks for one: a name under `judges:`, or a judge's word.",
    )


J = TypeVar("J", bound=JudgedNode | OptionallyJudgedNode)

TASKS: Mapping[Ability, str] = {
    "support": "say which claims of a text are supported",
    "usefulness": "say which of several texts are useful",
    "grade": "grade a sample as a whole",
    "claims": "split a text into claims",
    "questions": "write questions that an answer would answer",
    "entities": "list the named entities in a text",
}
"""The abilities in words."""


class JudgedMetric(AnswerMetric[J]):
    """A metric that asks a judge about all samples at once, except those that need no judge.

    With one criterion the judge's score is the value. A metric that asks more, or computes its value differently,
    overrides `measure` or `ask`.
    """

    @property
    def judge(self) -> Judge[Any]:
        """The judge that the metric asks.

        Raises:
            UsageError: the node names no judge, or one that does not exist.
        """
        if self.node.judge is None:
            raise UsageError(f"{self.context.name}: this metric needs a judge; name one with 'judge:'")
        return self.context.judge(self.node.judge)

    def judges(self) -> Sequence[Judge[Any]]:
        """The judge that the node names; empty if the metric asks no judge."""
        return (self.judge,) if self.needed_abilities() else ()

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """The abilities that the judge needs: all of one of these sets. Empty if the metric asks no judge."""
        return (frozenset[Ability]({"support"}),)

    def check(self) -> str | None:
        """Check that the judge, if one is asked, exists and has the needed abilities."""
        needed = self.needed_abilities()
        if not needed and self.node.judge is None:
            return None
        if not needed:
            return f"these keys need no judge; remove 'judge: {self.node.judge}'"
        try:
            judge = self.judge
        except UsageError as error:
            return str(error)
        return None if any(one <= judge.abilities for one in needed) else explain_inability(judge, needed)

    @property
    def reads(self) -> frozenset[DataPart]:
        """The data that holds what the metric needs, and the references if the judge's own question shows them."""
        judge = self.context.judges.get(self.node.judge or "")
        return super().reads | ({"references"} if judge is not None and judge.shows_references else set())

    def can(self, *abilities: Ability) -> bool:
        """Whether the judge has all of these abilities."""
        return {*abilities} <= self.judge.abilities

    def settle(self, sample: Sample) -> Measurement | None:  # noqa: ARG002 - for metrics that know such samples
        """The measurement of a sample that needs no judge; None if the judge must be asked."""
        return None

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Settle the samples that need no judge, and ask the judge about the others at once."""
        settled = [self.settle(sample) for sample in samples]
        waiting = [sample for sample, known in zip(samples, settled, strict=True) if known is None]
        asked = self.ask(waiting) if waiting else Measured(())
        rest = iter(self._sign(asked.measurements))
        return Measured([next(rest) if known is None else known for known in settled], asked.notes)

    def _sign(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """The measurements, with the judge and the judged parts in their details, so that each claim has its place."""
        if self.node.judge is None:
            return measurements
        criterion, judge = next(iter(self.criteria()), None), self.judge.context.name
        return [sign_details(measurement, criterion, judge) for measurement in measurements]

    def estimate(self, samples: Sequence[Sample]) -> Estimate:
        """The calls for the samples that are not settled."""
        return self.estimate_asking([sample for sample in samples if self.settle(sample) is None])

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Have the judge assess every criterion, and measure each sample by its findings."""
        criteria = self.criteria()
        assessments = [self.judge.assess(criterion, samples) for criterion in criteria]
        found = zip(*(assessment.findings for assessment in assessments), strict=True)
        measurements = [
            measure_failure(failed) if (failed := first_failure(findings)) else self.measure(_only(findings))
            for findings in found
        ]
        return Measured(measurements, collect_notes(criteria, assessments))

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        """The calls that `ask` would make and whose replies are not stored yet. Makes no call."""
        return super().estimate(samples)

    def measure(self, findings: Sequence[Finding]) -> Measurement:
        """The measurement of a sample from the judge's findings, one per criterion."""
        return measure_finding(findings[0])


class ConditionalJudge(JudgedMetric[J]):
    """A metric that asks a judge only if its keys say so (`by: judge`)."""

    @property
    @abstractmethod
    def asks_judge(self) -> bool:
        """Whether the node's keys leave the decision to a judge."""

    def needed_abilities(self) -> Sequence[frozenset[Ability]]:
        """`able_to` if the metric asks a judge, else empty."""
        return self.able_to() if self.asks_judge else ()

    def able_to(self) -> Sequence[frozenset[Ability]]:
        """The abilities that the judge needs if it is asked: all of one of these sets."""
        return super().needed_abilities()


def explain_inability(judge: Judge[Any], needed: Sequence[frozenset[Ability]]) -> str:
    """Which needed ability the judge lacks, and which judges have it; considers the first sufficient set."""
    task = TASKS[min(needed[0] - judge.abilities)]
    able = dict.fromkeys(word for abilities in needed for word in list_able_judges(abilities))
    return f"the judge '{judge.context.name}' (use: {judge.node.use}) cannot {task}; use {list_choices([*able])}"


def list_able_judges(abilities: frozenset[Ability]) -> list[str]:
    """The sorted words of installed judges that declare all of these abilities, without judges that fail to import."""
    able: list[str] = []
    for word in registry.words("judges"):
        with suppress(UsageError):
            if abilities <= registry.load("judges", word).declared:
                able.append(word)
    return able


def _only(findings: Sequence[Finding | Failed]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if isinstance(finding, Finding))
