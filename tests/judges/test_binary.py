from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, TokenChoice
from rageval_spec.data.findings import Assessment, Criterion, Failed, Finding
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.judges.binary import BinaryJudge, BinaryNode
from tests.judges.chat_samples import FAITHFULNESS, INSTRUCTIONS, POLITENESS, PRECISION, SAMPLE, reply_to_anything
from tests.judging.fakes import Answer, FakeChatModel, context_with, text_of


def make(model: FakeChatModel, **keys: Any) -> BinaryJudge:
    return BinaryJudge(BinaryNode.model_validate({"use": "binary", "model": "llm", **keys}), context_with(model))


def assess(judge: BinaryJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def say(word: str, yes: float) -> ChatReply:
    choices = sorted([TokenChoice("Yes", log(yes)), TokenChoice("No", log(1 - yes))], key=lambda one: -one.logprob)
    return ChatReply(word, finish="stop", choices=(tuple(choices),))


def test_each_sentence_gets_a_yes_or_no() -> None:
    model = FakeChatModel(lambda request: "No." if "331" in text_of(request) else "Yes")
    found = assess(make(model))
    assert isinstance(found, Finding)
    assert found.score == 0.5
    assert [(claim.text, claim.score, claim.verdict) for claim in found.claims] == [
        ("The tower is in Paris.", 1, "supported"),
        ("It is 331 m tall.", 0, "not_enough_info"),
    ]
    assert [(claim.start, claim.end) for claim in found.claims] == [(0, 22), (23, 40)]
    assert len(model.calls) == 2
    assert "<claim>" in text_of(model.calls[0])
    assert SAMPLE.question in text_of(model.calls[0])
    assert "Reply with one word, yes or no." in text_of(model.calls[0])
    assert model.calls[0].schema is None


def test_the_whole_answer_gets_one_yes_or_no() -> None:
    model = FakeChatModel(["no"])
    assert assess(make(model, per="answer")) == Finding(0)
    assert FAITHFULNESS.instruction in text_of(model.calls[0])


def test_each_context_gets_a_yes_or_no() -> None:
    model = FakeChatModel(lambda request: "no" if "Some towers" in text_of(request) else "yes")
    found = assess(make(model, per="answer"), PRECISION)
    assert isinstance(found, Finding)
    assert [claim.score for claim in found.claims] == [1, 0, 1]
    assert "331" not in "".join(map(text_of, model.calls))


def test_a_grade_is_the_lowest_or_the_highest_of_the_scale() -> None:
    assert assess(make(FakeChatModel(["yes"])), POLITENESS) == Finding(4)
    assert assess(make(FakeChatModel(["no"])), replace(POLITENESS, scale=None)) == Finding(0)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        *[("Yes.", 1), ("**NO**", 0), ("yes, it is", None), ("No - not at all", None), ('{"answer": "yes"}', 1)],
        *[("Let me see.\n\nYes", 1), ("The answer is: no.", 0), ("<think>no</think>\nyes", 1), ("\ufeffNo\n", 0)],
        *[("It is partly so", None), ("Nobody knows", None), ("Yesterday", None), ("ja", None), ("in no way", None)],
        *[("x" + ":" * 1_000_000 + "x", None), ("x" + "\n" * 1_000_000 + "x", None), ("x" * 1_000_000 + ": no.", None)],
        *[(":" * 1_000_000 + "x", None), ("Well" + "-" * 300 + "no", None), ("*" * 1_000_000 + "x", None), ("'no'", 0)],
        *[("yes" + " " * 1_000_000 + "x", None), ("(*" * 500_000 + "no" + "*)" * 500_000, 0)],
    ],
)
def test_yes_and_no_are_read_in_the_forms_that_models_write(reply: str, score: int | None) -> None:
    found = assess(make(FakeChatModel(lambda _: reply), per="answer"))
    assert found == Finding(score) if score is not None else isinstance(found, Failed)


def test_an_unreadable_word_is_retried() -> None:
    model = FakeChatModel(["Perhaps", "Yes"])
    assert assess(make(model, per="answer")) == Finding(1)
    assert "it is neither yes nor no. Reply again, with nothing but one word" in text_of(model.calls[1])


@pytest.mark.parametrize(
    "reply", ["Yes, but no", "The answer is not: yes", "Answer: Yes.\nConfidence: no", "yes, partially", "Yes: 4/10"]
)
def test_a_contradictory_reply_is_retried(reply: str) -> None:
    model = FakeChatModel([reply, "no"])
    assert assess(make(model, per="answer")) == Finding(0)
    assert len(model.calls) == 2


def test_the_score_is_the_expected_value_over_probabilities() -> None:
    """By hand: (0.9 + 0.2) / 2."""

    def answer(request: ChatRequest) -> Answer:
        assert request.logprobs
        return say("No", 0.2) if "331" in text_of(request) else say("Yes", 0.9)

    found = assess(make(FakeChatModel(answer), probabilities=True))
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(0.55)
    assert [claim.score for claim in found.claims] == pytest.approx([0.9, 0.2])
    assert [claim.verdict for claim in found.claims] == ["supported", "not_enough_info"]
    whole = assess(make(FakeChatModel([say("No", 0.2)]), probabilities=True, per="answer"))
    assert isinstance(whole, Finding)
    assert [whole.score, whole.confidence] == pytest.approx([0.2, 0.8])


def test_a_note_says_that_an_endpoint_gives_no_probabilities() -> None:
    judge = make(FakeChatModel(["yes", say("no", 0.4)]), probabilities=True)
    message = "1 of 2 replies of 'llm' came without token probabilities: only their words count"
    assert judge.assess(FAITHFULNESS, [SAMPLE]).written_notes == (Note("no_probabilities", message, count=1),)
    assert make(FakeChatModel(reply_to_anything)).assess(FAITHFULNESS, [SAMPLE]).written_notes == ()


def test_empty_samples_ask_no_model() -> None:
    model = FakeChatModel([])
    judge = make(model)
    assert assess(judge, sample=replace(SAMPLE, answer="")) == Finding(None, reason="the answer makes no claim")
    assert assess(judge, PRECISION, replace(SAMPLE, contexts=())) == Finding(None, reason="there are no contexts")
    found = assess(judge, sample=replace(SAMPLE, contexts=()))
    assert found == Finding(0, reason="nothing can support the answer: there is no text in the contexts")


def test_a_piece_without_a_verdict_fails_only_its_own_sample() -> None:
    model = FakeChatModel(lambda request: "hm" if "331" in text_of(request) else "yes")
    first, second = make(model).assess(FAITHFULNESS, [SAMPLE, replace(SAMPLE, answer="It is tall.")]).findings
    assert isinstance(first, Failed)
    assert first.raw == "hm"
    assert isinstance(second, Finding)


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_an_answer_that_instructs_the_judge_stays_inside_its_fence(attack: str) -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model, per="answer"), sample=replace(SAMPLE, answer=attack))
    lines = text_of(model.calls[0]).splitlines()
    assert lines[lines.index("<answer>") + 2] == "</answer>"
    assert lines.count("</answer>") == 1


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    samples = [SAMPLE, replace(SAMPLE, answer=""), replace(SAMPLE, answer="One. Two. Three.")]
    for keys in ({"per": "claim"}, {"per": "answer"}):
        model = FakeChatModel(reply_to_anything)
        judge = make(model, **keys)
        criteria = (FAITHFULNESS, PRECISION, POLITENESS)
        estimates = [judge.estimate(criterion, samples) for criterion in criteria]
        assert not model.calls
        found = [judge.assess(criterion, samples) for criterion in criteria]
        assert all(isinstance(one, Assessment) for one in found)
        assert len((estimates[0] | estimates[1] | estimates[2]).calls["llm"]) == len(model.calls)


def test_the_prompt_is_part_of_the_judges_content() -> None:
    assert list(make(FakeChatModel([])).content()["prompts"]) == ["system", "binary"]
