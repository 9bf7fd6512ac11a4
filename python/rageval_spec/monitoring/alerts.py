"""Alerts: what a look at the numbers came to, the state of each alert, and what is still to be told of it.

An alert is pending while its condition holds shorter than `for:`, then it fires, and it is resolved once the condition
surely no longer holds. A look that cannot decide, for lack of data, changes nothing: no data neither fires nor
resolves. Each change and the messages that it causes are written in one transaction, one row for each notifier. A row
is sent until the notifier has taken it, and never after. A process claims a row before it sends it, so that no other
process does. If it is killed while it sends, the claim ends and the same message is sent again, with the same id, by
which receivers know it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias

from rageval_spec.data.alerts import RANKS, AlertMessage, AlertSeverity, AlertState, WorstAnswer
from rageval_spec.data.outcomes import Interval
from rageval_spec.dataclass import asdict, dataclass, field, replace
from rageval_spec.endpoints.pacing import double_wait
from rageval_spec.errors import RagevalError
from rageval_spec.history.database import Connection, insert, insert_or_set
from rageval_spec.plugin import Notifier
from rageval_spec.wording import format_number

Verdict: TypeAlias = Literal["holds", "clear", "undecided"]
"""Whether the condition of an alert holds, surely does not, or cannot be decided."""
CLAIM = 60.0
"""Seconds, besides those that its notifier can take, after which a message that a process was to send is sent again."""
FIRST_WAIT = 10.0
LONGEST_WAIT = 900.0
"""Seconds before a message that was not taken is sent again for the first time, and the most between two tries."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the numbers came to for one alert.

    Attributes:
        alert: names the alert in the database; stable for as long as its entry in the spec is.
        name: how people know it: `faithfulness below 0.7`.
        evidence: what goes into the message: the attributes of `AlertMessage` from `metric` on.
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
    """An alert as the database holds it.

    `held_since` is when its condition began to hold. The message of one that is clear says what it waits for, if it
    cannot be decided.
    """

    alert: str
    state: AlertState | Literal["clear"]
    severity: AlertSeverity | None = None
    held_since: float | None = None
    began: float | None = None
    ended: float | None = None
    message: str | None = None


class TellingRow(NamedTuple):
    """A message to a notifier. `sent` is when it took it; `reason` is why it did not take it last."""

    message_key: str
    state: AlertState
    severity: AlertSeverity
    notifier: str
    made: float
    tries: int
    retry_at: float | None
    sent: float | None
    reason: str | None
    message: str


_PUT = insert_or_set("rageval_alerts", ("monitor", "alert"), AlertRow._fields[1:])
_ADD_MESSAGE = (
    insert(
        "rageval_messages",
        ("monitor", "notifier", "message_key", "state", "severity", "made", "message", "tries", "retry_at"),
    )
    + " ON CONFLICT (monitor, notifier, message_key, state, severity) DO NOTHING"
)


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
        """Who is told: of an end, those who were told of the beginning; else those that the alert names.

        Nobody is told twice, so those who were not told because of a silence are told when it is over.
        """
        told = {(row.notifier, row.state, row.severity) for row in self.list_messages(message.key)}
        if message.state == "resolved":
            return [name for name in notifiers if any(name == row[0] for row in told)]
        if self.is_silenced(message, now):
            return []
        new = [name for name in notifiers if (name, message.state, message.severity) not in told]
        return [name for name in new if look.notifiers is None or name in look.notifiers]

    def _change(self, row: AlertRow, look: Look, now: float) -> tuple[AlertRow, AlertMessage | None]:
        """The new state of an alert, and the message that people get unless they have it, if any."""
        if look.verdict == "undecided":
            if row.state != "clear":
                return row, None
            waits = _dump(replace(self._make(look, now), state="pending")) if look.summary else None
            return row._replace(message=waits), None
        if look.verdict == "clear":
            if row.state != "firing":
                kept = row if row.state == "resolved" else row._replace(state="clear", message=None)
                return kept._replace(held_since=None), None
            ended = row._replace(state="resolved", held_since=None, ended=now)
            return ended, self._resolve(row, look, now)
        held_since = row.held_since if row.held_since is not None else now
        if row.state == "firing":
            message = self._make(look, row.began or now)
            if RANKS[look.severity] <= RANKS[row.severity]:
                return row, replace(message, severity=row.severity or look.severity)
            return row._replace(severity=look.severity, message=_dump(message)), message
        is_cooling = row.ended is not None and now < row.ended + look.cooldown
        if is_cooling or now < held_since + look.for_seconds:
            waits = _dump(replace(self._make(look, held_since), state="pending"))
            return AlertRow(look.alert, "pending", look.severity, held_since, row.began, row.ended, waits), None
        message = self._make(look, held_since)
        return AlertRow(look.alert, "firing", look.severity, held_since, held_since, None, _dump(message)), message

    def _make(self, look: Look, began: float) -> AlertMessage:
        key = hashlib.sha256(f"{self.monitor}\0{look.alert}\0{began!r}".encode()).hexdigest()[:24]
        return AlertMessage(
            key, self.monitor, look.name, "firing", look.severity, look.summary, began, page=self.page, **look.evidence
        )

    def _resolve(self, row: AlertRow, look: Look, now: float) -> AlertMessage:
        """The end of an alert, with the numbers of now in place of those that it fired with."""
        assert row.message is not None, "an alert that fires has a message"
        fired, told = load_message(row.message), look.summary or f"{look.name}: it no longer holds"
        known: dict[str, Any] = {name: look.evidence.get(name) for name in ("value", "interval", "samples")}
        level = look.evidence.get("bound", fired.bound)
        if level is not None and fired.bound is not None and not math.isclose(level, fired.bound):
            told = f"{look.name}: changes are now measured from a new level of {format_number(level)}; "
            told += f"the level that it moved from was {format_number(fired.bound)}"
        return replace(fired, state="resolved", ended=now, summary=told, worst=(), moved={}, bound=level, **known)

    def _post(self, message: AlertMessage, notifiers: Iterable[str], now: float) -> None:
        text = _dump(message)
        rows = [
            (self.monitor, one, message.key, message.state, message.severity, now, text, 0, now) for one in notifiers
        ]
        self.connection.execute_many(_ADD_MESSAGE, rows)

    def silence(self, pattern: str, until: float, reason: str | None = None) -> None:
        """Tell nobody of alerts whose names match a pattern such as `latency*`, until some time."""
        self.connection.execute(
            insert_or_set("rageval_silences", ("monitor", "pattern"), ("until", "reason")),
            (self.monitor, pattern, until, reason),
        )

    def is_silenced(self, message: AlertMessage, now: float) -> bool:
        """Whether a silence covers an alert. Its state changes all the same."""
        return any(fnmatchcase(message.name, pattern) for pattern, _, _ in self.list_silences(now))

    def list_messages(self, key: str | None = None) -> list[TellingRow]:
        """Who is told of one firing, or of all, and how far that came, in the order in which it was to be told."""
        return self._select("TRUE") if key is None else self._select("message_key = ?", key)

    def list_undelivered(self) -> list[TellingRow]:
        """What is still to be told."""
        return self._select("sent IS NULL")

    def _select(self, condition: str, *parameters: Any) -> list[TellingRow]:
        rows = self.connection.execute(
            f"SELECT {', '.join(TellingRow._fields)} FROM rageval_messages m WHERE monitor = ? AND {condition} "
            "ORDER BY made, notifier",
            (self.monitor, *parameters),
        )
        return [TellingRow(*row) for row in rows]

    def deliver(
        self,
        notifiers: Mapping[str, Notifier[Any]],
        now: float,
        note: Callable[[str, str | None], None] = lambda _, __: None,
    ) -> int:
        """Send what is due, and what belongs together at once; how many messages were taken.

        What a notifier does not take is sent again later, with growing waits, after what is new. Nobody hears of an end
        before the beginning. `note` gets the name of a notifier and why it took nothing, or None if it did.
        """
        taken = 0
        for name, notifier in notifiers.items():
            for rows in self._list_due(name, notifier, now):
                claimed = self._claim(name, rows, now + notifier.patience + CLAIM)
                if not claimed:
                    continue
                messages = [load_message(row.message) for row in claimed]
                worst_first = sorted(messages, key=lambda one: (-RANKS[one.severity], one.name))
                reason = _hand_over(worst_first, notifier, notifier.send)
                self._settle(name, claimed, reason, now)
                note(name, reason)
                if reason is not None:
                    break
                taken += len(claimed)
        return taken

    def _list_due(self, name: str, notifier: Notifier[Any], now: float) -> list[list[TellingRow]]:
        """The messages that are due, those that are sent together in one list; what was tried least comes first."""
        found = self._select(
            "notifier = ? AND sent IS NULL AND retry_at <= ? AND NOT EXISTS (SELECT 1 FROM rageval_messages f WHERE "
            "f.monitor = m.monitor AND f.notifier = m.notifier AND f.sent IS NULL AND f.message_key = m.message_key "
            "AND f.made < m.made)",
            name, now,
        )  # fmt: skip
        groups: dict[Any, list[TellingRow]] = {}
        for row in sorted(found, key=lambda one: (one.tries, one.made, one.state, one.message_key)):
            groups.setdefault((row.made, row.state, row.retry_at) if notifier.groups else row, []).append(row)
        return list(groups.values())

    def _claim(self, name: str, rows: Iterable[TellingRow], until: float) -> list[TellingRow]:
        """Those of some messages that no other process has begun to send meanwhile; until a time, none does."""
        claim = (
            "UPDATE rageval_messages SET retry_at = ?, tries = tries + 1 WHERE monitor = ? AND notifier = ? AND "
            "message_key = ? AND state = ? AND severity = ? AND sent IS NULL AND retry_at = ? RETURNING message_key"
        )
        with self.connection.write():
            return [row for row in rows
                    if self.connection.execute(claim, (until, self.monitor, name, *row[:3], row.retry_at))]  # fmt: skip

    def _settle(self, name: str, rows: Sequence[TellingRow], reason: str | None, now: float) -> None:
        wait = double_wait(1 + min(row.tries for row in rows), FIRST_WAIT, LONGEST_WAIT)
        self.connection.execute_many(
            "UPDATE rageval_messages SET sent = ?, retry_at = ?, reason = ? WHERE monitor = ? "
            "AND notifier = ? AND message_key = ? AND state = ? AND severity = ?",
            [(None if reason else now, now + wait, reason, self.monitor, name, *row[:3]) for row in rows],
        )

    def refresh(self, name: str, notifier: Notifier[Any]) -> str | None:
        """Tell a notifier once more of what it knows and still fires; why it did not take that, or None."""
        taken = self._select("notifier = ? AND state = 'firing' AND sent IS NOT NULL", name)
        sent = {(row.message_key, row.severity) for row in taken}
        firing = [load_message(row.message) for row in self.read() if row.state == "firing" and row.message]
        known = [one for one in firing if (one.key, one.severity) in sent]
        return _hand_over(known, notifier, notifier.refresh) if known else None

    def list_removed(self, looks: Iterable[Look]) -> list[Look]:
        """The end of each alert that fires or is pending, but is no longer in the spec as it was."""
        kept = {one.alert for one in looks}
        gone = [row for row in self.read() if row.state in ("firing", "pending") and row.alert not in kept]
        names = [(row.alert, load_message(row.message).name) for row in gone if row.message]
        return [
            Look(alert, name, "clear", summary=f"{name}: the spec no longer has this alert") for alert, name in names
        ]

    def list_silences(self, now: float) -> list[tuple[str, float, str | None]]:
        """The silences that are not over: their pattern, their end and their reason."""
        rows = self.connection.execute(
            "SELECT pattern, until, reason FROM rageval_silences WHERE monitor = ? AND until > ? ORDER BY pattern",
            (self.monitor, now),
        )
        return [(pattern, until, reason) for pattern, until, reason in rows]

    def list_waiting(self) -> list[tuple[str, str]]:
        """The alerts that cannot be decided yet: their names, and what each waits for."""
        found = [load_message(row.message) for row in self.read() if row.state == "clear" and row.message]
        return sorted((one.name, one.summary) for one in found)


def _hand_over(
    messages: Sequence[AlertMessage], notifier: Notifier[Any], hand: Callable[[Sequence[AlertMessage]], None]
) -> str | None:
    """Why a notifier did not take messages; None if it did."""
    try:
        hand(messages)
    except Exception as error:
        return explain_failure(error, notifier)
    return None


def explain_failure(error: Exception, notifier: Notifier[Any]) -> str:
    """Why a notifier took nothing, without its name. Of an unexpected error, only the type: its text may be secret."""
    if isinstance(error, RagevalError):
        return str(error).removeprefix(f"{notifier.where}: ")
    return f"it broke off with {type(error).__name__}"


def _dump(message: AlertMessage) -> str:
    text = json.dumps(asdict(message), ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8", "replace").decode()  # half of a surrogate pair, which nobody could send


def load_message(text: str) -> AlertMessage:
    """The message that the database holds."""
    found = json.loads(text)
    interval = found.pop("interval")
    worst = tuple(WorstAnswer(**one) for one in found.pop("worst"))
    return AlertMessage(**found, interval=None if interval is None else Interval(**interval), worst=worst)
