""""""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import ChatReply, TokenChoice
from rageval_spec.data.findings import Failed
from rageval_spec.endpoints.shared_questions import Turns, hold_claim, pack_reply, unpack_reply
from rageval_spec.plugin import NoAnswers

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


class Shared(NoAnswers):
    """A store that another process uses; that process holds the claim for the given number of checks."""

    def __init__(self, held: int) -> None:
        self.held = held
        self.released: list[bytes] = []

    def claim(self, model: str, question: bytes) -> bool:
        self.held -= 1
        return self.held < 0

    def release(self, model: str, question: bytes) -> None:
        self.released.append(question)


def test_the_answer_of_another_process_is_waited_for() -> None:
    found, slept = iter([None, None, "because"]), list[float]()
    shared = Shared(10)
    with hold_claim(shared, "m", b"q", lambda: next(found), slept.append) as answer:
        assert answer == "because"
    assert len(slept) == 2
    assert shared.released == []


def test_if_another_process_gave_up_this_one_asks_the_question() -> None:
    shared = Shared(3)
    with hold_claim(shared, "m", b"q", lambda: None, lambda seconds: None) as answer:
        assert answer is None
        assert shared.released == []
    assert shared.released == [b"q"]


def test_an_answer_stored_just_before_the_claim_is_found() -> None:
    with hold_claim(Shared(0), "m", b"q", lambda: "because", lambda seconds: None) as answer:
        assert answer == "because"


def test_an_error_ends_the_claim_and_sleep_can_end_the_wait() -> None:
    shared = Shared(0)
    with pytest.raises(ZeroDivisionError), hold_claim(shared, "m", b"q", lambda: None, lambda seconds: None):
        _ = 1 / 0
    assert shared.released == [b"q"]

    def end(seconds: float) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), hold_claim(Shared(99), "m", b"q", lambda: None, end):
        pass


REPLY = ChatReply("1.0 é 🐈\n", 7, 3, "stop", ((TokenChoice("1", -0.5), TokenChoice("0", -1.0)),), reused=True)


def test_a_stored_reply_is_read_back_unchanged() -> None:
    assert unpack_reply(pack_reply(REPLY)) == REPLY
    assert unpack_reply(pack_reply(ChatReply(""))) == ChatReply("", reused=True)


@given(st.integers(0, 8 * len(pack_reply(REPLY)) - 1))
def test_a_flipped_bit_is_always_detected(bit: int) -> None:
    damaged = bytearray(pack_reply(REPLY))
    damaged[bit // 8] ^= 1 << bit % 8
    assert unpack_reply(bytes(damaged)) in (None, REPLY)  # upper case of a hexadecimal digit is the same number


@given(st.integers(0, len(pack_reply(REPLY)) - 1))
def test_a_stored_reply_that_is_cut_off_is_not_used(length: int) -> None:
    found = unpack_reply(pack_reply(REPLY)[:length])
    assert found is None or found == REPLY  # all but the checksum, as earlier versions wrote it


def test_replies_that_earlier_versions_stored_without_a_checksum_are_used() -> None:
    kept = b'{"text":"yes","input_tokens":7,"output_tokens":3,"finish":"stop","choices":[[["yes",-0.1]]]}'
    assert unpack_reply(kept) == ChatReply("yes", 7, 3, "stop", ((TokenChoice("yes", -0.1),),), reused=True)


@pytest.mark.parametrize(
    "content",
    [
        {"text": 1},
        {"text": None},
        {},
        [],
        "yes",
        {"text": "a", "input_tokens": "7"},
        {"text": "a", "output_tokens": -1},
        {"text": "a", "input_tokens": True},
        {"text": "a", "finish": 3},
        {"text": "a", "choices": [[1]]},
        {"text": "a", "choices": [[["a", "b"]]]},
        {"text": "a", "choices": [[["a"]]]},
        {"text": "a", "choices": 5},
    ],
)
def test_a_stored_reply_with_a_wrong_type_is_not_used(content: object) -> None:
    assert unpack_reply(json.dumps(content).encode()) is None
