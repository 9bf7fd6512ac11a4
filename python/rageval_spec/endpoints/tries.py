"""The one loop of tries: several calls at once, paced, each tried again until it succeeds or has failed for good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rageval_spec.endpoints.pacing import Breaker, Clock, Pace, Slots, draw_wait
from rageval_spec.endpoints.patience import PATIENCE

T = TypeVar("T")


class TryError(Exception):
    """A try that failed. Another one may follow.

    Attributes:
        is_temporary: whether another try may help.
        wait: the seconds that the endpoint asks to wait; None where it does not.
        is_refusal: the endpoint said that it got too many requests.
        most_retries: further tries that make sense after this failure; None for as many as the spec allows.
        is_about_request: it says nothing of the next request, and nothing of the endpoint's health.
        is_lesson: the next try says less, because of what this one has shown; it does not count as failed.
        tries: how many were made, once the call has failed for good.
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
        """Keep what is known of it."""
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
        concurrency: calls under way at the same time.
        retries: further tries of one call; refusals with 429 have more, as long as `patience` says.
        patience: the seconds for which the endpoint may refuse everything.
    """

    concurrency: int
    retries: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    patience: float = PATIENCE


class Ledger(Protocol):
    """Who may forbid tries by raising, and counts them."""

    def begin(self) -> Callable[[], None] | None:
        """Before the first try: None where it may be made now, else what to wait with before this is called again."""

    def begin_retry(self) -> None:
        """Before each further try."""


class Free:
    """A ledger that allows everything."""

    def begin(self) -> Callable[[], None] | None:
        """At once."""
        return None

    def begin_retry(self) -> None:
        """Always."""


class BrokenDownError(Exception):
    """The endpoint has failed so often in a row that it is not asked; says so."""


class Tries:
    """Makes calls to one endpoint, from any number of threads, until `stop`."""

    def __init__(self, limits: Limits, clock: Clock, explain: Callable[[TryError], str] = str) -> None:
        """Make none yet; `explain` says what a call failed of, for whoever is not asked because of that."""
        self._limits = limits
        self._clock = clock
        self._explain = explain
        self._slots = Slots(limits.concurrency)
        self._pace = Pace(clock, limits.requests_per_minute, limits.tokens_per_minute, limits.concurrency)
        self._breaker = Breaker(clock)

    @property
    def is_stopped(self) -> bool:
        """Whether nobody wants replies any longer."""
        return self._clock.is_stopped

    def make(self, attempt: Callable[[], T], ledger: Ledger | None = None, tokens: int = 0) -> T:
        """What `attempt` gives, which is one try and raises `TryError` where it fails.

        It is called while it holds one of the places for calls under way, so what it keeps is kept before another call
        begins: a kill loses no more replies than calls may be under way.

        Args:
            attempt: one try.
            ledger: what allows tries; all by default.
            tokens: what a try is expected to take.

        Raises:
            TryError: the last one's; further tries did or would not help.
            BrokenDownError: the endpoint is taken for dead, and the call was not made.
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
                # In nobody's place: those that are waited for may need it for another try.
                wait_for_room()
            elif failure is not None and not failure.is_lesson:
                self._wait(call, failure)

    def correct(self, tokens: int) -> None:
        """So many tokens were used beyond what was expected; fewer where it is negative."""
        self._pace.correct(tokens)

    def sleep(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            StoppedError: `stop` was called.
        """
        self._clock.sleep(seconds)

    def stop(self) -> None:
        """End what waits; what is under way goes on."""
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
        """Let time pass before the next try; raises the failure where there is none."""
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
    """How far a call has come."""

    ledger: Ledger
    has_begun: bool = False
    tries: int = 0
    first_refused: float | None = None
