"""Alerts: what a look at the numbers came to, the state of each alert, and what is still to be told of it.

An alert is pending while its condition holds shorter than `for:`, then it fires, and it is resolved once the condition
surely no longer holds. A look that cannot decide, for lack of data, changes nothing: no data neither fires nor
resolves. Each change and the messages that it causes are written in one transaction, one row for each notifier. A row
is sent until the notifier has taken it, and never after. A process that is killed while it sends sends the same message
again, with the same key, by which receivers know it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias

from rageval_spec.data.alerts import AlertMessage, AlertSeverity, AlertState, WorstAnswer
from rageval_spec.data.outcomes import Interval
from rageval_spec.errors import RagevalError
from rageval_spec.history.database import Connection, insert
from rageval_spec.plugin import Notifier

Verdict: TypeAlias = Literal["holds", "clear", "undecided"]
"""Whether the condition of an alert holds, surely does not, or cannot be decided."""
FIRST_WAIT = 10.0
LONGEST_WAIT = 900.0
"""Seconds before a message that was not taken is sent again for the first time, and the most between two tries."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the numbers came to for one alert.

    Attributes:
        alert: names the alert in the database; stable for as long as its entry in the spec is.
        name: how people know it: `faithfulness below 0.7`.
        severity: how bad it is, if the condition holds.
        evidence: what goes into the message: the attributes of `AlertMessage` from `metric` on.
        for_seconds, cooldown: as in the spec.
        notifiers: who is told; None for all.
    """

    alert: str
    name: str
    verdict: Verdict
    severity: AlertSeverity = "warning"
    summary: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    for_seconds: float = 0.0
    cooldown: float = 0.0
    notifiers: tuple[str, ...] | None = None


class AlertRow(NamedTuple):
    """An alert as the database holds it. `held_since` is when its condition began to hold."""

    alert: str
    state: AlertState | Literal["clear"]
    severity: AlertSeverity | None = None
    held_since: float | None = None
    began: float | None = None
    ended: float | None = None
    message: str | None = None


_COLUMNS = ("monitor", *AlertRow._fields)
_PUT = f"{insert('rageval_alerts', _COLUMNS)} ON CONFLICT (monitor, alert) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in AlertRow._fields[1:]
)
_ADD_MESSAGE = (
    insert(
        "rageval_messages",
        ("monitor", "notifier", "message_key", "state", "severity", "made", "message", "tries", "retry_at"),
    )
    + " ON CONFLICT (monitor, notifier, message_key, state, severity) DO NOTHING"
)
_RANK: Mapping[AlertSeverity | None, int] = {None: 0, "low": 1, "warning": 2, "medium": 2, "high": 3, "critical": 3}


@dataclass(frozen=True)
class AlertBook:
    """The alerts of one monitor, and what is still to be told of them.

    Attributes:
        page: where people can look further, for the messages.
    """

    connection: Connection
    monitor: str
    page: str | None = None

    def record(self, looks: Iterable[Look], notifiers: Sequence[str], now: float) -> list[AlertMessage]:
        """Write what looks came to, and what follows to be told; returns the messages that somebody is told."""
        messages = []
        with self.connection.write():
            rows = {row.alert: row for row in self.read()}
            for look in looks:
                row = rows.get(look.alert, AlertRow(look.alert, "clear"))
                changed, message = self._change(row, look, now)
                if changed != row:
                    self.connection.execute(_PUT, (self.monitor, *changed))
                if message is not None and (told := self._choose_notifiers(message, look, notifiers, now)):
                    messages.append(message)
                    self._post(message, told, now)
        return messages

    def read(self) -> list[AlertRow]:
        """The alerts that ever held, by name."""
        rows = self.connection.execute(
            f"SELECT {', '.join(AlertRow._fields)} FROM rageval_alerts WHERE monitor = ? ORDER BY alert",
            (self.monitor,),
        )
        return [AlertRow(*row) for row in rows]

    def _choose_notifiers(self, message: AlertMessage, look: Look, notifiers: Sequence[str], now: float) -> list[str]:
        """Who is told: of an end, those who were told of the beginning; else those that the alert names."""
        if message.state == "resolved":
            told = self.connection.execute(
                "SELECT DISTINCT notifier FROM rageval_messages WHERE monitor = ? AND message_key = ?",
                (self.monitor, message.key),
            )
            return [name for name in notifiers if (name,) in told]
        if self.is_silenced(message, now):
            return []
        return [name for name in notifiers if look.notifiers is None or name in look.notifiers]

    def _change(self, row: AlertRow, look: Look, now: float) -> tuple[AlertRow, AlertMessage | None]:
        """The new state of an alert, and the message that people get of the change, if any."""
        if look.verdict == "undecided":
            return row, None
        if look.verdict == "clear":
            if row.state != "firing":
                return row._replace(state="clear" if row.state == "pending" else row.state, held_since=None), None
            ended = row._replace(state="resolved", held_since=None, ended=now)
            return ended, self._resolve(row, look, now)
        held_since = row.held_since if row.held_since is not None else now
        if row.state == "firing":
            if _RANK[look.severity] <= _RANK[row.severity]:
                return row, None
            worse = self._make(look, row.began or now)
            return row._replace(severity=look.severity, message=_dump(worse)), worse
        is_cooling = row.ended is not None and now < row.ended + look.cooldown
        if is_cooling or now < held_since + look.for_seconds:
            return AlertRow(look.alert, "pending", look.severity, held_since, row.began, row.ended, row.message), None
        message = self._make(look, held_since)
        return AlertRow(look.alert, "firing", look.severity, held_since, held_since, None, _dump(message)), message

    def _make(self, look: Look, began: float) -> AlertMessage:
        key = hashlib.sha256(f"{self.monitor}\0{look.alert}\0{began!r}".encode()).hexdigest()[:24]
        return AlertMessage(
            key, self.monitor, look.name, "firing", look.severity, look.summary, began, page=self.page, **look.evidence
        )

    def _resolve(self, row: AlertRow, look: Look, now: float) -> AlertMessage:
        assert row.message is not None, "an alert that fires has a message"
        now_known = {name: value for name, value in look.evidence.items() if name in ("value", "interval", "samples")}
        told = look.summary or f"{look.name}: it no longer holds"
        return replace(load_message(row.message), state="resolved", ended=now, summary=told, worst=(), **now_known)

    def _post(self, message: AlertMessage, notifiers: Iterable[str], now: float) -> None:
        text = _dump(message)
        rows = [
            (self.monitor, one, message.key, message.state, message.severity, now, text, 0, now) for one in notifiers
        ]
        self.connection.execute_many(_ADD_MESSAGE, rows)

    def silence(self, pattern: str, until: float, reason: str | None = None) -> None:
        """Tell nobody of alerts whose names match a pattern such as `latency*`, until some time."""
        self.connection.execute(
            f"{insert('rageval_silences', ('monitor', 'pattern', 'until', 'reason'))} "
            "ON CONFLICT (monitor, pattern) DO UPDATE SET until = excluded.until, reason = excluded.reason",
            (self.monitor, pattern, until, reason),
        )

    def is_silenced(self, message: AlertMessage, now: float) -> bool:
        """Whether a silence covers an alert. Its state changes all the same."""
        rows = self.connection.execute(
            "SELECT pattern FROM rageval_silences WHERE monitor = ? AND until > ?", (self.monitor, now)
        )
        return any(fnmatchcase(message.name, pattern) for (pattern,) in rows)

    def list_undelivered(self) -> list[tuple[str, str, str | None]]:
        """What nobody has taken yet: the notifier, the alert's name, and why the last try failed."""
        rows = self.connection.execute(
            "SELECT notifier, message, reason FROM rageval_messages WHERE monitor = ? AND sent IS NULL ORDER BY made",
            (self.monitor,),
        )
        return [(name, load_message(text).name, reason) for name, text, reason in rows]

    def deliver(
        self, notifiers: Mapping[str, Notifier[Any]], now: float, complain: Callable[[str], None] = lambda _: None
    ) -> int:
        """Send what is due, those of one notifier together; how many messages were taken.

        What a notifier does not take is sent again later, with growing waits. What ended is sent after what began, so
        that no notifier hears of an end before the beginning.
        """
        taken = 0
        for name, notifier in notifiers.items():
            rows = self.connection.execute(
                "SELECT message_key, state, severity, message, tries FROM rageval_messages WHERE monitor = ? "
                "AND notifier = ? AND sent IS NULL AND retry_at <= ? ORDER BY made, message_key",
                (self.monitor, name, now),
            )
            for state in ("firing", "resolved"):
                some = [row for row in rows if row[1] == state]
                if some and not self._send(name, notifier, some, now, complain):
                    break
                taken += len(some)
        return taken

    def _send(
        self,
        name: str,
        notifier: Notifier[Any],
        rows: Sequence[Sequence[Any]],
        now: float,
        complain: Callable[[str], None],
    ) -> bool:
        """Send the messages of some rows together; whether they were taken."""
        reason, tries = None, max(row[4] for row in rows) + 1
        try:
            notifier.send([load_message(row[3]) for row in rows])
        except RagevalError as error:
            reason = str(error)
            complain(reason)
        wait = min(FIRST_WAIT * 2 ** (tries - 1), LONGEST_WAIT)
        self.connection.execute_many(
            "UPDATE rageval_messages SET sent = ?, retry_at = ?, tries = ?, reason = ? WHERE monitor = ? "
            "AND notifier = ? AND message_key = ? AND state = ? AND severity = ?",
            [(None if reason else now, now + wait, tries, reason, self.monitor, name, *row[:3]) for row in rows],
        )
        return reason is None


def _dump(message: AlertMessage) -> str:
    return json.dumps(asdict(message), ensure_ascii=False, sort_keys=True)


def load_message(text: str) -> AlertMessage:
    """The message that the database holds."""
    found = json.loads(text)
    interval = found.pop("interval")
    worst = tuple(WorstAnswer(**one) for one in found.pop("worst"))
    return AlertMessage(**found, interval=None if interval is None else Interval(**interval), worst=worst)
