"""A receiver of spans over OTLP: applications send them here, and traces are assembled as they come.

A request is acknowledged when it is on the disk. From there its spans go into the database, by trace; reading a request
again after a kill changes nothing. A trace whose root has ended is whole; spans that come later belong to it all the
same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from rageval_spec.errors import DataError
from rageval_spec.exchange.otel.receiver import Receiver, RequestSpool
from rageval_spec.exchange.shared.spans.protobuf import WireError, decode_spans, encode_spans
from rageval_spec.exchange.shared.spans.span_traces import SpanReader
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.monitoring.ledger import Ledger, SeenTrace
from rageval_spec.monitoring.traces.feeds import Batch, Feed

SEGMENT = 32 * 1024 * 1024
"""The bytes after which received requests go into another file."""
_AT_ONCE = 500
"""Requests that are read before what they changed is written."""
_LENGTH = 4
_SUFFIX = ".otlp"


class SegmentedSpool(RequestSpool):
    """Appends requests to one file after the other in a folder; those that were read are deleted."""

    def __init__(self, folder: Path) -> None:
        """Go on with the last file of the folder.

        Raises:
            RagevalError: it cannot be written, or another receiver is writing to it.
        """
        self.folder = folder
        numbers = [int(file.stem) for file in folder.glob(f"*{_SUFFIX}") if file.stem.isdecimal()]
        self.number = max(numbers, default=1)
        self._swap = Lock()
        super().__init__(self.locate(self.number))

    def locate(self, number: int) -> Path:
        """The file of this number."""
        return self.folder / f"{number:08d}{_SUFFIX}"

    def add(self, request: bytes) -> bool:
        with self._swap:
            return super().add(request)

    def rotate(self) -> None:
        """Let the next request begin another file."""
        with self._swap:
            self.close()
            self.number += 1
            super().__init__(self.locate(self.number))


class SpanFeed(Feed):
    """Receives spans at an address, and gives their traces."""

    def __init__(
        self,
        name: str,
        settle: float,
        ledger: Ledger,
        folder: Path,
        address: tuple[str, int],
        token: str | None,
        tell: Callable[[str], None],
    ) -> None:
        """Listen at once; received requests are kept in the folder until they are in the ledger's database.

        Raises:
            RagevalError: the address or the folder cannot be used.
            UsageError: the extra `serve` is not installed.
        """
        super().__init__(name, settle)
        self._ledger = ledger
        self._spool = SegmentedSpool(folder)
        self._receiver = Receiver(*address, self._spool, tell, token)
        self._reader = SpanReader("otel")
        self._unread: str | None = None

    @property
    def url(self) -> str:
        """Where spans are to be sent."""
        return self._receiver.url

    def poll(self, cursor: Any, now: float) -> Iterator[Batch]:
        place = cursor if isinstance(cursor, Mapping) else {}
        number, offset = int(place.get("segment", 0)), int(place.get("offset", 0))
        for segment in sorted(int(file.stem) for file in self._spool.folder.glob(f"*{_SUFFIX}")):
            if segment < number:
                self._spool.locate(segment).unlink(missing_ok=True)
                continue
            offset = offset if segment == number else 0
            for requests, end in self._read(segment, offset):
                yield self._take(requests, {"segment": segment, "offset": end}, now)
                offset = end
            number = segment
        if offset > SEGMENT:
            self._spool.rotate()
        self._ledger.prune_spans(now)

    def explain_unread(self) -> str | None:
        return self._unread

    def close(self) -> None:
        self._spool.close()
        self._receiver.close()

    def _read(self, segment: int, offset: int) -> Iterator[tuple[list[bytes], int]]:
        """The next complete requests of a file, and where they end."""
        path, requests = self._spool.locate(segment), list[bytes]()
        try:
            with path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                stream.seek(offset)
                while len(head := stream.read(_LENGTH)) == _LENGTH:
                    length = int.from_bytes(head, "big")
                    if offset + _LENGTH + length > size:
                        break
                    requests.append(stream.read(length))
                    offset += _LENGTH + length
                    if len(requests) >= _AT_ONCE:
                        yield requests, offset
                        requests = []
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        if requests:
            yield requests, offset

    def _take(self, requests: Iterable[bytes], cursor: Any, now: float) -> Batch:
        """Keep the spans of requests, and assemble the traces that they belong to."""
        spans, unread = list[Span](), 0
        for request in requests:
            try:
                spans += decode_spans(request)
            except WireError as error:
                self._unread = str(error)
                unread += 1
        kept = self._ledger.keep_spans([(one.trace_id, one.span_id, encode_spans([one])) for one in spans], now)
        return Batch([one for parts in kept.values() for one in self._assemble(parts, now)], cursor, unread)

    def _assemble(self, bodies: Iterable[bytes], now: float) -> Iterator[SeenTrace]:
        spans = [span for body in bodies for span in decode_spans(body)]
        known = {span.span_id for span in spans}
        roots = [span for span in spans if span.parent_id is None or span.parent_id not in known]
        has_ended = any(span.parent_id is None and span.end for span in roots)
        for trace in self._reader.read(spans):
            yield self.see(trace, now, is_whole=has_ended)
