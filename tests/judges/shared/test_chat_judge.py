""""""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest
from rageval_spec.data.findings import Assessment, Criterion, Failed, Finding
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.endpoints.chat_questions import WORDING_DIGEST, ChatQuestion
from rageval_spec.endpoints.replies import read_word
from rageval_spec.errors import UsageError
from rageval_spec.judges.shared.chat_judge import (
    ChatJudge,
    ChatJudgeNode,
    Matter,
    PiecewiseJudge,
    PiecewiseNode,
    ask_grade,
)
from rageval_spec.judging.grade_scores import GradeScale, PieceOpinion
from rageval_spec.judging.prompts import PromptFiles
from tests.judges.chat_samples import FAITHFULNESS, POLITENESS, PRECISION, SAMPLE
from tests.judges.fakes import WordModel, context_of
from tests.judging.fakes import FakeChatModel, context_with, text_of


class GradePrompts(PromptFiles):
    """The prompts of a judge that grades."""

    grade: str | None = None


class GraderNode(ChatJudgeNode):
    """A judge that grades."""

    prompts: GradePrompts = GradePrompts()


class Grader(ChatJudge[GraderNode]):
    """Grades each sample with one question."""

    node_type = GraderNode
    prompt_names = ("system", "grade")

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        def find(sample: Sample) -> Finding | Failed:
            opinion = self.ask(self.put(criterion, sample))
            return opinion if isinstance(opinion, Failed) else Finding(opinion.score, reason=opinion.reason)

        return Assessment(self.ask_each(samples, find))

    def put(self, criterion: Criterion, sample: Sample) -> ChatQuestion[PieceOpinion]:
        return ask_grade(self, criterion, f"<answer>{sample.answer}</answer>", GradeScale(1, 5))


def make(model: FakeChatModel, folder: Path = Path(), **keys: Any) -> Grader:
    return Grader(GraderNode.model_validate({"use": "grader", "model": "llm", **keys}), context_with(model, folder))


def test_a_request_is_the_rules_and_a_prompt() -> None:
    model = FakeChatModel([{"reason": "kind", "grade": 2}])
    (found,) = make(model).assess(POLITENESS, [SAMPLE]).findings
    assert found == Finding(0.25, reason="kind")
    rules, asked = model.calls[0].messages
    assert (rules.role, asked.role) == ("system", "user")
    assert "never instructions" in rules.content
    assert asked.content.startswith("Is the answer polite?")
    assert "Grade from 1 (not at all) to 5" in asked.content
    assert "0: rude" in asked.content


def test_samples_are_asked_about_in_parallel_and_answered_in_order() -> None:
    def answer(request: ChatRequest) -> dict[str, object]:
        return {"reason": None, "grade": int(text_of(request).rpartition("<answer>")[2][0])}

    samples = [replace(SAMPLE, answer=str(grade)) for grade in (5, 1, 3, 2, 4)]
    found = make(FakeChatModel(answer)).assess(POLITENESS, samples).findings
    assert [one.score for one in found if isinstance(one, Finding)] == [1, 0, 0.5, 0.25, 0.75]


def test_its_content_depends_on_its_prompts_and_on_how_it_retries(tmp_path: Path) -> None:
    content = make(FakeChatModel([])).content()
    assert list(content["prompts"]) == ["system", "grade"]
    assert content["wording"] == WORDING_DIGEST
    (tmp_path / "mine.jinja").write_text("{{ instruction }} {{ material }}")
    own = make(FakeChatModel([]), tmp_path, prompts={"grade": "mine.jinja"}).content()
    assert own["prompts"]["system"] == content["prompts"]["system"]
    assert own["prompts"]["grade"] != content["prompts"]["grade"]


def test_its_digests_are_those_of_stored_replies() -> None:
    """Paid replies are stored under the digest of their question, so a question must not change unnoticed."""
    question = make(FakeChatModel([])).put(replace(POLITENESS, guide={}), SAMPLE)
    assert (WORDING_DIGEST[:16], question.request.digest.hex()[:16]) == ("c4e4b31ff2cf01af", "94defb0d724ff8c6")


def test_a_model_that_does_not_chat_is_refused() -> None:
    judge = Grader(GraderNode(use="grader", model="words"), context_of(WordModel()))
    assert judge.check() == "the model 'words' (use: onnx) writes no replies; name a chat model"
    with pytest.raises(UsageError):
        _ = judge.model


def test_faults_of_prompts_are_reported_at_their_keys(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ nobody }}")
    judge = make(FakeChatModel([]), tmp_path, prompts={"grade": "mine.jinja", "system": "mine.jinja"})
    assert judge.check() is None
    faults = [*judge.check_files()]
    assert [fault.key for fault in faults] == [("prompts", "system"), ("prompts", "grade")]
    assert all(fault.message.startswith("mine.jinja:1: unknown variable 'nobody'") for fault in faults)


def test_contexts_that_are_too_long_fail_with_their_length() -> None:
    contexts = sum(map(len, SAMPLE.contexts or ()))
    assert make(FakeChatModel([]), max_context_characters=contexts).find_excess(FAITHFULNESS, SAMPLE) is None
    judge = make(FakeChatModel([]), max_context_characters=contexts - 1)
    reason = f"the contexts have {contexts} characters, more than max_context_characters ({contexts - 1})"
    assert judge.find_excess(FAITHFULNESS, SAMPLE) == Failed(reason)
    assert judge.find_excess(PRECISION, SAMPLE) == Failed(reason)


def test_an_estimate_counts_only_questions_without_a_stored_reply() -> None:
    model = FakeChatModel([{"reason": None, "grade": 2}])
    judge = make(model)
    question = judge.put(POLITENESS, SAMPLE)
    (tokens,) = judge.estimate_questions([question, question], 7).calls["llm"].values()
    assert tokens.output == 7
    judge.ask(question)
    assert judge.estimate_questions([question], 7).calls == {}


def test_a_grade_weighs_probabilities_if_they_were_asked_for() -> None:
    judge = make(FakeChatModel([]))
    plain, weighed = (
        ask_grade(judge, POLITENESS, "x", GradeScale(1, 5), probabilities=wanted).request for wanted in (False, True)
    )
    assert (plain.logprobs, weighed.logprobs) == (False, True)
    assert not ask_grade(judge, POLITENESS, "x", GradeScale(0, 1), probabilities=True).request.logprobs
    assert ask_grade(judge, POLITENESS, "x", GradeScale(1, 5)).read(
        {"grade": 5, "reason": ""}, ChatReply("")
    ) == PieceOpinion(1.0)


class WordPrompts(PromptFiles):
    """The prompts of a judge that asks for a word."""

    binary: str | None = None


class WordNode(PiecewiseNode):
    """A judge that asks for a word."""

    prompts: WordPrompts = WordPrompts()


class Piecewise(PiecewiseJudge[WordNode]):
    """Asks for a word about each matter."""

    prompt_names = ("system", "binary")

    def put(self, matter: Matter) -> ChatQuestion[PieceOpinion]:
        request = self.request("binary", None, instruction=matter.instruction, material=matter.material)
        return ChatQuestion(
            request, lambda text, _: PieceOpinion(float(read_word(text) == "yes"), None, "so"), "a word"
        )


def make_piecewise(model: FakeChatModel, per: Literal["claim", "answer"] = "answer", **keys: Any) -> Piecewise:
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
    judge = make_piecewise(model, per)
    assert len(judge.estimate(criterion, [SAMPLE]).calls["llm"]) == calls
    assess(judge, criterion)
    assert len(model.calls) == calls


def test_a_claim_is_shown_with_all_sources_and_gets_its_own_opinion() -> None:
    model = FakeChatModel(lambda request: "no" if "331" in text_of(request) else "yes")
    found = assess(make_piecewise(model, "claim"), FAITHFULNESS)
    assert isinstance(found, Finding)
    assert (found.score, [claim.score for claim in found.claims]) == (0.5, [1.0, 0.0])
    assert [claim.reason for claim in found.claims] == ["so", "so"]
    for call in model.calls:
        assert all(f'<source number="{number}">' in text_of(call) for number in (1, 2, 3))
        assert text_of(call).count("<claim>") == 1


def test_a_context_is_shown_by_itself_with_what_it_is_meant_to_be_useful_for() -> None:
    model = FakeChatModel(lambda _: "yes")
    assess(make_piecewise(model), PRECISION)
    shown = [text_of(call) for call in model.calls]
    assert all(text.count("<context>") == 1 and "<reference_answer>" in text for text in shown)
    assert all(context in text for context, text in zip(SAMPLE.contexts or (), shown, strict=True))


def test_a_whole_sample_gets_one_opinion_on_the_criterions_scale() -> None:
    assert assess(make_piecewise(FakeChatModel(["yes"])), POLITENESS) == Finding(4, reason="so")
    assert assess(make_piecewise(FakeChatModel(["no"])), FAITHFULNESS) == Finding(0, reason="so")


def test_a_piece_that_cannot_be_judged_fails_only_its_own_sample() -> None:
    model = FakeChatModel(lambda request: "hm" if "331" in text_of(request) else "yes")
    samples = [SAMPLE, replace(SAMPLE, answer="It is in Paris."), replace(SAMPLE, answer=" ")]
    first, second, third = make_piecewise(model, "claim").assess(FAITHFULNESS, samples).findings
    assert isinstance(first, Failed)
    assert isinstance(second, Finding)
    assert third == Finding(None, reason="the answer makes no claim")


def test_contexts_that_are_too_long_are_not_sent() -> None:
    model = FakeChatModel([])
    judge = make_piecewise(model, max_context_characters=5)
    assert isinstance(assess(judge, FAITHFULNESS), Failed)
    assert judge.estimate(FAITHFULNESS, [SAMPLE]).calls == {}


def test_replies_without_requested_probabilities_are_counted() -> None:
    """If they are requested only by default, no note says that they are missing."""
    judge = make_piecewise(FakeChatModel(lambda _: "yes"), probabilities=True)
    message = "3 of 3 replies of 'llm' came without token probabilities: only their words count"
    assert judge.assess(PRECISION, [SAMPLE]).written_notes == (Note("no_probabilities", message, count=3),)
    assert make_piecewise(FakeChatModel(lambda _: "yes")).assess(PRECISION, [SAMPLE]).written_notes == ()


def test_every_such_judge_declares_its_abilities() -> None:
    assert Piecewise.declared == {"support", "usefulness", "grade"}
