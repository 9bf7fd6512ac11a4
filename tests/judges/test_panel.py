from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.chat import ChatReply, ChatRequest, LimitError, Message
from rageval_spec.data.findings import Assessment, Criterion, Failed, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.errors import RagevalError
from rageval_spec.judges.binary import BinaryJudge
from rageval_spec.judges.cascade import Cascade
from rageval_spec.judges.hybrid import HybridJudge
from rageval_spec.judges.overlap import OverlapJudge
from rageval_spec.judges.panel import Panel, PanelNode, find_alpha
from rageval_spec.plugin import ChatModel, Context, ModelNode
from tests.judges.chat_samples import SAMPLE, reply_to_anything
from tests.judges.fakes import (
    FAITHFULNESS,
    RUBRIC,
    ModelledNode,
    Scripted,
    claim,
    context_of,
    finding_of,
    samples_for,
    scores_of,
)
from tests.judging.fakes import FakeChatModel


def build(*judges: Scripted, **keys: Any) -> Panel:
    node = PanelNode(use="panel", judges=tuple(judge.context.name for judge in judges), **keys)
    return Panel(node, context_of(*judges))


def three(scores: Sequence[Any], **keys: Any) -> Panel:
    return build(*(Scripted(name, {"q": said}) for name, said in zip("abc", scores, strict=True)), **keys)


def decide(scores: Sequence[Any], **keys: Any) -> Finding:
    return finding_of(three(scores, **keys).assess(FAITHFULNESS, samples_for("q")))


def of(*claims: Any) -> Finding:
    return Finding(sum(c.score for c in claims) / len(claims), claims)


def test_without_common_claims_the_score_is_the_median() -> None:
    found = decide([0.0, 1.0, 1.0])
    assert (found.score, found.reason) == (1.0, "a 0, b 1, c 1")
    assert found.confidence == pytest.approx(1 - 2 / 3)
    assert decide([0.2, 0.9, 0.4]).score == 0.4
    assert decide([0.2, 0.9, 0.4], by="mean").score == pytest.approx(0.5)


def test_the_majority_of_verdicts_on_the_same_claims() -> None:
    a = of(claim(0.9, "supported", "x"), claim(0.1, "contradicted", "y"), claim(0.6, None, "z"))
    b = of(claim(0.2, "not_enough_info", "x"), claim(0.3, "contradicted", "y"), claim(0.4, None, "z"))
    c = of(claim(0.8, "supported", "x"), claim(0.7, "supported", "y"), claim(0.9, "contradicted", "z"))
    found = decide([a, b, c])
    assert [(one.text, one.verdict) for one in found.claims] == [
        ("x", "supported"),
        ("y", "contradicted"),
        ("z", "not_enough_info"),
    ]
    assert [one.score for one in found.claims] == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert found.score == pytest.approx(1 / 3)


def test_a_tie_is_not_support() -> None:
    yes, no = of(claim(1.0, "supported")), of(claim(0.0, "contradicted"))
    judges = Scripted("a", {"q": yes}), Scripted("b", {"q": no})
    found = finding_of(build(*judges).assess(FAITHFULNESS, samples_for("q")))
    assert (found.score, found.claims[0].verdict) == (0.0, "not_enough_info")


def test_if_claims_differ_the_finding_has_those_of_the_member_nearest_to_the_score() -> None:
    found = decide([of(claim(0.0, text="x")), of(claim(0.5, text="y")), of(claim(0.9, text="z"))])
    assert [one.text for one in found.claims] == ["y"]


def test_failed_members_have_no_vote_and_are_counted() -> None:
    judges = Scripted("a", {"p": 1.0, "q": Failed("timeout")}), Scripted("b", RagevalError("refused"))
    panel = build(*judges, Scripted("c", {"p": 0.5, "q": 0.25}), quorum=1)
    assessment = panel.assess(FAITHFULNESS, samples_for("p", "q"))
    assert scores_of(assessment) == [0.75, 0.25]
    assert [note.message for note in assessment.written_notes] == [
        "a failed on 1 of 2 samples; 0 got no value (quorum: 1)",
        "b failed on 2 of 2 samples; 0 got no value (quorum: 1)",
        "the scores of 3 members differ by 0.500 on average, pair by pair, over 1 sample; Krippendorff's alpha is 0.00",
    ]


def test_fewer_members_than_the_quorum_decide_nothing() -> None:
    """By default, the quorum is more than half of the members."""
    judges = Scripted("a", {"p": 1.0, "q": Failed("timeout", raw="hm")}), Scripted("b", RagevalError("refused"))
    assessment = build(*judges, Scripted("c", {"p": 0.5, "q": 0.25})).assess(FAITHFULNESS, samples_for("p", "q"))
    assert scores_of(assessment) == [0.75, "2 of 3 members failed (quorum: 2): timeout; b: refused"]
    assert assessment.findings[1] == Failed(str(scores_of(assessment)[1]), "hm")
    assert [note.message for note in assessment.written_notes][:2] == [
        "a failed on 1 of 2 samples; 1 got no value (quorum: 2)",
        "b failed on 2 of 2 samples; 1 got no value (quorum: 2)",
    ]


@pytest.mark.parametrize(
    ("quorum", "failed", "has_value"),
    [(None, 0, True), (None, 1, True), (None, 2, False), (3, 0, True), (3, 1, False), (1, 2, True), (2, 2, False)],
)
def test_a_quorum_counts_members_that_did_not_fail(quorum: int | None, failed: int, has_value: bool) -> None:
    said = [Failed("x")] * failed + [0.5] * (3 - failed)
    (found,) = three(said, quorum=quorum).assess(FAITHFULNESS, samples_for("q")).findings
    assert isinstance(found, Finding) == has_value


def test_a_panel_of_two_needs_both_members() -> None:
    judges = Scripted("a", {"q": Failed("x")}), Scripted("b", {"q": 1.0})
    assert scores_of(build(*judges).assess(FAITHFULNESS, samples_for("q"))) == ["1 of 2 members failed (quorum: 2): x"]


def test_a_member_that_was_interrupted_leaves_the_panel_unfinished() -> None:
    said = [Failed("limits.max_calls", is_unfinished=True), Failed("limits.max_calls", is_unfinished=True), 1.0]
    (found,) = three(said).assess(FAITHFULNESS, samples_for("q")).findings
    assert isinstance(found, Failed)
    assert found.is_unfinished


def test_a_quorum_that_can_never_be_reached_is_refused() -> None:
    assert three([1.0, 1.0, 1.0], quorum=3).check() is None
    fault = "quorum: 4 of 3 members can never be reached; write 3 or less"
    assert three([1.0, 1.0, 1.0], quorum=4).check() == fault
    with pytest.raises(ValidationError):
        three([1.0, 1.0, 1.0], quorum=0)


def test_a_panel_without_quorum_keeps_its_old_content() -> None:
    """Its key is the one from before quorums existed, so stored tables are still found."""
    assert "quorum" not in three([1.0, 1.0, 1.0]).content()["node"]
    assert three([1.0, 1.0, 1.0], quorum=2).content()["node"]["quorum"] == 2


def test_a_panel_fails_if_all_members_fail_and_has_nothing_to_judge_if_no_member_has() -> None:
    (failed,) = three([Failed("x", raw="r"), Failed("y"), Failed("x")]).assess(FAITHFULNESS, samples_for("q")).findings
    assert failed == Failed("3 of 3 members failed (quorum: 2): x; y", raw="r")
    assert scores_of(three([None, None, None]).assess(FAITHFULNESS, samples_for("q"))) == [None]
    assert decide([None, 1.0, Failed("x")]).score == 1.0
    with pytest.raises(LimitError):
        build(Scripted("a", LimitError("spent")), Scripted("b", {"q": 1.0})).assess(FAITHFULNESS, samples_for("q"))


def test_grades_keep_their_scale_and_confidence_does_not_depend_on_it() -> None:
    found = finding_of(three([1.0, 5.0, 3.0], by="mean").assess(RUBRIC, samples_for("q")))
    assert found.score == 3.0
    assert found.confidence == pytest.approx(1 - (1 + 0.5 + 0.5) / 3)


def test_members_that_agree_get_a_note_that_all_scores_are_equal() -> None:
    (note,) = three([1.0, 1.0, 1.0]).assess(FAITHFULNESS, samples_for("q")).written_notes
    assert (
        note.message
        == "the scores of 3 members differ by 0.000 on average, pair by pair, over 1 sample; all scores are equal"
    )


def test_alpha_equals_that_of_a_published_example() -> None:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section E: four observers, twelve units.
    units = [
        [1, 1, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [5, 5, 5], [1, 1],
    ]  # fmt: skip
    assert find_alpha(units) == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("value", [0.05, 0.07, 0.1, 0.55, 1 / 3])
@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_equal_values_have_no_alpha_despite_rounding(value: float, count: int) -> None:
    assert find_alpha([[value] * 3] * count) is None


UNITS = st.lists(st.lists(st.integers(0, 4).map(float), min_size=2, max_size=4), min_size=1, max_size=6)


@given(UNITS)
def test_alpha_equals_a_count_of_pairs(units: list[list[float]]) -> None:
    values = [value for unit in units for value in unit]
    expected = sum((a - b) ** 2 for a, b in permutations(values, 2)) / (len(values) * (len(values) - 1))
    observed = sum(sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / len(
        values
    )
    assert find_alpha(units) == (None if expected == 0 else pytest.approx(1 - observed / expected))


class Sampling(ChatModel[ModelNode]):
    """Replies with the number of the sample, so that each repeat has another score."""

    def __init__(self) -> None:
        super().__init__(ModelNode(use="chat"), Context("llm"))
        self.calls: list[int] = []

    def ask(self, request: ChatRequest, *, fresh: bool = False) -> ChatReply:
        self.calls.append(request.repeat)
        return ChatReply(str([0.0, 0.5, 0.7][request.repeat]))

    def find(self, request: ChatRequest) -> ChatReply | None:
        return ChatReply("0.5") if request.repeat == 1 else None

    @property
    def price(self) -> tuple[float, float] | None:
        return (1.0, 2.0)


class Asking(Scripted):
    """Scores as its model replies."""

    def __init__(self, node: Any, context: Context) -> None:
        super().__init__("strict", {}, model="llm", node=node)
        self.context = context

    def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
        model = self.context.model("llm", ChatModel)  # type: ignore[type-abstract]
        request = ChatRequest((Message("user", "how far?"),))
        return Assessment([Finding(float(model.ask(request).text)) for _ in samples])


def test_repeats_are_other_samples_of_the_same_reply() -> None:
    model = Sampling()
    strict = Asking(ModelledNode(use="scripted", model="llm"), Context("strict", models={"llm": model}))
    local = Scripted("local", {"q": 1.0})
    panel = Panel(PanelNode(use="panel", judges=("strict", "local"), repeats=3), context_of(model, strict, local))
    found = finding_of(panel.assess(FAITHFULNESS, samples_for("q")))
    assert found.reason == "strict 0, strict #2 0.5, strict #3 0.7, local 1"
    assert found.score == pytest.approx(0.6)
    assert model.calls == [0, 1, 2]
    assert len(local.asked) == 1
    assert panel.check() is None
    calls = panel.estimate(FAITHFULNESS, samples_for("q")).calls
    assert list(calls["llm"]) == ["faithfulness q", "faithfulness q repeat 1", "faithfulness q repeat 2"]


def in_one_world(model: FakeChatModel, **judges: tuple[type[Any], dict[str, Any]]) -> dict[str, Any]:
    """Judges by name; each can name the model `llm` and the other judges."""
    world: dict[str, Any] = {}
    for name, (kind, keys) in judges.items():
        world[name] = kind(kind.node_type(use=name, **keys), Context(name, models={"llm": model}, judges=world))
    return world


SPARING: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "cascade": (Cascade, {"steps": ({"judge": "overlap", "low": 0.0, "high": 0.1}, "binary")}),
    "hybrid": (HybridJudge, {"filter": "overlap", "judge": "binary", "threshold": 0.99}),
}


@pytest.mark.parametrize("word", SPARING)
def test_judges_that_save_calls_can_be_repeated_at_any_depth(word: str) -> None:
    model = FakeChatModel(reply_to_anything)
    judges = in_one_world(
        model,
        overlap=(OverlapJudge, {}),
        binary=(BinaryJudge, {"model": "llm"}),
        sparing=SPARING[word],
        panel=(Panel, {"judges": ("sparing",), "repeats": 2}),
        panels=(Panel, {"judges": ("panel",), "repeats": 2}),
    )
    for name in ("panel", "panels"):
        assessment = judges[name].assess(FAITHFULNESS, [SAMPLE])
        assert finding_of(assessment).score is not None
        assert any("saved 2 calls of llm" in note.message for note in assessment.written_notes)
    assert model.calls == []


def test_a_panel_of_panels_asks_for_the_product_of_their_repeats() -> None:
    model = FakeChatModel(reply_to_anything)
    judges = in_one_world(
        model,
        binary=(BinaryJudge, {"model": "llm"}),
        three=(Panel, {"judges": ("binary",), "repeats": 3}),
        six=(Panel, {"judges": ("three",), "repeats": 2}),
        eighteen=(Panel, {"judges": ("six", "binary"), "repeats": 3}),
    )
    one_sentence = replace(SAMPLE, answer="The tower is in Paris.")
    for name, count in (("three", 3), ("six", 6), ("eighteen", 18)):
        estimate = judges[name].estimate(FAITHFULNESS, [one_sentence])
        assert len(estimate.calls["llm"]) == count - len(model.calls)
        judges[name].assess(FAITHFULNESS, [one_sentence])
        assert sorted(call.repeat for call in model.calls) == list(range(count))
        assert not any(judges[name].estimate(FAITHFULNESS, [one_sentence]).calls.values())


def test_repeating_deterministic_judges_is_refused() -> None:
    panel = build(Scripted("a", {}), Scripted("b", {}), repeats=2)
    assert panel.check() == "repeats: none of the judges asks a chat model, so each repeat would give the same result"


def test_invalid_keys_are_refused_and_abilities_are_shared_ones() -> None:
    assert registry.load("judges", "panel") is Panel
    for keys, message in (
        ({"judges": ("a",)}, "a panel needs several judges"),
        ({"judges": ("a", "a")}, "'a' is listed twice"),
        ({"judges": ()}, "at least 1"),
    ):
        with pytest.raises(ValidationError, match=message):
            PanelNode(use="panel", **keys)
    judges = Scripted("a", {}, ("support", "grade")), Scripted("b", {}, ("support", "usefulness"))
    panel = build(*judges)
    assert panel.abilities == {"support"}
    panel.expect([FAITHFULNESS])
    assert [judge.expected for judge in judges] == [["faithfulness"]] * 2
    nothing = build(*judges).assess(FAITHFULNESS, [])
    assert (nothing.findings, nothing.written_notes) == ([], ())
