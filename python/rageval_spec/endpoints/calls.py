"""Makes the calls of one chat model: several at once, paced, tried again, and adapted to what the model takes."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.message import Message as Headers
from typing import TYPE_CHECKING

from rageval_spec.data.chat import CallError, ChatReply, ChatRequest, InterruptedCallError
from rageval_spec.endpoints.dialects import Capabilities, Dialect, Settings, read_complaint
from rageval_spec.endpoints.endpoint import MOST_PATIENCE, Endpoint, Failure, Reply, WrongReplyError
from rageval_spec.endpoints.pacing import Breaker, Clock, Pace, Slots, StoppedError, draw_wait

if TYPE_CHECKING:
    from typing import Any

CHARACTERS_A_TOKEN = 4
USUAL_REPLY = 500
"""Tokens that a reply is expected to have at most, where nothing limits it."""
GARBAGE_TRIES = 2
"""Further tries after a reply with status 200 that is none: a wrong URL gives the same page each time."""
CROWDED_PATIENCE = 60.0
"""Seconds of waiting after which a call that is refused with 429, as many others are, has failed: limits are by the
minute, and few endpoints say so."""
_REFUSING = frozenset({400, 403, 422, 501})
"""What endpoints say where they do not take a parameter."""
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Refusals that say nothing about the next request."""
_SPENT = re.compile(
    r"insufficient_quota|billing_hard_limit|credit balance is too low|exceeded your current quota", re.IGNORECASE
)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """How calls are made.

    Attributes:
        concurrency: calls under way at the same time.
        retries: further tries of one call; where it is refused with 429, as many others are, as many as fit into
            `CROWDED_PATIENCE`.
    """

    concurrency: int
    retries: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a call is expected to take at most, in tokens."""

    input: int
    output: int


def expect(request: ChatRequest, max_tokens: int | None) -> Expectation:
    """Tokens of a call: a quarter of the characters, schema included, and whatever the reply may have."""
    schema = 0 if request.schema is None else len(json.dumps(request.schema))
    characters = request.characters + schema
    return Expectation(characters // CHARACTERS_A_TOKEN + 1, request.max_tokens or max_tokens or USUAL_REPLY)


Begin = Callable[[], Callable[[], None] | None]
"""Begins a call: None where it may be made now, else what to wait with before this is called again."""


def ignore_reply(reply: ChatReply) -> None:
    """Keep nothing."""


def ignore_repeat() -> None:
    """Count nothing."""


class Caller:
    """Asks an endpoint, from any number of threads, until `stop`."""

    def __init__(
        self, endpoint: Endpoint, dialect: Dialect, settings: Settings, capabilities: Capabilities, limits: Limits,
        clock: Clock,
    ) -> None:  # fmt: skip
        """Ask nothing yet; `capabilities` are what the model is believed to take."""
        self._endpoint = endpoint
        self._dialect = dialect
        self._settings = settings
        self._capabilities = capabilities
        self._retries = limits.retries
        self._clock = clock
        self._slots = Slots(limits.concurrency)
        self._pace = Pace(clock, limits.requests_per_minute, limits.tokens_per_minute)
        self._breaker = Breaker(clock)
        self._lock = threading.Lock()

    def call(
        self,
        request: ChatRequest,
        tokens: Expectation,
        begin: Begin,
        keep: Callable[[ChatReply], None] = ignore_reply,
        repeat: Callable[[], None] = ignore_repeat,
    ) -> ChatReply:
        """The reply, which is expected to take so many tokens.

        `begin` is called when the first try is about to be made, and may forbid it by raising. `keep` gets the
        reply before another call may take this one's place: so a kill loses no more replies than calls may be under
        way. `repeat` is called before each further try after an error.

        Raises:
            CallError: the call failed, and further tries did or would not help.
            InterruptedCallError: `stop` was called before a reply came.
        """
        try:
            return self._call(request, tokens, begin, keep, repeat)
        except StoppedError:
            raise self._interrupt() from None
        except CallError:
            # Closing the connections looks like a fault of the endpoint to those that use them.
            if self._clock.is_stopped:
                raise self._interrupt() from None
            raise

    def stop(self) -> None:
        """End what waits and what is under way: nobody wants the replies any longer."""
        self._clock.stop()
        self._slots.stop()
        self._endpoint.close()

    def _call(
        self,
        request: ChatRequest,
        tokens: Expectation,
        begin: Begin,
        keep: Callable[[ChatReply], None],
        repeat: Callable[[], None],
    ) -> ChatReply:
        has_begun, tries, waited = False, 0, 0.0
        while True:
            with self._slots.take():
                wait_for_room = None if has_begun else self._begin(begin)
                if wait_for_room is None:
                    has_begun = True
                    self._pace.wait(tokens.input + tokens.output)
                    known = self._capabilities
                    outcome = self._try(request, known)
                    if isinstance(outcome, ChatReply):
                        keep(outcome)
            if wait_for_room is not None:
                # In nobody's place: those that are waited for may need it for another try.
                wait_for_room()
                continue
            if isinstance(outcome, ChatReply):
                self._finish(outcome, tokens)
                return outcome
            if self._adapt(outcome, known):
                continue
            tries += 1
            if not self._may_try_again(outcome.failure, tries, waited):
                raise self._give_up(outcome.failure, tries)
            wait = self._wait(outcome.failure, tries)
            self._clock.sleep(wait)
            waited += wait
            repeat()

    def _interrupt(self) -> InterruptedCallError:
        return InterruptedCallError(self._endpoint.explain(Failure("was interrupted before it replied"), 0))

    def _begin(self, begin: Begin) -> Callable[[], None] | None:
        self._check_breaker()
        return begin()

    def _try(self, request: ChatRequest, known: Capabilities) -> ChatReply | _Refusal:
        body = self._dialect.body(request, self._settings, known)
        try:
            reply = self._endpoint.exchange(json.dumps(body).encode("ascii"))
            if reply.status == 200:
                return self._read(reply)
            return _Refusal(body, _judge(self._endpoint, reply))
        except Failure as failure:
            return _Refusal(body, failure)

    def _read(self, reply: Reply) -> ChatReply:
        try:
            return self._dialect.read(json.loads(reply.content))
        except WrongReplyError as error:
            raise Failure(f"answered 200, but {error}", reply, is_temporary=True) from None
        except (ValueError, RecursionError):
            raise Failure("answered 200 with something that is no JSON", reply, is_temporary=True) from None

    def _finish(self, reply: ChatReply, tokens: Expectation) -> None:
        self._slots.record(refused=False)
        self._breaker.record(None)
        if reply.input_tokens is not None and reply.output_tokens is not None:
            self._pace.correct(reply.input_tokens + reply.output_tokens - tokens.input - tokens.output)

    def _adapt(self, refusal: _Refusal, known: Capabilities) -> bool:
        """Whether the model takes less than was believed, or another thread found that out meanwhile."""
        reply = refusal.failure.reply
        if reply is None or reply.status not in _REFUSING:
            return False
        adapted = self._dialect.adapt(refusal.body, read_complaint(reply), known)
        if adapted in (None, known):
            return False
        with self._lock:
            if self._capabilities is known:
                self._capabilities = adapted
        return True

    def _may_try_again(self, failure: Failure, tries: int, waited: float) -> bool:
        status = None if failure.reply is None else failure.reply.status
        if not failure.is_temporary or not self._retries:
            return False
        if status == 429 and self._slots.is_crowded:
            return waited < CROWDED_PATIENCE or tries <= self._retries
        return tries <= (min(self._retries, GARBAGE_TRIES) if status == 200 else self._retries)

    def _give_up(self, failure: Failure, tries: int) -> CallError:
        message = self._endpoint.explain(failure, tries)
        is_alive = failure.reply is not None and failure.reply.status in _ABOUT_THE_REQUEST
        self._breaker.record(None if is_alive else message.removeprefix(f"{self._endpoint.where}: "))
        is_dead = isinstance(failure.__cause__, ConnectionRefusedError | socket.gaierror)
        return CallError(message, is_temporary=failure.is_temporary and not is_dead)

    def _wait(self, failure: Failure, tries: int) -> float:
        """Seconds to wait before the next try; where the endpoint asks for some, all calls wait."""
        self._slots.record(refused=failure.reply is not None and failure.reply.status == 429)
        wait = draw_wait(tries)
        if failure.wait:
            self._pace.hold(failure.wait)
            return failure.wait + min(wait, failure.wait)
        return wait

    def _check_breaker(self) -> None:
        if (complaint := self._breaker.complain()) is not None:
            raise CallError(f"{self._endpoint.where}: {complaint}", is_temporary=False)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """What was posted, and how it failed."""

    body: dict[str, Any]
    failure: Failure


def _judge(endpoint: Endpoint, reply: Reply) -> Failure:
    """What a status other than 200 means to one who chats."""
    failure = endpoint.judge(reply)
    complaint = read_complaint(reply)
    if reply.status in (402, 403, 429) and _SPENT.search(complaint.text):
        hint = "the account has nothing left to spend, which no further try changes: add credit or raise its limit"
        return Failure(f"{failure.message}: {hint}", reply)
    if reply.status in (400, 413, 422) and complaint.is_about_length:
        hint = "this is more than the model takes: use fewer or shorter contexts, or one with a longer context window"
        return Failure(f"{failure.message}: {hint}", reply)
    if failure.is_temporary and failure.wait is None and reply.status in (429, 503):
        failure.wait = read_reset(reply.headers)
    return failure


def read_reset(headers: Headers) -> float | None:
    """Seconds until a limit is lifted, from `x-ratelimit-reset-*` or Anthropic's headers; None where they do not say.

    Where headers say what remains, only limits of which nothing does count; of several the longest counts then, and
    else the shortest.
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
    """Seconds in `1m2.5s`, `20ms`, `12` or until a moment such as `2026-01-31T12:00:00Z`."""
    text = text.strip()
    if not text:
        return None
    if (match := _DURATION.fullmatch(text)) is not None:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
