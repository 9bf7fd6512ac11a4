from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from rageval_spec.data.assessment import Failed
from rageval_spec.data.chat import ChatReply
from rageval_spec.endpoints.turns import Turns

ONE, OTHER = b"one", b"other"


def test_the_first_thread_gets_nothing_and_asks() -> None:
    with Turns().take_turn(ONE) as known:
        assert known is None


@pytest.mark.parametrize("outcome", [Failed("answered 500"), ChatReply("yes")])
def test_later_threads_get_the_remembered_outcome(outcome: Failed | ChatReply) -> None:
    turns = Turns()
    with turns.take_turn(ONE):
        turns.keep(ONE, outcome)
    for _ in range(2):
        with turns.take_turn(ONE) as known:
            assert known == outcome
    with turns.take_turn(OTHER) as known:
        assert known is None


def test_a_thread_with_the_same_question_waits_for_the_first_one() -> None:
    turns, asks, may_end = Turns(), Event(), Event()
    order: list[str] = []

    def ask(name: str) -> None:
        with turns.take_turn(ONE) as known:
            assert known is None
            order.append(f"{name} asks")
            asks.set()
            assert may_end.wait(20)
            order.append(f"{name} is done")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, "first")
        assert asks.wait(20)
        second = pool.submit(ask, "second")
        with turns.take_turn(OTHER) as known:
            assert known is None
        assert order == ["first asks"]
        may_end.set()
        first.result(20)
        second.result(20)
    assert order == ["first asks", "first is done", "second asks", "second is done"]


def test_after_an_exception_the_next_thread_takes_the_turn() -> None:
    turns = Turns()
    with pytest.raises(KeyboardInterrupt), turns.take_turn(ONE):
        raise KeyboardInterrupt
    with turns.take_turn(ONE) as known:
        assert known is None
