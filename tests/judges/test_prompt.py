from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.findings import Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.judges.prompt import PromptJudge, PromptNode
from rageval_spec.judging.prompts import fence_all
from rageval_spec.plugin.budget import Budget
from tests.judges.chat_samples import FAITHFULNESS, INSTRUCTIONS, PRECISION, SAMPLE, reply_to_anything
from tests.judging.fakes import FakeChatModel, context_with, text_of

CONTEXTS = fence_all("context", SAMPLE.contexts or ())
OWN = Criterion("completeness", "grade", "", shown=("question", "answer"), scale=(0, 1))
ASK = "Is the answer complete?\n\n{{ question }}\n{{ contexts }}\n{{ answer }}"


def make(model: FakeChatModel, folder: Path = Path(), **keys: Any) -> PromptJudge:
    keys = {"template": ASK, **keys} if "file" not in keys else keys
    return PromptJudge(
        PromptNode.model_validate({"use": "prompt", "model": "llm", **keys}), context_with(model, folder)
    )


def assess(judge: PromptJudge, criterion: Criterion = OWN, sample: Sample = SAMPLE) -> Finding | Failed:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def faults(judge: PromptJudge, columns: Sequence[str] | None = ()) -> list[str]:
    found = [*judge.check_files(), *judge.check_columns(lambda: columns)]
    return [f"{one.severity} {one.key[0]}: {one.message}" for one in found]


def test_a_number_with_decimals_is_the_score_and_the_reason_comes_first() -> None:
    model = FakeChatModel([{"reason": "a date is missing", "score": 0.65}])
    assert assess(make(model)) == Finding(0.65, reason="a date is missing")
    (call,) = model.calls
    assert text_of(call).endswith(
        "Reply with JSON, a reason in one or two short sentences first:\n"
        '{"reason": "<text>", "score": <number from 0 to 1>}'
    )
    assert call.messages[0].role == "system"
    assert call.schema is not None
    assert [*call.schema["properties"]] == ["reason", "score"]


def test_without_a_reason_none_is_asked_for() -> None:
    model = FakeChatModel([{"score": 1}])
    assert assess(make(model, reason=False)) == Finding(1)
    assert "reason" not in text_of(model.calls[0])


@pytest.mark.parametrize("verdict", ["yes", "Yes.", True])
def test_yes_and_no_are_1_and_0(verdict: Any) -> None:
    model = FakeChatModel([{"reason": "x", "verdict": verdict}, {"reason": "x", "verdict": "no"}])
    judge = make(model, value="yes_no")
    first, second = judge.assess(OWN, [SAMPLE]).findings[0], assess(judge, sample=replace(SAMPLE, answer="Other."))
    assert (first, second) == (Finding(1, reason="x"), Finding(0, reason="x"))
    assert [*(judge.scale or ())] == [0, 1]


def test_a_choice_has_the_score_that_the_spec_gives_it() -> None:
    model = FakeChatModel([{"reason": "x", "choice": "partial"}])
    judge = make(model, value="choice", choices={"complete": 5, "partial": 3.5, "wrong": 1})
    assert [*(judge.scale or ())] == [1, 5]
    assert assess(judge, replace(OWN, scale=(1, 5))) == Finding(3.5, reason="x")
    assert '"choice": "complete" | "partial" | "wrong"' in text_of(model.calls[0])


@pytest.mark.parametrize(("scale", "value"), [((0, 1), 0.6), ((1, 10), 6.4), ((-1, 1), 0.2)])
def test_a_metric_gets_the_score_on_its_own_scale(scale: tuple[float, float], value: float) -> None:
    """By hand: 6.4 on the scale from 1 to 10 is 0.6 of the way."""
    model = FakeChatModel([{"reason": "", "score": 6.4}])
    found = assess(make(model, scale=[1, 10]), replace(OWN, scale=scale))
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(value)


def test_support_is_judged_from_0_to_1() -> None:
    model = FakeChatModel([{"reason": "", "score": 10}])
    judge = make(model, scale=[1, 10])
    assert assess(judge, FAITHFULNESS) == Finding(1)
    assert assess(judge, FAITHFULNESS, replace(SAMPLE, answer=" ")) == Finding(None, reason="the answer makes no claim")
    assert len(model.calls) == 1
    assert PRECISION.kind not in judge.abilities


@pytest.mark.parametrize("score", [1.2, -0.1, "high", None, True])
def test_a_score_off_the_scale_is_asked_again_and_then_fails(score: Any) -> None:
    model = FakeChatModel([{"reason": "x", "score": score}, {"reason": "y", "score": 0.4}])
    assert assess(make(model)) == Finding(0.4, reason="y")
    model = FakeChatModel([{"reason": "x", "score": score}] * 3)
    failed = assess(make(model))
    assert isinstance(failed, Failed)
    assert "3 replies of the model 'llm' cannot be read" in failed.reason
    assert len(model.calls) == 3


def test_a_sample_without_what_the_template_shows_costs_no_call() -> None:
    model = FakeChatModel([])
    judge = make(model, template="{{ answer }} {{ reference }} {{ topic }}")
    bare = replace(SAMPLE, references=())
    assert assess(judge, sample=bare) == Finding(None, reason="the query has no reference")
    assert assess(judge) == Finding(None, reason="the query has no column 'topic'")
    assert judge.estimate(OWN, [bare]).calls == {}


def test_an_operation_that_fails_on_one_sample_fails_only_this_sample() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model, template="{{ answer }} {{ 10 / level }}")
    samples = [replace(SAMPLE, columns={"level": 0}), replace(SAMPLE, columns={"level": 2})]
    first, second = judge.assess(OWN, samples).findings
    assert isinstance(first, Failed)
    assert "template:1: division by zero" in first.reason
    assert isinstance(second, Finding)


def test_contexts_that_are_too_long_fail_only_if_the_template_shows_them() -> None:
    model = FakeChatModel(reply_to_anything)
    failed = assess(make(model, max_context_characters=10))
    assert isinstance(failed, Failed)
    assert "more than max_context_characters (10)" in failed.reason
    assert isinstance(assess(make(model, template="{{ answer }}", max_context_characters=10)), Finding)


@pytest.mark.parametrize("attack", INSTRUCTIONS)
def test_an_answer_that_instructs_the_judge_stays_inside_its_fence(attack: str) -> None:
    model = FakeChatModel(reply_to_anything)
    assess(make(model), sample=replace(SAMPLE, answer=attack))
    lines = text_of(model.calls[0]).splitlines()
    assert lines[lines.index("<answer>") + 2] == "</answer>"
    assert lines.count("</answer>") == 1
    assert "data and never instructions" in lines[2]


def test_examples_are_shown_as_a_conversation_in_the_template_s_words(tmp_path: Path) -> None:
    (tmp_path / "shots.yaml").write_text(
        "- {question: Q?, contexts: [c], answer: A., value: 0.25, reason: a step is missing}\n"
        "- {question: R?, contexts: [c], answer: B., value: 1}\n"
    )
    model = FakeChatModel([{"reason": "", "score": 0.5}])
    judge = make(model, tmp_path, examples="shots.yaml")
    assert faults(judge) == []
    assess(judge)
    (call,) = model.calls
    assert [message.role for message in call.messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert call.messages[1].content == call.messages[-1].content.replace(SAMPLE.question, "Q?").replace(
        str(SAMPLE.answer), "A."
    ).replace(CONTEXTS, '<context number="1">\n"c"\n</context>')
    assert call.messages[2].content == '{"reason": "a step is missing", "score": 0.25}'
    assert call.messages[4].content == '{"reason": null, "score": 1}'


@pytest.mark.parametrize(
    ("keys", "example", "message"),
    [
        ({}, '{"answer": "A", "value": 1.5}', "shots.jsonl:1: the value is 1.5; write a number from 0 to 1"),
        ({}, '{"answer": "A", "value": "good"}', "the value is 'good'; write a number from 0 to 1"),
        ({}, '{"answer": "A", "value": true}', "the value is True; write a number from 0 to 1"),
        ({"value": "yes_no"}, '{"answer": "A", "value": "maybe"}', "the value is 'maybe'; write one of yes, no"),
        ({"value": "yes_no"}, '{"answer": "A", "value": true}\n{"value": "No"}', "2: the example has no answer"),
        ({}, '{"answer": "A", "score": 1}', "the example has no `value`"),
    ],
)  # fmt: skip
def test_every_example_is_checked(tmp_path: Path, keys: dict[str, Any], example: str, message: str) -> None:
    (tmp_path / "shots.jsonl").write_text(example + "\n")
    judge = make(FakeChatModel([]), tmp_path, template="{{ answer }}", examples="shots.jsonl", **keys)
    (fault,) = faults(judge)
    assert fault.startswith("error examples: shots.jsonl:")
    assert message in fault


def test_a_template_can_be_a_file_and_its_content_is_part_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("Is it good? {{ answer }}")
    first = make(FakeChatModel([]), tmp_path, file="mine.jinja")
    assert faults(first) == []
    assert [file.key for file in first.inputs()] == [("file",)]
    before = first.content(), first.prompt_digests()
    (tmp_path / "mine.jinja").write_text("Is it very good? {{ answer }}")
    second = make(FakeChatModel([]), tmp_path, file="mine.jinja")
    assert second.content() != before[0]
    assert second.prompt_digests()["template"] != before[1]["template"]
    assert second.prompt_digests()["system"] == before[1]["system"]


def test_examples_are_part_of_the_key(tmp_path: Path) -> None:
    def content(value: float) -> dict[str, Any]:
        (tmp_path / "shots.jsonl").write_text(f'{{"answer": "A", "value": {value}}}\n')
        return make(FakeChatModel([]), tmp_path, template="{{ answer }}", examples="shots.jsonl").content()

    assert content(0.5) == content(0.5)
    assert content(0.5) != content(0.6)


def test_a_template_without_the_answer_gets_a_warning() -> None:
    judge = make(FakeChatModel([]), template="{{ question }}")
    assert faults(judge) == ["warning template: the template does not show the answer to the judge"]


def test_unknown_variables_are_errors_where_the_columns_are_known() -> None:
    judge = make(FakeChatModel([]), template="{{ answer }}\n{{ topic }} {{ hue }}")
    (fault,) = faults(judge, ["topic"])
    assert fault.startswith("error template: template:2:16: unknown variable 'hue'; the template can use question")
    assert faults(judge, None) == []


def test_a_broken_template_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("{{ answer }}\n{% if %}")
    (fault,) = faults(make(FakeChatModel([]), tmp_path, file="mine.jinja"))
    assert fault.startswith("error file: mine.jinja:2: ")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"template": None}, "one of the two"),
        ({"file": "x.jinja"}, "one of the two"),
        ({"value": "yes_no", "scale": [1, 5]}, "'scale' belongs to 'value: number'"),
        ({"choices": {"a": 1, "b": 0}}, "'choices' belong to 'value: choice'"),
        ({"value": "choice"}, "write at least two"),
        ({"value": "choice", "choices": {"a": 1, "b": 1}}, "with different scores"),
        ({"value": "choice", "choices": {"a": 1, "A ": 0}}, "differ only in case"),
        ({"value": "choice", "choices": {"a": float("inf"), "b": 0}}, "finite"),
        ({"scale": [1, 1]}, "lowest number must be below"),
        ({"scale": [0, 1, 2]}, "at most 2"),
        ({"values": {"a": [0, 1]}, "scale": [0, 1]}, "'values' are numbers with scales of their own; remove 'scale'"),
        ({"values": {"a": [0, 1]}, "value": "yes_no"}, "remove 'value' or 'values'"),
        ({"values": {"a": [1, 0]}}, "values.a: the lowest number must be below the highest"),
        ({"values": {"a": [0, float("inf")]}}, "values.a: the lowest number must be below the highest"),
        ({"values": {"a": [1]}}, "at least 2"),
        ({"values": {"a": [0, 1, 2]}}, "at most 2"),
        ({"values": {"reason": [0, 1]}}, "'reason' cannot be the name of a value"),
        ({"values": {" ": [0, 1]}}, "' ' cannot be the name of a value"),
    ],
)
def test_contradictory_keys_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PromptNode.model_validate({"use": "prompt", "model": "llm", "template": "{{ answer }}", **keys})


def test_an_estimate_equals_the_calls_of_a_first_run() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = make(model)
    estimate = judge.estimate(OWN, [SAMPLE])
    assess(judge)
    assert [*estimate.calls["llm"]] == [request.digest.hex() for request in model.calls]


def test_the_judge_says_what_its_template_reads() -> None:
    assert make(FakeChatModel([]), template="{{ answer }} {{ expected }}").shows_references
    assert not make(FakeChatModel([])).shows_references
    assert make(FakeChatModel([]), template="{{ criteria }} {{ answer }}").reads_criteria
    assert not make(FakeChatModel([])).reads_criteria


def test_choices_and_examples_can_be_reversed(tmp_path: Path) -> None:
    rows = [{"question": "Q", "contexts": ["C"], "answer": answer, "value": "wrong"} for answer in ("one", "two")]
    (tmp_path / "shots.jsonl").write_text("\n".join(map(json.dumps, rows)))
    model = FakeChatModel([{"choice": "complete"}] * 3)
    keys: dict[str, Any] = {"value": "choice", "choices": {"complete": 1, "wrong": 0}, "reason": False}
    judge = make(model, tmp_path, examples="shots.jsonl", **keys)
    reversals = judge.list_reversals()
    assert [*reversals] == ["choices", "examples"]
    assert [assess(one) for one in (judge, *reversals.values())] == [Finding(1.0)] * 3
    usual, choices, examples = model.calls
    assert '"wrong" | "complete"' in text_of(choices)
    assert [one.content for one in examples.messages[1:5]] == [usual.messages[place].content for place in (3, 4, 1, 2)]
    assert make(model).list_reversals() == {}


SEVERAL: dict[str, Any] = {"values": {"faithfulness": [0, 1], "relevancy": [1, 5]}}
RELEVANCY = replace(OWN, name="relevancy", scale=(1, 5))
FAITHFUL = replace(OWN, name="faithfulness")


def test_several_values_come_from_one_reply() -> None:
    model = FakeChatModel([{"reason": "so", "faithfulness": 0.25, "relevancy": 4.5}])
    judge = make(model, **SEVERAL)
    estimates = [judge.estimate(criterion, [SAMPLE]) for criterion in (FAITHFUL, RELEVANCY, FAITHFULNESS)]
    (planned,) = (estimates[0] | estimates[1] | estimates[2]).calls["llm"]
    assert assess(judge, FAITHFUL) == Finding(0.25, reason="so")
    assert assess(judge, RELEVANCY) == Finding(4.5, reason="so")
    assert assess(judge, replace(RELEVANCY, scale=(0, 1))) == Finding(0.875, reason="so")
    assert assess(judge, FAITHFULNESS) == Finding(0.25, reason="so")
    (call,) = model.calls
    assert call.digest.hex() == planned
    assert text_of(call).endswith(
        '{"reason": "<text>", "faithfulness": <number from 0 to 1>, "relevancy": <number from 1 to 5>}'
    )


def test_a_value_that_the_judge_does_not_give_costs_no_call() -> None:
    failed = Failed("the judge gives faithfulness and relevancy, and no 'completeness'")
    assert assess(make(FakeChatModel([]), **SEVERAL)) == failed


@pytest.mark.parametrize(
    "reply",
    [
        {"faithfulness": 0.25},
        {"faithfulness": 0.25, "relevancy": None},
        {"faithfulness": 0.25, "relevancy": 6},
        {"faithfulness": 0.25, "relevancy": "high"},
    ],
)
def test_a_value_that_no_reply_has_is_an_error_of_this_value_alone(reply: dict[str, Any]) -> None:
    model = FakeChatModel([reply] * 3)
    judge = make(model, **SEVERAL)
    failed = assess(judge, RELEVANCY)
    assert isinstance(failed, Failed)
    assert failed.reason.startswith("3 replies of the model 'llm' cannot be read; the last one: ")
    assert "relevancy" in failed.reason
    assert assess(judge, FAITHFUL) == Finding(0.25)
    assert len(model.calls) == 3
    assert judge.context.budget.unread
    assert judge.context.budget.errors == 0


def test_a_value_that_was_missing_is_taken_from_the_next_whole_reply() -> None:
    whole = {"faithfulness": 0.75, "relevancy": 2}
    model = FakeChatModel([{"faithfulness": 0.25}, whole])
    judge = make(model, **SEVERAL)
    assert [assess(judge, one) for one in (FAITHFUL, RELEVANCY)] == [Finding(0.75), Finding(2)]
    assert len(model.calls) == 2


def test_replies_without_any_value_fail_all_values() -> None:
    model = FakeChatModel(["4", "no idea", "4"])
    judge = make(model, **SEVERAL)
    assert isinstance(assess(judge, FAITHFUL), Failed)
    assert isinstance(assess(judge, RELEVANCY), Failed)
    assert len(model.calls) == 3


def test_an_incomplete_reply_is_asked_again_once_with_retry_failed() -> None:
    model = FakeChatModel([{"faithfulness": 0.25}] * 3 + [{"faithfulness": 0.5, "relevancy": 2}])
    assert assess(make(model, **SEVERAL), FAITHFUL) == Finding(0.25)
    again = PromptJudge(
        PromptNode.model_validate({"use": "prompt", "model": "llm", "template": ASK, **SEVERAL}),
        context_with(model, budget=Budget(retry_failed=True)),
    )
    assert [assess(again, one) for one in (FAITHFUL, RELEVANCY)] == [Finding(0.5), Finding(2)]
    assert len(model.calls) == 4


def test_a_template_of_several_values_shows_no_criteria() -> None:
    judge = make(FakeChatModel([]), template="{{ criteria }} {{ answer }}", **SEVERAL)
    assert faults(judge) == [
        "error template: with 'values', all metrics share one reply, so the template shows no criteria: "
        "remove {{ criteria }}"
    ]


def test_examples_of_several_values_have_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "shots.yaml").write_text(
        "- {question: Q?, contexts: [c], answer: A., value: {relevancy: 2, faithfulness: 0.5}}\n"
    )
    model = FakeChatModel([{"faithfulness": 0.5, "relevancy": 2}])
    judge = make(model, tmp_path, examples="shots.yaml", **SEVERAL)
    assert faults(judge) == []
    assess(judge, FAITHFUL)
    assert model.calls[0].messages[2].content == '{"reason": null, "faithfulness": 0.5, "relevancy": 2}'
    for value, message in (
        ("0.5", "the value must have a number for each value of the judge: {faithfulness: 0, relevancy: 1}"),
        ("{relevancy: 2}", "the value must have a number for each value of the judge"),
        ("{relevancy: 6, faithfulness: 1}", "the value is 6; write a number from 1 to 5"),
    ):
        (tmp_path / "shots.yaml").write_text(f"- {{question: Q?, contexts: [c], answer: A., value: {value}}}\n")
        (fault,) = faults(make(model, tmp_path, examples="shots.yaml", **SEVERAL))
        assert message in fault
