"""The ledger: the account of every trace that a monitor has seen, in the database of the history.

Each trace has one state for each series: judged, sampled out, filtered, waiting, failed or over budget. The counts by
state are kept beside the traces and change in the same transaction, so they add up after every kill: for each series,
the counts of all states are the traces that it has seen.

A trace waits until nothing new came of it for some time. Then one monitor claims it for as long as a lease lasts,
judges it, and writes what it found in one transaction. A monitor that dies loses its claims when their lease ends.
Spans that come after a trace was judged open it once more; what was found then replaces what was found before.

Counts and sums are kept by minute of the traces' own time (a pane). They only ever grow by what a transaction adds, so
several monitors can write at once and the sums are the same in any order.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass
from rageval_spec.history.database import Connection, insert, insert_or_add, insert_or_set, migrate
from rageval_spec.monitoring.tables import MIGRATIONS, FeedState, Pane, PaneSums

State: TypeAlias = Literal["judged", "sampled_out", "filtered", "waiting", "failed", "over_budget"]
STATES: tuple[State, ...] = get_args(State)
"""What can become of a trace for one series."""
COUNTED: tuple[State, ...] = tuple(state for state in STATES if state != "waiting")
"""The states that are counted by minute; how many wait is counted where they wait."""
SPENT = "the budget was spent, and no other trace counts for this one"
"""Why a trace is over budget that can still be judged. For one that was left out at random, others count."""
LEASE = 300.0
"""Seconds for which a process holds traces, in its own time."""


@dataclass(frozen=True, slots=True)
class SeenTrace:
    """A trace as a feed gave it.

    Attributes:
        started: when it began, in seconds since 1970.
        due: when it can be judged, unless more of it comes until then.
        is_whole: whether its root has ended; kept so that a page can say how many never did.
    """

    trace: Trace
    started: float
    due: float
    is_whole: bool = True


class ClaimedTrace(NamedTuple):
    """A trace that this monitor holds: nobody else judges it until the lease ends.

    `weight` is None until the trace was chosen; a trace that is judged again keeps the one that it has.
    """

    trace_id: str
    started: float
    weight: float | None
    trace: Trace


class SampledTrace(NamedTuple):
    """What the sample makes of a claimed trace.

    `weight` is None if it is not in the sample, and `stratum` if it does not count for the least number of one.
    """

    claimed: ClaimedTrace
    weight: float | None
    stratum: str | None = ""


class Judgement(NamedTuple):
    """What became of one trace for one series.

    Attributes:
        state: never "sampled_out", which is a state of the whole trace.
        weight: for how many traces it stands: 1 / the probability with which it was chosen.
        retry_at: when a failure is tried again; the judgement then waits and is not counted as failed.
    """

    series: int
    trace_id: str
    state: State
    value: float | None
    weight: float
    reason: str | None = None
    details: str | None = None
    cost: float | None = None
    tries: int = 1
    retry_at: float | None = None


_Place: TypeAlias = tuple[int, str]
"""The series and the id of a judgement."""
_Made: TypeAlias = tuple[Judgement, float, str | None]
"""A judgement, when its trace began, and its arm."""
_OWN = "series IN (SELECT id FROM rageval_series WHERE monitor = ?)"
_ADD_PANE = insert_or_add("rageval_panes", ("series", "pane"), Pane._fields[2:])
_JUDGEMENT = ("series", "trace_id", "state", "value", "weight", "reason", "details", "cost", "tries", "retry_at",
              "started", "made", "counted", "arm")  # fmt: skip
_FIRST = ("counted", "arm")
"""What the first judgement with a value says stays: a detector has counted it."""
_PUT_JUDGEMENT = (
    f"{insert('rageval_judgements', _JUDGEMENT)} ON CONFLICT (series, trace_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _JUDGEMENT[2:] if name not in _FIRST)
    + "".join(f", {name} = COALESCE(rageval_judgements.{name}, excluded.{name})" for name in _FIRST)
)
_ADD_BUCKET = insert_or_add("rageval_buckets", ("series", "pane", "bucket"), ("units",))


@dataclass
class Ledger:
    """The ledger of one monitor, by its name. Times are seconds since 1970.

    Attributes:
        owner: names this process in leases.
        arms_by: the column of a trace by which two systems are compared; None if none are.
        on_judged: gets what was written, the series and the trace of each judgement, in the transaction that wrote it.
        writing: seconds in which a transaction of another process is surely committed; 0 where there is no other one.
    """

    connection: Connection
    monitor: str
    owner: str
    arms_by: str | None = None
    on_judged: Callable[[Sequence[tuple[int, str]], float], None] = lambda *_: None
    writing: float = 10.0

    def __post_init__(self) -> None:
        migrate(self.connection, "rageval_monitor_schema", MIGRATIONS)
        self._locking = " FOR UPDATE SKIP LOCKED" if self.connection.bytes_type == "BYTEA" else ""

    def query(self, statement: str, *parameters: Any) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement whose first parameter is the monitor."""
        return self.connection.execute(statement, (self.monitor, *parameters))

    def query_some(self, statement: str, ids: Iterable[str], *parameters: Any, rest: str = "") -> list[tuple[Any, ...]]:
        """The rows of a statement that ends before `IN`, for any number of ids; `rest` comes after these."""
        rows: list[tuple[Any, ...]] = []
        named = [*dict.fromkeys(ids)]
        for start in range(0, len(named), _MOST_NAMED):
            some = named[start : start + _MOST_NAMED]
            rows += self.query(f"{statement} IN ({', '.join('?' * len(some))}){rest}", *parameters, *some)
        return rows

    def read_cursor(self, feed: str) -> Any:
        """Where a feed goes on reading; None at the beginning."""
        found = self.query("SELECT position FROM rageval_cursors WHERE monitor = ? AND feed = ?", feed)
        return json.loads(found[0][0]) if found else None

    def note_feed(self, state: FeedState) -> None:
        """Write down how reading a feed goes; no failures if it was read."""
        self.query(insert_or_set("rageval_feeds", ("monitor", "feed"), FeedState._fields[1:]), *state)

    def read_feeds(self) -> list[FeedState]:
        """How reading each feed went last."""
        of_monitor = "SELECT feed, failures, since, message FROM rageval_feeds WHERE monitor = ? ORDER BY feed"
        return [FeedState(*row) for row in self.query(of_monitor)]

    def find_questions(self, trace_ids: Sequence[str]) -> dict[str, str]:
        """The digest of the question of each trace that is known, of some ids; see `digest_question`."""
        known = "SELECT trace_id, digest FROM rageval_traces WHERE monitor = ? AND trace_id"
        return {trace_id: digest[:_QUESTION_DIGITS] for trace_id, digest in self.query_some(known, trace_ids)}

    def see(self, traces: Iterable[SeenTrace], feed: str, cursor: Any) -> None:
        """Write down what a feed gave, and where it goes on, in one transaction.

        What was seen before changes nothing, so a feed may give a trace again. A trace with more in it than before is
        due later; if it was judged already, it is judged again, once.
        """
        rows = sorted((self._pack(one) for one in traces), key=itemgetter(1))
        with self.connection.write():
            self.connection.execute_many(_SEE, rows)
            put = insert_or_set("rageval_cursors", ("monitor", "feed"), ("position",))
            self.query(put, feed, json.dumps(cursor))

    def _pack(self, seen: SeenTrace) -> tuple[Any, ...]:
        content = json.dumps(seen.trace.to_row(), ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")
        digest = f"{digest_question(seen.trace.question)}{zlib.crc32(content):08x}{len(content):x}"
        trace, packed = seen.trace, zlib.compress(content, 1)
        return (self.monitor, trace.id, seen.started, seen.due, "waiting", int(seen.is_whole), 0, digest, trace.user,
                packed, None, None)  # fmt: skip

    def claim(self, now: float, most: int, lease: float) -> list[ClaimedTrace]:
        """Hold at most so many traces that are due, the oldest first, for `lease` seconds."""
        due = (
            "SELECT trace_id FROM rageval_traces WHERE monitor = ? AND state = 'waiting' AND due <= ? "
            f"AND (owner IS NULL OR lease < ?) ORDER BY due LIMIT ?{self._locking}"
        )
        with self.connection.write():
            rows = self.query(
                f"WITH due AS MATERIALIZED ({due}) "  # else PostgreSQL may look for the due ones again, and take more
                "UPDATE rageval_traces SET owner = ?, lease = ? WHERE monitor = ? AND trace_id IN "
                "(SELECT trace_id FROM due) RETURNING trace_id, started, weight, content",
                now, now, most, self.owner, now + lease, self.monitor,
            )  # fmt: skip
        return [*map(_read_trace, rows)]

    def claim_retries(self, now: float, most: int, lease: float) -> list[tuple[int, int, ClaimedTrace]]:
        """The judgements whose time to be tried again has come: the series, the tries so far, and the trace.

        The weight of the trace is that of the judgement. Each is put off by the lease, so that nobody else tries it.
        """
        with self.connection.write():
            rows = self.query(
                "SELECT j.series, j.trace_id, j.tries, j.weight FROM rageval_judgements j JOIN rageval_series s "
                "ON s.id = j.series WHERE s.monitor = ? AND j.retry_at <= ? ORDER BY j.retry_at LIMIT ?"
                f"{self._locking and ' FOR UPDATE OF j SKIP LOCKED'}",
                now, most,
            )  # fmt: skip
            put_off = "UPDATE rageval_judgements SET retry_at = ? WHERE series = ? AND trace_id = ?"
            self.connection.execute_many(put_off, [(now + lease, series, name) for series, name, *_ in rows])
        found = self.read_traces([trace_id for _, trace_id, *_ in rows])
        return [
            (series, tries, found[trace_id]._replace(weight=weight))
            for series, trace_id, tries, weight in rows
            if trace_id in found
        ]

    def read_traces(self, trace_ids: Sequence[str]) -> dict[str, ClaimedTrace]:
        """Those of some traces whose texts are kept, by id."""
        kept = (
            "SELECT trace_id, started, weight, content FROM rageval_traces "
            "WHERE monitor = ? AND content IS NOT NULL AND trace_id"
        )
        return {row[0]: _read_trace(row) for row in self.query_some(kept, trace_ids)}

    def settle(self, sampled: Sequence[SampledTrace], judgements: Sequence[Judgement], now: float) -> None:
        """Write what became of claimed traces, in one transaction.

        A trace whose lease ended meanwhile may have been judged by another monitor; what that one wrote stays.
        """
        by_trace: dict[str, list[Judgement]] = {}
        for one in judgements:
            by_trace.setdefault(one.trace_id, []).append(one)
        with self.connection.write():
            own = self._find_own([one.claimed for one in sampled])
            mine = [one for one in sampled if one.claimed.trace_id in own]
            sums, kept = PaneSums(), Counter[tuple[str, int]]()
            series = self.current_series().values()
            made: list[_Made] = []
            states = []
            for (trace_id, started, earlier, trace), weight, stratum in mine:
                is_kept = weight is not None
                states.append(("judged" if is_kept else "sampled_out", weight, int(is_kept), self.monitor, trace_id))
                if is_kept:
                    arm = self._find_arm(trace)
                    made += [(one, started, arm) for one in by_trace.get(trace_id, ())]
                else:
                    for number in series:
                        sums.add(number, "sampled_out", started)
                if is_kept and earlier is None and stratum is not None:
                    kept[stratum, hour_of(started)] += 1
            places = {(one.series, one.trace_id) for one, *_ in made}
            had = self._subtract_earlier([one.claimed for one in mine if one.claimed.weight is not None], places, sums)
            self._note_lacking([one for one in mine if one.weight is not None], series, places, had)
            self._write(made, now, sums)
            self.connection.execute_many(_ADD_KEPT, [(self.monitor, *key, count) for key, count in kept.items()])
            self.connection.execute_many(_SETTLE, states)

    def count_kept(self, since: float) -> dict[tuple[str, int], int]:
        """How many traces of each stratum and hour were chosen, from an hour on."""
        of_hours = "SELECT stratum, hour, kept FROM rageval_strata WHERE monitor = ? AND hour >= ?"
        return {(stratum, hour): kept for stratum, hour, kept in self.query(of_hours, hour_of(since))}

    def retry(self, again: Sequence[tuple[Judgement, float]], now: float) -> None:
        """Write what a new try of waiting judgements came to, each with when its trace began.

        What another monitor wrote meanwhile stays.
        """
        of_series: dict[int, list[str]] = {}
        for one, _ in again:
            of_series.setdefault(one.series, []).append(one.trace_id)
        waiting = (
            "SELECT series, trace_id FROM rageval_judgements "
            f"WHERE {_OWN} AND retry_at IS NOT NULL AND series = ? AND trace_id"
        )
        with self.connection.write():
            places = {
                place
                for series, ids in sorted(of_series.items())
                for place in self.query_some(waiting, sorted(ids), series, rest=self._locking and " FOR UPDATE")
            }
            mine = [(one, started, None) for one, started in again if (one.series, one.trace_id) in places]
            self._write(mine, now, PaneSums())

    def _write(self, made: Sequence[_Made], now: float, sums: PaneSums) -> None:
        """Write and count judgements, and what `sums` already has."""
        rows = []
        for one, started, arm in made:
            _count(sums, one, started)
            counted = now if one.state == "judged" and one.value is not None else None
            rows.append((*one, started, now, counted, arm))
        self.connection.execute_many(_PUT_JUDGEMENT, rows)
        self.on_judged([(one.series, one.trace_id) for one, *_ in made], now)
        self._add(sums)

    def _add(self, sums: PaneSums) -> None:
        self.connection.execute_many(_ADD_PANE, sums.rows())
        self.connection.execute_many(_ADD_BUCKET, sums.bucket_rows())

    def _find_arm(self, trace: Trace) -> str | None:
        """`variant=b`; None for a trace that does not have the column."""
        if self.arms_by is None or (found := name_group(trace, self.arms_by)) is None:
            return None
        return f"{self.arms_by}={found}"

    def read_unfilled(self, series: int, since: float, most: int, after: str = "") -> list[ClaimedTrace]:
        """Traces of the sample that began since a time and have no judgement of a series, in the order of their ids.

        Only those whose texts are still kept; at most so many, whose ids come after one.
        """
        unfilled = f"SELECT trace_id, started, weight, content {_UNFILLED} AND trace_id > ? ORDER BY trace_id LIMIT ?"
        return [*map(_read_trace, self.query(unfilled, since, series, after, most))]

    def count_unfilled(self, series: int, since: float) -> int:
        """How many traces `read_unfilled` would return in all."""
        ((count,),) = self.query(f"SELECT COUNT(*) {_UNFILLED}", since, series)
        return int(count)

    def fill(self, filled: Sequence[tuple[Judgement, float]], series: int, now: float) -> None:
        """Write judgements of traces that were settled before a series began, each with when its trace began.

        What another monitor filled meanwhile stays.
        """
        with self.connection.write():
            self.connection.lock()
            of_series = f"SELECT trace_id FROM rageval_judgements WHERE {_OWN} AND series = ? AND trace_id"
            known = {row[0] for row in self.query_some(of_series, [one.trace_id for one, _ in filled], series)}
            new = [(one, started, None) for one, started in filled if one.trace_id not in known]
            self._write(new, now, PaneSums())
            self._move_before(series, -len(new))

    def retry_failed(self, now: float) -> dict[State, int]:
        """Let judgements be tried again at once; how many, by the state that they had.

        They failed for good, found the budget spent, or wait for a later try. Those whose texts are no longer kept stay
        as they are.
        """
        chosen = (
            f"{_OWN} AND (state = 'failed' OR (state = 'over_budget' AND reason = ?) OR retry_at > ?) AND EXISTS "
            "(SELECT 1 FROM rageval_traces t WHERE t.monitor = ? AND t.trace_id = rageval_judgements.trace_id "
            f"AND t.content IS NOT NULL){self._locking and ' FOR UPDATE'}"
        )
        again = (
            "UPDATE rageval_judgements SET state = 'waiting', retry_at = ?, tries = 0 WHERE series = ? AND trace_id = ?"
        )
        with self.connection.write():
            of_judgements = "SELECT series, trace_id, state, started FROM rageval_judgements"
            rows = self.query(f"{of_judgements} WHERE {chosen}", SPENT, now, self.monitor)
            self.connection.execute_many(again, [(now, series, name) for series, name, *_ in rows])
            sums = PaneSums()
            for series, _, state, started in rows:
                if state != "waiting":
                    sums.add(series, state, started, sign=-1)
            self._add(sums)
        return Counter(state for _, _, state, _ in rows)

    def prune_texts(self, before: float) -> int:
        """Remove the texts of traces that were settled and began before a time; how many. Numbers stay."""
        with self.connection.write():
            return self._remove_texts("started < ?", before)

    def forget(self, *, trace_id: str | None = None, user: str | None = None, gathered: Iterable[str] = ()) -> int:
        """Remove the texts of one trace, or of all of a user, also where they wait; how many traces had any.

        Their values stay, without the reasons that may quote them. A trace that waited counts as filtered. `gathered`
        are further traces of which spans are kept.
        """
        column, value = ("trace_id", trace_id) if trace_id is not None else ("user_id", user)
        with self.connection.write():
            chosen = f"monitor = ? AND {column} = ?"
            rows = self.query(f"SELECT trace_id, state, started, reopened FROM rageval_traces WHERE {chosen}", value)
            sums, series = PaneSums(), self.current_series().values()
            for _, state, started, reopened in rows:
                if state == "waiting" and not reopened:
                    for number in series:
                        sums.add(number, "filtered", started)
            self._add(sums)
            self.query(
                "UPDATE rageval_traces SET state = CASE WHEN state = 'waiting' AND reopened = 0 THEN 'filtered' "
                f"WHEN state = 'waiting' THEN 'judged' ELSE state END WHERE {chosen}",
                value,
            )
            named = {name_spans(name) for name, *_ in rows}
            own = set() if trace_id is None else {name_spans(trace_id)}
            had_spans = self._remove_spans({*gathered, *named, *own})
            return self._remove_texts(f"{column} = ?", value) + len({*gathered, *had_spans} - named)

    def _remove_spans(self, trace_ids: Collection[str]) -> set[str]:
        """Remove spans; the traces that had any. Those that still come of these traces are not kept."""
        known = "SELECT DISTINCT trace_id FROM rageval_spans WHERE monitor = ? AND trace_id"
        found = {trace_id for (trace_id,) in self.query_some(known, trace_ids)}
        self.query_some("DELETE FROM rageval_spans WHERE monitor = ? AND trace_id", trace_ids)
        self.query_some(
            f"UPDATE rageval_span_traces SET due = NULL, given = {MOST_GIVEN}, kept_until = began + {_REMEMBERED} "
            "WHERE monitor = ? AND trace_id",
            trace_ids,
        )
        return found

    def _remove_texts(self, condition: str, parameter: Any) -> int:
        rows = self.query(
            "UPDATE rageval_traces SET content = NULL, user_id = NULL WHERE monitor = ? AND content IS NOT NULL "
            f"AND state <> 'waiting' AND {condition} RETURNING trace_id",
            parameter,
        )
        ids = [trace_id for (trace_id,) in rows]
        sums = PaneSums()
        waiting = f"SELECT series, started FROM rageval_judgements WHERE retry_at IS NOT NULL AND {_OWN} AND trace_id"
        for series, started in self.query_some(waiting, ids):
            sums.add(series, "failed", started)
        self._add(sums)
        self.query_some(
            "UPDATE rageval_judgements SET reason = NULL, details = NULL, retry_at = NULL, "
            f"state = CASE WHEN retry_at IS NULL THEN state ELSE 'failed' END WHERE {_OWN} AND trace_id",
            ids,
        )
        return len(ids)

    def _find_own(self, claimed: Sequence[ClaimedTrace]) -> set[str]:
        """Which of these traces this process still holds; in order, as in `see`, so that no two wait for each other."""
        own = "SELECT trace_id FROM rageval_traces WHERE monitor = ? AND state = 'waiting' AND owner = ? AND trace_id"
        ids, rest = sorted(one.trace_id for one in claimed), self._locking and " ORDER BY trace_id FOR UPDATE"
        return {trace_id for (trace_id,) in self.query_some(own, ids, self.owner, rest=rest)}

    def _subtract_earlier(
        self, reopened: Sequence[ClaimedTrace], made: Container[_Place], sums: PaneSums
    ) -> set[_Place]:
        """Take back the judgements that new ones replace; the series and ids of all that there are."""
        earlier = f"SELECT {', '.join(Judgement._fields)}, started FROM rageval_judgements WHERE {_OWN} AND trace_id"
        rows = self.query_some(earlier, [one.trace_id for one in reopened])
        for *parts, began in rows:
            if (parts[0], parts[1]) in made:
                _count(sums, Judgement(*parts), began, sign=-1)
        return {(series, trace_id) for series, trace_id, *_ in rows}

    def _note_lacking(
        self, kept: Sequence[SampledTrace], series: Iterable[int], made: Container[_Place], had: Container[_Place]
    ) -> None:
        """Count the traces for which a series gets no judgement with those that came before it.

        Such are traces that a monitor judges whose spec has the series no more, or not yet. A trace that was opened
        again is one of them already; it leaves them if it is judged now.
        """
        for one in sorted(series):
            lacking = 0
            for claimed, *_ in kept:
                place, is_first = (one, claimed.trace_id), claimed.weight is None
                if place not in had:
                    lacking += (place not in made) if is_first else -(place in made)
            if lacking:
                self._move_before(one, lacking)

    def _move_before(self, series: int, count: int) -> None:
        change = "UPDATE rageval_series SET settled_before = settled_before + ? WHERE id = ?"
        self.connection.execute(change, (count, series))

    def find_series(
        self, metric: str, identity: str, description: Mapping[str, Any], now: float, *, begin: bool = True
    ) -> int:
        """The number of the series of a metric with this identity; a new identity begins a new series.

        From now on it is the current one of its metric; an older identity gets its series back. 0 for a new one that is
        not to begin.
        """
        of_key = "SELECT id FROM rageval_series WHERE monitor = ? AND metric = ? AND identity = ?"
        found = self.query(of_key, metric, identity)
        if not begin:
            return int(found[0][0]) if found else 0
        if not found:
            with self.connection.write():
                self.connection.lock()
                self.query(
                    "INSERT INTO rageval_series (id, monitor, metric, identity, description, began, settled_before, "
                    "used) SELECT COALESCE(MAX(id), 0) + 1, ?, ?, ?, ?, CAST(? AS DOUBLE PRECISION), 0, 0 "
                    "FROM rageval_series WHERE true ON CONFLICT (monitor, metric, identity) DO NOTHING",
                    metric, identity, json.dumps(description, sort_keys=True), now,
                )  # fmt: skip
            found = self.query(of_key, metric, identity)
        series = int(found[0][0])
        if self.current_series().get(metric) != series:
            self._make_current(series)
        return series

    def _make_current(self, series: int) -> None:
        """Let traces be judged for a series; all that was settled without it came before it."""
        with self.connection.write():
            self.connection.lock()
            known = sum(self.count(series).values()) - self.count_waiting()
            before = self.count_traces("(state <> 'waiting' OR reopened = 1)") - known
            last = "SELECT MAX(used) FROM rageval_series WHERE monitor = ?"
            change = f"UPDATE rageval_series SET settled_before = ?, used = ({last}) + 1 WHERE id = ?"
            self.connection.execute(change, (before, self.monitor, series))

    def current_series(self) -> dict[str, int]:
        """The series of each metric that a monitor began to use last, by its name: those that traces are judged for."""
        used = "SELECT metric, id FROM rageval_series WHERE monitor = ? AND used > 0 ORDER BY used"
        return dict(self.query(used))

    def count(self, series: int) -> dict[State, int]:
        """How many traces have each state for a series, over all time."""
        sums = ", ".join(f"COALESCE(SUM({state}), 0)" for state in COUNTED)
        (row,) = self.connection.execute(f"SELECT {sums} FROM rageval_panes WHERE series = ?", (series,))
        counts = dict(zip(COUNTED, map(int, row), strict=True))
        retried = "SELECT COUNT(*) FROM rageval_judgements WHERE series = ? AND retry_at IS NOT NULL"
        ((again,),) = self.connection.execute(retried, (series,))
        counts["waiting"] = again + self.count_waiting()
        return {state: counts[state] for state in STATES}

    def count_before(self, series: int) -> int:
        """How many traces had been settled when a series began; it has no state for them unless it was filled."""
        found = self.connection.execute("SELECT settled_before FROM rageval_series WHERE id = ?", (series,))
        return int(found[0][0]) if found else self.count_traces() - self.count_waiting()

    def count_waiting(self) -> int:
        """How many traces wait to be judged for the first time, or again after they were opened again."""
        # `due < 1e300` is always true; with it, SQLite reads the index of what waits and not all traces.
        return self.count_traces("state = 'waiting' AND reopened = 0 AND due < 1e300")

    def count_overdue(self, before: float) -> int:
        """How many traces wait although they were due before a time."""
        return self.count_traces("state = 'waiting' AND due < ?", before)

    def find_oldest_due(self, now: float) -> float | None:
        """Since when the trace is due that waits for longest; None if none is due."""
        first = "SELECT MIN(due) FROM rageval_traces WHERE monitor = ? AND state = 'waiting' AND due <= ?"
        ((oldest,),) = self.query(first, now)
        return None if oldest is None else float(oldest)

    def read_recent(self, most: int) -> list[Trace]:
        """The traces that began last, whose texts are still kept."""
        kept = "SELECT content FROM rageval_traces WHERE monitor = ? AND content IS NOT NULL"
        return [unpack(content) for (content,) in self.query(f"{kept} ORDER BY started DESC LIMIT ?", most)]

    def read_reason(self, series: int) -> str | None:
        """Why the last trace that a series could not measure was left out."""
        rows = self.connection.execute(
            "SELECT reason FROM rageval_judgements WHERE series = ? AND state = 'filtered' AND reason IS NOT NULL "
            "ORDER BY started DESC LIMIT 1",
            (series,),
        )
        return rows[0][0] if rows else None

    def count_traces(self, condition: str = "true", *parameters: Any) -> int:
        """How many traces were seen, of those for which a condition in SQL holds."""
        ((count,),) = self.query(f"SELECT COUNT(*) FROM rageval_traces WHERE monitor = ? AND {condition}", *parameters)
        return int(count)

    def lead(self, work: str, now: float, lease: float) -> bool:
        """Whether this process does some work that only one may do, such as sending alerts, until the lease ends."""
        take = (
            f"{insert_or_set('rageval_leases', ('monitor', 'work'), ('owner', 'until'))} "
            "WHERE rageval_leases.until < ? OR rageval_leases.owner = excluded.owner RETURNING owner"
        )
        return bool(self.query(take, work, self.owner, now + lease, now))

    def is_alone(self, now: float) -> bool:
        """Whether no other process holds anything of this monitor."""
        held = (
            "SELECT 1 FROM rageval_leases WHERE monitor = ? AND owner <> ? AND until > ? LIMIT 1",
            "SELECT 1 FROM rageval_traces WHERE monitor = ? AND state = 'waiting' AND owner <> ? AND lease > ? LIMIT 1",
        )
        return not any(self.query(one, self.owner, now) for one in held)

    def release(self) -> None:
        """Give back all that this process holds, so that others need not wait for its leases to end."""
        with self.connection.write():
            held = "monitor = ? AND owner = ?"
            self.query(
                f"UPDATE rageval_traces SET owner = NULL, lease = NULL WHERE {held} AND state = 'waiting'", self.owner
            )
            self.query(f"DELETE FROM rageval_leases WHERE {held}", self.owner)


def _count(sums: PaneSums, one: Judgement, started: float, sign: int = 1) -> None:
    """Count a judgement. One that is tried again later still waits, and only its cost counts."""
    if one.retry_at is None or one.cost:
        value = one.value if one.state == "judged" else None
        sums.add(one.series, one.state, started, value, one.weight, one.cost, sign)


_TRACE = ("monitor", "trace_id", "started", "due", "state", "is_whole", "reopened", "digest", "user_id", "content",
          "owner", "lease")  # fmt: skip
_SEE = (
    f"{insert('rageval_traces', _TRACE)} ON CONFLICT (monitor, trace_id) DO UPDATE SET "
    "content = excluded.content, digest = excluded.digest, due = excluded.due, is_whole = excluded.is_whole, "
    "user_id = excluded.user_id, owner = NULL, lease = NULL, "
    "reopened = CASE WHEN rageval_traces.state = 'waiting' THEN rageval_traces.reopened ELSE 1 END, state = 'waiting' "
    "WHERE rageval_traces.digest <> excluded.digest AND (rageval_traces.state = 'waiting' OR "
    "(rageval_traces.state = 'judged' AND rageval_traces.reopened = 0 AND rageval_traces.content IS NOT NULL))"
)
_SETTLE = (
    "UPDATE rageval_traces SET state = ?, owner = NULL, lease = NULL, weight = ?, "
    "content = CASE WHEN ? = 1 THEN content END WHERE monitor = ? AND trace_id = ?"
)
_UNFILLED = (
    "FROM rageval_traces WHERE monitor = ? AND state = 'judged' AND started >= ? AND content IS NOT NULL AND NOT "
    "EXISTS (SELECT 1 FROM rageval_judgements j WHERE j.series = ? AND j.trace_id = rageval_traces.trace_id)"
)
_ADD_KEPT = insert_or_add("rageval_strata", ("monitor", "stratum", "hour"), ("kept",))
_REMEMBERED = 7200
"""Seconds after its first span for which it is known that a trace was forgotten before it was complete."""
_MOST_NAMED = 500
"""How many ids one statement names at the most."""
_QUESTION_DIGITS = 8
MOST_GIVEN = 2
"""How often a trace of spans is judged: once, and once more if spans come late."""


def digest_question(question: str) -> str:
    """What tells two questions under one id apart: eight hexadecimal digits."""
    return f"{zlib.crc32(question.strip().encode('utf-8', 'replace')):0{_QUESTION_DIGITS}x}"


def name_spans(trace_id: str) -> str:
    """The id that the spans of a trace have: without the name of the feed, and the span at which it was asked."""
    return trace_id.rpartition("/")[2].partition(":")[0]


def hour_of(time: float) -> int:
    """The hour of a time, as the seconds since 1970 at which it begins."""
    return int(time // 3600) * 3600


def name_group(trace: Trace, column: str) -> str | None:
    """The value of a column by which traces are told apart, at most 100 characters of it; None without one."""
    found = next((value for name, value in trace.list_columns() if name == column), None)
    return None if found is None else str(found)[:100]


def unpack(content: bytes) -> Trace:
    """The trace that the ledger holds."""
    return Trace.from_row(json.loads(zlib.decompress(bytes(content))))


def _read_trace(row: Sequence[Any]) -> ClaimedTrace:
    return ClaimedTrace(row[0], row[1], row[2], unpack(row[3]))
