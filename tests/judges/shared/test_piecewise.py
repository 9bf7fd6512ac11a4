from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from rageval_spec.data.assessment import Criterion, Failed, Finding
from rageval_spec.data.note import Note
from rageval_spec.data.sample import Sample
from rageval_spec.endpoints.asking import Question
from rageval_spec.endpoints.replies import read_word
from rageval_spec.judges.shared.piecewise import Matter, PiecewiseJudge, PiecewiseNode
from rageval_spec.judging.grading import Opinion
from rageval_spec.judging.prompts import PromptFiles
from tests.judges.chat_samples import FAITHFULNESS, POLITENESS, PRECISION, SAMPLE
from tests.judging.fakes import FakeChatModel, context_with, text_of


class WordPrompts(PromptFiles):
    """The prompts of a judge that asks for a word."""

    binary: str | None = None


class WordNode(PiecewiseNode):
    """A judge that asks for a word."""

    prompts: WordPrompts = WordPrompts()


class Piecewise(PiecewiseJudge[WordNode]):
    """Asks for a word about each matter."""

    prompt_names = ("system", "binary")

    def put(self, matter: Matter) -> Question[Opinion]:
        request = self.request("binary", None, instruction=matter.instruction, material=matter.material)
        return Question(request, lambda text, _: Opinion(float(read_word(text) == "yes"), None, "so"), "a word")


def make(model: FakeChatModel, per: Literal["claim", "answer"] = "answer", **keys: Any) -> Piecewise:
    judge = Piecewise(WordNode(use="piecewise", model="llm", **keys), context_with(model))
    judge.per = per
    return judge


def assess(judge: Piecewise, criterion: Criterion, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


@pytest.mark.parametrize(
    ("per", "criterion", "calls"),
    [("answer", FAITHFULNESS, 1), ("claim", FAITHFULNESS, 2), ("claim", PRECISION, 3), ("claim", POLITENESS, 1)],
)
def test_a_sample_takes_the_expected_number_of_questions(per: Any, criterion: Criterion, calls: int) -> None:
    model = FakeChatModel(lambda _: "yes")
    judge = make(model, per)
    assert len(judge.estimate(criterion, [SAMPLE]).calls["llm"]) == calls
    assess(judge, criterion)
    assert len(model.calls) == calls


def test_a_claim_is_shown_with_all_sources_and_gets_its_own_opinion() -> None:
    model = FakeChatModel(lambda request: "no" if "331" in text_of(request) else "yes")
    found = assess(make(model, "claim"), FAITHFULNESS)
    assert isinstance(found, Finding)
    assert (found.score, [claim.score for claim in found.claims]) == (0.5, [1.0, 0.0])
    assert [claim.reason for claim in found.claims] == ["so", "so"]
    for call in model.calls:
        assert all(f'<source number="{number}">' in text_of(call) for number in (1, 2, 3))
        assert text_of(call).count("<claim>") == 1


def test_a_context_is_shown_by_itself_with_what_it_is_meant_to_be_useful_for() -> None:
    model = FakeChatModel(lambda _: "yes")
    assess(make(model), PRECISION)
    shown = [text_of(call) for call in model.calls]
    assert all(text.count("<context>") == 1 and "<reference_answer>" in text for text in shown)
    assert all(context in text for context, text in zip(SAMPLE.contexts or (), shown, strict=True))


def test_a_whole_sample_gets_one_opinion_on_the_criterions_scale() -> None:
    assert assess(make(FakeChatModel(["yes"])), POLITENESS) == Finding(4, reason="so")
    assert assess(make(FakeChatModel(["no"])), FAITHFULNESS) == Finding(0, reason="so")


def test_a_piece_that_cannot_be_judged_fails_only_its_own_sample() -> None:
    model = FakeChatModel(lambda request: "hm" if "331" in text_of(request) else "yes")
    samples = [SAMPLE, replace(SAMPLE, answer="It is in Paris."), replace(SAMPLE, answer=" ")]
    first, second, third = make(model, "claim").assess(FAITHFULNESS, samples).findings
    assert isinstance(first, Failed)
    assert isinstance(second, Finding)
    assert third == Finding(None, reason="the answer makes no claim")


def test_contexts_that_are_too_long_are_not_sent() -> None:
    model = FakeChatModel([])
    judge = make(model, max_context_characters=5)
    assert isinstance(assess(judge, FAITHFULNESS), Failed)
    assert judge.estimate(FAITHFULNESS, [SAMPLE]).calls == {}


def test_replies_without_requested_probabilities_are_counted() -> None:
    """If they are requested only by default, no note says that they are missing."""
    judge = make(FakeChatModel(lambda _: "yes"), probabilities=True)
    message = "3 of 3 replies of 'llm' came without token probabilities: only their words count"
    assert judge.assess(PRECISION, [SAMPLE]).notes == (Note("no_probabilities", message, count=3),)
    assert make(FakeChatModel(lambda _: "yes")).assess(PRECISION, [SAMPLE]).notes == ()


def test_every_such_judge_declares_its_abilities() -> None:
    assert Piecewise.declared == {"support", "usefulness", "grade"}
