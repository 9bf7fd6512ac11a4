"""Base class for metrics of what an answer took (time, tokens, money), not of how good it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode

if TYPE_CHECKING:
    from rageval_spec.data.sample import Part, Sample

N = TypeVar("N", bound=MetricNode)


class OperationalMetric(AnswerMetric[N]):
    """A metric that reads what a system reports about an answer. Answers and references can be missing."""

    group: ClassVar[MetricGroup] = "operation"
    needs: frozenset[Part] = frozenset()
    reads_contexts = False

    @abstractmethod
    def read(self, sample: Sample) -> float | str:
        """The value of a sample; a text says why there is none."""

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Read the value of each sample."""
        found = map(self.read, samples)
        return Measured([Measurement.unscorable(v) if isinstance(v, str) else Measurement.scored(v) for v in found])
