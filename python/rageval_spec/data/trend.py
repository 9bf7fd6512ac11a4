"""The numbers of many evaluations over time, ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class Point(NamedTuple):
    """One number of one record.

    Attributes:
        mean: the number; `low` and `high` are its interval, None if it has none.
        commit: the commit of the record; None if it is not known.
        outcome: what the evaluation came to.
    """

    record_id: str
    time: datetime
    mean: float
    low: float | None = None
    high: float | None = None
    commit: str | None = None
    outcome: str = "pass"


@dataclass(frozen=True, slots=True)
class Break:
    """A place between two points that cannot be compared: before the point `index`, for this `reason`."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level that is not chance: from the point `index` on, the mean is `after` instead of `before`."""

    index: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one system on one dataset or slice over time, oldest point first.

    Attributes:
        dataset, system: "" for what belongs to the whole evaluation: its cost and its duration.
        bounds: the bounds of the newest record's gates on the metric: "min", "max" and "target".
    """

    metric: str
    dataset: str
    system: str
    slice: str | None
    points: tuple[Point, ...]
    breaks: tuple[Break, ...] = ()
    changes: tuple[Change, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """`golden, bm25, difficulty=hard`; "" for the whole evaluation."""
        return ", ".join(filter(None, (self.dataset, self.system, self.slice)))


@dataclass(frozen=True, slots=True)
class Trend:
    """The series of one evaluation's records.

    Attributes:
        name: the evaluation's name.
        series: those of metrics, then those of costs and durations.
        false_alarms: the probability that a stretch of points without a change gets a mark.
    """

    name: str
    series: tuple[Series, ...]
    false_alarms: float
