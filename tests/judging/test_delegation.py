from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.assessment import Failed, Finding
from rageval_spec.data.call_errors import LimitError
from rageval_spec.data.chat import ChatReply, ChatRequest, Message
from rageval_spec.data.note import Note
from rageval_spec.errors import DataError, RagevalError, UsageError
from rageval_spec.judges.binary import BinaryJudge, BinaryNode
from rageval_spec.judges.panel import Panel, PanelNode
from rageval_spec.judging.delegation import assess_or_fail, describe_saving, is_free
from tests.judges.chat_samples import SAMPLE, reply_to_anything
from tests.judges.fakes import FAITHFULNESS, PRECISION, Scripted, context_of, samples_for
from tests.judging.fakes import FakeChatModel, context_with


def test_a_judge_that_breaks_has_failed_on_every_sample() -> None:
    found, notes = assess_or_fail(Scripted("a", RagevalError("refused")), FAITHFULNESS, samples_for("p", "q"))
    assert (found, notes) == ([Failed("a: refused")] * 2, ())


@pytest.mark.parametrize("error", [LimitError("spent"), UsageError("no such model"), DataError("damaged")])
def test_errors_that_another_judge_must_not_hide_are_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        assess_or_fail(Scripted("a", error), FAITHFULNESS, samples_for("q"))


def test_findings_come_with_their_notes_and_no_samples_ask_no_judge() -> None:
    judge = Scripted("a", {"q": 0.5}, notes=[Note("x", "y")])
    assert assess_or_fail(judge, FAITHFULNESS, samples_for("q")) == ([Finding(0.5)], (Note("x", "y"),))
    assert assess_or_fail(judge, FAITHFULNESS, []) == ((), ())
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
