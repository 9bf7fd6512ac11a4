"""The loop of tries: makes paced calls in parallel and retries each until it succeeds or has failed for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rageval_spec.endpoints.pacing import Breaker, Clock, Pace, Slots, draw_wait
from rageval_spec.endpoints.patience import PATIENCE

T = TypeVar("T")


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

    def __init__(
        self,
        message: str,
        *,
        is_temporary: bool = False,
        wait: float | None = None,
        is_refusal: bool = False,
        most_retries: int | None = None,
        is_about_request: bool = False,
        is_lesson: bool = False,
    ) -> None:
        """Keep what is known about the failure."""
        super().__init__(message)
        self.is_temporary = is_temporary
        self.wait = wait
        self.is_refusal = is_refusal
        self.most_retries = most_retries
        self.is_about_request = is_about_request
        self.is_lesson = is_lesson
        self.tries = 1
        self.is_exhausted = False


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


class Ledger(Protocol):
    """Counts tries and forbids them by raising."""

    def begin(self) -> Callable[[], None] | None:
        """Called before the first try: None if it may be made now, else a function that waits before the next call."""

    def begin_retry(self) -> None:
        """Called before each retry."""


class Free:
    """A ledger that allows every try."""

    def begin(self) -> Callable[[], None] | None:
        """Allow the first try at once."""
        return None

    def begin_retry(self) -> None:
        """Always."""


class BrokenDownError(Exception):
    """The endpoint has failed so often in a row that it is not asked; the message says so."""


class Tries:
    """Makes calls to one endpoint until `stop`; safe to use from several threads."""

    def __init__(self, limits: Limits, clock: Clock, explain: Callable[[TryError], str] = str) -> None:
        """Make no call yet; `explain` words the failure of a call, for calls that are not made because of it."""
        self._limits = limits
        self._clock = clock
        self._explain = explain
        self._slots = Slots(limits.concurrency)
        self._pace = Pace(clock, limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency)
        self._breaker = Breaker(clock)

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._clock.is_stopped

    def make(self, attempt: Callable[[], T], ledger: Ledger | None = None, tokens: int = 0) -> T:
        """The result of `attempt`, which makes one try and raises `TryError` if it fails.

        A try holds one of the slots for calls under way, so what it stores is stored before another call begins: a kill
        loses no more replies than there are slots.

        Args:
            attempt: makes one try.
            ledger: allows or forbids tries; by default it allows all.
            tokens: the tokens that a try is expected to use.

        Raises:
            TryError: the last try's failure; a retry did not or would not help.
            BrokenDownError: the endpoint failed too often in a row, so the call was not made.
            StoppedError: `stop` was called.
        """
        call = _Call(ledger or Free())
        while True:
            failure, wait_for_room = None, None
            with self._slots.take():
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
                wait_for_room()
            elif failure is not None and not failure.is_lesson:
                self._wait(call, failure)

    def correct(self, tokens: int) -> None:
        """Record that a call used `tokens` more than expected; fewer if negative."""
        self._pace.correct(tokens)

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds.

        Raises:
            StoppedError: `stop` was called.
        """
        self._clock.sleep(seconds)

    def stop(self) -> None:
        """End all waiting calls; calls under way continue."""
        self._clock.stop()
        self._slots.stop()
        self._pace.stop()

    def _begin(self, call: _Call) -> Callable[[], None] | None:
        if call.has_begun:
            call.ledger.begin_retry()
            return None
        if (complaint := self._breaker.complain()) is not None:
            raise BrokenDownError(complaint)
        wait_for_room = call.ledger.begin()
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
            self._slots.resize(self._pace.room)

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
        if not failure.is_refusal or not self._pace.is_crowded:
            return call.tries <= retries
        failure.is_exhausted = self._pace.has_refused_for(limits.patience)
        if failure.is_exhausted or call.first_refused is None:
            return False
        return call.tries <= retries or self._clock.now() - call.first_refused < limits.patience


@dataclass(slots=True)
class _Call:
    """The state of a call."""

    ledger: Ledger
    has_begun: bool = False
    tries: int = 0
    first_refused: float | None = None
