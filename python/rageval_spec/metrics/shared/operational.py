"""What the metrics share that say what an answer took, not how good it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rageval_spec.data.sample import Part, Sample
from rageval_spec.plugin import AnswerMetric, Measured, Measurement, MetricGroup, MetricNode

N = TypeVar("N", bound=MetricNode)


class OperationalMetric(AnswerMetric[N]):
    """A metric that reads what a system reports of itself; answers and references may be absent."""

    group: ClassVar[MetricGroup] = "operation"
    needs: frozenset[Part] = frozenset()

    @abstractmethod
    def read(self, sample: Sample) -> float | str:
        """The value; a text says why there is none."""

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """What each sample says."""
        found = map(self.read, samples)
        return Measured([Measurement.unscorable(v) if isinstance(v, str) else Measurement.scored(v) for v in found])
