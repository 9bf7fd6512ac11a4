"""An endpoint: one URL that is called over HTTP, with headers that authenticate the caller.

Connections to the URL are kept alive and shared by threads; each exchange has its own deadline. The bodies of replies
are read in bounded memory: decompressed in pieces, one large body at a time.

The message about a failed call has the URL without credentials, the status and the beginning of the reply. Secrets are
masked in every reply. Redirects are not followed, because they would send a key to another host.
"""

from __future__ import annotations

import io
import json
import os
import re
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection, IncompleteRead
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

from rageval_spec.diagnostics import make_visible
from rageval_spec.endpoints.addresses import authorize, find_proxy, hide_credentials, join_path, list_credentials
from rageval_spec.endpoints.tries import (
    LateError,
    Reply,
    TooLargeError,
    TryFailure,
    WrongReplyError,
    classify_status,
    describe_error,
)
from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.secrets import Redactor, Secret
from rageval_spec.threads import floor
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class HttpRequest(NamedTuple):
    """A request to send; `path` and `query` are appended to the URL's own, and `headers` replace the usual ones."""

    method: str
    body: bytes | None
    query: str = ""
    path: str = ""
    headers: Mapping[str, str] = MappingProxyType({})


class Connections:
    """Sends requests to a URL until it is closed. Safe to use from several threads. Does not follow redirects."""

    def __init__(self, url: SplitResult, proxy: SplitResult | None, headers: Mapping[str, str], timeout: float) -> None:
        self._url = url
        self._proxy = proxy
        self._headers = {**headers, **(authorize(proxy) if proxy is not None and self._is_relayed else {})}
        self._timeout = timeout
        self._idle: list[HTTPConnection] = []
        self._busy: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._head: tuple[Any, bytes, bytes] = (None, b"", b"")

    @property
    def is_closed(self) -> bool:
        return self._closed

    def exchange(self, request: HttpRequest, body: Body) -> Reply:
        """Send a request once and read the reply into `body`, whatever its status; raises `TryFailure` if none came."""
        connection = self._take_idle()
        if connection is not None:
            try:
                return self._ask(connection, request, body, time.monotonic() + self._timeout)
            except TimeoutError as error:
                raise self._time_out() from error
            except (HTTPException, OSError):
                connection.close()  # most likely the server closed it because it was idle too long: try a new one
        if self._closed:
            raise self._end()
        deadline = time.monotonic() + self._timeout
        try:
            return self._ask(self._connect(deadline), request, body, deadline)
        except TimeoutError as error:
            raise self._time_out() from error
        except ssl.SSLCertVerificationError as error:
            message = f"has a certificate that cannot be trusted: {error.verify_message}"
            raise TryFailure(
                f"{message}; to trust its authority, set SSL_CERT_FILE to a file with its certificate"
            ) from error
        except (HTTPException, OSError) as error:
            raise TryFailure(describe_error(error), is_temporary=True) from error

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for busy in self._busy:
                with suppress(OSError):
                    # Not SSLSocket's own shutdown: after it, the thread that uses the socket would continue
                    # unencrypted.
                    socket.socket.shutdown(busy, socket.SHUT_RDWR)
        while (connection := self._take_idle()) is not None:
            with suppress(OSError):
                connection.close()

    def _time_out(self) -> TryFailure:
        return LateError(f"gave no complete reply within {self._timeout:g} s", is_temporary=True)

    def _end(self) -> TryFailure:
        return TryFailure("is no longer asked")

    def _ask(self, connection: HTTPConnection, request: HttpRequest, body: Body, deadline: float) -> Reply:
        timed = cast("_TimedSocket", connection.sock)
        timed.deadline = deadline
        try:
            with self._lock:
                if self._closed:
                    raise self._end()
                self._busy.add(timed.untimed)
            timed.send(self._write(request))
            response, content = _receive(timed, request.method, body)
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(timed.untimed)
        with self._lock:
            if keeps := not (response.will_close or self._closed):
                self._idle.append(connection)
        if not keeps:
            connection.close()
        return Reply(response.status, response.reason, response.headers, content)

    def _write(self, request: HttpRequest) -> bytes:
        """The request as `http.client` writes it; the lines before the bodies of equal requests are written once."""
        method, body, query, path, headers = request
        key = (method, body is None, query, path, headers)
        known, head, rest = self._head
        if known != key:
            connection, wire = self._make_connection(), _Wire()
            connection.sock = wire
            sent = None if body is None else b""
            connection.request(method, self._target(request), sent, {**self._headers, **headers})
            head, length, rest = bytes(wire.written).partition(b"\r\nContent-Length: 0\r\n")
            head, rest = (head + length[:-3], length[-2:] + rest) if length else (head, b"")
            self._head = (key, head, rest)
        return b"%b%d%b%b" % (head, len(body or b""), rest, body or b"") if rest else head + (body or b"")

    @property
    def _is_relayed(self) -> bool:
        """Whether a proxy reads the requests itself, not only passes on encrypted bytes."""
        return self._proxy is not None and self._url.scheme == "http"

    def _target(self, request: HttpRequest) -> str:
        queries = "&".join(text for text in (self._url.query, request.query) if text)
        path = join_path(self._url.path, request.path)
        target = (path or "/") + (f"?{queries}" if queries else "")
        return f"http://{self._url.netloc}{target}" if self._is_relayed else target

    def _take_idle(self) -> HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _make_connection(self) -> HTTPConnection:
        host, port, proxy = self._url.hostname or "", self._url.port, self._proxy
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        where = (host, port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
        connection = kind(*where, timeout=self._timeout)
        if proxy is not None and not self._is_relayed:
            connection.set_tunnel(host, port or HTTPSConnection.default_port, authorize(proxy))
        return connection

    def _connect(self, deadline: float) -> HTTPConnection:
        connection = self._make_connection()
        with floor.left():
            connection.connect()
        connection.sock = _TimedSocket(connection.sock, deadline)
        return connection


class _Wire:
    """What a connection writes to instead of a socket."""

    def __init__(self) -> None:
        self.written = bytearray()

    def sendall(self, data: ReadableBuffer) -> None:
        self.written += data


class _TimedSocket:
    """A socket whose operations raise `TimeoutError` after a deadline (of `time.monotonic`) for all of them together.

    A socket's own timeout starts again with each byte that arrives, and setting it is a call of the system. So it is
    set only where it is off by more than a five-hundredth. Where the system itself can end a wait, it is left to do so:
    Python asks it first whether a socket with a timeout is ready, and lets go of the interpreter for that each time.
    `pending` was received and not read yet.
    """

    def __init__(self, untimed: socket.socket, deadline: float) -> None:
        self.untimed = untimed
        self.deadline = deadline
        self.pending = b""
        self._timeout = -1.0
        self._is_plain = os.name == "posix" and type(untimed) is socket.socket
        if self._is_plain:
            untimed.settimeout(None)

    def limit(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if abs(left - self._timeout) > left / 500:
            self._set(left)
            self._timeout = left

    def _set(self, seconds: float) -> None:
        if not self._is_plain:
            self.untimed.settimeout(seconds)
            return
        wait = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6) or 1)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.untimed.setsockopt(socket.SOL_SOCKET, option, wait)

    def extend(self, seconds: float) -> None:
        """Postpone the deadline by seconds in which nothing was read through no fault of the endpoint."""
        self.deadline += seconds

    def send(self, content: bytes) -> None:
        """Send head and body at once: as two packets they would wake the server twice."""
        view = memoryview(content)
        while view:
            self.limit()
            try:
                view = view[self.untimed.send(view) :]
            except BlockingIOError as error:
                raise TimeoutError("timed out") from error

    def receive(self) -> bytes:
        """What has arrived, at least one byte; empty at the end."""
        if not self.pending:
            if self._is_plain:
                floor.wait_to_read(self.untimed.fileno(), self.deadline)
            self.limit()
            try:
                with nullcontext() if self._is_plain else floor.left():
                    return self.untimed.recv(_PIECE)
            except BlockingIOError as error:
                raise TimeoutError("timed out") from error
        received, self.pending = self.pending, b""
        return received

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - as a socket's
        return io.BufferedReader(_TimedReader(self))

    def close(self) -> None:
        self.untimed.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, timed: _TimedSocket) -> None:
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        received, room = self._timed.receive(), memoryview(buffer)
        count = min(len(received), len(room))
        room[:count], self._timed.pending = received[:count], received[count:]
        return count


class _Head(NamedTuple):
    status: int
    reason: str
    headers: HTTPMessage
    will_close: bool


def _receive(timed: _TimedSocket, method: str, body: Body) -> tuple[_Head, bytes]:
    """A reply. One that says 200 and its length, and is short and whole, is read here; `http.client` reads others."""
    timed.pending = b""
    received = timed.receive()
    first, _, rest = received.partition(b"\r\n")
    lines, mark, content = rest.partition(b"\r\n\r\n")
    if mark and first[:13] in (b"HTTP/1.1 200 ", b"HTTP/1.1 200") and (length := _read_length(lines)) is not None:
        while len(content) < length <= min(_PIECE, body.most) and (more := timed.receive()):
            received, content = received + more, content + more
        if len(content) == length <= body.most and method != "HEAD":
            return _Head(200, first[13:].decode("iso-8859-1").strip(), _Headers(lines), will_close=False), content
    timed.pending = received
    response = HTTPResponse(timed, method=method)  # type: ignore[arg-type]
    response.begin()
    content = body.read(response, timed.extend)
    return _Head(response.status, response.reason, response.headers, response.will_close), content


class _Headers(HTTPMessage):
    """The headers in some lines, which are read when somebody asks for one."""

    def __init__(self, lines: bytes) -> None:
        self._lines = lines

    def __getattr__(self, name: str) -> Any:
        if "_headers" in self.__dict__ or name.startswith("__") or name == "_lines":
            raise AttributeError(name)
        super().__init__()
        for line in self._lines.decode("iso-8859-1").split("\r\n"):
            key, _, value = line.partition(":")
            self.set_raw(key, value.strip(" \t"))
        return getattr(self, name)


def _read_length(lines: bytes) -> int | None:
    """The length of the body; None if the headers do not say it once, or say more than that about the body."""
    if not _HEADERS.fullmatch(lines) or _ENCODED.search(lines):
        return None
    lengths = _LENGTH.findall(lines)
    return int(lengths[0]) if len(lengths) == 1 and lengths[0].isdigit() else None


MOST_BYTES = 64 * 2**20
"""The most bytes of a decompressed body, unless a caller sets a lower limit."""
LARGE = 2**20
"""A body of more bytes waits until no other large body is in memory."""
_PIECE = 2**16
_HEADERS = compile_later(rb"(?:[!-9;-~]+:[^\r\n]*(?:\r\n|\Z))+")
_ENCODED = compile_later(
    rb"^(?:(?:content|transfer)-encoding|connection:(?![ \t]*keep-alive[ \t]*\r?$))", re.IGNORECASE | re.MULTILINE
)
_LENGTH = compile_later(rb"^content-length:[ \t]*([^\r]{0,15}?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
"""Fewer digits than any length that a computer can hold, so that other lengths are left to `http.client`."""
_PAUSE = 0.05
_ZLIB_OR_GZIP = 47
_ENCODINGS = frozenset({"", "identity"})
_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
_gate = Lock()


class Body:
    """The body of one call. Only one body at a time may be read beyond `LARGE` bytes."""

    def __init__(self, most: int, is_closed: Callable[[], bool]) -> None:
        self.most = most
        self._is_closed = is_closed
        self._is_large = False
        self.waited = 0.0

    def read(self, response: HTTPResponse, extend: Callable[[float], None]) -> bytes:
        """The whole body, decompressed; `extend` gets the seconds that were spent waiting for other large bodies."""
        pieces: list[bytes] = []
        total = 0
        for piece in _decompress(
            iter(partial(response.read, _PIECE), b""), response.headers.get("Content-Encoding", "")
        ):
            total += len(piece)
            if total > self.most:
                limit = f"{self.most // 2**20} MiB" if self.most >= 2**20 else f"{self.most} bytes"
                raise TooLargeError(f"replied with more than {limit}, which is the limit for a reply")
            if total > LARGE and not self._is_large:
                extend(self._wait_for_gate())
            pieces.append(piece)
        if response.length:
            raise IncompleteRead(b"", response.length)
        return b"".join(pieces)

    def close(self) -> None:
        if self._is_large:
            self._is_large = False
            _gate.release()

    def _wait_for_gate(self) -> float:
        began = time.monotonic()
        with floor.left():  # who has the gate may need the floor to go on
            while not _gate.acquire(timeout=_PAUSE):
                if self._is_closed():
                    raise TryFailure("is no longer asked")
        self._is_large = True
        return time.monotonic() - began


def _decompress(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Decompress the pieces, because some servers compress unasked. No decompressed piece is large."""
    encoding = encoding.strip().lower()
    if encoding in _ENCODINGS:
        yield from pieces
        return
    if encoding not in _COMPRESSED:
        raise TryFailure(f"replied in the encoding {encoding[:20]!r}, which was not asked for")
    stream = zlib.decompressobj(_ZLIB_OR_GZIP)
    try:
        for piece in pieces:
            rest = piece
            while rest:
                yield stream.decompress(rest, _PIECE)
                rest = stream.unconsumed_tail
    except zlib.error as error:
        raise TryFailure(f"replied with damaged {encoding}: {error}", is_temporary=True) from None
    if not stream.eof:
        raise IncompleteRead(b"")


R = TypeVar("R")

SHOWN = 200
"""Characters of a reply that an error message shows."""
_LOOKED_AT = 64 * SHOWN
_KEY = compile_later(r"key|token|secret|signature|^sig$|password|^pass$|^code$|auth", re.IGNORECASE)


class Endpoint:
    """Exchanges JSON with a URL until it is closed; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        where: str,
        *,
        headers: Mapping[str, Secret],
        timeout: float = 60.0,
        url_key: str = "base_url",
        most_bytes: int = MOST_BYTES,
        further_secrets: Sequence[str] = (),
        hides_path: bool = False,
    ) -> None:
        """Open nothing yet. `where` begins every error message; `timeout` is the most seconds of one whole try.

        `url_key` is the key of the spec to correct if the URL is wrong. Replies of more than `most_bytes` are
        refused. `further_secrets` are masked in addition to those in headers, the URL and the URL of a proxy.
        `hides_path` says that messages show `***` for the path of `url`.
        """
        self._where = where
        self._url = urlsplit(url)
        self._url_key = url_key
        self._shown_path = "/***" if hides_path and self._url.path.strip("/") else self._url.path
        self._most_bytes = most_bytes
        proxy = find_proxy(self._url)
        sent = {"content-type": "application/json", "accept": "application/json", "user-agent": "rageval-spec"}
        for name, value in headers.items():
            sent[name.lower()] = _check_header(where, name, value.reveal())
        self._connections = Connections(self._url, proxy, sent, timeout)
        secrets = [value.reveal() for value in headers.values() if str(value) != value.reveal()]
        secrets += [*further_secrets, *(value for name, value in parse_qsl(self._url.query) if _KEY.search(name))]
        if proxy is not None:
            secrets += [*list_credentials(proxy)[1:], *authorize(proxy).values()]
        self._redactor = Redactor(secrets)

    @property
    def where(self) -> str:
        return self._where

    @contextmanager
    def exchange(
        self,
        body: bytes | None,
        *,
        method: str = "POST",
        query: str = "",
        path: str = "",
        content_type: str = "",
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[Reply]:
        """Send a body once and give the reply, whatever its status, with the secrets that were sent masked.

        `path` and `query` are appended to the URL's own; the body is JSON unless `content_type` says otherwise.
        `headers`, with names in lower case, are of this request only. Until the end of the `with` block no other large
        reply is read.
        """
        with closing(Body(self._most_bytes, lambda: self._connections.is_closed)) as held:
            own = {**({"content-type": content_type} if content_type else {}), **headers}
            reply = self._connections.exchange(HttpRequest(method, body, query, path, own), held)
            yield reply._replace(content=self._redactor.redact_bytes(reply.content))

    def read(self, reply: Reply, read: Callable[[Any], R]) -> R:
        """What `read` makes of the JSON of a reply with status 200; it raises `WrongReplyError` if that is wrong."""
        if reply.status != 200:
            raise self.judge(reply)
        try:
            return read(json.loads(reply.content))
        except WrongReplyError as error:
            raise TryFailure(f"answered 200, but {error}", shorten(reply)) from error
        except (ValueError, RecursionError) as error:
            raise TryFailure("answered 200 with something that is not JSON", shorten(reply)) from error

    def judge(self, reply: Reply) -> TryFailure:
        return classify_status(shorten(reply), self._url_key)

    def redact(self, text: str) -> str:
        return self._redactor.redact(text)

    def explain(self, failure: TryFailure, tries: int, path: str = "") -> str:
        """The message about a call to `path` that failed for good; it contains no secret."""
        url = self._url._replace(path=join_path(self._shown_path, path))
        message = f"{hide_credentials(url)} {failure.message}"
        if tries > 1:
            message += f", after {count_noun(tries, 'try', 'tries')}"
        if failure.reply is not None and (text := self._beginning(failure.reply.content)):
            message += f": {text}"
        return f"{self._where}: {self._redactor.redact(message)}"

    def close(self) -> None:
        self._connections.close()

    def _beginning(self, content: bytes) -> str:
        text = self._redactor.redact(content[:_LOOKED_AT].decode("utf-8", "replace"))
        if len(content) > _LOOKED_AT:
            # The end can be the beginning of a secret that was cut off.
            text = text[: max(0, len(text) - self._redactor.longest)]
        text = make_visible(" ".join(text.split()))
        return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def shorten(reply: Reply) -> Reply:
    """The reply, shortened for a failure: messages show only its beginning, and failures can live long."""
    return reply if len(reply.content) <= 8 * _LOOKED_AT else reply._replace(content=reply.content[: 8 * _LOOKED_AT])


def _check_header(where: str, name: str, value: str) -> str:
    value = value.strip()
    if not name.isascii() or any(character in name for character in " :\r\n\t") or not name:
        raise UsageError(f"{where}: {name!r} is not a valid header name")
    if not value.isprintable() or not value.encode("latin-1", "ignore").decode("latin-1") == value:
        raise UsageError(f"{where}: the value of the header {name!r} has characters that are not allowed in headers")
    return value
