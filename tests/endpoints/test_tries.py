from __future__ import annotations

from collections.abc import Callable

import pytest

from rageval_spec.endpoints.pacing import StoppedError
from rageval_spec.endpoints.tries import BrokenDownError, Limits, Tries, TryError
from tests.models.chat_endpoint import QuickClock


def scripted(*outcomes: TryError | str) -> Callable[[], str]:
    """An attempt with these outcomes; the last one repeats."""
    left = list(outcomes)

    def attempt() -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, TryError):
            raise outcome
        return outcome

    return attempt


def busy(**keys: object) -> TryError:
    return TryError("busy", is_temporary=True, **keys)  # type: ignore[arg-type]


def build(retries: int = 3, patience: float = 75.0) -> tuple[Tries, QuickClock]:
    clock = QuickClock()
    return Tries(Limits(4, retries, patience=patience), clock), clock


def test_only_temporary_failures_are_retried() -> None:
    tries, clock = build()
    assert tries.make(scripted(busy(), busy(), "yes")) == "yes"
    assert len(clock.slept) == 2
    with pytest.raises(TryError, match="wrong") as caught:
        tries.make(scripted(TryError("wrong")))
    assert caught.value.tries == 1


def test_tries_end_after_the_allowed_or_sensible_retries() -> None:
    for outcome, tries_made in [(busy(), 4), (busy(most_retries=1), 2)]:
        with pytest.raises(TryError) as caught:
            build()[0].make(scripted(outcome))
        assert caught.value.tries == tries_made


def test_a_lesson_is_not_a_failed_try() -> None:
    tries, clock = build(retries=0)
    assert (
        tries.make(scripted(TryError("less", is_lesson=True), TryError("still less", is_lesson=True), "yes")) == "yes"
    )
    assert clock.slept == []


def test_if_everything_is_refused_tries_end_with_patience_not_with_retries() -> None:
    tries, clock = build(retries=1, patience=30)
    began = clock.now()
    for _ in range(4):
        with pytest.raises(TryError) as caught:
            tries.make(scripted(busy(is_refusal=True)))
    assert caught.value.is_exhausted
    assert clock.now() - began < 90


def test_without_retries_a_refusal_is_final() -> None:
    tries, clock = build(retries=0)
    with pytest.raises(TryError):
        tries.make(scripted(busy(is_refusal=True)))
    assert clock.slept == []


def test_after_many_failures_in_a_row_no_call_is_made() -> None:
    tries, _ = build(retries=0)
    for _ in range(10):
        with pytest.raises(TryError):
            tries.make(scripted(TryError("dead")))
    with pytest.raises(BrokenDownError, match="not asked after 10 failed calls in a row; the last failure: dead"):
        tries.make(scripted("yes"))


def test_failures_that_concern_only_their_request_do_not_open_the_breaker() -> None:
    tries, _ = build(retries=0)
    for _ in range(20):
        with pytest.raises(TryError):
            tries.make(scripted(TryError("too long", is_about_request=True)))
    assert tries.make(scripted("yes")) == "yes"


def test_every_try_is_reserved_before_it_is_made() -> None:
    class Strict:
        def __init__(self) -> None:
            self.reserved = 0

        def begin(self) -> None:
            self.reserved += 1

        def begin_retry(self) -> None:
            if self.reserved == 2:
                raise LookupError("enough")
            self.reserved += 1

    ledger, made = Strict(), [0]

    def attempt() -> str:
        made[0] += 1
        assert made[0] == ledger.reserved
        raise busy()

    with pytest.raises(LookupError):
        build()[0].make(attempt, ledger)
    assert made == [2]


def test_no_try_begins_after_stop() -> None:
    tries, _ = build()
    tries.stop()
    with pytest.raises(StoppedError):
        tries.make(scripted("yes"))
    assert tries.is_stopped
