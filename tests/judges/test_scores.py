from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any

import pytest

from rageval_spec.data.chat import ChatRequest
from rageval_spec.data.findings import Criterion, Estimate, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.endpoints.chat_questions import ask
from rageval_spec.errors import UsageError
from rageval_spec.judges import scores
from rageval_spec.judges.scores import ScoresJudge, ScoresNode
from tests.judges.chat_samples import (
    FAITHFULNESS,
    INSTRUCTIONS,
    POLITENESS,
    PRECISION,
    RECALL,
    SAMPLE,
    reply_to_anything,
)
from tests.judging.fakes import Answer, FakeChatModel, context_with, text_of

ALL = (FAITHFULNESS, PRECISION, POLITENESS)
REPLY = {
    "faithfulness": {"reason": "331 is wrong", "score": 5},
    "context_precision": {"reason": "two help", "scores": [10, 0, 8]},
    "politeness": {"reason": None, "score": 3},
}


def make(model: FakeChatModel, *criteria: Criterion, **keys: Any) -> ScoresJudge:
    judge = ScoresJudge(ScoresNode.model_validate({"use": "scores", "model": "llm", **keys}), context_with(model))
    if criteria:
        judge.expect(criteria)
    return judge


def assess(judge: ScoresJudge, criterion: Criterion = FAITHFULNESS, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def test_all_criteria_share_one_call() -> None:
    model = FakeChatModel([REPLY])
    judge = make(model, *ALL)
    assert assess(judge) == Finding(0.5, reason="331 is wrong")
    precision = assess(judge, PRECISION)
    assert isinstance(precision, Finding)
    assert precision.score == pytest.approx(0.6)
    assert [(claim.text, claim.score) for claim in precision.claims] == list(
        zip(SAMPLE.contexts or (), [1, 0, 0.8], strict=True)
    )
    assert assess(judge, POLITENESS) == Finding(3)
    assert len(model.calls) == 1


def test_the_prompt_shows_all_criteria_and_every_text_once() -> None:
    model = FakeChatModel([REPLY])
    assess(make(model, *ALL))
    shown = text_of(model.calls[0])
    for criterion in ALL:
        assert f"- {criterion.name}: {criterion.instruction} Score from" in shown
    assert "  0: rude\n  4: kind" in shown
    for text in (SAMPLE.question, SAMPLE.answer, *(SAMPLE.contexts or ()), SAMPLE.reference):
        assert shown.splitlines().count(f'"{text}"') == 1
    assert '"context_precision": {"reason": "<text>", "scores": [<whole number from 0 to 10>, exactly 3' in shown


def test_the_order_of_the_metrics_does_not_matter() -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model, *ALL))
    assess(make(model, *ALL[::-1], FAITHFULNESS), PRECISION)
    assert len(model.calls) == 1


def test_without_expected_criteria_it_asks_for_one() -> None:
    model = FakeChatModel([{"faithfulness": {"reason": "", "score": "8"}}])
    assert assess(make(model)) == Finding(0.8)
    assert "politeness" not in text_of(model.calls[0])
    model = FakeChatModel([{"faithfulness": {"reason": "", "score": 7}}])
    assert assess(make(model, PRECISION, POLITENESS)) == Finding(0.7)


def test_a_missing_score_is_retried() -> None:
    model = FakeChatModel([{key: REPLY[key] for key in ("faithfulness", "politeness")}, REPLY])
    assert assess(make(model, *ALL)) == Finding(0.5, reason="331 is wrong")
    assert "'context_precision' is missing" in text_of(model.calls[1])


def test_a_list_with_too_few_scores_is_retried() -> None:
    short = {**REPLY, "context_precision": {"reason": "", "scores": [10, 0]}}
    model = FakeChatModel([short, REPLY])
    assert isinstance(assess(make(model, *ALL), PRECISION), Finding)
    assert "'context_precision.scores' has 2 entries, and 3 are wanted" in text_of(model.calls[1])


def test_an_unreadable_reply_fails_all_of_its_criteria() -> None:
    model = FakeChatModel(["one", "two", "three"])
    judge = make(model, *ALL)
    assert [getattr(assess(judge, criterion), "raw", None) for criterion in ALL] == ["three"] * 3
    assert len(model.calls) == 3


def test_a_sample_is_scored_only_by_criteria_that_apply_to_it() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model, *ALL, RECALL)
    sample = replace(SAMPLE, references=())
    assert isinstance(assess(judge, FAITHFULNESS, sample), Finding)
    assert isinstance(assess(judge, POLITENESS, sample), Finding)
    (request,) = model.calls
    assert "context_recall" not in text_of(request)
    assert "context_precision" not in text_of(request)


def test_empty_samples_ask_no_model() -> None:
    model = FakeChatModel([])
    judge = make(model, *ALL)
    sample = replace(SAMPLE, answer="", contexts=())
    assert assess(judge, FAITHFULNESS, sample) == Finding(None, reason="the answer makes no claim")
    assert assess(judge, PRECISION, sample) == Finding(None, reason="there are no contexts")


def test_criteria_with_the_same_name_have_different_keys() -> None:
    other = replace(FAITHFULNESS, instruction="Is it really?")
    odd = replace(POLITENESS, name="my rubric, v2!")
    model = FakeChatModel(reply_to_anything)
    judge = make(model, FAITHFULNESS, other, odd)
    assert isinstance(assess(judge, other), Finding)
    assert isinstance(assess(judge, odd), Finding)
    (request,) = model.calls
    assert request.schema is not None
    assert [*request.schema["properties"]] == ["faithfulness", "faithfulness_2", "my_rubric_v2"]


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_an_answer_that_instructs_the_judge_stays_inside_its_fence(attack: str) -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model, *ALL), sample=replace(SAMPLE, answer=attack))
    lines = text_of(model.calls[0]).splitlines()
    assert lines[lines.index("<answer>") + 2] == "</answer>"
    assert lines.count("</answer>") == 1


def test_contexts_that_are_too_long_fail_and_are_not_cut() -> None:
    model = FakeChatModel([])
    judge = make(model, *ALL, max_context_characters=10)
    assert isinstance(assess(judge), Failed)
    assert judge.estimate(FAITHFULNESS, [SAMPLE]) == Estimate()


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    samples = [SAMPLE, replace(SAMPLE, references=()), replace(SAMPLE, answer="")]
    model = FakeChatModel(reply_to_anything)
    judge = make(model, *ALL)
    answered = [[sample for sample in samples if criterion != PRECISION or sample.references] for criterion in ALL]
    estimate = Estimate()
    for criterion, some in zip(ALL, answered, strict=True):
        estimate |= judge.estimate(criterion, some)
    assert not model.calls
    for criterion, some in zip(ALL, answered, strict=True):
        judge.assess(criterion, some)
    assert {*estimate.calls["llm"]} == {request.digest.hex() for request in model.calls}


def test_only_recent_calls_are_remembered_and_none_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some samples may never be assessed by a criterion, because its metric decides them itself."""
    monkeypatch.setattr(scores, "MOST_REMEMBERED", 5)
    samples = [replace(SAMPLE, query_id=str(number), question=f"Where is tower {number}?") for number in range(50)]
    model = FakeChatModel(lambda request: "hm" if "tower 7?" in text_of(request) else reply_to_anything(request))
    judge = make(model, *ALL)
    for criterion in ALL:
        found = [assess(judge, criterion, sample) for sample in samples]
        assert [isinstance(one, Failed) for one in found] == [number == 7 for number in range(50)]
    assert len(judge._sheets) <= 5
    assert len(model.calls) == 52
    assert judge.context.budget.errors == 1


def test_equal_texts_are_scored_once_for_all_samples() -> None:
    """Metrics can pass samples that they made themselves, and two queries can be equal."""
    model = FakeChatModel(reply_to_anything)
    judge = make(model, *ALL)
    twice = [SAMPLE, replace(SAMPLE, query_id="other")]
    first = judge.assess(FAITHFULNESS, twice).findings
    assert first[0] == first[1]
    judge.assess(PRECISION, [replace(sample, seconds=3.0) for sample in twice])
    assert len(model.calls) == 1


def test_metrics_that_run_in_parallel_share_the_calls() -> None:
    samples = [replace(SAMPLE, question=f"Where is tower {number}?") for number in range(40)]
    together = Barrier(len(ALL))

    def reply(request: ChatRequest) -> Answer:
        time.sleep(0.005)
        return reply_to_anything(request)

    def come(criterion: Criterion) -> Sequence[Finding | Failed]:
        together.wait()
        return judge.assess(criterion, samples).findings

    model = FakeChatModel(reply)
    judge = make(model, *ALL)
    with ThreadPoolExecutor(len(ALL)) as pool:
        found = list(pool.map(come, ALL))
    assert len(model.calls) == len(samples)
    assert all(isinstance(one, Finding) for findings in found for one in findings)


def test_a_thread_that_waits_for_anothers_calls_learns_that_they_failed() -> None:
    """A header that cannot be sent makes all calls raise; no thread may wait for calls that never begin."""
    samples = [replace(SAMPLE, question=f"Where is tower {number}?") for number in range(40)]
    together = Barrier(len(ALL))

    def break_down(_: ChatRequest) -> Answer:
        time.sleep(0.005)
        raise UsageError("models.llm: the header cannot be sent")

    def come(criterion: Criterion) -> str:
        together.wait()
        with pytest.raises(UsageError) as caught:
            judge.assess(criterion, samples)
        return str(caught.value)

    judge = make(FakeChatModel(break_down), *ALL)
    with ThreadPoolExecutor(len(ALL)) as pool:
        said = [pool.submit(come, criterion) for criterion in ALL]
        assert {one.result(timeout=20) for one in said} == {"models.llm: the header cannot be sent"}


def test_criteria_that_were_not_expected_get_their_own_call() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model, FAITHFULNESS)
    for question in ("Is it rude?", "Is it kind?"):
        assert isinstance(assess(judge, replace(POLITENESS, instruction=question)), Finding)
    assert [("Is it rude?" in text_of(call), "Is it kind?" in text_of(call)) for call in model.calls] == [
        (True, False),
        (False, True),
    ]


def test_new_expectations_change_what_is_asked() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model, FAITHFULNESS)
    assess(judge)
    judge.expect(ALL)
    assess(judge)
    assert ["politeness" in text_of(call) for call in model.calls] == [False, True]


def test_a_batch_larger_than_the_memory_is_still_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "MOST_REMEMBERED", 5)
    samples = [replace(SAMPLE, question=f"Where is tower {number}?") for number in range(50)]
    model = FakeChatModel(reply_to_anything)
    judge = make(model, *ALL)
    read = Counter[str]()
    monkeypatch.setattr(judge, "ask", lambda question: read.update(["reply"]) or ask(model, question, judge.context))
    for criterion in ALL:
        judge.assess(criterion, samples)
    assert read["reply"] == 50


def test_a_call_that_raises_fails_only_the_metric_that_made_it() -> None:
    """The next metric makes the call again."""
    without = replace(SAMPLE, question="Where is the broken tower?", references=())
    samples = [replace(SAMPLE, question=f"Where is tower {number}?") for number in range(40)]
    is_broken = Event()
    is_broken.set()

    def reply(request: ChatRequest) -> Answer:
        if is_broken.is_set() and "broken tower" in text_of(request):
            time.sleep(0.02)
            raise UsageError("the header cannot be sent")
        return reply_to_anything(request)

    judge = make(FakeChatModel(reply), *ALL)
    with ThreadPoolExecutor(2) as pool:
        broken = pool.submit(judge.assess, FAITHFULNESS, [without, *samples])
        sound = pool.submit(judge.assess, PRECISION, samples)
        assert all(isinstance(one, Finding) for one in sound.result(timeout=20).findings)
        with pytest.raises(UsageError, match="header"):
            broken.result(timeout=20)
    is_broken.clear()
    assert all(isinstance(one, Finding) for one in judge.assess(FAITHFULNESS, [without, *samples]).findings)


def test_contexts_can_be_a_list() -> None:
    sample = replace(SAMPLE, contexts=[*(SAMPLE.contexts or ())])  # type: ignore[arg-type]
    assert isinstance(assess(make(FakeChatModel([REPLY]), *ALL), sample=sample), Finding)
