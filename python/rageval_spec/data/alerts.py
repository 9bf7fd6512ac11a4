"""What a monitor tells people: that something is wrong, since when and how surely, and that it is over."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import asdict, dataclass, field

AlertState: TypeAlias = Literal["pending", "firing", "resolved"]
AlertSeverity: TypeAlias = Literal["warning", "critical", "low", "medium", "high"]
Moved: TypeAlias = Literal["app", "judge", "traffic", "model"]
"""Which part of a system in production changed."""
RANKS: Mapping[AlertSeverity | None, int] = {None: 0, "low": 1, "warning": 2, "medium": 2, "high": 3, "critical": 3}
"""How bad a severity is, compared with the others."""


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

    @property
    def id(self) -> str:
        """Names this message. It is the same each time the message is sent, and differs for each state."""
        return f"{self.key}-{self.state}-{self.severity}"


def identify_group(messages: Sequence[AlertMessage]) -> str:
    """Names messages that are sent together, in at most 255 characters; the same each time they are sent."""
    ids = sorted(one.id for one in messages)
    return ids[0] if len(ids) == 1 else hashlib.sha256("\0".join(ids).encode()).hexdigest()[:32]


def export_alerts(messages: Sequence[AlertMessage]) -> dict[str, Any]:
    """What programs get of alerts, as JSON types: version 1 of the format that docs/alerts.md describes."""
    return {"version": 1, "id": identify_group(messages), "alerts": [_export(one) for one in messages]}


def _export(message: AlertMessage) -> dict[str, Any]:
    ended = None if message.ended is None else write_moment(message.ended)
    times = {"began": write_moment(message.began), "ended": ended}
    return {"id": message.id, **asdict(message), "worst": [asdict(one) for one in message.worst], **times}


def write_moment(seconds: float) -> str:
    """A time in seconds since 1970 as `2026-11-28T02:38:36.250Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
