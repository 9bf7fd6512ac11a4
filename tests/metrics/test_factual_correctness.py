from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Finding
from rageval_spec.judges.overlap import OverlapJudge, OverlapNode
from rageval_spec.plugin import Context
from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of

TEXTS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [({}, 2 / 3), ({"mode": "precision"}, 1.0), ({"mode": "recall"}, 0.5), ({"beta": 2.0}, 5 * 0.5 / (4 + 0.5))],
)
def test_hand_worked(keys: dict[str, Any], expected: float) -> None:
    """RAGAS's documentation: the tower is in Paris; the reference also says that it is 1000 ft high."""
    one = sample(answer="in Paris", reference="in Paris|1000 ft high")
    assert value_of(metric("factual_correctness", RuleJudge(), **keys), one) == pytest.approx(expected)


@given(TEXTS, TEXTS)
def test_counts_of_right_wrong_and_missing_claims(answer: list[str], reference: list[str]) -> None:
    right = len({*answer} & {*reference})
    wrong, missing = len(answer) - right, len(reference) - right
    one = sample(answer="|".join(answer), reference="|".join(reference))
    judge = RuleJudge()
    assert value_of(metric("factual_correctness", judge), one) == pytest.approx(
        2 * right / (2 * right + wrong + missing)
    )
    assert value_of(metric("factual_correctness", judge, mode="precision"), one) == pytest.approx(
        right / (right + wrong)
    )
    assert value_of(metric("factual_correctness", judge, mode="recall"), one) == pytest.approx(
        right / (right + missing)
    )


def test_recall_counts_only_claims_of_the_reference() -> None:
    # two claims of the answer are right but cover one of three reference claims: recall is 1/3, not 2 / (2 + 2)
    claims = {"correctness": (2, 2), "completeness": (1, 3)}
    judge = RuleJudge()
    judge.say = lambda _: Finding(float(Fraction(*claims[judge.asked[-1][0]])))
    assert value_of(metric("factual_correctness", judge, mode="recall"), sample(answer="a", reference="b")) == 1 / 3
    assert value_of(metric("factual_correctness", judge), sample(answer="a", reference="b")) == 0.5


def test_only_what_is_needed_is_asked() -> None:
    for mode, asked in [
        ("precision", ["correctness"]),
        ("recall", ["completeness"]),
        ("f1", ["correctness", "completeness"]),
    ]:
        judge = RuleJudge()
        measure(metric("factual_correctness", judge, mode=mode), sample(answer="a", reference="a"))
        assert [name for name, _ in judge.asked] == asked


def test_details() -> None:
    (found,) = measure(metric("factual_correctness", RuleJudge()), sample(answer="a|x", reference="a"))
    assert found.details is not None
    assert (found.details["precision"], found.details["recall"]) == (0.5, 1.0)
    assert [claim["text"] for claim in found.details["answer"]["claims"]] == ["a", "x"]
    assert [claim["text"] for claim in found.details["reference"]["claims"]] == ["a"]


@pytest.mark.parametrize(
    ("answer", "reference", "f1", "precision", "recall"),
    [
        ("", "a", (0.0, "the answer is empty"), (None, "the answer is empty"), (0.0, "the answer is empty")),
        ("|", "a", (0.0, "the answer makes no claim"), (None, "the answer makes no claim"), (0.0, None)),
        ("a", "", *[(None, "the reference is empty")] * 3),
        ("a", "|", (None, "the reference makes no claim"), (0.0, None), (None, "the reference makes no claim")),
        ("x", "a", (0.0, None), (0.0, None), (0.0, None)),
        ("broken", "a", *[(None, "the reply is no JSON")] * 3),
    ],
)
def test_edges(answer: str, reference: str, f1: Any, precision: Any, recall: Any) -> None:
    for mode, expected in [("f1", f1), ("precision", precision), ("recall", recall)]:
        built = metric("factual_correctness", RuleJudge(), mode=mode)
        (found,) = measure(built, sample(answer=answer, reference=reference))
        assert (found.value, found.reason) == expected


def test_a_refusal_agrees_only_with_a_reference_that_refuses() -> None:
    answer = "I don't know."
    one = sample(answer=answer, reference="a")
    (found,) = measure(metric("factual_correctness", RuleJudge()), one)
    assert (found.value, found.reason) == (0.0, "the answer refuses: 'i don't know'")
    (found,) = measure(metric("factual_correctness", RuleJudge(), mode="precision"), one)
    assert (found.status, found.reason) == ("unscorable", "the answer refuses: 'i don't know'")
    assert value_of(metric("factual_correctness", RuleJudge()), sample(answer=answer, reference=answer)) == 1.0


@pytest.mark.parametrize("mode", ["f1", "precision", "recall"])
@pytest.mark.parametrize("undecided", ["correctness", "completeness"])
def test_undecided_claims_never_score_0(mode: str, undecided: str) -> None:
    judge = RuleJudge()
    judge.say = lambda _: Finding(None, reason="sent to a person") if judge.asked[-1][0] == undecided else None
    (found,) = measure(metric("factual_correctness", judge, mode=mode), sample(answer="a", reference="a"))
    is_asked = mode == "f1" or (mode == "precision") == (undecided == "correctness")
    expected = (None, "unscorable", "sent to a person") if is_asked else (1.0, "scored", None)
    assert (found.value, found.status, found.reason) == expected


def test_an_answer_without_content_words_is_unscorable() -> None:
    overlap = OverlapJudge(OverlapNode(use="overlap"), Context("overlap"))
    (found,) = measure(metric("factual_correctness", overlap), sample(answer="No.", reference="No, the sun is hot."))
    assert (found.value, found.status, found.reason) == (None, "unscorable", "the answer has no content word")
