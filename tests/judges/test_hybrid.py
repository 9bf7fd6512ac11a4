from __future__ import annotations

import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.findings import Ability, Claim, Failed, Finding
from rageval_spec.errors import UsageError
from rageval_spec.judges.hybrid import HybridJudge, HybridJudgeNode
from tests.judges.fakes import (
    FAITHFULNESS,
    PRECISION,
    RUBRIC,
    Scripted,
    claim,
    context_of,
    finding_of,
    samples_for,
    scores_of,
)


def build(filtering: Scripted, judge: Scripted, threshold: float = 0.3) -> HybridJudge:
    node = HybridJudgeNode(use="hybrid", filter=filtering.context.name, judge=judge.context.name, threshold=threshold)
    return HybridJudge(node, context_of(filtering, judge))


def of_claims(*scores: float) -> Finding:
    return Finding(sum(scores) / len(scores), tuple(claim(score, "supported") for score in scores))


def test_samples_without_a_claim_similar_to_the_contexts_are_not_supported() -> None:
    first = Scripted("near", {"a": of_claims(0.1, 0.29), "b": of_claims(0.1, 0.3), "c": 0.2, "d": 0.9})
    judge = Scripted("strict", {"b": 0.5, "d": 1.0})
    assessment = build(first, judge).assess(FAITHFULNESS, samples_for("a", "b", "c", "d"))
    assert scores_of(assessment) == [0.0, 0.5, 0.0, 1.0]
    assert judge.asked == [["b", "d"]]
    rejected = finding_of(assessment)
    assert rejected.reason == "rejected by near: its highest score, 0.29, is below 0.3"
    assert rejected.decided_by == "near"
    assert [(c.score, c.verdict, c.reason) for c in rejected.claims] == [
        (0.0, "not_enough_info", "the filter gives it 0.10"),
        (0.0, "not_enough_info", "the filter gives it 0.29"),
    ]
    assert finding_of(assessment, 1).decided_by == "strict"
    assert [note.message for note in assessment.written_notes] == ["near rejected 2 of 4 samples (50%)"]


def test_samples_that_the_filter_cannot_score_go_to_the_judge() -> None:
    first = Scripted("near", {"a": Failed("broken"), "b": None})
    judge = Scripted("strict", {"a": 0.5, "b": Failed("unreadable")})
    assert scores_of(build(first, judge).assess(FAITHFULNESS, samples_for("a", "b"))) == [0.5, "unreadable"]


def test_the_judge_sees_only_the_contexts_that_pass() -> None:
    asked = samples_for("a", "b", contexts=("one", "two", "three"))
    first = Scripted("near", {"a": of_claims(0.1, 0.5, 0.9), "b": of_claims(0.1, 0.2, 0.0)}, ("usefulness",))
    said = Finding(0.5, (Claim("two", 1.0, "supported", 0, 3), Claim("three", 0.0, "not_enough_info", 5, 10)))
    judge = Scripted("strict", {"a": said}, ("usefulness",))
    assessment = build(first, judge).assess(PRECISION, asked)
    assert [sample.contexts for sample in judge.seen] == [("two", "three")]
    found = finding_of(assessment)
    assert found.score == pytest.approx(1 / 3)
    assert [(c.score, c.verdict) for c in found.claims] == [
        (0.0, "not_enough_info"),
        (1.0, "supported"),
        (0.0, "not_enough_info"),
    ]
    text = PRECISION.text_of(asked[0])
    assert [text[c.start : c.end] for c in found.claims[1:]] == ["two", "three"]
    assert finding_of(assessment, 1).score == 0.0
    (note,) = assessment.written_notes
    assert note.message == "near rejected 1 of 2 samples (50%) and 1 context of the others"


def test_filter_and_judge_must_share_an_ability_other_than_grades() -> None:
    able = build(
        Scripted("near", {}, ("support", "usefulness", "claims")), Scripted("strict", {}, ("support", "grade"))
    )
    assert able.abilities == {"support", "claims"}
    assert able.check() is None
    with pytest.raises(UsageError, match=r"judges.tested \(use: hybrid\) cannot grade"):
        able.assess(RUBRIC, samples_for("a"))
    apart = build(Scripted("near", {}, ("support",)), Scripted("strict", {}, ("grade",)))
    assert (
        apart.check()
        == "'near' and 'strict' must both be able to assess support, or both usefulness; name other judges"
    )
    with pytest.raises(ValidationError, match="'a' is its own filter"):
        HybridJudgeNode(use="hybrid", filter="a", judge="a")
    assert registry.load("judges", "hybrid") is HybridJudge


def test_the_judge_splits_claims_if_it_can() -> None:
    both: tuple[Ability, ...] = ("support", "claims")
    assert build(Scripted("near", {}, both), Scripted("strict", {}, both)).claims([("", "x")]) == [("strict: x",)]
    assert build(Scripted("near", {}, both), Scripted("strict", {})).claims([("", "x")]) == [("near: x",)]


def test_an_estimate_leaves_out_what_a_filter_without_a_model_rejects() -> None:
    judge = Scripted("strict", {}, model="llm")
    free = build(Scripted("near", {"a": 0.1, "b": 0.9}), judge)
    assert {m: list(c) for m, c in free.estimate(FAITHFULNESS, samples_for("a", "b")).calls.items()} == {
        "llm": ["faithfulness b"]
    }
    costly = build(Scripted("near", {}, model="small"), judge)
    calls = costly.estimate(FAITHFULNESS, samples_for("a", "b")).calls
    assert {model: len(each) for model, each in calls.items()} == {"small": 2, "llm": 2}


def test_no_samples_are_assessed_without_error() -> None:
    assessment = build(Scripted("near", {}), Scripted("strict", {})).assess(FAITHFULNESS, [])
    assert (list(assessment.findings), assessment.notes) == ([], ())
