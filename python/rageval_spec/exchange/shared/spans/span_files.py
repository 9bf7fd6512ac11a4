"""Reads files with spans: protobuf or JSON, plain or gzip, one request or many.

Which of them a file is shows in its first bytes, not in its name:

- JSON: one or more documents, one a line or spread over lines: OTLP requests, spans as console exporters write them,
  or lists of either.
- protobuf: one request, or many, each after its length in four bytes, as the file exporter of collectors writes them.

Spans are collected on the disk until all have come, and given back trace by trace.
"""

from __future__ import annotations

import gzip
import io
import json
import marshal
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rageval_spec.errors import DataError
from rageval_spec.exchange.shared.spans import json_spans
from rageval_spec.exchange.shared.spans.protobuf import LogEvent, WireError, decode_events, decode_spans
from rageval_spec.exchange.shared.spans.spans import Link, Span, SpanEvent
from rageval_spec.exchange.shared.trace_store import Part, TraceStore
from rageval_spec.libraries import compile_later
from rageval_spec.recorded.json_path import list_keys, name_kind
from rageval_spec.recorded.span_attributes import EVALUATION_EVENT
from rageval_spec.wording import count_noun

SUFFIXES = (".json", ".jsonl", ".ndjson", ".pb", ".binpb", ".bin", ".proto", ".otlp")
LARGEST = 64 * 1024 * 1024
"""The most bytes of one document or message."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_LENGTH = 4
_OTHER_SIGNALS = {"resourceLogs": "logs", "resource_logs": "logs", "resourceMetrics": "metrics",
                  "resource_metrics": "metrics"}  # fmt: skip
_LISTS = ("data", "batches", "spans", "traces")
"""Keys under which the replies of tools keep their spans."""
_STRUCTURE = compile_later(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')


class SpanFiles:
    """Reads spans of files, and counts what in them is something else."""

    def __init__(self) -> None:
        self.passed_over: Counter[str] = Counter()
        self._evaluations: dict[str, list[LogEvent]] = {}

    def read(self, path: Path) -> Iterator[Span]:
        """The spans of one file, in order; each has the file and its place in it as `place`."""
        with _open(path) as stream:
            begin = stream.peek(4)[:4]
            if begin.startswith(_ZSTD):
                raise DataError(f"{path}: the file is compressed with zstd; decompress it first: zstd -d {path.name}")
            text = begin.removeprefix(b"\xef\xbb\xbf").lstrip()
            if not begin or text[:1] in (b"{", b"[") or (begin.isspace() and not text):
                yield from self._read_json(path, stream)
            elif begin[:1] == b"\x0a":
                yield from self._decode(_read_most(stream, path), f"{path}: ", 0)
            elif begin[:1] == b"\x00":
                for data, offset in _read_frames(path, stream):
                    yield from self._decode(data, f"{path}: ", offset)
            else:
                if begin[:1] == b"<":
                    raise DataError(f"{path}: this is an HTML or XML page, not spans; download the data, not the page")
                shown = begin[:4].decode("ascii", "replace")
                raise DataError(
                    f"{path}: the file begins with {shown!r}, so it holds neither OTLP as JSON nor as protobuf"
                )

    def remarks(self) -> list[str]:
        told = [
            f"{count_noun(number, f'request with {what} was', f'requests with {what} were')} passed over; "
            "only spans and evaluation results are read"
            for what, number in sorted(self.passed_over.items())
        ]
        loose = sum(map(len, self._evaluations.values()))
        return (
            [*told, f"{count_noun(loose, 'evaluation result')} of no trace that was read left out"] if loose else told
        )

    def attach(self, spans: list[Span]) -> list[Span]:
        """The spans of a trace with the evaluation results that came as log records, as events of their spans.

        A result of no span that was read is one of the root.
        """
        results = self._evaluations.pop(spans[0].trace_id, None) if spans else None
        if not results:
            return spans
        known = {span.span_id for span in spans}
        root = next((span for span in spans if span.parent_id not in known), spans[0]).span_id
        of: dict[str, list[SpanEvent]] = {}
        for one in results:
            place = one.span_id if one.span_id in known else root
            of.setdefault(place, []).append(SpanEvent(one.name, one.time, one.attributes))
        return [span._replace(events=(*span.events, *of.get(span.span_id, ()))) for span in spans]

    def _keep(self, events: Iterable[LogEvent]) -> bool:
        """Keep the evaluation results among log records; whether there were any."""
        found = [one for one in events if one.name == EVALUATION_EVENT]
        for one in found:
            self._evaluations.setdefault(one.trace_id, []).append(one)
        return bool(found)

    def _decode(self, data: bytes, place: str, offset: int) -> Iterator[Span]:
        where = f"{place}request at byte {offset:,}: " if offset else place
        is_empty = True
        try:
            for span in decode_spans(data, where):
                is_empty = False
                yield span
            if is_empty:  # a request with spans has no log records
                self._keep(decode_events(data))
        except WireError as error:
            raise DataError(f"{where}not an OTLP request: {error}") from None

    def _read_json(self, path: Path, stream: IO[bytes]) -> Iterator[Span]:
        for line, text in _split_documents(path, stream):
            try:
                document = json.loads(text)
            except RecursionError:
                raise DataError(f"{path}:{line}: the JSON has too many lists and objects inside one another") from None
            except json.JSONDecodeError as error:
                where = f"{path}:{line + error.lineno - 1}:{error.colno}"
                raise DataError(f"{where}: not valid JSON: {error.msg}") from None
            except ValueError as error:
                raise DataError(f"{path}:{line}: not valid JSON: {error}") from None
            try:
                yield from self._read_document(document, f"{path}:{line}: ", 0)
            except json_spans.JsonSpanError as error:
                raise DataError(f"{path}:{line}: {error}") from None

    def _read_document(self, found: Any, place: str, depth: int) -> Iterator[Span]:
        if json_spans.is_log_record(found):
            self._keep(json_spans.decode_json_events(found))
        elif json_spans.is_otlp(found):
            yield from json_spans.decode_json(found, place)
        elif json_spans.is_span(found):
            yield json_spans.read_span(found, place.removesuffix(": "))
        elif isinstance(found, list) and depth < 2:
            for item in found:
                yield from self._read_document(item, place, depth + 1)
        elif isinstance(found, Mapping) and (key := next((key for key in _LISTS if _has_objects(found, key)), None)):
            yield from self._read_document(found[key], place, depth + 1)
        elif isinstance(found, Mapping) and isinstance(found.get("trace"), Mapping) and depth < 2:
            yield from self._read_document(found["trace"], place, depth + 1)
        elif isinstance(found, Mapping) and (signal := next((key for key in _OTHER_SIGNALS if key in found), None)):
            what = _OTHER_SIGNALS[signal]
            if what != "logs" or not self._keep(json_spans.decode_json_events(found)):
                self.passed_over[what] += 1
        else:
            keys = f" with the keys {list_keys(list(found))}" if isinstance(found, Mapping) and found else ""
            raise json_spans.JsonSpanError(f"{name_kind(found)}{keys} is neither an OTLP request nor a span")


def _has_objects(found: Mapping[str, Any], key: str) -> bool:
    listed = found.get(key)
    return isinstance(listed, list) and all(isinstance(item, Mapping) for item in listed)


def list_files(path: Path) -> list[Path]:
    """The file itself, or all files with spans below a folder, sorted."""
    if not path.is_dir():
        if path.is_file():
            return [path]
        raise DataError(f"{path}: no such file or folder")
    found = sorted(
        file
        for file in path.rglob("*")
        if file.name.removesuffix(".gz").endswith(SUFFIXES) and not file.name.startswith(".") and file.is_file()
    )
    if not found:
        raise DataError(f"{path}: the folder has no file that ends in {', '.join(SUFFIXES)}, with or without .gz")
    return found


@contextmanager
def _open(path: Path) -> Iterator[io.BufferedReader]:
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=file) as inner, io.BufferedReader(cast(Any, inner), 1 << 16) as stream:
                    yield stream
            else:
                yield file
    except EOFError:
        raise DataError(f"{path}: the file is cut off: its gzip data end early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip data: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read_most(stream: IO[bytes], path: Path) -> bytes:
    data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(
            f"{path}: the file is one request of more than {LARGEST >> 20} MiB; write many smaller ones, each after "
            "its length, as the file exporter of collectors does"
        )
    return data


def _read_frames(path: Path, stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Requests that each stand after their length in four bytes, the highest first, and where each begins."""
    offset = 0
    while begin := stream.read(_LENGTH):
        length = int.from_bytes(begin, "big")
        if len(begin) < _LENGTH:
            raise DataError(f"{path}: byte {offset:,}: the file is cut off inside a length")
        if length > LARGEST:
            raise DataError(f"{path}: byte {offset:,}: a request of {length:,} bytes; at most {LARGEST:,} are read")
        data = stream.read(length)
        if len(data) < length:
            raise DataError(
                f"{path}: byte {offset:,}: the file is cut off: a request of {length:,} bytes has only {len(data):,}"
            )
        yield data, offset + _LENGTH
        offset += _LENGTH + length


def _split_documents(path: Path, stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Each JSON document with its first line. Brackets are counted only where a line is not a document by itself."""
    parts: list[bytes] = []
    begun = size = depth = number = 0
    while line := stream.readline(LARGEST + 1):
        number += 1
        size += len(line)
        if size > LARGEST:
            raise DataError(
                f"{path}:{begun or number}: a document of more than {LARGEST >> 20} MiB; write one request a line"
            )
        text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
        if not parts:
            begun, size = number, len(line)
            if not text:
                continue
            if text[:1] == b"{" and text[-1:] == b"}" and (number > 1 or _is_whole(text)):
                yield number, text
                continue
        parts.append(line if number > 1 else line.removeprefix(b"\xef\xbb\xbf"))
        for found in _STRUCTURE.findall(text):
            if found in (b"{", b"["):
                depth += 1
            elif found in (b"}", b"]"):
                depth -= 1
        if depth <= 0:
            yield begun, b"".join(parts)
            parts, depth, size = [], 0, 0
    if parts:
        yield begun, b"".join(parts)


def _is_whole(text: bytes) -> bool:
    return text.count(b"{") == text.count(b"}")


MOST_SPANS = 20_000
"""The most spans of one trace that are read, so that programs that give all spans one id do not fill the memory."""


class SpanStore:
    """The spans of many traces, which may come in any order."""

    def __init__(self) -> None:
        self._store = TraceStore()
        self._resources: dict[bytes, int] = {}
        self._loaded: list[dict[str, Any]] = []
        self._last: tuple[Mapping[str, Any] | None, int] = None, 0
        self.cut = 0
        """The number of traces with more spans than are read."""

    def add(self, spans: Iterable[Span]) -> int:
        """Keep spans; returns how many."""
        return self._store.add(map(self._dump, spans))

    def read_traces(self, since: int = 0, until: int | None = None, limit: int | None = None) -> Iterator[list[Span]]:
        """The spans of each trace that began in a window of nanoseconds since 1970, ordered by its beginning.

        With a limit, only the newest traces. Of a trace with more than `MOST_SPANS`, the first are read. Do not add
        spans meanwhile.
        """
        for trace in self._store.list_traces(since, until, limit, newest_first=False):
            spans = [self._load(*found) for found in self._store.read(trace, MOST_SPANS + 1)]
            self.cut += len(spans) > MOST_SPANS
            yield spans[:MOST_SPANS]

    def close(self) -> None:
        self._store.close()

    def _dump(self, span: Span) -> Part:
        events, links = [tuple(event) for event in span.events], [tuple(link) for link in span.links]
        own = *span[:6], dict(span.attributes)
        return span.trace_id, None, span.start, (own, events, links, span[9:11], self._number(span.resource), span[12:])

    def _number(self, resource: Mapping[str, Any]) -> int:
        """The place of a resource in `_loaded`. Spans of one request come one after another and share theirs."""
        if resource is not self._last[0]:
            number = self._resources.setdefault(marshal.dumps(dict(resource)), len(self._resources))
            if number == len(self._loaded):
                self._loaded.append(dict(resource))
            self._last = resource, number
        return self._last[1]

    def _load(self, own: Any, events: Any, links: Any, status: Any, resource: int, rest: Any) -> Span:
        parts = tuple(SpanEvent(*event) for event in events), tuple(Link(*link) for link in links)
        return Span._make((*own, *parts, *status, self._loaded[resource], *rest))
