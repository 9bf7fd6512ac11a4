from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec import registry
from rageval_spec.data.assessment import Ability, Assessment, Claim, Criterion, Failed, Finding
from rageval_spec.data.evaluation import Note
from rageval_spec.data.sample import Sample
from rageval_spec.metrics.shared.judged import (
    ANSWER_IN_CONTEXTS,
    ANSWER_IN_REFERENCE,
    collect_notes,
    compare_meanings,
    explain_inability,
    f_beta,
    is_blank,
    is_met,
    judge_contexts,
    measure_finding,
    measure_findings,
    name_metric,
)
from rageval_spec.plugin import Context, Measurement
from tests.metrics.judges import RuleJudge, TableModel, calls, metric, sample

USEFUL = Criterion("useful", "usefulness", "Is it?", text="contexts", against="question")


def test_findings_become_measurements_and_none_is_lost() -> None:
    note = Note("few", "few")
    claim = Claim("a", 0.25, "contradicted", 3, 9, 1, "not a", "it says so")
    found: list[Finding | Failed] = [
        Finding(0.25, (claim,), "one claim", "nli", 0.8),
        Finding(None, reason="no claim"),
        Failed("502", "<html>"),
    ]
    measured = measure_findings(Assessment(found, (note,)))
    assert measured.notes == (note,)
    assert list(measured.measurements) == [
        Measurement(
            0.25,
            "scored",
            "one claim",
            {
                "score": 0.25,
                "claims": [
                    {
                        "text": "a", "score": 0.25, "verdict": "contradicted", "start": 3, "end": 9, "source": 1,
                        "evidence": "not a", "reason": "it says so",
                    }
                ],
                "decided_by": "nli",
                "confidence": 0.8,
            },
        ),
        Measurement(None, "unscorable", "no claim", {"claims": []}),
        Measurement(None, "error", "502", {"raw": "<html>"}),
    ]  # fmt: skip
    assert measure_finding(Finding(0.0, (Claim("a", 0.0),))).details == {
        "score": 0.0,
        "claims": [{"text": "a", "score": 0.0}],
    }
    assert measure_finding(Failed("timeout")).details is None


@pytest.mark.parametrize(
    ("claim", "met"),
    [
        (Claim("a", 0.2, "supported"), True),  # the verdict is the judge's own cut
        (Claim("a", 0.9, "not_enough_info"), False),
        (Claim("a", 0.9, "contradicted"), False),
        (Claim("a", 0.5), True),
        (Claim("a", 0.49), False),
    ],
)
def test_what_counts_as_supported(claim: Claim, met: bool) -> None:
    assert is_met(claim) is met


def test_names_have_the_keys_that_are_not_at_their_default() -> None:
    judge = RuleJudge("recall")
    assert name_metric(metric("faithfulness", judge).node) == "faithfulness"
    # the judge's name is left out, a key's value that reads like it is not
    assert name_metric(metric("factual_correctness", judge, mode="recall").node) == "factual_correctness(mode=recall)"
    assert name_metric(metric("factual_correctness", judge, beta=0.5).node) == "factual_correctness(beta=0.5)"
    assert name_metric(metric("context_precision", judge, with_="answer").node) == "context_precision(with=answer)"
    assert name_metric(metric("context_recall", by="ids", rel=2).node) == "context_recall(by=ids,rel=2)"
    built = metric("answer_correctness", judge, weights=[1, 3.5], model="other")
    assert name_metric(built.node) == "answer_correctness(weights=1+3.5)"
    assert name_metric(built.node, ("weights",)) == "answer_correctness"
    assert built.name == "answer_correctness(weights=1+3.5)"


def test_a_judge_that_is_not_able_is_refused_with_those_that_are() -> None:
    graders = RuleJudge("fast", abilities=frozenset({"grade"}))
    assert metric("faithfulness", graders).check() == (
        "the judge 'fast' (use: rule) cannot say which claims of a text are supported; "
        "use claims, overlap, embedding or nli"
    )
    assert metric("context_precision", graders).check() == (
        "the judge 'fast' (use: rule) cannot say which of several texts are useful; use claims, overlap or embedding"
    )
    supporters = RuleJudge("s", abilities=frozenset({"support"}))
    assert "cannot make up questions that an answer would answer; use claims" in str(
        metric("answer_relevancy", supporters).check()
    )
    assert metric("answerability", supporters).check() == (
        "the judge 's' (use: rule) cannot make up questions that an answer would answer; "
        "use claims, grade, choice, binary or scores; or write 'by: phrases', which asks none"
    )
    assert "cannot list the named things in a text; use claims or overlap" in str(
        metric("context_entity_recall", supporters).check()
    )
    assert "cannot split a text into claims" in str(metric("conciseness", supporters).check())
    assert "cannot split a text into claims" in str(metric("noise_sensitivity", supporters).check())
    assert "cannot grade a sample as a whole" in str(metric("rubric", supporters, criteria="Is it?").check())


@pytest.mark.parametrize("ability", get_args(Ability))
def test_judges_that_are_named_instead_are_able(ability: Ability) -> None:
    fault = explain_inability(RuleJudge(abilities=frozenset()), [frozenset({ability})])
    words = fault.rpartition("use ")[2].replace(" or ", ", ").split(", ")
    assert words
    for word in words:
        judge = registry.load("judges", word)
        model = {"model": "m"} if "model" in judge.node_type.model_fields else {}
        node = judge.node_type.model_validate({"use": word, **model})
        assert ability in judge(node, Context(word)).abilities


def test_a_judge_that_is_missing_or_not_asked_is_said() -> None:
    assert metric("context_recall").check() == "context_recall: it needs a judge; name one with 'judge:'"
    assert metric("context_recall", by="ids").check() is None
    assert metric("context_recall", RuleJudge(), by="ids").check() == (
        "no judge is asked with these keys; leave out 'judge: rule'"
    )
    unknown = metric("faithfulness", RuleJudge())
    assert type(unknown)(unknown.node, Context("faithfulness")).check() == (
        "faithfulness: there is no judge 'rule'; name it under 'judges:'"
    )


def test_what_is_settled_is_not_asked_and_all_keep_their_places() -> None:
    judge = RuleJudge(notes=(Note("slow", "slow"),))
    built = metric("completeness", judge)
    samples = [
        sample("1", answer=" ", reference="a"),
        sample("2", answer="a", reference="a|b"),
        sample("3", answer="a", reference=""),
        sample("4", answer="broken", reference="a"),
        sample("5", answer="a|b", reference="a|b"),
    ]
    measured = built.compute(samples)
    assert [one.status for one in measured.measurements] == ["scored", "scored", "unscorable", "error", "scored"]
    assert [one.value for one in measured.measurements] == [0.0, 0.5, None, None, 1.0]
    assert measured.notes == (Note("slow", "slow"),)
    assert judge.asked == [("completeness", ("2", "4", "5"))]
    assert calls(built.estimate(samples)) == ["support a|b > a", "support a > broken", "support a|b > a|b"]


def test_notes_of_one_assessment_of_several_say_of_which() -> None:
    slow, both = Note("slow", "slow", count=1), Note("cut", "cut")
    found = [Assessment((), (both, slow)), Assessment((), (both,))]
    assert collect_notes([ANSWER_IN_CONTEXTS, ANSWER_IN_REFERENCE], found) == (
        both,
        Note("slow", "answer against contexts: slow", count=1),
    )
    assert collect_notes([ANSWER_IN_CONTEXTS], found[:1]) == (both, slow)
    assert collect_notes([], []) == ()


@pytest.mark.parametrize(
    ("word", "keys", "pairs"),
    [
        ("factual_correctness", {}, ["answer against reference", "reference against answer"]),
        ("answer_correctness", {"weights": [1, 0]}, ["answer against reference", "reference against answer"]),
        (
            "noise_sensitivity",
            {},
            ["answer against reference", "answer against contexts", "reference against contexts"],
        ),
    ],
)
def test_metrics_that_ask_several_things_tell_their_notes_apart(
    word: str, keys: dict[str, Any], pairs: list[str]
) -> None:
    class Numbering(RuleJudge):
        def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
            found = super().assess(criterion, samples)
            return Assessment(found.findings, (Note("number", f"number {len(self.asked)}"),))

    measured = metric(word, Numbering(), **keys).compute([sample(answer="a|b", reference="a", contexts=("a", "b"))])
    assert [note.message.partition(": number ")[0] for note in measured.notes] == pairs


def test_nobody_is_asked_where_all_is_settled() -> None:
    judge = RuleJudge()
    assert metric("completeness", judge).compute([sample(answer="", reference="a")]).measurements[0].value == 0.0
    assert metric("completeness", judge).compute([]).measurements == []
    assert judge.asked == []


def test_empty_contexts_are_not_shown_and_keep_their_place() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", "a", contexts=("b", " ", "a")),
        sample("2", "a", contexts=("", "")),
        sample("3", "a", contexts=()),
        sample("4", "a", contexts=("broken",)),
    ]
    first, second, third, fourth = judge_contexts(judge, USEFUL, samples).findings
    assert isinstance(first, Finding)
    assert [(claim.text, claim.score) for claim in first.claims] == [("b", 0.0), ("", 0.0), ("a", 1.0)]
    assert first.score == pytest.approx(1 / 3)
    assert isinstance(second, Finding)
    assert (second.score, [claim.reason for claim in second.claims]) == (0.0, ["the text is empty"] * 2)
    assert third == Finding(None, reason="there are no contexts, or only empty ones")
    assert fourth == Failed("the reply is no JSON", "Sure! Here")
    assert judge.asked == [("useful", ("1", "4"))]
    assert judge_contexts(judge, USEFUL, [samples[1]]).findings == [second]


def test_a_judge_that_skips_a_context_has_failed() -> None:
    one = Finding(1.0, (Claim("a", 1.0),))
    judge = RuleJudge(say=lambda _: one)
    (found,) = judge_contexts(judge, USEFUL, [sample(contexts=("a", "b"))]).findings
    assert found == Failed("the judge gave 1 verdict on 2 texts")


def test_the_judges_own_score_counts() -> None:
    # a judge with a threshold: one of two reaches it; the empty third counts 0
    one = Finding(0.5, (Claim("a", 0.7), Claim("b", 0.2)), decided_by="nli", confidence=0.9)
    (found,) = judge_contexts(RuleJudge(say=lambda _: one), USEFUL, [sample(contexts=("a", "b", ""))]).findings
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(1 / 3)
    assert (found.decided_by, found.confidence) == ("nli", 0.9)


def test_a_judge_that_has_nothing_to_go_by_gives_no_value() -> None:
    judge = RuleJudge(say=lambda _: Finding(None, reason="the question has no content word"))
    one = sample(answer="a", reference="a", contexts=("a",))
    for word in ("context_relevance", "context_precision", "conciseness"):
        (found,) = metric(word, judge).compute([one]).measurements
        assert (found.status, found.reason) == ("unscorable", "the question has no content word")


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_f_beta_is_the_weighted_harmonic_mean(precision: float, recall: float, beta: float) -> None:
    value = f_beta(precision, recall, beta)
    if precision < 1e-9 or recall < 1e-9:
        assert value <= 1e-6
        return
    weight = 1 / (1 + beta**2)
    assert value == pytest.approx(1 / (weight / precision + (1 - weight) / recall), rel=1e-6)
    assert min(precision, recall) - 1e-9 <= value <= max(precision, recall) + 1e-9


def test_f_beta_by_counts() -> None:
    # 2 right, 1 wrong, 2 missing: 2 / (2 + 0.5 * (1 + 2)) = 4/7
    assert f_beta(2 / 3, 2 / 4) == pytest.approx(4 / 7)
    assert f_beta(2 / 3, 2 / 4, 2.0) == pytest.approx(5 * 2 / (5 * 2 + 4 * 2 + 1))
    assert f_beta(0.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("texts", "blank"),
    [(None, True), ("", True), (" \n", True), ("a", False), ((), True), (("", " "), True), (("", "a"), False)],
)
def test_blank(texts: Any, blank: bool) -> None:
    assert is_blank(texts) is blank


def test_meanings_are_compared_at_once_and_each_text_once() -> None:
    model = TableModel({"x": [1, 0], "y": [0, 2], "xy": [3, 3], "none": [0, 0]}, cut=["xy"])
    pairs = [("x", "y"), ("x", "xy"), ("x", "x"), ("none", "x"), ("y", "none")]
    cosines = compare_meanings(model, pairs, "query")
    assert model.asked == [("query", ("x", "y", "xy", "none"))]
    assert cosines.values[:3] == pytest.approx([0.0, math.sqrt(0.5), 1.0])
    assert cosines.values[3:] == [Failed("minilm gives no direction to 'none'")] * 2
    (note,) = cosines.notes
    assert (note.code, note.count) == ("texts_truncated", 1)
    assert note.message == "1 of 4 texts is longer than minilm reads and was cut"


def test_no_pairs_need_no_model() -> None:
    model = TableModel({})
    assert compare_meanings(model, [], "query").values == ()
    assert model.asked == []


@given(st.lists(st.lists(st.integers(-5, 5), min_size=3, max_size=3), min_size=2, max_size=6))
def test_cosines_as_numpy_has_them(rows: list[list[int]]) -> None:
    vectors = {str(place): [float(number) for number in row] for place, row in enumerate(rows)}
    pairs = [(first, second) for first in vectors for second in vectors]
    for (first, second), cosine in zip(
        pairs, compare_meanings(TableModel(vectors), pairs, "document").values, strict=True
    ):
        a, b = np.array(vectors[first]), np.array(vectors[second])
        if not a.any() or not b.any():
            assert isinstance(cosine, Failed)
        else:
            assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)


def test_metrics_that_ask_the_same_use_the_same_criterion() -> None:
    judge = RuleJudge()
    recall = metric("factual_correctness", judge, mode="recall")
    assert recall.criteria() == metric("completeness", judge).criteria()
    assert metric("answer_correctness", judge).criteria() == metric("factual_correctness", judge).criteria()
    assert ANSWER_IN_CONTEXTS in metric("noise_sensitivity", judge).criteria()
