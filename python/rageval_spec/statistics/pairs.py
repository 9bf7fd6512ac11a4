"""The values of a cell beside those of its baseline."""

from __future__ import annotations

import math
import operator
from array import array
from dataclasses import dataclass
from functools import cached_property

from rageval_spec.data.cell import Cell
from rageval_spec.statistics import percentiles
from rageval_spec.statistics.designed import Placed
from rageval_spec.statistics.layout import Layout
from rageval_spec.statistics.summaries import Summarized, summarize


@dataclass(frozen=True)
class Pairs:
    """The values of one cell and of its baseline, by query."""

    cell: Cell
    metric: Summarized
    values: array[float]
    base: array[float]
    layout: Layout | None = None

    @cached_property
    def differences(self) -> array[float]:
        return array("d", map(operator.sub, self.values, self.base))

    @property
    def is_geometric(self) -> bool:
        return self.metric.statistic == "geometric mean"

    @property
    def percent(self) -> int | None:
        """The percentile that is compared; None for a mean."""
        return percentiles.read_percentile(self.metric.statistic)

    @property
    def placed(self) -> Placed | None:
        """The differences with the layout of their questions; None without a design."""
        return None if self.layout is None else Placed(self.differences, self.layout)

    def summarize(self, numbers: array[float]) -> float:
        """The statistic of one side, weighted if the design has weights."""
        plain = summarize(self.metric.statistic, numbers)
        if self.layout is None or not self.layout.is_weighted:
            return plain
        weighted = Placed(numbers, self.layout, self.metric.statistic).summarize()
        assert weighted is not None, "pairs that do not count are left out"
        return weighted

    def difference(self) -> float:
        if self.layout is None or not self.layout.is_weighted:
            return self.plain_difference()
        if self.is_geometric or self.percent is not None:
            return self.summarize(self.values) - self.summarize(self.base)
        return self.layout.average(self.differences)

    def plain_difference(self) -> float:
        """The difference if every question counted the same."""
        if self.is_geometric or self.percent is not None:
            statistic = self.metric.statistic
            return summarize(statistic, self.values) - summarize(statistic, self.base)
        return math.fsum(self.differences) / len(self.differences)

    def wins_and_losses(self) -> tuple[int, int]:
        higher, lower = sum(one > 0 for one in self.differences), sum(one < 0 for one in self.differences)
        return (lower, higher) if self.metric.higher_is_better is False else (higher, lower)
