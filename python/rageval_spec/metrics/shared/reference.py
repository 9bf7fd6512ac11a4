"""What the metrics share that compare answers with gold answers, without any judge.

A file of `metrics/` says how one answer is compared, and which references cannot be compared with:

    class RougeL(LexicalMetric[MetricNode]):
        def comparer(self) -> Comparer:
            return measure_rouge_l
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from rageval_spec.data.sample import Part, Sample
from rageval_spec.metrics.shared.reasons import EMPTY_REFERENCE
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode

N = TypeVar("N", bound=MetricNode)
Comparer: TypeAlias = Callable[[str, Sequence[str]], float]
"""The value of an answer, given its references: at least one."""


class ReferenceMetric(AnswerMetric[N]):
    """A metric whose value depends on an answer and its references alone."""

    group: ClassVar[MetricGroup] = "text"
    needs: frozenset[Part] = frozenset({"answer", "reference"})
    no_reference: ClassVar[str] = EMPTY_REFERENCE
    """Why there is no value where no reference can be compared with."""

    def is_usable(self, reference: str) -> bool:
        """Whether an answer can be compared with a reference; those that are not are left out."""
        return bool(reference.strip())

    def usable_references(self, sample: Sample) -> list[str]:
        """The references of a sample that can be compared with, in order."""
        return [reference for reference in sample.references if self.is_usable(reference)]


class LexicalMetric(ReferenceMetric[N]):
    """A metric that compares the words or characters of one answer at a time, by no model."""

    @abstractmethod
    def comparer(self) -> Comparer:
        """How answers are compared, with all that it needs imported; asked for once for all samples."""

    def prepare(self) -> None:
        """Import what the comparer needs."""
        self.comparer()

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Each answer against its references."""
        compare = self.comparer()
        # Fractions of a few words take few values: equal ones share one object, which saves 10 MB for 100,000 samples.
        unscorable, known = Measurement.unscorable(self.no_reference), dict[float, Measurement]()

        def measure(sample: Sample) -> Measurement:
            references = self.usable_references(sample)
            if not references:
                return unscorable
            value = compare(sample.answer or "", references)
            return known.get(value) or known.setdefault(value, Measurement.scored(value))

        return Measured([measure(sample) for sample in samples])
