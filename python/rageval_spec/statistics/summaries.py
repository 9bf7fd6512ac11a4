"""The statistics that sum up the values of a cell, and what must be known of a metric to choose one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rageval_spec import kernels
from rageval_spec.statistics import percentiles

if TYPE_CHECKING:
    from array import array

    import numpy as np
    from numpy.typing import NDArray

Statistic: TypeAlias = str
"""`mean`, `geometric mean`, `sum`, or a percentile like `p95`."""

_MEASURES: Mapping[Statistic, str] = {"mean": "map", "geometric mean": "gm_map", "sum": "num_ret"}
"""For each statistic, a measure whose values the kernel aggregates in this way, in trec_eval's order of addition."""


class Summarized(Protocol):
    """What `aggregate` must know about a metric; `plugin.Metric` has these properties."""

    @property
    def statistic(self) -> Statistic:
        """The statistic that the aggregate holds."""

    @property
    def higher_is_better(self) -> bool | None:
        """False for a metric whose low values are good; None if neither direction is good."""


def summarize(statistic: Statistic, numbers: array[float] | NDArray[np.float64]) -> float:
    """The statistic of at least one number, added in their order."""
    percent = percentiles.read_percentile(statistic)
    if percent is not None:
        return percentiles.find_percentile(numbers, percent)
    return kernels.aggregate_measure(_MEASURES[statistic], numbers)
