from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.chat import LimitError
from rageval_spec.data.findings import Failed, Finding
from rageval_spec.data.samples import Sample
from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of

TEXTS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6)


def test_hand_worked() -> None:
    """The example of RAGAS's documentation: born in Germany is supported, on 20th March is not; 1 of 2."""
    answer = "Einstein was born in Germany|Einstein was born on 20th March 1879"
    contexts = ("Einstein was born in Germany|Einstein was born on 14 March 1879",)
    (found,) = measure(metric("faithfulness", RuleJudge()), sample(answer=answer, contexts=contexts))
    assert (found.value, found.reason) == (0.5, None)
    assert found.details == {
        "score": 0.5,
        "claims": [
            {"text": "Einstein was born in Germany", "score": 1.0, "verdict": "supported"},
            {"text": "Einstein was born on 20th March 1879", "score": 0.0, "verdict": "not_enough_info"},
        ],
        "part": "answer",
        "against": "contexts",
        "judge": "rule",
    }


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_supported_claims_over_claims(answer: list[str], contexts: list[list[str]]) -> None:
    there = {claim for context in contexts for claim in context}
    expected = sum(claim in there for claim in answer) / len(answer)
    one = sample(answer="|".join(answer), contexts=tuple(map("|".join, contexts)))
    assert value_of(metric("faithfulness", RuleJudge()), one) == pytest.approx(expected)


def test_scores_without_verdicts_are_the_value() -> None:
    judge = RuleJudge(say=lambda _: Finding(0.73, confidence=0.6))
    (found,) = measure(metric("faithfulness", judge), sample(answer="a", contexts=("b",)))
    assert (found.value, found.details) == (0.73, {"score": 0.73, "claims": [], "confidence": 0.6})


def test_without_contexts_nothing_is_supported() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", answer="a|b", contexts=()),
        sample("2", answer="a", contexts=("a",)),
        sample("3", answer="a", contexts=("", " ")),
        sample("4", answer="|", contexts=()),  # no claim: "I don't know"
        sample("5", answer="broken", contexts=()),
    ]
    found = measure(metric("faithfulness", judge), *samples)
    assert [(one.value, one.status) for one in found] == [
        (0.0, "scored"), (1.0, "scored"), (0.0, "scored"), (None, "unscorable"), (None, "error"),
    ]  # fmt: skip
    assert found[0].reason == "there are no contexts, or only empty ones: nothing can support the answer"
    assert found[0].details is not None
    assert [claim["text"] for claim in found[0].details["claims"]] == ["a", "b"]
    assert [one.reason for one in found[3:]] == ["the answer makes no claim", "the reply is no JSON"]


def test_a_judge_that_finds_support_without_contexts_is_overruled() -> None:
    judge = RuleJudge(say=lambda _: Finding(0.9, reason="it is well known"))
    (found,) = measure(metric("faithfulness", judge), sample(answer="a", contexts=(" ",)))
    assert (found.value, found.reason) == (0.0, "it is well known")


def test_an_answer_without_claims_has_no_value() -> None:
    found = measure(
        metric("faithfulness", RuleJudge()),
        sample(answer=" ", contexts=("a",)),
        sample(answer="|", contexts=("a",)),
    )
    assert [one.status for one in found] == ["unscorable"] * 2
    assert [one.reason for one in found] == ["the answer is empty", "the answer makes no claim"]


def test_a_failed_judge_is_an_error_and_the_others_have_values() -> None:
    samples = [sample(str(n), answer=text, contexts=("a",)) for n, text in enumerate(["a", "broken", "b"])]
    found = measure(metric("faithfulness", RuleJudge()), *samples)
    assert [one.value for one in found] == [1.0, None, 0.0]
    assert (found[1].status, found[1].details) == ("error", {"raw": "Sure! Here"})


def test_limit_errors_are_not_swallowed() -> None:
    def stop(_: Sample) -> Finding | Failed:
        raise LimitError("limits.max_calls: 5 of 5 calls made")

    with pytest.raises(LimitError):
        measure(metric("faithfulness", RuleJudge(say=stop)), sample(answer="a", contexts=("a",)))


def test_refusals_need_no_judge_and_the_rest_of_the_answer_is_judged() -> None:
    samples = [
        sample("1", answer="I don't know.", contexts=("a",)),
        sample("2", answer="Sorry, but I cannot answer that.", contexts=()),
        sample("3", answer="I don't know when, but he was born in Ulm.", contexts=("a",)),
    ]
    judge = RuleJudge()
    found = measure(metric("faithfulness", judge), *samples)
    assert [(one.value, one.status) for one in found] == [(None, "unscorable"), (None, "unscorable"), (0.0, "scored")]
    assert [one.reason for one in found[:2]] == [
        "the answer refuses: 'i don't know'",
        "the answer refuses: 'i cannot answer'",
    ]
    assert judge.asked == [("faithfulness", ("3",))]


def test_a_judge_that_decides_refusals_gets_them() -> None:
    class Deciding(RuleJudge):
        @property
        def decides_refusals(self) -> bool:
            return True

    judge = Deciding(say=lambda _: Finding(None, reason="sent to a person"))
    (found,) = measure(metric("faithfulness", judge), sample(answer="I don't know.", contexts=("a",)))
    assert (found.status, found.reason) == ("unscorable", "sent to a person")
