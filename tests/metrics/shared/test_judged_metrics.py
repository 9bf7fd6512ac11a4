""""""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import pytest

from rageval_spec import registry
from rageval_spec.data.findings import Ability, Assessment, Claim, Criterion, Failed, Finding
from rageval_spec.data.outcomes import Note
from rageval_spec.data.samples import Sample
from rageval_spec.metrics.shared.judged_metrics import (
    ANSWER_IN_CONTEXTS,
    ANSWER_IN_REFERENCE,
    RefusalAwareMetric,
    collect_notes,
    explain_inability,
    is_met,
    judge_each,
    measure_finding,
)
from rageval_spec.plugin import Context, Measurement
from tests.metrics.judges import RuleJudge, TableModel, calls, metric, sample


def test_an_unable_judge_is_refused_with_a_list_of_able_ones() -> None:
    graders = RuleJudge("fast", abilities=frozenset({"grade"}))
    assert metric("faithfulness", graders).check() == (
        "the judge 'fast' (use: rule) cannot decide which claims of a text are supported; "
        "use assignment, binary, choice, claims, detector, embedding, grade, nli, overlap, prompt or scores"
    )
    assert metric("context_precision", graders).check() == (
        "the judge 'fast' (use: rule) cannot decide which of several texts are useful; "
        "use binary, choice, claims, embedding, grade, overlap or scores"
    )
    supporters = RuleJudge("s", abilities=frozenset({"support"}))
    assert "cannot write questions that an answer would answer; use claims" in str(
        metric("answer_relevancy", supporters).check()
    )
    assert metric("answerability", supporters).check() == (
        "the judge 's' (use: rule) cannot write questions that an answer would answer; "
        "use claims, binary, choice, grade, prompt or scores; or write 'by: phrases', which needs no judge"
    )
    assert "cannot list the named entities in a text; use claims or overlap" in str(
        metric("context_entity_recall", supporters).check()
    )
    assert "cannot split a text into claims" in str(metric("conciseness", supporters).check())
    assert "cannot split a text into claims" in str(metric("noise_sensitivity", supporters).check())
    assert "cannot grade a sample as a whole" in str(metric("rubric", supporters, criteria="Is it?").check())


@pytest.mark.parametrize("ability", get_args(Ability))
def test_suggested_judges_are_able(ability: Ability) -> None:
    fault = explain_inability(RuleJudge(abilities=frozenset()), [frozenset({ability})])
    words = fault.rpartition("use ")[2].replace(" or ", ", ").split(", ")
    assert words
    for word in words:
        judge = registry.load("judges", word)
        needed = {key: "m" for key in ("model", "template") if key in judge.node_type.model_fields}
        node = judge.node_type.model_validate({"use": word, **needed})
        assert ability in judge(node, Context(word)).abilities


def test_a_missing_or_superfluous_judge_is_reported() -> None:
    assert metric("context_recall").check() == "context_recall: this metric needs a judge; name one with 'judge:'"
    assert metric("context_recall", by="ids").check() is None
    assert metric("context_recall", RuleJudge(), by="ids").check() == ("these keys need no judge; remove 'judge: rule'")
    unknown = metric("faithfulness", RuleJudge())
    assert type(unknown)(unknown.node, Context("faithfulness")).check() == (
        "faithfulness: there is no judge 'rule'; declare it under 'judges:'"
    )


def test_settled_samples_are_not_asked_about_and_order_is_kept() -> None:
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
def test_notes_of_metrics_with_several_questions_name_the_question(
    word: str, keys: dict[str, Any], pairs: list[str]
) -> None:
    class Numbering(RuleJudge):
        def assess(self, criterion: Criterion, samples: Sequence[Sample]) -> Assessment:
            found = super().assess(criterion, samples)
            return Assessment(found.findings, (Note("number", f"number {len(self.asked)}"),))

    measured = metric(word, Numbering(), **keys).compute([sample(answer="a|b", reference="a", contexts=("a", "b"))])
    assert [note.message.partition(": number ")[0] for note in measured.written_notes] == pairs


def test_the_judge_is_not_called_if_everything_is_settled() -> None:
    judge = RuleJudge()
    assert metric("completeness", judge).compute([sample(answer="", reference="a")]).measurements[0].value == 0.0
    assert metric("completeness", judge).compute([]).measurements == []
    assert judge.asked == []


def test_findings_become_measurements_and_none_is_lost() -> None:
    claim = Claim("a", 0.25, "contradicted", 3, 9, 1, "not a", "it says so")
    found: list[Finding | Failed] = [
        Finding(0.25, (claim,), "one claim", "nli", 0.8),
        Finding(None, reason="no claim"),
        Failed("502", "<html>"),
    ]
    assert [*map(measure_finding, found)] == [
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
        (Claim("a", 0.2, "supported"), True),  # the verdict follows the judge's own threshold
        (Claim("a", 0.9, "not_enough_info"), False),
        (Claim("a", 0.9, "contradicted"), False),
        (Claim("a", 0.5), True),
        (Claim("a", 0.49), False),
    ],
)
def test_what_counts_as_supported(claim: Claim, met: bool) -> None:
    assert is_met(claim) is met


def test_notes_name_the_assessment_if_there_are_several() -> None:
    slow, both = Note("slow", "slow", count=1), Note("cut", "cut")
    found = [Assessment((), (both, slow)), Assessment((), (both,))]
    assert collect_notes([ANSWER_IN_CONTEXTS, ANSWER_IN_REFERENCE], found) == (
        both,
        Note("slow", "answer against contexts: slow", count=1),
    )
    assert collect_notes([ANSWER_IN_CONTEXTS], found[:1]) == (both, slow)
    assert collect_notes([], []) == ()


WORDS = [word for word in registry.words("metrics") if issubclass(registry.load("metrics", word), RefusalAwareMetric)]
OWN = "Ask the desk; I am only a bot."


def test_every_metric_that_looks_at_refusals_takes_phrases() -> None:
    assert {*WORDS} >= {
        "answer_correctness", "answer_relevancy", "conciseness", "factual_correctness", "faithfulness",
        "noise_sensitivity",
    }  # fmt: skip
    assert "phrases" in registry.load("metrics", "answerability").node_type.model_fields


@pytest.mark.parametrize("word", [word for word in WORDS if word != "answer_correctness"])
@pytest.mark.parametrize("answer", ["Das weiß ich leider nicht.", "Sorry! ask the desk;  I am only a bot."])
def test_a_refusal_in_any_language_or_with_a_listed_phrase_needs_no_judge(word: str, answer: str) -> None:
    judge = RuleJudge()
    built = metric(word, judge, TableModel({}), phrases=[OWN])
    one = sample(question="a", answer=answer, contexts=("a",), reference="a")
    (found,) = built.compute([one]).measurements
    assert str(found.reason).startswith("the answer refuses: '")
    assert judge.asked == []


def test_the_reason_names_the_phrase_of_the_spec() -> None:
    built = metric("faithfulness", RuleJudge(), phrases=[OWN])
    (found,) = built.compute([sample(answer=OWN, contexts=("a",))]).measurements
    assert (found.status, found.reason) == ("unscorable", "the answer refuses: 'ask the desk; i am only a bot.'")


@pytest.mark.parametrize("word", WORDS)
def test_phrases_change_the_key_but_not_the_name(word: str) -> None:
    plain, own = (metric(word, RuleJudge(), phrases=phrases) for phrases in ([], [OWN]))
    assert plain.name == own.name == word
    assert "phrases" not in plain.content()["node"]
    assert own.content()["node"]["phrases"] == [OWN]


USEFUL = Criterion("useful", "usefulness", "Is it?", text="contexts", against="question")


def test_empty_contexts_are_not_shown_and_keep_their_place() -> None:
    judge = RuleJudge()
    samples = [
        sample("1", "a", contexts=("b", " ", "a")),
        sample("2", "a", contexts=("", "")),
        sample("3", "a", contexts=()),
        sample("4", "a", contexts=("broken",)),
    ]
    first, second, third, fourth = judge_each(judge, USEFUL, samples).findings
    assert isinstance(first, Finding)
    assert [(claim.text, claim.score) for claim in first.claims] == [("b", 0.0), ("", 0.0), ("a", 1.0)]
    assert first.score == pytest.approx(1 / 3)
    assert isinstance(second, Finding)
    assert (second.score, [claim.reason for claim in second.claims]) == (0.0, ["the text is empty"] * 2)
    assert third == Finding(None, reason="there are no contexts, or only empty ones")
    assert fourth == Failed("the reply is no JSON", "Sure! Here")
    assert judge.asked == [("useful", ("1", "4"))]
    assert judge_each(judge, USEFUL, [samples[1]]).findings == [second]


def test_a_judge_that_skips_a_context_has_failed() -> None:
    one = Finding(1.0, (Claim("a", 1.0),))
    judge = RuleJudge(say=lambda _: one)
    (found,) = judge_each(judge, USEFUL, [sample(contexts=("a", "b"))]).findings
    assert found == Failed("the judge gave 1 verdict on 2 texts")


def test_a_score_of_the_judge_is_the_value() -> None:
    # a judge with a threshold: one of two contexts reaches it; the third is empty and counts 0
    one = Finding(0.5, (Claim("a", 0.7), Claim("b", 0.2)), decided_by="nli", confidence=0.9)
    (found,) = judge_each(RuleJudge(say=lambda _: one), USEFUL, [sample(contexts=("a", "b", ""))]).findings
    assert isinstance(found, Finding)
    assert found.score == pytest.approx(1 / 3)
    assert (found.decided_by, found.confidence) == ("nli", 0.9)


def test_a_judge_that_cannot_decide_gives_no_value() -> None:
    judge = RuleJudge(say=lambda _: Finding(None, reason="the question has no content word"))
    one = sample(answer="a", reference="a", contexts=("a",))
    for word in ("context_relevance", "context_precision", "conciseness"):
        (found,) = metric(word, judge).compute([one]).measurements
        assert (found.status, found.reason) == ("unscorable", "the question has no content word")


def test_metrics_that_ask_the_same_use_the_same_criterion() -> None:
    judge = RuleJudge()
    recall = metric("factual_correctness", judge, mode="recall")
    assert recall.criteria() == metric("completeness", judge).criteria()
    assert metric("answer_correctness", judge).criteria() == metric("factual_correctness", judge).criteria()
    assert ANSWER_IN_CONTEXTS in metric("noise_sensitivity", judge).criteria()
