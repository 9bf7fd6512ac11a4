from __future__ import annotations

import pytest

from rageval_spec.endpoints.claims import hold_claim
from rageval_spec.plugin import NoAnswers


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
