"""Base classes of metrics that compare answers with references, without a judge.

A metric says how to compare one answer, and which references cannot be used:

    class RougeL(LexicalMetric[MetricNode]):
        def comparer(self) -> Comparer:
            return measure_rouge_l
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from rageval_spec.metrics.shared.reasons import EMPTY_REFERENCE
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode

if TYPE_CHECKING:
    from rageval_spec.data.sample import Part, Sample

N = TypeVar("N", bound=MetricNode)
Comparer: TypeAlias = Callable[[str, Sequence[str]], float]
"""A function from an answer and its references, at least one, to the value."""


class ReferenceMetric(AnswerMetric[N]):
    """A metric whose value depends only on an answer and its references."""

    group: ClassVar[MetricGroup] = "text"
    needs: frozenset[Part] = frozenset({"answer", "reference"})
    reads_contexts = False
    no_reference: ClassVar[str] = EMPTY_REFERENCE
    """Why there is no value if no reference can be used."""

    def is_usable(self, reference: str) -> bool:
        """Whether a reference can be compared with; unusable ones are left out."""
        return bool(reference.strip())

    def usable_references(self, sample: Sample) -> list[str]:
        """The usable references of a sample, in order."""
        return [reference for reference in sample.references if self.is_usable(reference)]


class LexicalMetric(ReferenceMetric[N]):
    """A metric that compares the words or characters of one answer at a time, without a model."""

    @abstractmethod
    def comparer(self) -> Comparer:
        """The function that compares answers, with all its imports done; called once for all samples."""

    def prepare(self) -> None:
        """Import what the comparer needs."""
        self.comparer()

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Compare each answer with its references."""
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
