"""The feed of a tool that records traces, such as Phoenix, Langfuse or MLflow: it is asked again and again.

Tools list traces by when they began, and show many only once they have ended. So each question reaches back: a little
every time, further from time to time, and as far as the oldest trace whose end was not seen. A trace that took long is
found soon after its end; one that was seen before changes nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rageval_spec.data.traces import Trace
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.contracts import TraceSource
from rageval_spec.exchange.shared.row_groups import SpanSource
from rageval_spec.exchange.shared.spans.spans import format_moment
from rageval_spec.monitoring.feeds.contract import BATCH, LONGEST, PATIENCE, SKEW, Batch, Feed, name_questions
from rageval_spec.monitoring.ledger import SeenTrace
from rageval_spec.wording import count_noun

REACHES = (SKEW, 2400.0, LONGEST + SKEW)
"""How far the questions reach back, in seconds. Each but the first is due after a quarter of its length."""
GUARD = 600.0
"""Seconds that are read besides. A trace that began in them is left out: some of its steps can have begun before."""
_FEWEST, _MOST = 5.0, 60.0
"""The seconds between two questions, at least and at most; in between it is half of `settle`."""
_FINEST = 1.0
_MOST_HALVES = 80
"""How finely, and how often, a stretch of time is halved to leave out a trace that cannot be read."""


@dataclass
class _Cursor:
    """What is known of the traces so far.

    Attributes:
        asked: when each reach was asked for last; empty at the beginning.
        open: the traces whose root had not ended: a digest, since when it is the same, when the trace began, and
            whether it was given although it had not ended.
        ending: when the earliest of the traces began that ended just now, so that more may come of them.
    """

    asked: dict[str, float] = field(default_factory=dict)
    open: dict[str, tuple[str, float, float, bool]] = field(default_factory=dict)
    ending: float | None = None

    def find_since(self, now: float) -> tuple[float, dict[str, float]]:
        """From when on to ask, and when each reach was asked for once that is done."""
        due = [one for one in REACHES if now - self.asked[str(one)] >= (one / 4 if one > REACHES[0] else 0)]
        since = [self.asked[str(one)] - one for one in due]
        since += [began for _, _, began, is_given in self.open.values() if not is_given]
        since += [] if self.ending is None else [self.ending]
        earliest = min([self.asked[str(one)] - one for one in due[-1:]] + [now - REACHES[-1]])
        return max(min(since), earliest), {**self.asked, **{str(one): now for one in due}}


class ToolFeed(Feed):
    """Asks a tool for traces. `source` says for which; its `since` says from when on at the beginning."""

    def __init__(self, name: str, settle: float, source: TraceSource[Any]) -> None:
        super().__init__(name, settle)
        self._source = source
        self._pace = min(max(settle / 2, _FEWEST), _MOST)
        self.delay = settle + self._pace
        self._remarks: Sequence[str] = ()
        self._open = self._halves = 0
        self._bad: set[str] = set()

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        before = _Cursor(**cursor) if cursor else _Cursor()
        if before.asked:
            if 0 <= now - before.asked[str(REACHES[0])] < self._pace:
                return
            since, asked = before.find_since(now)
        else:
            begin = self._source.node.model_copy().window[0]  # the copy keeps its window; further ones must not
            since = now - REACHES[-1] if begin is None else begin.timestamp()
            asked = dict.fromkeys(map(str, REACHES), now)
        self._ahead, self._halves, bad = 0, 0, len(self._bad)
        after, batch = _Cursor(asked), list[SeenTrace]()
        for trace in name_questions(self._read(since - GUARD, None, now)):
            seen = self.see(trace, now)
            if seen.started >= since and (ready := self._judge_state(seen, before, after, now)) is not None:
                batch.append(ready)
            if len(batch) == BATCH:
                yield Batch(batch, cursor)
                batch = []
        oldest = now - REACHES[-1]
        kept = {key: one for key, one in before.open.items() if key not in after.open and since > one[2] >= oldest}
        after.open |= kept
        self._open = len(after.open)
        yield Batch(batch, vars(after), len(self._bad) - bad)

    def remarks(self) -> Sequence[str]:
        waiting = count_noun(self._open, "trace has", "traces have")
        said = (*super().remarks(), *self._remarks)
        return (*said, f"{waiting} not ended yet") if self._open else said

    def _judge_state(self, seen: SeenTrace, before: _Cursor, after: _Cursor, now: float) -> SeenTrace | None:
        """The trace as the ledger gets it; None as long as more is to be expected of it."""
        trace = seen.trace
        if not trace.is_open:
            ended = seen.started + (trace.seconds or 0.0)
            if ended + self.settle + self._pace > now > seen.started + REACHES[0]:
                after.ending = min(seen.started, seen.started if after.ending is None else after.ending)
            return seen
        digest = f"{zlib.crc32(json.dumps(trace.to_row(), sort_keys=True, default=str).encode()):08x}"
        known = before.open.get(trace.id)
        since, is_given = (known[1], known[3]) if known is not None and known[0] == digest else (now, False)
        is_due = now - since >= PATIENCE and not is_given
        after.open[trace.id] = (digest, since, seen.started, is_given or is_due)
        return replace(seen, is_whole=False, due=now) if is_due else None

    def _read(self, since: float, until: float | None, now: float) -> Iterator[Trace]:
        """The traces of a stretch of time. One that cannot be read is left out: the stretch is halved around it."""
        bounds = {name: _format(one) for name, one in (("since", since), ("until", until)) if one is not None}
        source = type(self._source)(self._source.node.model_copy(update=bounds), self._source.context)
        if isinstance(source, SpanSource):
            source.reader.keeps_all = True
        try:
            yield from source.read()
            self._remarks = source.remarks()
        except DataError as error:
            end = now + SKEW if until is None else until
            self._halves += 2
            if self._halves > _MOST_HALVES:
                raise
            if end - since <= _FINEST:
                self._unread = make_visible(str(error))
                self._bad.add(self._unread)
                return
            middle = (since + end) / 2
            yield from self._read(middle, until, now)
            yield from self._read(since, middle, now)
        finally:
            source.close()


def _format(moment: float) -> str:
    return format_moment(datetime.fromtimestamp(moment, UTC))
