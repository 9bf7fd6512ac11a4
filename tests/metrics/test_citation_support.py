from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Claim, Finding, Verdict
from tests.metrics.citing import RECORDED, answer, reading
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

TEXT = "Red blue [1]. Red green [1][2]. Grey [9]. Nothing here."
CONTEXTS = ("red blue", "green red")


def test_hand_worked() -> None:
    # first citations: "red blue" in full, "red green" by context 1 in part, "grey" cites nothing known
    one = answer(TEXT, *CONTEXTS)
    (found,) = measure(metric("citation_support", reading(partial=True)), one)
    assert found.details is not None
    assert (found.details["precision"], found.details["recall"]) == (1.5 / 3, 1.5 / 4)
    assert found.value == pytest.approx(2 * 0.5 * 0.375 / 0.875)
    # all citations: 1, 0.5, 1, 0
    (found,) = measure(metric("citation_support", reading(partial=True), citations="all"), one)
    assert found.details is not None
    assert (found.details["precision"], found.details["recall"]) == (2.5 / 4, 2 / 4)


def test_equal_to_ragdoll() -> None:
    for row in RECORDED[:200]:
        (found,) = measure(metric("citation_support", reading(partial=True)), answer(row["answer"], *row["contexts"]))
        assert found.details is not None
        assert [found.details["precision"] or 0.0, found.details["recall"]] == row["ragdoll"]


def test_modes() -> None:
    one = answer(TEXT, *CONTEXTS)
    assert value_of(metric("citation_support", reading(partial=True), mode="precision"), one) == 0.5
    assert value_of(metric("citation_support", reading(partial=True), mode="recall"), one) == 0.375
    assert value_of(metric("citation_support", reading(), mode="recall"), one) == 0.25


def test_details_say_what_each_citation_is_worth() -> None:
    (found,) = measure(metric("citation_support", reading(), citations="all"), answer(TEXT, *CONTEXTS))
    assert found.details is not None
    told = [(one["citation"], one.get("source"), one["verdict"], one["marker"]) for one in found.details["claims"]]
    assert told == [
        ("1", 0, "supported", [9, 12]),
        ("1", 0, "not_enough_info", [24, 27]),
        ("2", 1, "supported", [27, 30]),
        ("9", None, "not_enough_info", [37, 40]),
    ]
    assert found.details["claims"][3]["reason"] == "it names no context of the answer"
    assert (found.details["part"], found.details["judge"]) == ("answer", "rule")


def test_edges() -> None:
    some = [answer(" ", "a"), answer("Hello there.", "a"), answer("Red [1].", "broken"), answer("[1]", "a")]
    found = measure(metric("citation_support", RuleJudge()), *some)
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "the answer is empty"),
        (0.0, "scored", "the answer cites nothing"),
        (None, "error", "the reply is no JSON"),
        (None, "unscorable", "the answer states nothing"),
    ]
    (one,) = measure(metric("citation_support", RuleJudge(), mode="precision"), some[1])
    assert (one.value, one.reason) == (None, "the answer cites nothing")


def test_undecided() -> None:
    judge = RuleJudge(say=lambda _: Finding(None, reason="sent to a person"))
    (found,) = measure(metric("citation_support", judge), answer("Red [1].", "red"))
    assert (found.value, found.status, found.reason) == (None, "unscorable", "sent to a person")
    judge = RuleJudge(say=lambda _: Finding(None, reason="no claim", claimless=True))
    assert value_of(metric("citation_support", judge), answer("Red [1].", "red")) == 0.0


@pytest.mark.parametrize(
    ("score", "verdict", "value"),
    [(0.5, "not_enough_info", 0.5), (0.4, "not_enough_info", 0.0), (0.9, "contradicted", 0.0), (0.5, "supported", 1.0)],
)
def test_a_judge_can_say_that_a_statement_is_supported_in_part(score: float, verdict: Verdict, value: float) -> None:
    judge = RuleJudge(say=lambda _: Finding(score, (Claim("Red.", score, verdict),)))
    assert value_of(metric("citation_support", judge), answer("Red [1].", "red")) == value


def test_the_judge_is_asked_once_for_all_samples_and_sees_only_the_passage() -> None:
    judge = reading()
    built = metric("citation_support", judge)
    some = [answer("Red [1]. Blue [1].", "red"), sample(query_id="2", answer="Green [2].", contexts=("a", "green"))]
    assert len(calls(built.estimate(some))) == 3
    assert [one.value for one in measure(built, *some)] == [0.5, 1.0]
    assert len(judge.asked) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 4), max_size=3)), min_size=1, max_size=5))
def test_against_a_plain_count(rows: list[tuple[str, list[int]]]) -> None:
    contexts = ("a", "b", "a b")
    text = " ".join(f"{word * 3}{''.join(f'[{one}]' for one in cited)}." for word, cited in rows)
    texts = tuple(" ".join(letter * 3 for letter in one.split()) for one in contexts)
    right = [bool(cited) and cited[0] <= 3 and word in contexts[cited[0] - 1].split() for word, cited in rows]
    citing = sum(1 for _, cited in rows if cited)
    (found,) = measure(metric("citation_support", reading()), answer(text, *texts))
    assert found.details is not None
    assert found.details["recall"] == pytest.approx(sum(right) / len(rows))
    assert found.details["precision"] == (pytest.approx(sum(right) / citing) if citing else None)
