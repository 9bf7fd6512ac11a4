from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rageval_spec.data.findings import Assessment, Criterion, Estimate, Failed, Tokens
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judges.shared.composed_judge import ComposedJudge
from rageval_spec.plugin import JudgeNode
from tests.judges.fakes import FAITHFULNESS, Scripted, context_of


class First(ComposedJudge[JudgeNode]):
    """Asks only its first judge; it can do what all of its judges can."""

    members_named: tuple[str, ...] = ()

    @property
    def names(self) -> Sequence[str]:
        return self.members_named

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        return self.members[0].assess(criterion, samples)


def compose(*judges: Scripted) -> First:
    judge = First(JudgeNode(use="first"), context_of(*judges))
    judge.members_named = tuple(one.context.name for one in judges)
    return judge


def test_it_assesses_what_all_members_can_and_writes_what_any_member_can() -> None:
    a = Scripted("a", {}, ("support", "grade", "claims"))
    b = Scripted("b", {}, ("support", "usefulness", "entities"))
    assert compose(a, b).abilities == {"support", "claims", "entities"}
    assert compose(a, b).check() is None
    assert First.declared == frozenset()


def test_judges_without_anything_in_common_are_refused() -> None:
    a, b = Scripted("a", {}, ("support",)), Scripted("b", {}, ("claims",))
    assert compose(a, b).check() == "its judges have no kind of criterion in common (a: support; b: nothing)"


def test_all_members_receive_the_expected_criteria() -> None:
    a, b = Scripted("a", {}), Scripted("b", {})
    judge = compose(a, b)
    judge.expect([FAITHFULNESS])
    assert judge.expected == [FAITHFULNESS]
    assert a.expected == b.expected == ["faithfulness"]


def test_if_one_judge_cannot_write_the_next_one_does() -> None:
    a, b, c = (Scripted(name, {}, ("support", "claims")) for name in "abc")
    c.claims = lambda texts: [("c wrote it",) for _ in texts]  # type: ignore[method-assign]
    written = compose(a, b, c).claims([("", "good"), ("", "bad")])
    assert written == [("a: good",), ("c wrote it",)]
    assert (a.asked, b.asked) == ([["good", "bad"]], [["bad"]])


def test_if_no_judge_can_write_it_is_refused_or_fails() -> None:
    with pytest.raises(UsageError, match="cannot write questions"):
        compose(Scripted("a", {})).questions(["x"], 2)
    (failed,) = compose(Scripted("a", {}, ("claims",))).claims([("", "bad")])
    assert failed == Failed("unreadable")


def test_writing_is_estimated_by_the_first_judge_that_can() -> None:
    def cost(ability: Any, texts: Any, count: int = 1) -> Estimate:
        return Estimate({"llm": {f"{ability} {len(texts)} {count}": Tokens(1, 1)}})

    a, b = Scripted("a", {}, ("support",)), Scripted("b", {}, ("support", "questions"))
    b.estimate_writing = cost  # type: ignore[method-assign]
    assert list(compose(a, b).estimate_writing("questions", [("", "x")], 3).calls["llm"]) == ["questions 1 3"]
    assert compose(a).estimate_writing("claims", [("", "x")]) == Estimate()
