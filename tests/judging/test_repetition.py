from __future__ import annotations

import pytest

from rageval_spec.data.assessment import Estimate, Tokens
from rageval_spec.data.chat import ChatRequest, Message
from rageval_spec.judges.binary import BinaryJudge, BinaryNode
from rageval_spec.judges.panel import Panel, PanelNode
from rageval_spec.judging.repetition import RepeatedModel, asks_chat, count_repeats, number_calls, repeat_judge
from tests.judges.chat_samples import FAITHFULNESS, SAMPLE
from tests.judges.fakes import Scripted, WordModel, context_of
from tests.judging.fakes import FakeChatModel

REQUEST = ChatRequest((Message("user", "Well?"),))


def test_a_repeated_model_asks_for_another_sample_and_stores_it_separately() -> None:
    model = FakeChatModel(["first", "second", "third"])
    again = RepeatedModel(model, 1)
    assert model.ask(REQUEST).text == "first"
    assert again.find(REQUEST) is None
    assert again.ask(REQUEST).text == "second"
    assert again.ask(REQUEST).reused
    assert RepeatedModel(again, 2).ask(REQUEST).text == "third"
    assert [request.repeat for request in model.calls] == [0, 1, 3]
    kept = again.find(REQUEST)
    assert kept is not None
    assert kept.text == "second"
    assert again.price is model.price is None
    assert [one.sample for one in (model, again, RepeatedModel(again, 2))] == [0, 1, 3]


def test_a_copy_wraps_a_copy_of_the_inner_model() -> None:
    inner, other = FakeChatModel(["a"]), FakeChatModel(["b"])
    copied = RepeatedModel(RepeatedModel(inner, 1), 2).copy_with(lambda model: other if model is inner else None)
    assert copied.ask(REQUEST).text == "b"
    assert (other.calls[0].repeat, inner.calls) == (3, [])


def make_judges() -> tuple[FakeChatModel, BinaryJudge, Panel, Panel]:
    """A model, a judge that asks it, a panel that asks the judge twice, and a panel that asks that panel thrice."""
    model = FakeChatModel(lambda _: "yes")
    names = context_of(model)
    strict = BinaryJudge(BinaryNode(use="binary", model="llm", per="answer"), names)
    inner = Panel(PanelNode(use="panel", judges=("strict",), repeats=2), names)
    outer = Panel(PanelNode(use="panel", judges=("inner",), repeats=3), names)
    names.judges.update(strict=strict, inner=inner)  # type: ignore[attr-defined]
    return model, strict, inner, outer


def test_nested_panels_multiply_the_number_of_samples() -> None:
    _, strict, inner, outer = make_judges()
    assert [count_repeats(judge) for judge in (strict, inner, outer)] == [1, 2, 6]


def test_a_judge_asks_chat_if_any_judge_in_it_does() -> None:
    _, strict, _, outer = make_judges()
    assert asks_chat(strict)
    assert asks_chat(outer)
    local = Scripted("local", {}, model="words")
    local.context = context_of(WordModel())
    assert not asks_chat(local)
    assert not asks_chat(Scripted("free", {}))


@pytest.mark.parametrize("moved", [1, 4])
def test_a_repeated_judge_asks_all_its_questions_again(moved: int) -> None:
    model, _, inner, _ = make_judges()
    inner.assess(FAITHFULNESS, [SAMPLE])
    assert [request.repeat for request in model.calls] == [0, 1]
    repeat_judge(inner, 2 * moved).assess(FAITHFULNESS, [SAMPLE])
    assert [request.repeat for request in model.calls[2:]] == [2 * moved, 2 * moved + 1]


def test_calls_of_repeats_are_numbered_consecutively() -> None:
    once = number_calls(Estimate({"llm": {"k": Tokens(1, 2)}}), 1)
    assert once.calls == {"llm": {"k repeat 1": Tokens(1, 2)}}
    assert number_calls(once, 2).calls == {"llm": {"k repeat 3": Tokens(1, 2)}}
