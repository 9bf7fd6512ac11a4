"""Asks an HTTP endpoint for JSON: connections kept alive, several calls at once, retries, and a deadline for each try.

What a user is told of a failed call holds the URL without credentials, the status and the beginning of the reply, in
which every secret that was sent is masked. Redirects are not followed: they would carry a key to another host.
"""

from __future__ import annotations

import io
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection, IncompleteRead
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rageval_spec.endpoints.pacing import draw_wait
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin.secret import MASK, Secret
from rageval_spec.wording import count_noun, make_visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

T = TypeVar("T")
R = TypeVar("R")

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second try at most, and before any later one; they double in between, times a random share."""
MOST_PATIENCE = 300.0
"""Seconds that an endpoint may ask to wait; an endpoint that asks for more has failed."""
MOST_BYTES = 256 * 2**20
SHOWN = 200
"""Characters of a reply that an error message holds."""
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429})
"""Beside all of 5xx."""
_HINTS = {
    401: "is the key right?",
    403: "may this key do that?",
    404: "are base_url and model right?",
    405: "is base_url right?",
    407: "the proxy wants to know who asks",
}
_HINTS_OF_SYSTEMS = {**_HINTS, 404: "is url right?", 405: "is method right?"}


class WrongReplyError(ValueError):
    """A reply that came, and is not what it should be; says what is wrong with it."""


class Reply(NamedTuple):
    """What came back, read to its end."""

    status: int
    reason: str
    headers: HTTPMessage
    content: bytes


class _Sent(NamedTuple):
    method: str
    target: str
    body: bytes | None


class Endpoint:
    """A URL that JSON is posted to, from any number of threads, until it is closed or `post_all` comes to its end."""

    def __init__(
        self,
        url: str,
        where: str,
        *,
        headers: Mapping[str, Secret],
        timeout: float = 60.0,
        retries: int = 5,
        url_key: str = "base_url",
    ) -> None:
        """Open nothing yet. `where` begins every error message, `timeout` are the seconds of one try, all in all.

        `url_key` is the key of the spec to correct where the URL is wrong.

        Raises:
            UsageError: a header cannot be sent, or the environment names a proxy that cannot be used.
        """
        self._where = where
        self._url = urlsplit(url)
        self._proxy = _find_proxy(self._url)
        self._timeout = timeout
        self._retries = retries
        self._url_key = url_key
        secrets = [value.reveal() for value in headers.values() if str(value) != value.reveal()]
        self._secrets = {text for secret in secrets for text in _parts(secret)}
        self._headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "rageval-spec"}
        for name, value in headers.items():
            self._headers[name.lower()] = _check_header(where, name, value.reveal())
        self._idle: list[HTTPConnection] = []
        self._busy: set[socket.socket] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._stopped = threading.Event()

    @property
    def where(self) -> str:
        """What begins every error message: `models.judge`."""
        return self._where

    def post(self, content: Mapping[str, Any], read: Callable[[Any], R]) -> R:
        """What `read` makes of the reply's JSON; it raises `WrongReplyError` where that is not what was asked for.

        Raises:
            RagevalError: the call failed, and further tries did or would not help.
        """
        body = json.dumps(content).encode("ascii")
        tries = 0
        while True:
            self._wait()
            tries += 1
            try:
                return self._read(self.exchange(body), read)
            except Failure as failure:
                if not failure.is_temporary or tries > self._retries:
                    raise RagevalError(self.explain(failure, tries)) from failure.__cause__
                self._postpone(failure, tries)

    def post_all(self, tasks: Iterable[T], answer: Callable[[T], R], concurrency: int) -> Iterator[R]:
        """`answer` of each task, which posts; so many at once, each as soon as it is there, in no order.

        Where one fails, no other is begun, those that are under way are waited for and given, and then the error of
        the first is raised.
        """
        waiting = iter(tasks)
        running: set[Future[R]] = set()
        failure: BaseException | None = None
        executor = ThreadPoolExecutor(concurrency, thread_name_prefix=self._where)
        try:
            while True:
                while failure is None and len(running) < 2 * concurrency:
                    try:
                        running.add(executor.submit(answer, next(waiting)))
                    except StopIteration:
                        break
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    if error := future.exception():
                        failure = failure or error
                        self._stopped.set()
                    else:
                        yield future.result()
        finally:
            self._stopped.set()
            executor.shutdown(wait=False, cancel_futures=True)
            self.close()
        if failure is not None:
            raise failure

    def _wait(self) -> None:
        if self._stopped.wait(max(0.0, self._not_before - time.monotonic())) or self._stopped.is_set():
            raise RagevalError(f"{self._where}: stopped, because another call failed")

    def _postpone(self, failure: Failure, tries: int) -> None:
        """Hold this call back for a while; where the endpoint says how long to wait, all others too."""
        if failure.wait is None:
            self._stopped.wait(draw_wait(tries, FIRST_WAIT, LONGEST_WAIT))
            return
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + failure.wait)
        self._stopped.wait(random.uniform(0.0, min(1.0, failure.wait)))

    def exchange(self, body: bytes | None, *, method: str = "POST", query: str = "") -> Reply:
        """Send a body of JSON once, and read what comes back, whatever its status; `query` is put after the URL's own.

        Raises:
            Failure: there is no whole reply.
        """
        sent = _Sent(method, self._target(query), body)
        connection = self._take_idle()
        if connection is not None:
            try:
                return self._ask(connection, sent, time.monotonic() + self._timeout)
            except TimeoutError as error:
                raise self._time_out() from error
            except (HTTPException, OSError):
                connection.close()  # kept too long for the server's taste, most likely: a fresh one tells
        if self._closed:
            raise self._end()
        deadline = time.monotonic() + self._timeout
        try:
            return self._ask(self._connect(deadline), sent, deadline)
        except TimeoutError as error:
            raise self._time_out() from error
        except ssl.SSLCertVerificationError as error:
            message = f"has a certificate that cannot be trusted: {error.verify_message}"
            raise Failure(f"{message}; SSL_CERT_FILE names a file with further authorities") from error
        except (HTTPException, OSError) as error:
            raise Failure(_describe_error(error), is_temporary=True) from error

    def _time_out(self) -> Failure:
        return Failure(f"gave no whole answer within {self._timeout:g} s", is_temporary=True)

    def _ask(self, connection: HTTPConnection, sent: _Sent, deadline: float) -> Reply:
        timed = cast("_TimedSocket", connection.sock)
        timed.deadline = deadline
        try:
            self._mark_busy(timed.untimed)
            connection.request(sent.method, sent.target, sent.body, self._headers_to_send())
            timed.flush()
            response = connection.getresponse()
            content = response.read(MOST_BYTES)
            if len(content) == MOST_BYTES:
                raise Failure(f"answered with more than {MOST_BYTES // 2**20} MiB")
            if response.length:
                raise IncompleteRead(content, response.length)
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lock:
                self._busy.discard(timed.untimed)
        if response.will_close or not self._keep_idle(connection):
            connection.close()
        return Reply(response.status, response.reason, response.headers, content)

    @property
    def _is_relayed(self) -> bool:
        """Whether a proxy reads the requests, instead of passing on what is encrypted."""
        return self._proxy is not None and self._url.scheme == "http"

    def _target(self, query: str) -> str:
        queries = "&".join(text for text in (self._url.query, query) if text)
        target = (self._url.path or "/") + (f"?{queries}" if queries else "")
        return f"http://{self._url.netloc}{target}" if self._is_relayed else target

    def _headers_to_send(self) -> dict[str, str]:
        return {**self._headers, **(_authorize(self._proxy) if self._proxy and self._is_relayed else {})}

    def _keep_idle(self, connection: HTTPConnection) -> bool:
        with self._lock:
            if not self._stopped.is_set():
                self._idle.append(connection)
                return True
        return False

    def _take_idle(self) -> HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _connect(self, deadline: float) -> HTTPConnection:
        """A fresh connection, through the proxy where there is one."""
        host, port, proxy = self._url.hostname or "", self._url.port, self._proxy
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        where = (host, port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
        connection = kind(*where, timeout=self._timeout)
        if proxy is not None and not self._is_relayed:
            connection.set_tunnel(host, port or HTTPSConnection.default_port, _authorize(proxy))
        connection.connect()
        connection.sock = _TimedSocket(connection.sock, deadline)
        return connection

    def _mark_busy(self, untimed: socket.socket) -> None:
        with self._lock:
            if self._closed:
                raise self._end()
            self._busy.add(untimed)

    def _end(self) -> Failure:
        return Failure("was asked for nothing more")

    def close(self) -> None:
        """Close what is idle, and end the calls that nobody waits for any longer, as after Ctrl-C."""
        self._stopped.set()
        with self._lock:
            self._closed = True
            for busy in self._busy:
                with suppress(OSError):
                    # Not SSLSocket's own: that one lets the thread that uses it go on without encryption.
                    socket.socket.shutdown(busy, socket.SHUT_RDWR)
        while (connection := self._take_idle()) is not None:
            with suppress(OSError):
                connection.close()

    def _read(self, reply: Reply, read: Callable[[Any], R]) -> R:
        if reply.status != 200:
            raise self.judge(reply)
        try:
            content = json.loads(reply.content)
        except (ValueError, RecursionError) as error:
            raise Failure("answered 200 with something that is no JSON", reply) from error
        try:
            return read(content)
        except WrongReplyError as error:
            raise Failure(f"answered 200, but {error}", reply) from error

    def judge(self, reply: Reply) -> Failure:
        """What a status other than 200 means."""
        status = f"answered {reply.status} {reply.reason}".rstrip()
        if 300 <= reply.status < 400:
            place = _without_credentials(urlsplit(reply.headers.get("Location", "")))
            return Failure(f"{status}, to {place}: write that as {self._url_key}" if place else status, reply)
        asked = _read_retry_after(reply.headers)
        if asked is not None and asked > MOST_PATIENCE:
            return Failure(f"{status} and asks to wait {asked:.0f} s, which is too long", reply)
        is_temporary = reply.status in WORTH_ANOTHER_TRY or reply.status >= 500
        hint = (_HINTS if self._url_key == "base_url" else _HINTS_OF_SYSTEMS).get(reply.status)
        return Failure(f"{status} ({hint})" if hint else status, reply, is_temporary=is_temporary, wait=asked)

    def explain(self, failure: Failure, tries: int) -> str:
        """What a user is told of a call that failed for good: no secret is in it."""
        message = f"{self._where}: {_without_credentials(self._url)} {failure.message}"
        if tries > 1:
            message += f", after {count_noun(tries, 'try', 'tries')}"
        if failure.reply is not None and (text := self._beginning(failure.reply.content)):
            message += f": {text}"
        return self._mask(message)

    def _beginning(self, content: bytes) -> str:
        # Masked before it is cut: half of a secret is nobody's business either.
        text = self._mask(content[: 64 * SHOWN].decode("utf-8", "replace"))
        text = make_visible(" ".join(text.split()))
        return text if len(text) <= SHOWN else text[:SHOWN] + "..."

    def _mask(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text


class Failure(Exception):  # noqa: N818 - no error yet: another try may follow
    """A try that failed.

    Attributes:
        message: what happened, to be put after the URL.
        reply: what came back; None where nothing did.
        is_temporary: whether another try may help.
        wait: the seconds that the endpoint asks to wait; None where it does not.
    """

    def __init__(
        self, message: str, reply: Reply | None = None, *, is_temporary: bool = False, wait: float | None = None
    ) -> None:
        """Keep what is known of it."""
        super().__init__(message)
        self.message = message
        self.reply = reply
        self.is_temporary = is_temporary
        self.wait = wait


@dataclass
class _TimedSocket:
    """A socket whose operations, together, end at a deadline (of `time.monotonic`): `TimeoutError`.

    A socket's own timeout begins anew with each byte that trickles in. This is the part of a socket that
    `http.client` uses.
    """

    untimed: socket.socket
    deadline: float
    unsent: bytearray = field(default_factory=bytearray)

    def limit(self) -> None:
        """Give the next operation what is left of the time."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self.untimed.settimeout(left)

    def sendall(self, data: ReadableBuffer) -> None:
        """Take what `flush` is to send: headers and body apart would be two packets, and wake the server twice."""
        self.unsent += data

    def flush(self) -> None:
        view = memoryview(bytes(self.unsent))
        self.unsent.clear()
        while view:
            self.limit()
            view = view[self.untimed.send(view) :]

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - as a socket's
        return io.BufferedReader(_TimedReader(self))

    def close(self) -> None:
        self.untimed.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, timed: _TimedSocket) -> None:
        self._timed = timed
        self._stream = timed.untimed.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        self._timed.limit()
        return self._stream.readinto(buffer)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _find_proxy(url: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for a URL, as urllib finds it."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.netloc):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"the environment names a proxy of another kind than http://: {_without_credentials(parts)}")
    return parts


def _parts(secret: str) -> list[str]:
    """The text of a header, and its words: `Bearer abc` must not be shown as `abc` either."""
    return [text for text in {secret, *secret.split()} if len(text) > 3 and text.lower() not in ("basic", "bearer")]


def _check_header(where: str, name: str, value: str) -> str:
    value = value.strip()
    if not name.isascii() or any(character in name for character in " :\r\n\t") or not name:
        raise UsageError(f"{where}: {name!r} cannot be the name of a header")
    if not value.isprintable() or not value.encode("latin-1", "ignore").decode("latin-1") == value:
        raise UsageError(f"{where}: the value of the header {name!r} has characters that no header may have")
    return value


def _authorize(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    from base64 import b64encode

    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(credentials.encode()).decode('ascii')}"}


def _without_credentials(url: SplitResult) -> str:
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _describe_error(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections: does it run?"
    if isinstance(error, socket.gaierror):
        return f"cannot be found: {error.strerror or error}"
    text = getattr(error, "strerror", None) or str(error)
    return f"broke the connection: {type(error).__name__}" + (f": {make_visible(text)[:SHOWN]}" if text else "")


def _read_retry_after(headers: HTTPMessage) -> float | None:
    """Seconds to wait, from `Retry-After` in either of its forms or OpenAI's `retry-after-ms`."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if (seconds := float(headers.get(name, "")) * unit) >= 0:
                return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
