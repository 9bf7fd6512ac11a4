from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.chat import ChatReply, TokenChoice
from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges.choice import OPTIONS, ChoiceJudge, ChoiceNode
from tests.judges.chat_samples import FAITHFULNESS, INSTRUCTIONS, POLITENESS, PRECISION, SAMPLE, reply_to_anything
from tests.judging.fakes import FakeChatModel, context_with, text_of

OWN = [{"text": "Perfect.", "score": 1}, {"text": "Fine.", "score": 0.8}, {"text": "Bad.", "score": 0}]


def make(model: FakeChatModel, **keys: Any) -> ChoiceJudge:
    return ChoiceJudge(ChoiceNode.model_validate({"use": "choice", "model": "llm", **keys}), context_with(model))


def assess(judge: ChoiceJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def choose(letter: str) -> dict[str, str]:
    return {"reason": "because", "choice": letter}


@pytest.mark.parametrize(("letter", "score"), [("A", 1), ("B", 2 / 3), ("C", 1 / 3), ("D", 0)])
def test_the_default_options_range_from_full_to_none(letter: str, score: float) -> None:
    model = FakeChatModel([choose(letter)])
    found = assess(make(model))
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(score)
    assert (found.claims, found.reason) == ((), "because")
    assert "A: Yes, all of it.\nB: Mostly" in text_of(model.calls[0])


def test_each_kind_of_criterion_has_its_own_options() -> None:
    for criterion in (FAITHFULNESS, PRECISION, POLITENESS):
        model = FakeChatModel(reply_to_anything)
        assess(make(model), criterion)
        assert all(option.text in text_of(model.calls[0]) for option in OPTIONS[criterion.kind])


def test_contexts_are_judged_one_by_one() -> None:
    model = FakeChatModel(lambda request: choose("D" if "Some towers" in text_of(request) else "A"))
    found = assess(make(model), PRECISION)
    assert isinstance(found, Finding)
    assert [claim.score for claim in found.claims] == [1, 0, 1]
    assert [claim.verdict for claim in found.claims] == [None] * 3


def test_the_spec_can_give_its_own_options() -> None:
    model = FakeChatModel([choose("B"), choose("D"), choose("C")])
    judge = make(model, options=OWN)
    assert assess(judge) == Finding(0.8, reason="because")
    assert "A: Perfect.\nB: Fine.\nC: Bad." in text_of(model.calls[0])
    assert assess(judge, POLITENESS) == Finding(0, reason="because")
    assert "'choice' is \"D\", and none of A, B, C" in text_of(model.calls[2])


@pytest.mark.parametrize("said", ["A, B", "A. Or D", "A, but only partly", "A (perhaps)"])
def test_ambiguous_options_are_retried(said: str) -> None:
    model = FakeChatModel([choose(said), choose("D")])
    assert assess(make(model)) == Finding(0, reason="because")
    assert "and not one of A, B, C, D alone" in text_of(model.calls[1])


def test_a_reply_can_repeat_the_text_of_its_option() -> None:
    model = FakeChatModel([choose("B: Mostly: only details are not."), choose("C - Partly correct, maybe")])
    judge = make(model, options=[*OWN[:2], {"text": "Partly correct, maybe", "score": 0.4}])
    assert assess(make(model)) == Finding(1 - 1 / 3, reason="because")
    assert assess(judge) == Finding(0.4, reason="because")
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    "said", ["B", "B)", "b.", "(B) Fine.", "B: Fine", "The answer is B", "It is short.\n\nAnswer: B"]
)
def test_a_small_model_can_be_asked_for_the_letter_alone(said: str) -> None:
    model = FakeChatModel([said])
    assert assess(make(model, options=OWN, form="word")) == Finding(0.8)
    (asked,) = model.calls
    assert asked.schema is None
    assert "JSON" not in asked.messages[-1].content
    assert text_of(asked).endswith("Reply with the letter of that option, and nothing else.")


def test_a_letter_in_doubt_is_asked_for_again_as_one_letter() -> None:
    model = FakeChatModel(["B, because it is short", "C"])
    assert assess(make(model, options=OWN, form="word")) == Finding(0)
    assert text_of(model.calls[1]).endswith("Reply again, with nothing but one letter: A, B or C")


def test_a_model_that_fails_twice_to_write_json_is_asked_for_the_letter() -> None:
    model = FakeChatModel(["I would say B, mostly", "Well, it is B", "B"])
    assert assess(make(model, options=OWN)) == Finding(0.8)
    first, second, third = model.calls
    assert first.schema == second.schema is not None
    assert third.schema is None
    assert text_of(third).endswith("No JSON and no reason after all: the whole reply is one letter: A, B or C")


def test_the_probabilities_of_a_letter_alone_count_too() -> None:
    """By hand: 0.75 * 1 + 0.25 * 0."""
    letters = (TokenChoice("A", log(0.6)), TokenChoice("C", log(0.2)), TokenChoice("x", log(0.2)))
    reply = ChatReply("A", finish="stop", choices=(letters,))
    found = assess(make(FakeChatModel([reply]), options=OWN, probabilities=True, form="word"))
    assert isinstance(found, Finding)
    assert [found.score, found.confidence] == pytest.approx([0.75, 0.75])


def test_a_template_of_ones_own_asks_for_the_letter_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ instruction }} {{ material }} {{ options }} One letter!")
    model = FakeChatModel(["A"])
    node = ChoiceNode.model_validate(
        {"use": "choice", "model": "llm", "form": "word", "prompts": {"choice": "mine.jinja"}}
    )
    assert assess(ChoiceJudge(node, context_with(model, tmp_path))) == Finding(1)
    assert text_of(model.calls[0]).endswith("One letter!")


def test_the_form_of_replies_changes_no_earlier_question() -> None:
    """What was paid for JSON is found again whether `form` is written or not."""
    written, left_out = FakeChatModel([choose("A")]), FakeChatModel([choose("A")])
    assess(make(written, form="json"))
    assess(make(left_out))
    assert [call.digest for call in written.calls] == [call.digest for call in left_out.calls]
    assert make(written, form="json").content() == make(left_out).content() != make(left_out, form="word").content()


@pytest.mark.parametrize("options", [[], OWN[:1], [{"text": "", "score": 1}] * 2, [{"text": "x", "score": 2}] * 2])
def test_invalid_options_are_refused(options: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        ChoiceNode.model_validate({"use": "choice", "model": "llm", "options": options})


def test_the_score_is_the_expected_value_over_probabilities() -> None:
    """By hand: 0.75 * 1 + 0.25 * 0."""
    letters = (TokenChoice("A", log(0.6)), TokenChoice("D", log(0.2)), TokenChoice("x", log(0.2)))
    tokens = [(TokenChoice('{"reason": "A", "choice": "', 0.0),), letters, (TokenChoice('"}', 0.0),)]
    reply = ChatReply('{"reason": "A", "choice": "A"}', finish="stop", choices=tuple(tokens))
    found = assess(make(FakeChatModel([reply]), probabilities=True))
    assert isinstance(found, Finding)
    assert [found.score, found.confidence] == pytest.approx([0.75, 0.75])


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_an_answer_that_instructs_the_judge_stays_inside_its_fence(attack: str) -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model), POLITENESS, replace(SAMPLE, answer=attack))
    lines = text_of(model.calls[0]).splitlines()
    assert lines[lines.index("<answer>") + 2] == "</answer>"
    assert lines.count("</answer>") == 1


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model)
    estimate = judge.estimate(FAITHFULNESS, [SAMPLE]) | judge.estimate(PRECISION, [SAMPLE])
    assess(judge)
    assess(judge, PRECISION)
    assert [*estimate.calls["llm"]] == [request.digest.hex() for request in model.calls]


@pytest.mark.parametrize("keys", [{}, {"options": OWN}])
def test_options_can_be_reversed_with_their_scores(keys: dict[str, Any]) -> None:
    model = FakeChatModel([choose("A"), choose("A")])
    judge = make(model, **keys)
    found = [assess(one) for one in (judge, judge.list_reversals()["options"])]
    assert [one.score for one in found if isinstance(one, Finding)] == [1, 0]
    usual, reverse = (text_of(call) for call in model.calls)
    last = "No, little or nothing" if not keys else "Bad."
    assert f"A: {last}" in reverse
    assert f"A: {last}" not in usual
