from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.citing import RECORDED, answer, reading
from tests.metrics.judges import calls, measure, metric, value_of


def test_hand_worked() -> None:
    # context 1 supports alone, context 2 is needless; "red green" needs both; "blue" is wrong
    text = "Red [1][2]. Red green [1][2]. Blue [2]."
    (found,) = measure(metric("citation_precision", reading()), answer(text, "red", "green"))
    assert found.value == 3 / 5
    assert found.details is not None
    assert [claim["score"] for claim in found.details["claims"]] == [1.0, 0.0, 1.0, 1.0, 0.0]
    assert "without it" in found.details["claims"][1]["reason"]


def test_equal_to_alce() -> None:
    for row in RECORDED[:200]:
        one = answer(row["answer"], *row["contexts"])
        recall, precision = row["alce"]
        assert value_of(metric("citation_recall", reading()), one) == recall
        (found,) = measure(metric("citation_precision", reading()), one)
        assert found.value == precision or (found.value is None and precision == 0 and found.reason)


def test_invalid_citations() -> None:
    one = answer("Red [1][9]. Red [1].", "red")
    assert value_of(metric("citation_precision", reading()), one) == 1.0
    assert value_of(metric("citation_precision", reading(), invalid="count"), one) == 1 / 3


def test_edges() -> None:
    found = measure(
        metric("citation_precision", reading()), answer("", "a"), answer("Red.", "a"), answer("Red [9].", "a")
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "the answer is empty"),
        (None, "unscorable", "the answer cites nothing"),
        (None, "unscorable", "no statement cites only contexts of the answer"),
    ]


def test_a_plan_is_never_below_the_bill() -> None:
    judge = reading()
    built = metric("citation_precision", judge)
    some = [answer("Red [1][2]. Red green [1][2][3]. Blue [2].", "red", "green", "blue")]
    planned = len(calls(built.estimate(some)))
    measure(built, *some)
    assert sum(len(ids) for _, ids in judge.asked) <= planned
    assert len(judge.asked) == 3


Words = st.lists(st.sampled_from(["red", "green", "blue"]), min_size=1, max_size=2, unique=True)


@given(
    st.lists(st.tuples(Words, st.lists(st.integers(1, 4), max_size=4)), min_size=1, max_size=4),
    st.lists(Words, min_size=3, max_size=3),
)
def test_the_numbers_of_alce(rows: list[tuple[list[str], list[int]]], contexts: list[list[str]]) -> None:
    """ALCE's procedure, followed step by step: at most three citations, joined, alone, and one left out."""

    def entails(numbers: list[int], words: list[str]) -> bool:
        return {*words} <= {word for number in numbers for word in contexts[number - 1]}

    supported = right = total = 0
    for words, cited in rows:
        if not cited or any(number > len(contexts) for number in cited):
            continue
        of = cited[:3]
        total += len(of)
        if not entails(of, words):
            continue
        supported += 1
        for number in of:
            rest = of.copy()
            rest.remove(number)
            right += len(of) == 1 or entails([number], words) or not entails(rest, words)
    text = " ".join(f"{' '.join(words)} {''.join(f'[{one}]' for one in cited)}.".capitalize() for words, cited in rows)
    one = answer(text, *(" ".join(words) for words in contexts))
    assert value_of(metric("citation_recall", reading()), one) == pytest.approx(supported / len(rows))
    (found,) = measure(metric("citation_precision", reading()), one)
    assert found.value == (pytest.approx(right / total) if total else None)
