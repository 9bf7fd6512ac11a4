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
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode
from rageval_spec.plugin.names import names_in

N = TypeVar("N", bound=MetricNode)
Comparer: TypeAlias = Callable[[str, Sequence[str]], float]
"""The value of an answer, given its references: at least one."""

EMPTY_ANSWER = "empty answer: 0"
NO_REFERENCE = "no reference: unscorable"
FAILED_SYSTEM = "no answer because the system failed: error, and no value; `error_rate` counts these"


class ReferenceMetric(AnswerMetric[N]):
    """A metric whose value depends on an answer and its references alone."""

    group: ClassVar[MetricGroup] = "text"
    needs: frozenset[Part] = frozenset({"answer", "reference"})
    no_reference: ClassVar[str] = "the reference is empty"
    """Why there is no value where no reference can be compared with."""

    @property
    def name(self) -> str:
        """The word, with the keys that are not at their default: `bleu(tokenize=char)`; models are left out."""
        models = names_in(self.node, "models")
        fields = self.node.model_dump(exclude_defaults=True, exclude={"use", "as_"})
        keys = ",".join(f"{key}={_write(value)}" for key, value in sorted(fields.items()) if value not in models)
        return f"{self.node.use}({keys})" if keys else self.node.use

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
        return Measured([self._measure(compare, sample) for sample in samples])

    def _measure(self, compare: Comparer, sample: Sample) -> Measurement:
        references = self.usable_references(sample)
        if not references:
            return Measurement.unscorable(self.no_reference)
        return Measurement.scored(compare(sample.answer or "", references))


def _write(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
