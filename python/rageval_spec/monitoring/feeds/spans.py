"""The feeds of OpenTelemetry spans: a receiver of our own, and the growing files of a collector."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.exchange.shared.spans import json_spans
from rageval_spec.exchange.shared.spans.protobuf import decode_spans, encode_spans
from rageval_spec.exchange.shared.spans.span_files import SUFFIXES
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.monitoring.feeds.contract import Batch, Feed, name_questions
from rageval_spec.monitoring.feeds.gathered_spans import GatheredSpans
from rageval_spec.monitoring.feeds.growing_files import LARGEST, GrowingFiles, Record, take_requests
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.exchange.otel.receiver import Receiver, RequestSpool


class SpanFeed(Feed):
    """Gathers spans, and gives traces once they are complete."""

    def __init__(self, name: str, settle: float, ledger: Ledger) -> None:
        super().__init__(name, settle)
        self._spans = GatheredSpans(ledger, name, settle)
        self._reader = SpanReader("otel")
        self._reader.keeps_all = True
        self._passed_over = 0

    @abstractmethod
    def receive(self, places: Any, now: float) -> Iterator[tuple[Any, int]]:
        """Gather what has come: the places after it, and how many requests could not be read, some at a time."""

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        before = cursor or {}
        places = before.get("places", {})
        self._spans.mark_given(before.get("given", ()), now)  # again, in case of a kill just after they were given
        fault = None
        try:
            for places, unread in self.receive(before.get("places", {}), now):
                yield Batch([], {"places": places}, unread)
        except RagevalError as error:
            fault = error
        for some in self._spans.take_due(now, self.prefix):
            ids = [one.trace_id for one in some]
            traces = [
                self.see(trace, now, is_whole=one.is_whole, due=now)
                for one in some
                for trace in name_questions(self._reader.read(one.spans))
            ]
            yield Batch(traces, {"places": places, "given": ids})
            self._spans.mark_given(ids, now)
        self._spans.prune(now)
        if fault is not None:
            raise fault

    def remarks(self) -> Sequence[str]:
        said = list(super().remarks())
        if waiting := self._spans.count():
            said.append(f"{count_noun(waiting, 'trace is', 'traces are')} not complete yet")
        if late := self._spans.late:
            said.append(f"{count_noun(late, 'trace')} got spans too late to be judged once more")
        if cut := self._spans.cut:
            said.append(f"{count_noun(cut, 'trace has', 'traces have')} more spans than are read")
        if self._passed_over:
            said.append(f"{count_noun(self._passed_over, 'request')} of logs or metrics passed over")
        return said

    def gather(self, records: Sequence[Record], where: str, now: float) -> int:
        """Keep the spans of requests; how many requests could not be read."""
        spans: list[Span] = []
        unread = 0
        for one in records:
            try:
                if one.content is None:
                    raise DataError(f"{one.length:,} bytes; at most {LARGEST:,} are read")
                spans += self._read_line(one.content) if one.is_line else decode_spans(one.content)
            except (DataError, ValueError, RecursionError) as error:
                self._unread = make_visible(f"{where}: byte {one.start:,}: not a request of spans: {error}")
                unread += 1
        self._spans.add(spans, now)
        return unread

    def _read_line(self, line: bytes) -> Iterator[Span]:
        if not (text := line.strip(b"\0 \t\r\n")):
            return
        found = json.loads(text)
        if json_spans.is_otlp(found):
            yield from json_spans.decode_json(found)
        elif json_spans.is_span(found):
            yield json_spans.read_span(found)
        elif isinstance(found, dict) and any(key.casefold() in _OTHER_SIGNALS for key in found):
            self._passed_over += 1
        else:
            raise DataError("the JSON is neither an OTLP request nor a span")


_OTHER_SIGNALS = ("resourcelogs", "resource_logs", "resourcemetrics", "resource_metrics")


class SpanFileFeed(SpanFeed):
    """Follows the files that a collector's file exporter writes, those that it rotated included."""

    def __init__(self, name: str, settle: float, ledger: Ledger, path: Path) -> None:
        super().__init__(name, settle, ledger)
        self._files = GrowingFiles(path, SUFFIXES, take_requests)

    def receive(self, places: Any, now: float) -> Iterator[tuple[Any, int]]:
        places = {**places}
        for piece in self._files.read(places, now):
            yield {**places}, self.gather(piece.records, str(piece.path), now)


class ReceiverFeed(SpanFeed):
    """Receives spans over OTLP/HTTP. A request is acknowledged once it is on the disk, and kept until it was read."""

    def __init__(
        self, name: str, settle: float, ledger: Ledger, address: tuple[str, int], folder: Path, token: str | None
    ) -> None:
        """Listen from the first poll on. The folder keeps the requests that were not read yet."""
        super().__init__(name, settle, ledger)
        host, port = address
        self._address, self._token = address, token
        self._spool = SegmentedSpool(folder, f"{host.replace(':', '-')}-{port}")
        self._receiver: Receiver | None = None
        self._told: list[str] = []

    @property
    def url(self) -> str | None:
        """Where spans are to be sent; None before the first poll."""
        return None if self._receiver is None else self._receiver.url

    def receive(self, places: Any, now: float) -> Iterator[tuple[Any, int]]:
        self._listen()
        for path in self._spool.list_segments():
            yield places, sum(self.gather(records, path.name, now) for records in _read_segment(path))
            path.unlink()
        if self._told:
            told, self._told[:] = self._told[-1], []
            raise RagevalError(told)

    def remarks(self) -> Sequence[str]:
        if self._receiver is None:
            return super().remarks()
        rejected = self._receiver.rejected
        said = f"receives spans at {self._receiver.url}: {count_noun(self._receiver.spans, 'span')}"
        return (f"{said}, {rejected:,} rejected" if rejected else said, *super().remarks())

    def close(self) -> None:
        """Stop receiving. What was acknowledged and not read stays on the disk for the next start."""
        if self._receiver is not None:
            self._spool.close()
            self._receiver.close()
            self._receiver = None

    def _listen(self) -> None:
        if self._receiver is None:
            from rageval_spec.exchange.otel.receiver import Receiver

            spool: Any = self._spool
            self._receiver = Receiver(*self._address, spool, self._told.append, self._token)


class SegmentedSpool:
    """Keeps requests in files of which each is read once and then deleted; safe to use from several threads."""

    def __init__(self, folder: Path, name: str, clock: Callable[[], int] = time.time_ns) -> None:
        self.path = folder
        self._name = name
        self._clock = clock
        self._lock = Lock()
        self._segment: RequestSpool | None = None
        self._is_closed = False

    def add(self, request: bytes) -> bool:
        """Append a request. Returns True once it is on the disk; False if the spool is closed.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        from rageval_spec.exchange.otel.receiver import RequestSpool

        with self._lock:
            if self._is_closed:
                return False
            if self._segment is None:
                try:
                    self._segment = RequestSpool(self.path / f"{self._name}-{self._clock():020d}.otlp")
                except RagevalError as error:
                    raise OSError(str(error)) from error
            return self._segment.add(request)

    def list_segments(self) -> list[Path]:
        """The files that are complete, the oldest first, those from before a kill included."""
        with self._lock:
            self._end_segment()
            return sorted(self.path.glob(f"{self._name}-*.otlp"))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._end_segment()

    def _end_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None


def forget_requests(folder: Path, trace_ids: Collection[str], is_chosen: Callable[[Span], bool]) -> set[str]:
    """Remove the spans of some traces, and of those with a chosen span, from the requests that wait in a folder.

    Returns the ids of those that had any there. A file that a receiver writes to is left alone: it is read within a
    second.
    """
    from rageval_spec.exchange.otel.receiver import RequestSpool

    waiting: dict[Path, list[tuple[bytes, list[Span]]]] = {}
    for path in folder.glob("*.otlp"):
        records = [one for some in _read_segment(path) for one in some]
        waiting[path] = [(one.content, _decode(one.content)) for one in records if one.content is not None]
    found = [span for requests in waiting.values() for _, spans in requests for span in spans]
    chosen = {*trace_ids, *(span.trace_id for span in found if is_chosen(span))}
    for path, requests in waiting.items():
        if not any(span.trace_id in chosen for _, spans in requests for span in spans):
            continue
        with suppress(RagevalError):
            RequestSpool(path).close()  # raises if a receiver writes to it
            kept = RequestSpool(path.with_suffix(".kept"))
            for content, spans in requests:
                others = [span for span in spans if span.trace_id not in chosen]
                kept.add(content if len(others) == len(spans) else encode_spans(others))
            kept.close()
            kept.path.replace(path)
    return chosen & {span.trace_id for span in found}


def _decode(content: bytes) -> list[Span]:
    """The spans of a request; none of one that cannot be read, which is counted when its turn comes."""
    with suppress(DataError, ValueError, RecursionError):
        return list(decode_spans(content))
    return []


def _read_segment(path: Path) -> Iterator[list[Record]]:
    """The requests of a segment. What a kill left of one at its end was never acknowledged."""
    with path.open("rb") as stream:
        offset = 0
        while records := take_requests(stream, offset, b"\0", "final"):
            offset = records[-1].start + records[-1].length
            yield records
