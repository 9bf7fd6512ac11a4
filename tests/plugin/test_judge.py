from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from rageval_spec import registry
from rageval_spec.data.assessment import Ability, Assessment, Criterion
from rageval_spec.errors import UsageError
from rageval_spec.metrics.shared.judged import list_able_judges
from rageval_spec.plugin import Context, Judge, JudgeNode


class Reader(Judge[JudgeNode]):
    """A judge from another distribution."""

    declared = frozenset[Ability]({"support", "questions"})

    def assess(self, criterion: Criterion, samples: object) -> Assessment:
        return Assessment(())


def test_a_judge_can_do_what_it_declares_and_nothing_else() -> None:
    judge = Reader(JudgeNode(use="reader"), Context("mine"))
    assert judge.abilities == {"support", "questions"}
    with pytest.raises(UsageError, match=r"judges\.mine \(use: reader\) cannot list entities"):
        judge.entities(["x"])


def test_messages_suggest_judges_of_other_distributions_by_what_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that cannot be imported does not break the message."""
    group = "rageval_spec.judges"
    entries = {
        "reader": EntryPoint("reader", f"{__name__}:Reader", group),
        "broken": EntryPoint("broken", "no_such_module:Judge", group),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda section: entries if section == "judges" else {})
    registry.words.cache_clear()
    try:
        assert list_able_judges(frozenset({"questions"})) == ["claims", "reader"]
        assert list_able_judges(frozenset({"questions", "support"})) == ["claims", "reader"]
        assert list_able_judges(frozenset({"questions", "entities"})) == ["claims"]
    finally:
        registry.words.cache_clear()
        registry.load.cache_clear()
