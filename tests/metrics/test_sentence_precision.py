from __future__ import annotations

from tests.metrics.citing import answer, reading
from tests.metrics.judges import calls, measure, metric, value_of

TEXT = "Red [1]. Red [1][2]. Red [9]. Grey."


def test_hand_worked() -> None:
    # only the first sentence is supported by all that it cites
    one = answer(TEXT, "red", "green")
    (found,) = measure(metric("sentence_precision", reading()), one)
    assert found.value == 1 / 4
    assert found.details is not None
    assert [claim["score"] for claim in found.details["claims"]] == [1.0, 1.0, 0.0, 0.0]
    assert value_of(metric("sentence_precision", reading(), uncited="skip"), one) == 1 / 3


def test_edges() -> None:
    built = metric("sentence_precision", reading())
    found = measure(built, answer("", "a"), answer("Red.", "red"))
    assert [(one.value, one.reason) for one in found] == [
        (None, "the answer is empty"),
        (0.0, "the answer cites nothing"),
    ]
    (one,) = measure(metric("sentence_precision", reading(), uncited="skip"), answer("Red.", "red"))
    assert (one.value, one.reason) == (None, "the answer cites nothing")
    assert len(calls(built.estimate([answer(TEXT, "red", "green")]))) == 2  # equal questions are one
