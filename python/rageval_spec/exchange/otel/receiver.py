"""Receives spans over OTLP/HTTP: `POST /v1/traces` with protobuf or JSON, plain or gzip.

A request is answered with 200 only when its spans are on the disk, so nothing is lost once it was acknowledged. What
cannot be read is refused with a status that tells the sender not to try again; what cannot be taken now, with one
that tells it to. uvicorn and Starlette speak HTTP; limits on the time and the size of a request, and on connections,
keep one sender from blocking the others.

The file of received requests has the layout of a collector's file exporter: each request in protobuf, after its
length in four bytes. It can be imported as any other file.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, NamedTuple

from rageval_spec.endpoints.http_server import MOST_CONNECTIONS, Refusal, Server, knows_token, read_body
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.shared.spans import protobuf
from rageval_spec.exchange.shared.spans.json_spans import JsonSpanError, decode_json

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


PATH = "/v1/traces"
LARGEST = 20 * 1024 * 1024
"""The most bytes of a request, also after decompression; collectors send no larger ones by default."""
_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
MOST_HELD = 256 * 1024 * 1024
"""The most bytes of all requests that are being read."""
PATIENCE = 30.0
"""Seconds for a whole request, from its first byte to its last one."""
_GRACE = 3
"""Seconds that a request has for its answer once its time is over."""
_RETRY_AFTER = "5"


class Taken(NamedTuple):
    """What became of a request: the spans that were kept, those that were not, and why the first was not."""

    spans: int
    rejected: int = 0
    reason: str = ""


class Receiver:
    """Listens in a thread of its own until it is closed."""

    def __init__(
        self, host: str, port: int, spool: RequestSpool, tell: Callable[[str], None], token: str | None = None
    ) -> None:
        """Listen at once. With a `token`, only requests that send it are taken.

        Raises:
            RagevalError: the address cannot be used.
            UsageError: uvicorn or Starlette is not installed.
        """
        self._spool = spool
        self._tell = tell
        self.token = token
        self._lock = Lock()
        self.spans = self.requests = self.rejected = 0
        try:
            self._server = Server(_make_app(self), host, port, MOST_CONNECTIONS, PATIENCE + _GRACE)
        except ImportError as error:
            message = "to receive spans, install uvicorn and Starlette: pip install 'rageval-spec[serve]'"
            raise UsageError(message) from error
        self.url = f"{self._server.url}{PATH}"
        """Where spans are to be sent."""

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
        self._server.close()


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
    except (protobuf.WireError, JsonSpanError) as error:
        raise Refusal(400, f"not an OTLP request: {error}") from None
    except ValueError as error:
        raise Refusal(400, f"not valid JSON: {error}") from None
    return Taken(len(spans), len(rejected), str(rejected[0]) if rejected else ""), request


class _Reader:
    """Reads the bodies of requests, each within a time and all of them within the memory that they may take."""

    _held = 0

    async def read(self, request: Request) -> bytes:
        """The body as it was sent."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            held += size
            self._held += size
            if self._held > MOST_HELD:
                raise Refusal(503, "too many requests at once")

        try:
            return await read_body(request, LARGEST, PATIENCE, "send smaller batches", hold)
        finally:
            self._held -= held


def _unpack(content: bytes, encoding: str) -> bytes:
    if encoding != "gzip":
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


def _make_app(receiver: Receiver) -> Starlette:
    """The application: one address that takes spans, and refusals with a reason for every other request."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import Response as Answer
    from starlette.routing import Route

    reader = _Reader()

    async def take(request: Request) -> Response:
        is_json = _find_type(request) == _JSON or request.method == "GET"
        try:
            _check(request, receiver.token)
            body = await reader.read(request)
            encoding = _find_encoding(request)
            taken = await run_in_threadpool(lambda: receiver.take(_unpack(body, encoding), is_json=is_json))
            status, headers, reply = 200, {}, _describe(taken, is_json=is_json)
        except Refusal as refusal:
            status, reply = refusal.status, _explain(str(refusal), is_json=is_json)
            headers = {"Connection": "close"} | ({"Retry-After": _RETRY_AFTER} if status == 503 else {})
        return Answer(reply, status, headers, media_type=_JSON if is_json else _PROTOBUF)

    return Starlette(routes=[Route("/{path:path}", take, methods=["GET", "POST", "PUT", "DELETE", "PATCH"])])


def _find_type(request: Request) -> str:
    return str(request.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _find_encoding(request: Request) -> str:
    return str(request.headers.get("content-encoding", "identity")).lower()


def _check(request: Request, token: str | None) -> None:
    """Refuse a request by its head, before its body is read."""
    given = str(request.headers.get("authorization", "")).encode("latin-1")
    if token is not None and not knows_token(given, token):
        raise Refusal(401, "send the receiver's token: authorization: Bearer TOKEN")
    path = request.url.path.rstrip("/")
    if request.method != "POST":
        raise Refusal(405, f"send spans with POST {PATH}")
    if path in ("/v1/metrics", "/v1/logs"):
        raise Refusal(404, f"only spans are received, at {PATH}; switch the export of {path[4:]} off")
    if path != PATH:
        raise Refusal(404, f"spans are received at {PATH}")
    if (kind := _find_type(request)) not in (_PROTOBUF, _JSON):
        raise Refusal(415, f"content-type {kind}: send {_PROTOBUF} or {_JSON}")
    if (encoding := _find_encoding(request)) not in ("identity", "gzip"):
        raise Refusal(415, f"content-encoding {encoding}: send gzip or none")


def _explain(message: str, *, is_json: bool) -> bytes:
    code = 3
    if is_json:
        return json.dumps({"code": code, "message": message}).encode()
    return protobuf.encode_status(code, message)


def _describe(taken: Taken, *, is_json: bool) -> bytes:
    """The body of the answer: empty, or how many spans were rejected and why."""
    if not taken.rejected:
        return b"{}" if is_json else b""
    if is_json:
        partial = {"rejectedSpans": str(taken.rejected), "errorMessage": taken.reason}
        return json.dumps({"partialSuccess": partial}).encode()
    return protobuf.encode_rejection(taken.rejected, taken.reason)


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
