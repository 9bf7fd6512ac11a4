"""What a monitor tells people: that something is wrong, since when and how surely, and that it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rageval_spec.data.outcomes import Interval

AlertState: TypeAlias = Literal["pending", "firing", "resolved"]
AlertSeverity: TypeAlias = Literal["warning", "critical", "low", "medium", "high"]
Moved: TypeAlias = Literal["app", "judge", "traffic", "model"]
"""Which part of a system in production changed."""


@dataclass(frozen=True, slots=True)
class WorstAnswer:
    """One of the answers behind an alert.

    Attributes:
        link: where to see it, if the monitor knows: the trace in its tool.
    """

    trace_id: str
    question: str
    answer: str
    value: float | None
    reason: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """An alert that fires, or one that did and is over.

    Attributes:
        key: the same for all messages of one firing, so that a receiver can join them: a digest of monitor, alert and
            when it began.
        name: the alert's name, such as `faithfulness below 0.70`.
        value, interval: the number and how sure it is; None for alerts that have none, such as those of coverage.
        bound: the bound that it broke, or the level that it moved from.
        samples: of how many judged traces the number is.
        moved: which part changed, with the reasons, most likely first.
        worst: the worst answers behind it, at most three.
        page: where to look further: the monitor's page.
        labels: what receivers group and route by: `monitor`, `metric`, `system`.
        began, ended: in seconds since 1970; `ended` is None while it fires.
    """

    key: str
    monitor: str
    name: str
    state: AlertState
    severity: AlertSeverity
    summary: str
    began: float
    ended: float | None = None
    metric: str | None = None
    system: str | None = None
    window: str | None = None
    value: float | None = None
    interval: Interval | None = None
    bound: float | None = None
    samples: int | None = None
    moved: Mapping[Moved, str] = field(default_factory=dict)
    worst: tuple[WorstAnswer, ...] = ()
    page: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
