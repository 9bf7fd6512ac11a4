from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Claim, Finding
from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

CLAIMS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6)
# Of the answer, a is right, b and c come from the first context, d from the second, e from nowhere.
ONE = sample(answer="a|b|c|d|e", reference="a|z", contexts=("a|b|c", "d|c"))


def test_hand_worked() -> None:
    # the first context has a, a claim of the reference, and so is relevant; the second is not
    assert value_of(metric("noise_sensitivity", RuleJudge()), ONE) == 2 / 5
    # c is wrong, is in both contexts, and counts for the relevant one
    assert value_of(metric("noise_sensitivity", RuleJudge(), mode="irrelevant"), ONE) == 1 / 5


@pytest.mark.parametrize(
    ("answer", "reference", "contexts", "relevant", "irrelevant"),
    [
        ("d|f|f", "a", ("c|f|d|f", "a|d|c", "e|a"), 1 / 3, 2 / 3),
        ("b|b|e|d|c|f", "a", ("c|b|f|e", "d|f|c", "a|b|a"), 1 / 3, 2 / 3),
        ("b|a|e|f|b", "b", ("b", "c|f", "e|b|c"), 0.2, 0.2),
        ("b|b|e|a|a|c", "b", ("d", "c", "f|b|a", "f|f"), 1 / 3, 1 / 6),
    ],
)
def test_numbers_of_ragas(
    answer: str, reference: str, contexts: tuple[str, ...], relevant: float, irrelevant: float
) -> None:
    """The values of RAGAS 0.4 for the same verdicts."""
    one = sample(answer=answer, reference=reference, contexts=contexts)
    assert value_of(metric("noise_sensitivity", RuleJudge()), one) == pytest.approx(relevant)
    assert value_of(metric("noise_sensitivity", RuleJudge(), mode="irrelevant"), one) == pytest.approx(irrelevant)


def test_details() -> None:
    (found,) = measure(metric("noise_sensitivity", RuleJudge(), mode="irrelevant"), ONE)
    assert found.details is not None
    rows = [(claim["text"], claim["wrong"], claim["counted"], claim["contexts"]) for claim in found.details["claims"]]
    assert rows == [
        ("a", False, False, [0]),
        ("b", True, False, [0]),
        ("c", True, False, [0, 1]),
        ("d", True, True, [1]),
        ("e", True, False, []),
    ]
    assert found.details["relevant_contexts"] == [0]


@given(CLAIMS, CLAIMS, st.lists(CLAIMS, min_size=1, max_size=3), st.sampled_from(["relevant", "irrelevant"]))
def test_values_equal_a_computation_on_verdict_matrices(
    answer: list[str], reference: list[str], contexts: list[list[str]], mode: str
) -> None:
    wrong = np.array([claim not in reference for claim in answer])
    support = np.array([[claim in context for context in contexts] for claim in answer])
    relevant = np.array([any(claim in context for claim in reference) for context in contexts])
    from_relevant = (support & relevant).any(axis=1)
    from_irrelevant = (support & ~relevant).any(axis=1) & ~from_relevant
    expected = (wrong & (from_relevant if mode == "relevant" else from_irrelevant)).mean()
    one = sample(answer="|".join(answer), reference="|".join(reference), contexts=tuple(map("|".join, contexts)))
    assert value_of(metric("noise_sensitivity", RuleJudge(), mode=mode), one) == pytest.approx(expected)


def test_without_wrong_claims_no_further_question_is_asked() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", answer="a", reference="a", contexts=("a", "b")),
        sample("2", answer="b", reference="a", contexts=("a", "b", "b", "")),
    ]
    found = measure(metric("noise_sensitivity", judge), *samples)
    assert [one.value for one in found] == [0.0, 0.0]
    assert found[0].reason == "no claim of the answer is wrong"
    # each distinct context is asked about separately; irrelevant ones are not asked about again
    assert judge.asked == [("correctness", ("1", "2")), ("context_recall", ("2", "2")), ("faithfulness", ("2",))]


def test_estimates_are_upper_bounds() -> None:
    one = sample(answer="b", reference="a", contexts=("x", "y", "x"))
    assert calls(metric("noise_sensitivity", RuleJudge()).estimate([one])) == [
        "support b > a", "support b > x", "support b > y", "support a > x", "support a > y",
    ]  # fmt: skip
    assert calls(metric("noise_sensitivity", RuleJudge(), by="ids").estimate([one])) == [
        "support b > a", "support b > x", "support b > y",
    ]  # fmt: skip


def test_relevant_by_ids() -> None:
    judge = RuleJudge()
    built = metric("noise_sensitivity", judge, by="ids", rel=2)
    one = sample(
        answer="b|c",
        reference="a",
        contexts=("b", "c", "c"),
        context_ids=("x", "y", "z"),
        relevant={"x": 1, "z": 2},
    )
    assert built.needs == {"answer", "reference", "contexts", "context_ids", "relevant"}
    assert value_of(built, one) == 0.5  # c, which is in two documents, one of them relevant
    assert [name for name, _ in judge.asked] == ["correctness", "faithfulness"]
    assert value_of(metric("noise_sensitivity", judge, by="ids"), one) == 1.0


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"answer": "", "reference": "a"}, (None, "unscorable", "the answer is empty")),
        ({"answer": "a", "reference": ""}, (None, "unscorable", "the reference is empty")),
        ({"answer": "|", "reference": "a"}, (None, "unscorable", "the answer makes no claim")),
        ({"answer": "a", "reference": "|"}, (None, "unscorable", "the reference makes no claim")),
        ({"answer": "broken", "reference": "a"}, (None, "error", "the reply is no JSON")),
        ({"answer": "x", "reference": "a", "contexts": ("a", "broken")}, (None, "error", "the reply is no JSON")),
        (
            {"answer": "x", "reference": "a", "contexts": ()},
            (0.0, "scored", "there are no contexts that a wrong claim could come from"),
        ),
    ],
)
def test_edges(parts: dict[str, Any], expected: tuple[Any, ...]) -> None:
    (found,) = measure(metric("noise_sensitivity", RuleJudge()), sample(**{"contexts": ("x",), **parts}))
    assert (found.value, found.status, found.reason) == expected


def test_a_judge_without_verdicts_on_claims_is_an_error() -> None:
    judge = RuleJudge(say=lambda _: Finding(0.5))
    (found,) = measure(metric("noise_sensitivity", judge), ONE)
    assert (found.status, found.reason) == ("error", "the judge gives no verdicts on single claims")


def test_a_judge_that_splits_an_answer_in_two_ways_is_an_error() -> None:
    judge = RuleJudge()

    def say(one: Any) -> Finding | None:
        return Finding(1.0, (Claim("a|b", 1.0),)) if judge.asked[-1][0] == "faithfulness" else None

    judge.say = say
    (found,) = measure(metric("noise_sensitivity", judge), ONE)
    assert (found.status, found.reason) == ("error", "the judge split the answer in two ways: 5 claims, 1 claim")


def test_a_refusal_claims_nothing() -> None:
    judge = RuleJudge()
    (found,) = measure(
        metric("noise_sensitivity", judge), sample(answer="I don't know.", reference="a", contexts=("b",))
    )
    assert (found.status, found.reason, judge.asked) == ("unscorable", "the answer refuses: 'i don't know'", [])


@pytest.mark.parametrize("undecided", ["correctness", "context_recall", "faithfulness"])
def test_undecided_claims_give_no_value(undecided: str) -> None:
    judge = RuleJudge()
    judge.say = lambda _: Finding(None, reason="sent to a person") if judge.asked[-1][0] == undecided else None
    (found,) = measure(metric("noise_sensitivity", judge), ONE)
    assert (found.value, found.status, found.reason) == (None, "unscorable", "sent to a person")
