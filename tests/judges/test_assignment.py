from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.findings import Claim, Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.errors import RagevalError
from rageval_spec.judges.assignment import AssignmentJudge, AssignmentNode
from rageval_spec.metrics.shared.nugget_metrics import NUGGETS_IN_ANSWER
from tests.judges.chat_samples import FAITHFULNESS, POLITENESS, SAMPLE
from tests.judging.fakes import FakeChatModel, context_with, text_of

TWELVE = Sample("q", "How is the tower?", answer="It is high.", claims=tuple(f"fact {number}" for number in range(12)))


def label(*labels: str) -> dict[str, Any]:
    return {"assignments": [{"fact": number, "label": one} for number, one in enumerate(labels, 1)]}


def make(model: FakeChatModel, **keys: Any) -> AssignmentJudge:
    node = AssignmentNode.model_validate({"use": "assignment", "model": "llm", **keys})
    return AssignmentJudge(node, context_with(model, Path()))


def assess(judge: AssignmentJudge, sample: Sample = TWELVE, criterion: Criterion = NUGGETS_IN_ANSWER) -> Any:
    (found,) = judge.assess(criterion, [sample]).findings
    return found


def test_ten_statements_a_call_in_their_order() -> None:
    model = FakeChatModel([label(*["support"] * 9, "partial_support"), label("not_support", "support")])
    judge = make(model)
    expected = judge.estimate(NUGGETS_IN_ANSWER, [TWELVE]).calls["llm"]
    found = assess(judge)
    assert [claim.score for claim in found.claims] == [1.0] * 9 + [0.5, 0.0, 1.0]
    assert found.claims[0] == Claim("fact 0", 1.0, "supported", 0, 6)
    assert found.claims[9].verdict == found.claims[10].verdict == "not_enough_info"
    assert found.score == pytest.approx(10.5 / 12)
    assert len(model.calls) == len(expected) == 2
    assert {call.digest.hex() for call in model.calls} == expected.keys()
    first, second = map(text_of, model.calls)
    assert '<fact number="10">\n"fact 9"\n</fact>' in first and "fact 10" not in first
    assert '<fact number="1">\n"fact 10"\n</fact>' in second
    assert judge.estimate(NUGGETS_IN_ANSWER, [TWELVE]).calls == {}


def test_a_reply_that_cannot_be_read_is_asked_again() -> None:
    one = Sample("q", "?", answer="a", claims=("x", "y"))
    model = FakeChatModel([label("support"), label("support", "not_support")])
    found = assess(make(model), one)
    assert [claim.score for claim in found.claims] == [1.0, 0.0]
    assert "Your reply cannot be read" in text_of(model.calls[1])


def test_a_batch_that_never_can_be_read_fails_the_sample() -> None:
    wrong = {"assignments": [{"fact": 1, "label": "maybe"}]}
    model = FakeChatModel(lambda request: wrong if "fact 11" in text_of(request) else label(*["support"] * 10))
    found = assess(make(model))
    assert isinstance(found, Failed)
    assert "maybe" in (found.raw or "")


def test_a_failed_batch_names_no_value(tmp_path: Path) -> None:
    model = FakeChatModel(lambda _: "Sure!")
    assert isinstance(assess(make(model, batch=5)), Failed)


def test_sentences_of_a_text_are_statements() -> None:
    model = FakeChatModel(lambda _: label("support", "partial_support"))
    found = assess(make(model), SAMPLE, FAITHFULNESS)
    assert [(claim.start, claim.score) for claim in found.claims] == [(0, 1.0), (23, 0.5)]


def test_nothing_to_compare_with() -> None:
    judge = make(FakeChatModel([]))
    found = assess(judge, Sample("q", "?", answer=" ", claims=("x", "y")))
    assert isinstance(found, Finding)
    assert (found.score, [claim.text for claim in found.claims]) == (0.0, ["x", "y"])
    with pytest.raises(RagevalError, match="cannot"):
        judge.assess(POLITENESS, [SAMPLE])
