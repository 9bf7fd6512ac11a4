"""The tables of monitors in the database of the history, some of their rows, and what is added to them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rageval_spec.libraries import np
from rageval_spec.statistics.window_summaries import find_buckets

MOST_FAILURES = 3
"""How many polls of a feed, rows of it, or tries to judge a trace may fail in a row before that is an alert."""
PANE = 60
"""The seconds of a pane."""


class FeedState(NamedTuple):
    """How reading a feed, or its rows, went last: how many polls or rows in a row failed, since when, and why."""

    feed: str
    failures: int
    since: float
    message: str

    @property
    def is_stuck(self) -> bool:
        """Whether it could not be read for so long that people must know."""
        return self.failures > MOST_FAILURES


class Pane(NamedTuple):
    """The sums of a minute of one series; `weighted` and the like are over its judged values.

    `weights` is the sum of the weights, `weighted` of weight times value, `squares` of weight times the squared value,
    `squared_weights` of the squared weights, `squared_weighted` and `squared_squares` of those times the value and the
    squared value.
    """

    series: int
    pane: int
    judged: int = 0
    sampled_out: int = 0
    filtered: int = 0
    failed: int = 0
    over_budget: int = 0
    weights: float = 0.0
    weighted: float = 0.0
    squares: float = 0.0
    squared_weights: float = 0.0
    squared_weighted: float = 0.0
    squared_squares: float = 0.0
    cost: float = 0.0


class PaneSums:
    """What a transaction adds to the panes."""

    def __init__(self) -> None:
        self._panes: dict[tuple[int, int], dict[str, float]] = {}
        self._judged: list[tuple[int, float, float, float, int]] = []

    def add(
        self, series: int, state: str, started: float, value: float | None = None, weight: float = 1.0,
        cost: float | None = None, sign: int = 1,
    ) -> None:  # fmt: skip
        """Count what became of a trace; with the sign -1, take it back, except the cost, which was paid.

        `value` is None unless it was judged. That it waits is not counted here.
        """
        found = self._panes.setdefault((series, int(started // PANE) * PANE), {})
        terms: dict[str, float] = {state: 1, "cost": max(0, sign) * (cost or 0.0)}
        if value is not None:
            terms |= {"weights": weight, "weighted": weight * value, "squares": weight * value**2,
                      "squared_weights": weight**2, "squared_weighted": weight**2 * value,
                      "squared_squares": weight**2 * value**2}  # fmt: skip
            self._judged.append((series, started, value, weight, sign))
        for name, term in terms.items():
            found[name] = found.get(name, 0) + sign * term

    def rows(self) -> list[tuple[Any, ...]]:
        """What is added, in one order, so that two monitors do not wait for each other's rows."""
        return [
            (series, pane, *(found.get(name, 0) for name in Pane._fields[2:]))
            for (series, pane), found in sorted(self._panes.items(), key=lambda item: item[0])
        ]

    def bucket_rows(self) -> list[tuple[int, int, int, int]]:
        """What is added to the sketches: whole numbers, so that their sums are the same in any order."""
        if not self._judged:
            return []
        series, started, values, weights, signs = (np.array(column) for column in zip(*self._judged, strict=True))
        buckets, units = find_buckets(values, weights)
        found: Counter[tuple[int, int, int]] = Counter()
        panes = (started // PANE * PANE).astype(np.int64)
        columns = (one.tolist() for one in (series, panes, buckets, units * signs))
        for one, pane, bucket, weight in zip(*columns, strict=True):
            found[one, pane, bucket] += weight
        return [(*place, weight) for place, weight in sorted(found.items()) if weight]


def choose_minutes(column: str, count: int, most: int) -> str:
    """The condition that a time is in every so many minutes, so that of a number of traces about `most` are chosen.

    What comes every ten minutes, or at full hours, is neither left out nor all there is.
    """
    part, minute = math.ceil(count / most) or 1, f"CAST({column} / {PANE} AS BIGINT)"
    while math.gcd(part, _ROUND_TIMES) > 1:
        part += 1
    return f"{minute} / {part} * {part} = {minute}"


_ROUND_TIMES = 2 * 3 * 5 * 7
_TABLES = (
    """CREATE TABLE rageval_traces (
        monitor TEXT NOT NULL, trace_id TEXT NOT NULL, started DOUBLE PRECISION NOT NULL,
        due DOUBLE PRECISION NOT NULL, state TEXT NOT NULL, is_whole INTEGER NOT NULL, reopened INTEGER NOT NULL,
        digest TEXT NOT NULL, user_id TEXT, content BYTES, weight DOUBLE PRECISION, owner TEXT,
        lease DOUBLE PRECISION, PRIMARY KEY (monitor, trace_id)
    )""",
    "CREATE INDEX rageval_traces_due ON rageval_traces (monitor, due) WHERE state = 'waiting'",
    "CREATE INDEX rageval_traces_kept ON rageval_traces (monitor, started) WHERE content IS NOT NULL",
    """CREATE TABLE rageval_series (
        id INTEGER PRIMARY KEY, monitor TEXT NOT NULL, metric TEXT NOT NULL, identity TEXT NOT NULL,
        description TEXT NOT NULL, began DOUBLE PRECISION NOT NULL, settled_before BIGINT NOT NULL,
        used INTEGER NOT NULL, UNIQUE (monitor, metric, identity)
    )""",
    """CREATE TABLE rageval_judgements (
        series INTEGER NOT NULL, trace_id TEXT NOT NULL, state TEXT NOT NULL, value DOUBLE PRECISION,
        weight DOUBLE PRECISION NOT NULL, reason TEXT, details TEXT, cost DOUBLE PRECISION, tries INTEGER NOT NULL,
        retry_at DOUBLE PRECISION, started DOUBLE PRECISION NOT NULL, made DOUBLE PRECISION NOT NULL,
        counted DOUBLE PRECISION, arm TEXT, PRIMARY KEY (series, trace_id)
    )""",
    "CREATE INDEX rageval_judgements_started ON rageval_judgements (series, started)",
    "CREATE INDEX rageval_judgements_retry ON rageval_judgements (series, retry_at) WHERE retry_at IS NOT NULL",
    """CREATE TABLE rageval_panes (
        series INTEGER NOT NULL, pane BIGINT NOT NULL, judged INTEGER NOT NULL, sampled_out INTEGER NOT NULL,
        filtered INTEGER NOT NULL, failed INTEGER NOT NULL, over_budget INTEGER NOT NULL,
        weights DOUBLE PRECISION NOT NULL, weighted DOUBLE PRECISION NOT NULL, squares DOUBLE PRECISION NOT NULL,
        squared_weights DOUBLE PRECISION NOT NULL, squared_weighted DOUBLE PRECISION NOT NULL,
        squared_squares DOUBLE PRECISION NOT NULL, cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (series, pane)
    )""",
    """CREATE TABLE rageval_buckets (
        series INTEGER NOT NULL, pane BIGINT NOT NULL, bucket INTEGER NOT NULL, units BIGINT NOT NULL,
        PRIMARY KEY (series, pane, bucket)
    )""",
    """CREATE TABLE rageval_strata (
        monitor TEXT NOT NULL, stratum TEXT NOT NULL, hour BIGINT NOT NULL, kept INTEGER NOT NULL,
        PRIMARY KEY (monitor, stratum, hour)
    )""",
    """CREATE TABLE rageval_cursors (
        monitor TEXT NOT NULL, feed TEXT NOT NULL, position TEXT NOT NULL, PRIMARY KEY (monitor, feed)
    )""",
    """CREATE TABLE rageval_leases (
        monitor TEXT NOT NULL, work TEXT NOT NULL, owner TEXT NOT NULL, until DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (monitor, work)
    )""",
    """CREATE TABLE rageval_alerts (
        monitor TEXT NOT NULL, alert TEXT NOT NULL, state TEXT NOT NULL, severity TEXT, held_since DOUBLE PRECISION,
        began DOUBLE PRECISION, ended DOUBLE PRECISION, message TEXT, PRIMARY KEY (monitor, alert)
    )""",
    """CREATE TABLE rageval_messages (
        monitor TEXT NOT NULL, notifier TEXT NOT NULL, message_key TEXT NOT NULL, state TEXT NOT NULL,
        severity TEXT NOT NULL, made DOUBLE PRECISION NOT NULL, message TEXT NOT NULL, tries INTEGER NOT NULL,
        retry_at DOUBLE PRECISION, sent DOUBLE PRECISION, reason TEXT,
        PRIMARY KEY (monitor, notifier, message_key, state, severity)
    )""",
    "CREATE INDEX rageval_messages_due ON rageval_messages (monitor, retry_at) WHERE sent IS NULL",
    """CREATE TABLE rageval_silences (
        monitor TEXT NOT NULL, pattern TEXT NOT NULL, until DOUBLE PRECISION NOT NULL, reason TEXT,
        PRIMARY KEY (monitor, pattern)
    )""",
    """CREATE TABLE rageval_detectors (
        alert TEXT NOT NULL, series INTEGER NOT NULL, settings TEXT NOT NULL, baseline TEXT NOT NULL,
        state TEXT NOT NULL, made DOUBLE PRECISION NOT NULL, trace_id TEXT NOT NULL, PRIMARY KEY (alert, series)
    )""",
    "CREATE INDEX rageval_judgements_counted ON rageval_judgements (series, counted, trace_id)",
    """CREATE TABLE rageval_spending (
        monitor TEXT NOT NULL, minute BIGINT NOT NULL, calls BIGINT NOT NULL, cost DOUBLE PRECISION NOT NULL,
        needed DOUBLE PRECISION NOT NULL, PRIMARY KEY (monitor, minute)
    )""",
    """CREATE TABLE rageval_feeds (
        monitor TEXT NOT NULL, feed TEXT NOT NULL, failures INTEGER NOT NULL, since DOUBLE PRECISION NOT NULL,
        message TEXT NOT NULL, PRIMARY KEY (monitor, feed)
    )""",
    """CREATE TABLE rageval_spans (
        monitor TEXT NOT NULL, feed TEXT NOT NULL, trace_id TEXT NOT NULL, part TEXT NOT NULL, content BYTES NOT NULL,
        PRIMARY KEY (monitor, feed, trace_id, part)
    )""",
    """CREATE TABLE rageval_span_traces (
        monitor TEXT NOT NULL, feed TEXT NOT NULL, trace_id TEXT NOT NULL, began DOUBLE PRECISION NOT NULL,
        due DOUBLE PRECISION, is_whole INTEGER NOT NULL, given INTEGER NOT NULL, kept_until DOUBLE PRECISION,
        PRIMARY KEY (monitor, feed, trace_id)
    )""",
    "CREATE INDEX rageval_span_traces_due ON rageval_span_traces (monitor, feed, due) WHERE due IS NOT NULL",
    "CREATE INDEX rageval_span_traces_kept ON rageval_span_traces (monitor, feed, kept_until) WHERE due IS NULL",
    """CREATE TABLE rageval_outbox (
        monitor TEXT NOT NULL, destination TEXT NOT NULL, series INTEGER NOT NULL, trace_id TEXT NOT NULL,
        queued DOUBLE PRECISION NOT NULL, PRIMARY KEY (monitor, destination, series, trace_id)
    )""",
    """CREATE TABLE rageval_deliveries (
        monitor TEXT NOT NULL, destination TEXT NOT NULL, sent BIGINT NOT NULL, left_out BIGINT NOT NULL, reason TEXT,
        failures INTEGER NOT NULL, since DOUBLE PRECISION, failure TEXT, PRIMARY KEY (monitor, destination)
    )""",
)
MIGRATIONS: Sequence[Sequence[str]] = (_TABLES,)
"""As those of the history: entries are only ever added at the end."""
