""""""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.chat import ChatReply, ChatRequest, LimitError, Message
from rageval_spec.data.findings import Assessment, Estimate, Failed, Finding, Tokens
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.judges.binary import BinaryJudge, BinaryNode
from rageval_spec.judges.panel import Panel, PanelNode
from rageval_spec.judging.composition import (
    RepeatedModel,
    asks_chat,
    assess_or_fail,
    count_repeats,
    describe_saving,
    is_free,
    number_calls,
    repeat_judge,
)
from tests.judges.chat_samples import FAITHFULNESS as CHAT_FAITHFULNESS
from tests.judges.chat_samples import SAMPLE, reply_to_anything
from tests.judges.fakes import FAITHFULNESS, PRECISION, Scripted, WordModel, context_of, samples_for
from tests.judging.fakes import FakeChatModel, context_with


def test_a_judge_that_breaks_has_failed_on_every_sample() -> None:
    found = assess_or_fail(Scripted("a", RagevalError("refused")), FAITHFULNESS, samples_for("p", "q"))
    assert found == Assessment([Failed("a: refused")] * 2)


@pytest.mark.parametrize("error", [LimitError("spent"), UsageError("no such model"), DataError("damaged")])
def test_errors_that_another_judge_must_not_hide_are_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        assess_or_fail(Scripted("a", error), FAITHFULNESS, samples_for("q"))


def test_findings_come_with_their_notes_and_no_samples_ask_no_judge() -> None:
    judge = Scripted("a", {"q": 0.5}, notes=[Note("x", "y")])
    assert assess_or_fail(judge, FAITHFULNESS, samples_for("q")) == Assessment([Finding(0.5)], (Note("x", "y"),))
    assert assess_or_fail(judge, FAITHFULNESS, []) == Assessment(())
    assert judge.asked == [["q"]]


def panel_of(*names: str, of: Any) -> Panel:
    return Panel(PanelNode(use="panel", judges=names, repeats=2), of)


def test_a_judge_is_free_if_no_judge_in_it_names_a_model() -> None:
    free, dear = Scripted("free", {}), Scripted("dear", {}, model="llm")
    context = context_of(free, dear)
    assert (is_free(free), is_free(dear)) == (True, False)
    assert is_free(panel_of("free", of=context))
    assert not is_free(panel_of("free", "dear", of=context))


class PricedModel(FakeChatModel):
    @property
    def price(self) -> tuple[float, float] | None:
        return 1.0, 2.0


def test_a_saving_is_what_a_first_run_would_ask_even_if_replies_are_stored() -> None:
    model = FakeChatModel(reply_to_anything)
    judge = BinaryJudge(BinaryNode(use="binary", model="llm"), context_with(model))
    before = describe_saving(judge, PRECISION, [SAMPLE])
    assert before.startswith("saved 3 calls of llm (about ")
    assert "USD" not in before
    judge.assess(PRECISION, [SAMPLE])
    assert describe_saving(judge, PRECISION, [SAMPLE]) == before
    assert describe_saving(judge, PRECISION, []) == ""
    assert describe_saving(Scripted("free", {}), PRECISION, [SAMPLE]) == ""


def test_a_saving_has_a_price_if_the_model_has_one() -> None:
    judge = BinaryJudge(BinaryNode(use="binary", model="llm"), context_with(PricedModel([])))
    said = describe_saving(judge, FAITHFULNESS, [SAMPLE])
    assert said.startswith("saved 2 calls of llm (about ")
    assert said.endswith(" USD)")


def test_describing_a_saving_asks_no_model() -> None:
    def refuse(_: ChatRequest) -> ChatReply:
        raise AssertionError("asked")

    judge = BinaryJudge(BinaryNode(use="binary", model="llm"), context_with(FakeChatModel(refuse)))
    assert describe_saving(judge, FAITHFULNESS, [SAMPLE], [FAITHFULNESS])
    with pytest.raises(AssertionError):
        judge.model.ask(ChatRequest((Message("user", "x"),)))


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
    inner.assess(CHAT_FAITHFULNESS, [SAMPLE])
    assert [request.repeat for request in model.calls] == [0, 1]
    repeat_judge(inner, 2 * moved).assess(CHAT_FAITHFULNESS, [SAMPLE])
    assert [request.repeat for request in model.calls[2:]] == [2 * moved, 2 * moved + 1]


def test_calls_of_repeats_are_numbered_consecutively() -> None:
    once = number_calls(Estimate({"llm": {"k": Tokens(1, 2)}}), 1)
    assert once.calls == {"llm": {"k repeat 1": Tokens(1, 2)}}
    assert number_calls(once, 2).calls == {"llm": {"k repeat 3": Tokens(1, 2)}}
