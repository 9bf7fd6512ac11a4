from __future__ import annotations

import pytest

from rageval_spec.data.assessment import Claim, Criterion, Failed, Finding
from rageval_spec.metrics.shared.usefulness import judge_each
from tests.metrics.judges import RuleJudge, metric, sample

USEFUL = Criterion("useful", "usefulness", "Is it?", text="contexts", against="question")


def test_empty_contexts_are_not_shown_and_keep_their_place() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", "a", contexts=("b", " ", "a")),
        sample("2", "a", contexts=("", "")),
        sample("3", "a", contexts=()),
        sample("4", "a", contexts=("broken",)),
    ]
    first, second, third, fourth = judge_each(judge, USEFUL, samples).findings
    assert isinstance(first, Finding)
    assert [(claim.text, claim.score) for claim in first.claims] == [("b", 0.0), ("", 0.0), ("a", 1.0)]
    assert first.score == pytest.approx(1 / 3)
    assert isinstance(second, Finding)
    assert (second.score, [claim.reason for claim in second.claims]) == (0.0, ["the text is empty"] * 2)
    assert third == Finding(None, reason="there are no contexts, or only empty ones")
    assert fourth == Failed("the reply is no JSON", "Sure! Here")
    assert judge.asked == [("useful", ("1", "4"))]
    assert judge_each(judge, USEFUL, [samples[1]]).findings == [second]


def test_a_judge_that_skips_a_context_has_failed() -> None:
    one = Finding(1.0, (Claim("a", 1.0),))
    judge = RuleJudge(say=lambda _: one)
    (found,) = judge_each(judge, USEFUL, [sample(contexts=("a", "b"))]).findings
    assert found == Failed("the judge gave 1 verdict on 2 texts")


def test_a_score_of_the_judge_is_the_value() -> None:
    # a judge with a threshold: one of two contexts reaches it; the third is empty and counts 0
    one = Finding(0.5, (Claim("a", 0.7), Claim("b", 0.2)), decided_by="nli", confidence=0.9)
    (found,) = judge_each(RuleJudge(say=lambda _: one), USEFUL, [sample(contexts=("a", "b", ""))]).findings
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(1 / 3)
    assert (found.decided_by, found.confidence) == ("nli", 0.9)


def test_a_judge_that_cannot_decide_gives_no_value() -> None:
    judge = RuleJudge(say=lambda _: Finding(None, reason="the question has no content word"))
    one = sample(answer="a", reference="a", contexts=("a",))
    for word in ("context_relevance", "context_precision", "conciseness"):
        (found,) = metric(word, judge).compute([one]).measurements
        assert (found.status, found.reason) == ("unscorable", "the question has no content word")
