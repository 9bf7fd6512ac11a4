"""The loop of tries: makes paced calls in parallel and retries each until it succeeds or has failed for good.

A failure of one try says whether a retry can help, and after how long. When a rate limit ends is read from the
providers' headers. The key `patience` of nodes with an endpoint says how long calls wait while the endpoint refuses
all of them.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Annotated, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import Field

from rageval_spec.dataclass import KW_ONLY, dataclass, field
from rageval_spec.diagnostics import make_visible
from rageval_spec.endpoints.addresses import hide_credentials
from rageval_spec.endpoints.pacing import Breaker, CallPace, Clock, Slots, draw_wait
from rageval_spec.libraries import compile_later
from rageval_spec.plugin.plugin import Node
from rageval_spec.plugin.secrets import Secret, identify_headers
from rageval_spec.threads import floor

PATIENCE = 75.0
"""The default, in seconds: most rate limits are per minute, though few endpoints say so."""
Retries = Annotated[
    int,
    Field(
        ge=0,
        le=100,
        description="How often to retry after a status of 408, 409, 425, 429 or 5xx, a broken connection or a timeout. "
        "`patience` allows more after 429.",
    ),
]


class EndpointNode(Node):
    """The keys of every block with an endpoint."""

    api_key: Secret | None = Field(
        default=None, description="The key of the endpoint, such as `${secret:OPENAI_API_KEY}`."
    )
    headers: dict[str, Secret] = Field(
        default={},
        description="Further headers of every call, for authentication or for a gateway that routes by them. What is "
        "stored depends on them, but not on the values of secrets: `Bearer ${secret:KEY}` counts as it is written.",
    )
    retries: Retries = 5
    patience: float = Field(
        default=PATIENCE,
        ge=0,
        le=86400,
        description="How many seconds the endpoint may refuse every call with 429 (too many requests) before calls "
        "fail. Until then calls slow down and are retried, even beyond `retries`. With `retries: 0`, a 429 is not "
        "retried either.",
    )

    def list_headers(self) -> dict[str, Secret]:
        """The headers of every call, with the key as a bearer token."""
        if self.api_key is None:
            return dict(self.headers)
        return {**self.headers, "Authorization": Secret(f"Bearer {self.api_key.reveal().strip()}")}

    def identify_headers(self) -> dict[str, dict[str, str]]:
        """What a stored key has of the headers, if there are any."""
        return {"headers": identify_headers(self.headers)} if self.headers else {}


T = TypeVar("T")


@dataclass(eq=False)
class TryError(Exception):
    """A try that failed; a retry can follow.

    Attributes:
        is_temporary: whether a retry can help.
        wait: the seconds that the endpoint asks to wait; None if it does not.
        is_refusal: the endpoint said that it got too many requests.
        most_retries: how many retries make sense after this failure; None for as many as the spec allows.
        is_about_request: the failure concerns only this request, not the next one or the endpoint's health.
        is_lesson: the try showed which parameter to leave out of the next try; it does not count as failed.
        tries: how many tries were made, once the call has failed for good.
        is_exhausted: the endpoint refused everything for longer than the spec's patience.
    """

    message: str
    _: KW_ONLY
    is_temporary: bool = False
    wait: float | None = None
    is_refusal: bool = False
    most_retries: int | None = None
    is_about_request: bool = False
    is_lesson: bool = False
    tries: int = field(default=1, init=False)
    is_exhausted: bool = field(default=False, init=False)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Limits:
    """How calls are made.

    Attributes:
        concurrency: how many calls may be under way at the same time.
        retries: how often to retry a call; refusals with 429 are retried further, for as long as `patience` allows.
        patience: how many seconds the endpoint may refuse everything.
    """

    concurrency: int
    retries: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    patience: float = PATIENCE


class TryBudget(Protocol):
    """Counts tries and forbids them by raising."""

    def begin(self) -> Callable[[], None] | None:
        """Called before the first try: None if it may be made now, else a function that waits before the next call."""

    def begin_retry(self) -> None:
        """Called before each retry."""


class BrokenDownError(Exception):
    """The endpoint has failed so often in a row that it is not asked; the message says so."""


class Tries:
    """Makes calls to one endpoint until `stop`; safe to use from several threads."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        explain: Callable[[TryError], str] = str,
        make_pace: Callable[..., CallPace] | None = None,
    ) -> None:
        """Make no call yet; `explain` words the failure of a call, for calls that are not made because of it.

        `make_pace` makes the pace of an endpoint that other processes of this evaluation ask too.
        """
        self._limits = limits
        self._clock = clock
        self._explain = explain
        make_pace = make_pace or CallPace
        self._pace = make_pace(clock, limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency)
        self._slots: Slots = getattr(self._pace, "slots", None) or Slots(limits.concurrency)
        self._breaker = Breaker(clock)

    @property
    def is_stopped(self) -> bool:
        return self._clock.is_stopped

    def make(self, attempt: Callable[[], T], ledger: TryBudget | None = None, tokens: int = 0) -> T:
        """The result of `attempt`, which makes one try of about `tokens` tokens and raises `TryError` if it fails.

        A try holds one of the slots for calls under way, so what it stores is stored before another call begins: a kill
        loses no more replies than there are slots. `ledger` allows or forbids tries.

        Raises:
            TryError: the last try's failure; a retry did not or would not help.
            BrokenDownError: the endpoint failed too often in a row, so the call was not made.
            StoppedError: `stop` was called.
        """
        call = _Call(ledger)
        while True:
            failure, wait_for_room = None, None
            with self._slots.take(tokens):
                wait_for_room = self._begin(call)
                if wait_for_room is None:
                    try:
                        found = self._try(attempt, tokens)
                    except TryError as error:
                        failure = error
                    else:
                        self._breaker.record(None)
                        return found
            if wait_for_room is not None:
                # Without a slot: the calls that are waited for can need it for a retry.
                with floor.rested():
                    wait_for_room()
            elif failure is not None and not failure.is_lesson:
                self._wait(call, failure)

    def correct(self, tokens: int) -> None:
        self._pace.correct(tokens)

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def stop(self) -> None:
        self._clock.stop()
        self._slots.stop()
        self._pace.stop()

    def _begin(self, call: _Call) -> Callable[[], None] | None:
        if call.has_begun:
            if call.ledger is not None:
                call.ledger.begin_retry()
            return None
        if (complaint := self._breaker.complain()) is not None:
            raise BrokenDownError(complaint)
        wait_for_room = None if call.ledger is None else call.ledger.begin()
        call.has_begun = wait_for_room is None
        return wait_for_room

    def _try(self, attempt: Callable[[], T], tokens: int) -> T:
        begun = self._pace.wait(tokens)
        is_refusal, wait = False, None
        try:
            return attempt()
        except TryError as error:
            is_refusal, wait = error.is_refusal, error.wait
            raise
        finally:
            self._pace.record(begun, refused=is_refusal, wait=wait)
            self._slots.resize(self._pace.throttle.room)

    def _wait(self, call: _Call, failure: TryError) -> None:
        """Wait before the next try; raise the failure if there is none."""
        call.tries += 1
        if failure.is_refusal and call.first_refused is None:
            call.first_refused = self._clock.now()
        if not self._may_try_again(call, failure):
            failure.tries = call.tries
            self._breaker.record(None if failure.is_about_request else self._explain(failure))
            raise failure
        wait = draw_wait(call.tries)
        self._clock.sleep(failure.wait + min(wait, failure.wait) if failure.wait else wait)

    def _may_try_again(self, call: _Call, failure: TryError) -> bool:
        limits = self._limits
        if not failure.is_temporary or not limits.retries:
            return False
        retries = limits.retries if failure.most_retries is None else min(limits.retries, failure.most_retries)
        if not failure.is_refusal or not self._pace.throttle.is_crowded:
            return call.tries <= retries
        failure.is_exhausted = self._pace.throttle.has_refused_for(limits.patience, self._clock.now())
        if failure.is_exhausted or call.first_refused is None:
            return False
        return call.tries <= retries or self._clock.now() - call.first_refused < limits.patience


@dataclass(slots=True)
class _Call:
    ledger: TryBudget | None
    has_begun: bool = False
    tries: int = 0
    first_refused: float | None = None


MOST_PATIENCE = 300.0
"""The most seconds that an endpoint may ask to wait; if it asks for more, the call has failed."""
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429})
"""Statuses, besides all 5xx, after which a retry can help."""
REFUSED = 429
"""The status for too many requests."""
_SHOWN = 200
_HINTS = {
    401: "is the key right?",
    403: "does this key have permission?",
    404: "are base_url and model right?",
    405: "is base_url right?",
    407: "the proxy requires credentials",
}
_HINTS_OF_SYSTEMS = {**_HINTS, 404: "is url right?", 405: "is method right?"}


class WrongReplyError(ValueError):
    """A reply with wrong content; the message says what is wrong with it."""


class Reply(NamedTuple):
    """A complete reply, decompressed."""

    status: int
    reason: str
    headers: Message
    content: bytes


@dataclass(eq=False)
class TryFailure(TryError):  # noqa: N818 - not an error yet: a retry can follow
    """A try of an HTTP call that failed.

    Attributes:
        message: what happened, as the end of a sentence that begins with the URL.
        reply: the reply; None if none came.
    """

    reply: Reply | None = None

    def __post_init__(self) -> None:
        self.is_refusal = self.reply is not None and self.reply.status == REFUSED


class LateError(TryFailure):
    """A reply that did not come in time."""


class TooLargeError(TryFailure):
    """A reply that is larger than the limit for replies."""


def classify_status(reply: Reply, url_key: str) -> TryFailure:
    """The failure that a status other than 200 stands for; `url_key` is the key of the spec that has the URL."""
    status = f"answered {reply.status} {reply.reason}".rstrip()
    if 300 <= reply.status < 400:
        place = hide_credentials(urlsplit(reply.headers.get("Location", "")))
        return TryFailure(f"{status}, to {place}: write that as {url_key}" if place else status, reply)
    asked = read_retry_after(reply.headers)
    if asked is not None and asked > MOST_PATIENCE:
        return TryFailure(f"{status} and asks to wait {asked:.0f} s, which is too long", reply)
    is_temporary = reply.status in WORTH_ANOTHER_TRY or reply.status >= 500
    hint = (_HINTS if url_key == "base_url" else _HINTS_OF_SYSTEMS).get(reply.status)
    return TryFailure(f"{status} ({hint})" if hint else status, reply, is_temporary=is_temporary, wait=asked)


def describe_error(error: Exception) -> str:
    """What went wrong with a connection, as the end of a sentence that begins with the URL."""
    if isinstance(error, ConnectionRefusedError):
        return "refuses connections (is it running?)"
    if isinstance(error, socket.gaierror):
        return f"cannot be found: {error.strerror or error}"
    text = getattr(error, "strerror", None) or str(error)
    return f"broke the connection: {type(error).__name__}" + (f": {make_visible(text)[:_SHOWN]}" if text else "")


def read_retry_after(headers: Message) -> float | None:
    """The seconds to wait, from either form of `Retry-After` or from OpenAI's `retry-after-ms`."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            if (seconds := float(headers.get(name, "")) * unit) >= 0:
                return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


_DURATION = compile_later(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def read_reset(headers: Message) -> float | None:
    """Seconds until a rate limit ends, from `x-ratelimit-reset-*` or Anthropic's headers; None if they do not say.

    If headers say how much of each limit remains, the longest wait of the exhausted limits counts. Otherwise the
    shortest wait of all limits counts.
    """
    waits: list[float] = []
    spent: list[float] = []
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for prefix in ("x-ratelimit", "anthropic-ratelimit"):
            name = f"{prefix}-reset-{kind}" if prefix == "x-ratelimit" else f"{prefix}-{kind}-reset"
            wait = _read_duration(headers.get(name, ""))
            if wait is None or not 0 < wait <= MOST_PATIENCE:
                continue
            waits.append(wait)
            rest = f"{prefix}-remaining-{kind}" if prefix == "x-ratelimit" else f"{prefix}-{kind}-remaining"
            if headers.get(rest, "").strip() == "0":
                spent.append(wait)
    return max(spent) if spent else min(waits, default=None)


def _read_duration(text: str) -> float | None:
    """The seconds in `1m2.5s`, `20ms` or `12`, or until a moment such as `2026-01-31T12:00:00Z`."""
    text = text.strip()
    if not text:
        return None
    if (match := _DURATION.fullmatch(text)) is not None:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    with suppress(ValueError):
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
