""""""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.findings import Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges.waterfall import (
    FaithfulnessStage,
    RelevanceStage,
    RetrievalStage,
    Route,
    Stage,
    StageDecision,
    StageValue,
    accept,
    describe_routes,
    is_refusal,
)
from tests.judges.fakes import FAITHFULNESS, RUBRIC


@pytest.mark.parametrize(
    ("stage", "keys", "message"),
    [
        (RetrievalStage, {"reject": 0.4}, "reject (0.4) is above person (0.35)"),
        (RetrievalStage, {"person": 0.1}, "reject (0.15) is above person (0.1)"),
        (RelevanceStage, {"accept": 0.2}, "person (0.3) is above accept (0.2)"),
        (FaithfulnessStage, {"reject": 0.5, "person": 0.4}, "reject (0.5) is above person (0.4)"),
        (Stage, {"reject": 0.5, "accept": 0.4}, "reject (0.5) is above accept (0.4)"),
    ],
)
def test_bounds_in_the_wrong_order_are_refused_with_what_to_write(
    stage: type[Stage], keys: dict[str, float], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        stage.model_validate(keys)
    assert raised.value.errors()[0]["msg"] == f"Value error, {message}; write both, or null for one to disable it"


def test_bounds_that_the_message_advises_are_accepted() -> None:
    for person in (0.4, 0.9, None):
        assert RetrievalStage(reject=0.4, person=person).reject == 0.4
    assert RelevanceStage(accept=0.2, person=None).accept == 0.2


SAMPLE = Sample("q", "What is it?", answer="It is red.")
REFUSAL = Sample("q", "What is it?", answer="I don't know.")
STAGE = Stage(reject=0.2, person=0.5, accept=0.9)


def decide(
    value: float | None, name: str = "faithfulness", sample: Sample = SAMPLE, **keys: Any
) -> StageDecision | None:
    route = Route(name, STAGE, keys.pop("criterion", FAITHFULNESS), keys.pop("judged", None))
    return route.decide(sample, StageValue(value, "likeness", **keys))


@pytest.mark.parametrize(
    ("value", "outcome", "score"),
    [
        *[(0.0, "rejected", 0.0), (0.19, "rejected", 0.0), (0.2, "person", None), (0.49, "person", None)],
        *[(0.9, "accepted", 1.0), (1.0, "accepted", 1.0)],
    ],
)
def test_a_value_below_a_bound_or_from_accept_up_is_decided(value: float, outcome: str, score: float | None) -> None:
    decision = decide(value)
    assert decision is not None
    assert isinstance(decision.finding, Finding)
    assert (decision.outcome, decision.finding.score, decision.finding.decided_by) == (outcome, score, "faithfulness")
    assert f"likeness {value:.2f}" in (decision.finding.reason or "")


@pytest.mark.parametrize("value", [0.5, 0.89, None])
def test_values_between_the_bounds_go_on(value: float | None) -> None:
    assert decide(value) is None


def test_a_failure_names_its_stage() -> None:
    decision = decide(None, finding=Failed("timeout", raw="r"))
    assert decision == StageDecision("failed", "faithfulness", Failed("at faithfulness: timeout", raw="r"))


def test_a_judge_that_finds_nothing_ends_the_sample_only_at_the_faithfulness_stage() -> None:
    decision = decide(None, finding=Finding(None, reason="no claim"))
    assert decision is not None
    assert decision.outcome == "nothing"
    assert decide(None, name="relevance", finding=Finding(None)) is None


def test_a_rejected_sample_gets_the_lowest_grade_of_the_scale() -> None:
    decision = decide(0.1, criterion=RUBRIC)
    assert decision is not None
    assert isinstance(decision.finding, Finding)
    assert decision.finding.score == 1.0


def test_a_refusal_is_right_if_the_contexts_lack_the_answer() -> None:
    low = decide(0.49, "answerability", REFUSAL)
    high = decide(0.5, "answerability", REFUSAL)
    assert low is not None
    assert high is not None
    assert (low.outcome, high.outcome) == ("nothing", "person")
    assert decide(0.5, "retrieval", REFUSAL) is None
    assert decide(0.1, "faithfulness", REFUSAL) is not None


def test_long_answers_that_refuse_in_passing_are_not_refusals() -> None:
    assert is_refusal("I don't know.")
    assert not is_refusal("I don't know. " + "But it is red. " * 20)
    assert not is_refusal("It is red.")


def test_accepted_samples_have_the_judges_score_if_it_was_asked() -> None:
    judged = accept(FAITHFULNESS, Finding(0.7, reason="so"), "the last stage", None)
    assert (judged.finding, judged.confidence) == (Finding(0.7, reason="so", decided_by="faithfulness"), 0.7)
    sure = accept(FAITHFULNESS, Finding(0.7, confidence=0.9), "relevance", "near")
    assert (sure.finding, sure.confidence) == (Finding(0.7, (), "near", "relevance", 0.9), 0.9)
    unasked = accept(RUBRIC, None, "retrieval", "near", 0.95)
    assert (unasked.finding, unasked.confidence) == (Finding(5.0, reason="near", decided_by="retrieval"), 0.95)


def test_a_note_has_every_stage_and_at_what_risk_samples_are_accepted() -> None:
    decisions = [
        *[StageDecision("accepted", "the last stage", Finding(0.8), confidence) for confidence in (0.9, 0.7)],
        StageDecision("rejected", "retrieval", Finding(0.0)),
        StageDecision("failed", "faithfulness", Failed("x")),
    ]
    routed = [(one.outcome, one.stage, one.confidence) for one in decisions]
    (note,) = describe_routes(routed, ["retrieval", "answerability", "faithfulness", "relevance"])
    assert note.count == 2
    assert note.message == (
        "4 samples: 2 accepted (50%), 1 rejected (25%), 1 failed (25%); coverage against risk: 25% 0.100, 50% 0.200"
    )
    assert note.table == (
        ("stage", "reached", "accepted", "rejected", "failed"),
        ("retrieval", "4", "0", "1", "0"),
        ("answerability", "3", "0", "0", "0"),
        ("faithfulness", "3", "0", "0", "1"),
        ("relevance", "2", "0", "0", "0"),
        ("the last stage", "2", "2", "0", "0"),
    )
