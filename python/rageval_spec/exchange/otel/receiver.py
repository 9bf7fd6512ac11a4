"""Receives spans over OTLP/HTTP: `POST /v1/traces` with protobuf or JSON, plain or gzip.

A request is answered with 200 only when its spans are on the disk, so nothing is lost once it was acknowledged. What
cannot be read is refused with a status that tells the sender not to try again; what cannot be taken now, with one
that tells it to.

The file of received requests has the layout of a collector's file exporter: each request in protobuf, after its
length in four bytes. It can be imported as any other file.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock, Thread
from typing import IO, Any, ClassVar, NamedTuple, cast

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.spans import protobuf
from rageval_spec.exchange.shared.spans.json_spans import JsonSpanError, decode_json

PATH = "/v1/traces"
LARGEST = 20 * 1024 * 1024
"""The most bytes of a request, also after decompression; collectors send no larger ones by default."""
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_MOST_AT_ONCE = 16
_PATIENCE = 30.0
_RETRY_AFTER = "5"
_CHUNK_HEAD = 1024


class Refusal(Exception):  # noqa: N818 - an answer, not a fault of the program
    """A request that is not taken: the status, and why."""

    def __init__(self, status: int, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.status = status


class Taken(NamedTuple):
    """What became of a request: the spans that were kept, those that were not, and why the first was not."""

    spans: int
    rejected: int = 0
    reason: str = ""


class Receiver:
    """Listens in threads of its own until it is closed."""

    def __init__(self, host: str, port: int, spool: RequestSpool, tell: Callable[[str], None]) -> None:
        """Listen at once.

        Raises:
            RagevalError: the address cannot be used.
        """
        self._spool = spool
        self._tell = tell
        self._lock = Lock()
        self.spans = self.requests = self.rejected = 0
        try:
            self._server = _Server((host, port), self)
        except OSError as error:
            raise RagevalError(f"{host}:{port}: cannot listen: {error.strerror or error}") from error
        except OverflowError as error:
            raise RagevalError(f"{host}:{port}: cannot listen: {error}") from error
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), name="otlp receiver", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where spans are to be sent."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else host
        return f"http://{shown!s}:{port}{PATH}"

    def take(self, content: bytes, *, is_json: bool) -> Taken:
        """Keep the spans of a request.

        Raises:
            Refusal: the content is no request, or it cannot be kept now.
        """
        taken, request = _read(content, is_json=is_json)
        try:
            is_kept = not taken.spans or self._spool.add(request)
        except OSError as error:
            self._tell(f"{self._spool.path}: cannot be written: {error.strerror or error}")
            raise Refusal(503, "the spans cannot be stored at the moment") from error
        if not is_kept:
            raise Refusal(503, "the receiver is stopping")
        with self._lock:
            self.requests += 1
            self.spans += taken.spans
            self.rejected += taken.rejected
        return taken

    def close(self) -> None:
        """Stop listening. Requests under way are answered with 503 once the spool is closed."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _read(content: bytes, *, is_json: bool) -> tuple[Taken, bytes]:
    """What a request holds, and the request to keep: without the spans that were rejected."""
    rejected: list[Exception] = []
    try:
        if is_json:
            spans = list(decode_json(json.loads(content), reject=rejected.append))
            request = protobuf.encode_spans(spans)
        else:
            spans = list(protobuf.decode_spans(content, reject=rejected.append))
            request = protobuf.encode_spans(spans) if rejected else content
    except RecursionError:
        raise Refusal(400, "the JSON has too many lists and objects inside one another") from None
    except protobuf.WireError as error:
        raise Refusal(400, f"not an OTLP request: byte {error.offset:,}: {error}") from None
    except JsonSpanError as error:
        raise Refusal(400, f"not an OTLP request: {error}") from None
    except ValueError as error:
        raise Refusal(400, f"not valid JSON: {error}") from None
    return Taken(len(spans), len(rejected), str(rejected[0]) if rejected else ""), request


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        if ":" in address[0]:
            import socket

            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)
        self.receiver = receiver
        self.slots = BoundedSemaphore(_MOST_AT_ONCE)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "rageval-spec"
    sys_version = ""
    timeout: ClassVar[float] = _PATIENCE

    def do_POST(self) -> None:
        is_json = self.headers.get_content_type() == _JSON
        try:
            with self._slot():
                self._check()
                taken = self._server.receiver.take(self._read_body(), is_json=is_json)
        except Refusal as refusal:
            self.close_connection = True
            self._refuse(refusal, is_json=is_json)
        else:
            self._answer(200, _describe(taken, is_json=is_json), is_json=is_json)

    def do_GET(self) -> None:
        self._refuse(Refusal(405, f"send spans with POST {PATH}"), is_json=True)

    @property
    def _server(self) -> _Server:
        return cast("_Server", self.server)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._server.slots.acquire(timeout=_PATIENCE):
            raise Refusal(503, "too many requests at once")
        try:
            yield
        finally:
            self._server.slots.release()

    def _check(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path in ("/v1/metrics", "/v1/logs"):
            raise Refusal(404, f"only spans are received, at {PATH}; switch the export of {path[4:]} off")
        if path != PATH:
            raise Refusal(404, f"spans are received at {PATH}")
        kind = self.headers.get_content_type()
        if kind not in (_PROTOBUF, _JSON):
            raise Refusal(415, f"content-type {kind}: send {_PROTOBUF} or {_JSON}")
        if self.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
            raise Refusal(415, f"content-encoding {self.headers['content-encoding']}: send gzip or none")

    def _read_body(self) -> bytes:
        try:
            content = self._read_raw()
        except TimeoutError:
            raise Refusal(408, "the request did not come in time") from None
        if self.headers.get("content-encoding", "identity").lower() != "gzip":
            return content
        reader = zlib.decompressobj(wbits=31)
        try:
            plain = reader.decompress(content, LARGEST + 1)
        except zlib.error as error:
            raise Refusal(400, f"damaged gzip data: {error}") from None
        if len(plain) > LARGEST:
            raise Refusal(413, f"more than {LARGEST:,} bytes after decompression; send smaller batches")
        if not reader.eof:
            raise Refusal(400, "the gzip data end early")
        return plain

    def _read_raw(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(self._read_chunks())
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdecimal() or len(length) > 18:
            raise Refusal(411, "the request does not say how long it is")
        return self._read_exactly(int(length))

    def _read_exactly(self, length: int) -> bytes:
        if length > LARGEST:
            raise Refusal(413, f"a request of {length:,} bytes; at most {LARGEST:,} are taken; send smaller batches")
        content = self.rfile.read(length)
        if len(content) < length:
            raise Refusal(400, f"only {len(content):,} of {length:,} bytes came")
        return content

    def _read_chunks(self) -> Iterator[bytes]:
        total = 0
        while True:
            head = self.rfile.readline(_CHUNK_HEAD).partition(b";")[0].strip()
            try:
                length = int(head, 16)
            except ValueError:
                raise Refusal(400, "a chunk does not say how long it is") from None
            total += length
            yield self._read_exactly(length if 0 <= total <= LARGEST else LARGEST + 1)
            self.rfile.readline(_CHUNK_HEAD)
            if not length:
                return

    def _refuse(self, refusal: Refusal, *, is_json: bool) -> None:
        code, message = 3, str(refusal)
        status = {"code": code, "message": message}
        body = (
            json.dumps(status).encode() if is_json else protobuf.write_number(1, code) + protobuf.write_text(2, message)
        )
        self._answer(refusal.status, body, is_json=is_json)

    def _answer(self, status: int, body: bytes, *, is_json: bool) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", _JSON if is_json else _PROTOBUF)
            self.send_header("Content-Length", str(len(body)))
            if status == 503:
                self.send_header("Retry-After", _RETRY_AFTER)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are counted, not logged."""


def _describe(taken: Taken, *, is_json: bool) -> bytes:
    """The body of the answer: empty, or how many spans were rejected and why."""
    if not taken.rejected:
        return b"{}" if is_json else b""
    if is_json:
        partial = {"rejectedSpans": str(taken.rejected), "errorMessage": taken.reason}
        return json.dumps({"partialSuccess": partial}).encode()
    return protobuf.write_message(1, protobuf.write_number(1, taken.rejected) + protobuf.write_text(2, taken.reason))


_LENGTH = 4


class RequestSpool:
    """Appends requests to a file; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, and remove what a kill left of a request at its end: that one was never acknowledged.

        Raises:
            RagevalError: the file cannot be written, or another receiver is writing to it.
        """
        self.path = path
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream: IO[bytes] | None = path.open("ab+")
            _claim(self._stream, path)
            self.found = _trim(self._stream)
        except OSError as error:
            raise RagevalError(f"{path}: cannot be written: {error.strerror or error}") from error

    def add(self, request: bytes) -> bool:
        """Append a request. Returns True once it is on the disk; False if the spool is closed.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        with self._lock:
            if self._stream is None:
                return False
            before = self._stream.tell()
            try:
                self._stream.write(len(request).to_bytes(_LENGTH, "big") + request)
                self._stream.flush()
                os.fsync(self._stream.fileno())
            except OSError:
                self._stream.truncate(before)
                raise
            return True

    def close(self) -> None:
        """Take no further request."""
        with self._lock:
            if self._stream is not None:
                self._stream.close()
                self._stream = None

    def retire(self) -> None:
        """Rename the file, so that the next receiver starts anew; the one before it is deleted."""
        self.close()
        if self.path.exists():
            self.path.replace(self.path.with_suffix(".done"))


def _claim(stream: IO[bytes], path: Path) -> None:
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.close()
        raise RagevalError(f"{path}: another receiver is writing to this file; listen at another address") from None


def _trim(stream: IO[bytes]) -> int:
    """Cut off an incomplete request at the end; returns how many are complete."""
    stream.seek(0, os.SEEK_END)
    size = stream.tell()
    at = count = 0
    while at + _LENGTH <= size:
        stream.seek(at)
        end = at + _LENGTH + int.from_bytes(stream.read(_LENGTH), "big")
        if end > size:
            break
        at, count = end, count + 1
    stream.truncate(at)
    stream.seek(0, os.SEEK_END)
    return count
