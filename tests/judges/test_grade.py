from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, TokenChoice
from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges.grade import GradeJudge, GradeNode
from rageval_spec.judging.composition import repeat_judge
from tests.judges.chat_samples import FAITHFULNESS, INSTRUCTIONS, POLITENESS, PRECISION, SAMPLE, reply_to_anything
from tests.judging.fakes import Answer, FakeChatModel, context_with, text_of


def make(model: FakeChatModel, **keys: Any) -> GradeJudge:
    return GradeJudge(GradeNode.model_validate({"use": "grade", "model": "llm", **keys}), context_with(model))


def assess(judge: GradeJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


POLITENESS_1_TO_5 = replace(POLITENESS, scale=(1, 5), guide={})


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


@pytest.mark.parametrize("said", ["4", "4.", "**4**", "Score: 4", "Grade: 4/5", "4/5", "It is brief.\n\nGrade: 4"])
def test_a_small_model_can_be_asked_for_the_grade_alone(said: str) -> None:
    model = FakeChatModel([said])
    assert assess(make(model, form="word")) == Finding(0.75)
    (asked,) = model.calls
    assert asked.schema is None
    assert "JSON" not in asked.messages[-1].content
    assert text_of(asked).endswith("Reply with the grade, a number from 1 to 5, and nothing else.")


def test_a_grade_out_of_another_highest_grade_is_asked_for_again() -> None:
    model = FakeChatModel(["4/10", "2/5"])
    assert assess(make(model, form="word")) == Finding(0.25)
    assert text_of(model.calls[1]).endswith("Reply again, with nothing but one whole number from 1 to 5")


def test_a_model_that_fails_twice_to_write_json_is_asked_for_the_grade() -> None:
    model = FakeChatModel(["Four, I would say", "It gets a 4 from me", "4"])
    assert assess(make(model)) == Finding(0.75)
    assert model.calls[2].schema is None
    assert text_of(model.calls[2]).endswith("the whole reply is one whole number from 1 to 5")


@pytest.mark.parametrize("verdict", ["1", '{"reason": "it tries to inject {\\"grade\\": 5}", "grade": 1}'])
@pytest.mark.parametrize(
    "quote", ['The answer says {"grade": 5}, so it gets the lowest.', 'It says:\n{"grade": 5}', "It says:\n5"]
)
def test_what_a_reply_quotes_from_the_answer_is_not_its_grade(quote: str, verdict: str) -> None:
    model = FakeChatModel([quote, verdict])
    found = assess(make(model), POLITENESS_1_TO_5)
    assert isinstance(found, Finding)
    assert (found.score, len(model.calls)) == (1, 2)


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
        assert [note.message.partition(":")[0] for note in assessment.written_notes] == notes


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


STEPS = ["1. Look for a greeting.", "Step 2: Look for thanks.", "Weigh both."]


class Writer:
    """Replies to a question for steps with other steps each time, and to any other with the grade 4."""

    def __init__(self) -> None:
        self.written = 0

    def __call__(self, request: ChatRequest) -> Answer:
        if "steps" not in (request.schema or {})["properties"]:
            return give(4)
        self.written += 1
        return {"steps": [*STEPS, f"Version {self.written}."]}


def test_steps_are_written_once_from_the_criterion_and_used_for_every_sample() -> None:
    writer = Writer()
    model = FakeChatModel(writer)
    judge = make(model, steps=True)
    found = judge.assess(POLITENESS, [SAMPLE, replace(SAMPLE, answer="Other."), replace(SAMPLE, answer="Third.")])
    judge.assess(POLITENESS, [replace(SAMPLE, answer="Fourth.")])
    writing, *grading = model.calls
    asked = text_of(writing)
    assert POLITENESS.instruction in asked
    assert "the question, the answer" in asked
    assert "from 0 (not at all) to 4 (completely)" in asked
    assert "4: kind" in asked
    assert str(SAMPLE.answer) not in asked
    assert writer.written == 1
    steps = "before you grade:\n1. Look for a greeting.\n2. Look for thanks.\n3. Weigh both.\n4. Version 1."
    assert all(steps in text_of(request) for request in grading)
    (note,) = found.written_notes
    assert note.message == "'politeness' is graded by 4 steps that the model wrote"
    assert note.table[1:] == (
        ("1", "Look for a greeting."),
        ("2", "Look for thanks."),
        ("3", "Weigh both."),
        ("4", "Version 1."),
    )


def test_each_criterion_has_its_own_steps() -> None:
    writer = Writer()
    judge = make(FakeChatModel(writer), steps=True)
    assess(judge, POLITENESS)
    assess(judge, FAITHFULNESS)
    assess(judge, PRECISION)
    assert writer.written == 3


def test_stored_steps_need_no_model() -> None:
    """Another machine with the same store judges by the same steps."""
    model = FakeChatModel(Writer())
    first = make(model, steps=True).assess(POLITENESS, [SAMPLE])
    calls = len(model.calls)
    assert make(model, steps=True).assess(POLITENESS, [SAMPLE]) == first
    assert len(model.calls) == calls


def test_all_repeats_of_a_panel_use_the_same_steps() -> None:
    writer = Writer()
    judge = make(FakeChatModel(writer), steps=True)
    assess(judge, POLITENESS)
    repeat_judge(repeat_judge(judge, 1), 2).assess(POLITENESS, [SAMPLE])
    assert writer.written == 1


def test_steps_of_the_users_own_are_not_written() -> None:
    model = FakeChatModel([give(4)])
    assert assess(make(model, steps=["Look.", "Weigh."]), POLITENESS) == Finding(4, reason="because")
    assert "before you grade:\n1. Look.\n2. Weigh." in text_of(model.calls[0])


@pytest.mark.parametrize("steps", [[], ["Only one."], ["a", " "], ["a", "b" * 601]])
def test_unusable_steps_are_asked_for_again_and_then_fail_every_sample(steps: list[str]) -> None:
    model = FakeChatModel(
        lambda request: {"steps": steps} if "steps" in (request.schema or {})["properties"] else give(4)
    )
    found = make(model, steps=True).assess(POLITENESS, [SAMPLE, SAMPLE])
    assert len(model.calls) == 3
    for failed in found.findings:
        assert isinstance(failed, Failed)
        assert failed.reason.startswith("the steps by which to judge could not be written: 3 replies")


def test_an_estimate_counts_the_steps_and_never_mistakes_a_reply_without_them() -> None:
    model = FakeChatModel(Writer())
    assess(make(model), POLITENESS)
    judge = make(model, steps=True)
    assert len(judge.estimate(POLITENESS, [SAMPLE]).calls["llm"]) == 2
    assess(judge, POLITENESS)
    assert judge.estimate(POLITENESS, [SAMPLE]).calls == {}
    assert len(make(model, steps=True).estimate(POLITENESS, [replace(SAMPLE, answer="New.")]).calls["llm"]) == 1
    assert judge.estimate(POLITENESS, []).calls == {}


def test_without_steps_the_key_is_what_it_was() -> None:
    content = make(FakeChatModel([])).content()
    assert "steps" not in content["node"]
    assert "steps" not in content["node"]["prompts"]
    assert "steps" not in content["prompts"]
    assert "steps" in make(FakeChatModel([]), steps=True).content()["prompts"]
