from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest

from rageval_spec.data.assessment import Criterion, Failed, Finding
from rageval_spec.data.chat import ChatReply, TokenChoice
from rageval_spec.data.sample import Sample
from rageval_spec.judges.grade import GradeJudge, GradeNode
from tests.judges.chat_samples import FAITHFULNESS, INSTRUCTIONS, POLITENESS, PRECISION, SAMPLE, reply_to_anything
from tests.judging.fakes import FakeChatModel, context_with, text_of


def make(model: FakeChatModel, **keys: Any) -> GradeJudge:
    return GradeJudge(GradeNode.model_validate({"use": "grade", "model": "llm", **keys}), context_with(model))


def assess(judge: GradeJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def give(grade: object) -> dict[str, object]:
    return {"reason": "because", "grade": grade}


@pytest.mark.parametrize(
    ("scale", "grade", "score"), [("1-5", 4, 0.75), ("1-5", 1, 0), ("1-10", 10, 1), ("1-10", 4, 1 / 3)]
)
def test_support_is_graded_from_0_to_1(scale: str, grade: int, score: float) -> None:
    found = assess(make(FakeChatModel([give(grade)]), scale=scale))
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(score)
    assert found.reason == "because"


def test_each_context_gets_a_grade() -> None:
    model = FakeChatModel(lambda request: give(1 if "Some towers" in text_of(request) else 4))
    found = assess(make(model), PRECISION)
    assert isinstance(found, Finding)
    assert [claim.score for claim in found.claims] == [0.75, 0, 0.75]
    assert found.score == 0.5


def test_a_criterion_is_graded_on_its_own_scale_by_its_own_guide() -> None:
    model = FakeChatModel([give(3)])
    assert assess(make(model, scale="1-10", guide={"1": "whatever"}), POLITENESS) == Finding(3, reason="because")
    shown = text_of(model.calls[0])
    assert "from 0 (not at all) to 4 (completely).\n0: rude\n4: kind" in shown
    assert "whatever" not in shown


def test_a_criterion_without_a_scale_is_graded_on_the_judges_scale_and_normalised() -> None:
    model = FakeChatModel([give("7")])
    plain = replace(POLITENESS, scale=None, guide={})
    found = assess(make(model, scale="1-10", guide={"1": "rude as hell"}), plain)
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(2 / 3)
    assert "rude as hell" in text_of(model.calls[0])


def test_a_scale_can_have_fractions() -> None:
    model = FakeChatModel([give(0.25)])
    assert assess(make(model), replace(POLITENESS, scale=(0, 1))) == Finding(0.25, reason="because")


@pytest.mark.parametrize("grade", [0, 6, 3.5, "high", None, True])
def test_an_invalid_grade_is_retried(grade: object) -> None:
    model = FakeChatModel([give(grade), give(2)])
    assert assess(make(model)) == Finding(0.25, reason="because")


def test_the_score_is_the_expected_grade_over_probabilities() -> None:
    """By hand: 0.5 * 3 + 0.3 * 4 + 0.2 * 2 = 3.1 on a scale from 0 to 4."""
    grades = (TokenChoice("3", log(0.5)), TokenChoice("4", log(0.3)), TokenChoice("2", log(0.2)))
    tokens = ((TokenChoice('{"reason": "4 of 5", "grade": ', 0.0),), grades, (TokenChoice("}", 0.0),))
    reply = ChatReply('{"reason": "4 of 5", "grade": 3}', finish="stop", choices=tokens)
    model = FakeChatModel([reply])
    found = assess(make(model), POLITENESS)
    assert isinstance(found, Finding)
    assert [found.score, found.confidence] == pytest.approx([3.1, 0.5])
    assert model.calls[0].logprobs
    plain = FakeChatModel([reply])
    assert assess(make(plain, probabilities=False), POLITENESS) == Finding(3, reason="4 of 5")
    assert not plain.calls[0].logprobs


def test_without_probabilities_the_word_counts_and_a_note_appears_only_if_they_were_requested() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"probabilities": True}, ["1 of 1 reply of 'llm' came without token probabilities"]),
    ]
    for keys, notes in cases:
        judge = make(FakeChatModel([give(3)]), **keys)
        assessment = judge.assess(POLITENESS, [SAMPLE])
        assert [*assessment.findings] == [Finding(3, reason="because")]
        assert [note.message.partition(":")[0] for note in assessment.notes] == notes


def test_a_scale_with_fractions_requests_no_probabilities() -> None:
    model = FakeChatModel([give(0.25)])
    assess(make(model), replace(POLITENESS, scale=(0, 1)))
    assert not model.calls[0].logprobs


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_an_answer_that_instructs_the_judge_stays_inside_its_fence(attack: str) -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model), POLITENESS, replace(SAMPLE, answer=attack))
    lines = text_of(model.calls[0]).splitlines()
    assert lines[lines.index("<answer>") + 2] == "</answer>"
    assert lines.count("</answer>") == 1


def test_an_empty_answer_is_graded() -> None:
    model = FakeChatModel([give(0)])
    assert assess(make(model), POLITENESS, replace(SAMPLE, answer="")) == Finding(0, reason="because")


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model)
    estimate = judge.estimate(FAITHFULNESS, [SAMPLE]) | judge.estimate(PRECISION, [SAMPLE])
    assess(judge)
    assess(judge, PRECISION)
    assert [*estimate.calls["llm"]] == [request.digest.hex() for request in model.calls]
