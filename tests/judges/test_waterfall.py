from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.findings import Failed, Finding
from rageval_spec.data.judge_calibration import StepBounds
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judges.grade import GradeJudge, GradeNode
from rageval_spec.judges.waterfall import Waterfall, WaterfallNode
from rageval_spec.plugin import Context, Judge, ModelNode, PairModel, PairScores
from rageval_spec.plugin.block_names import names_in
from rageval_spec.runner import Options, run
from tests.judge_calibrations import describe, write
from tests.judges.fakes import (
    FAITHFULNESS,
    PRECISION,
    RUBRIC,
    Scripted,
    WordModel,
    claim,
    context_of,
    finding_of,
    samples_for,
    scores_of,
)
from tests.judging.fakes import FakeChatModel, text_of


def build(*judges: Judge[Any], model: Any = None, **stages: Any) -> Waterfall:
    """A waterfall with only the given stages."""
    keys = {"retrieval": None, "answerability": None, "relevance": None, **stages}
    return Waterfall(WaterfallNode(use="waterfall", **keys), context_of(*judges, model or WordModel()))


def at(judge: str = "faith", **bounds: float | None) -> dict[str, Any]:
    return {"judge": judge, "reject": None, "person": None, "accept": None, **bounds}


def test_a_stage_rejects_accepts_passes_on_or_asks_for_a_person() -> None:
    faith = Scripted("faith", {"a": 0.19, "b": 0.2, "c": 0.5, "d": 0.9})
    after = Scripted("after", {"c": 1.0}, ("grade",))
    waterfall = build(faith, after, faithfulness=at(reject=0.2, person=0.5, accept=0.9), relevance=at("after"))
    assessment = waterfall.assess(FAITHFULNESS, samples_for("a", "b", "c", "d"))
    assert scores_of(assessment) == [0.0, None, 0.5, 0.9]
    assert [finding_of(assessment, place).reason for place in range(4)] == [
        "rejected at faithfulness: faithfulness 0.19 is below 0.20",
        "sent to a person at faithfulness: faithfulness 0.20 is below 0.50",
        None,
        "accepted at faithfulness: faithfulness 0.90 reaches 0.90",
    ]
    assert after.asked == [["c"]]
    assert [note.message for note in assessment.written_notes] == [
        "4 samples: 2 accepted (50%), 1 rejected (25%), 1 sent to a person (25%); coverage against risk: 25% 0.100, "
        "50% 0.300"
    ]


def retrieved(question: str, *contexts: str) -> Sample:
    return Sample("q", question, answer="an answer", contexts=contexts)


def test_the_retrieval_stage_uses_the_highest_similarity_of_a_context() -> None:
    bounds = {"model": "words", "reject": 0.1, "person": 0.3}
    faith = Scripted("faith", {"q": 0.8})
    waterfall = build(faith, retrieval=bounds, faithfulness=at())
    asked = [
        retrieved("a b c d", "x y", "a x y z"),
        retrieved("a b c d", "x y"),
        retrieved("a b c d", "x", "a b c z"),
        retrieved("a b c d", " "),
        retrieved("a b c d"),
        Sample("q", "a b", answer="an answer"),
    ]
    assessment = waterfall.assess(FAITHFULNESS, asked)
    assert scores_of(assessment) == [None, 0.0, 0.8, 0.0, 0.0, 0.8]
    reason = f"sent to a person at retrieval: top similarity {1 / sqrt(16):.2f} is below 0.30"
    assert finding_of(assessment).reason == reason
    assert finding_of(assessment, 3).reason == "rejected at retrieval: top similarity 0.00 is below 0.10"
    assert finding_of(assessment, 1).decided_by == "retrieval"


class Reranker(PairModel[ModelNode]):
    """Gives the number of words that two texts share as the logit."""

    def __init__(self, labels: tuple[str, ...] = ("LABEL_0",)) -> None:
        super().__init__(ModelNode(use="onnx"), Context("words"))
        self._labels = labels

    @property
    def labels(self) -> tuple[str, ...]:
        return self._labels

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        logits = [[len({*a.split()} & {*b.split()}) - 2.0] for a, b in pairs]
        return PairScores(np.array(logits, np.float32), np.array([len(b.split()) > 5 for _, b in pairs]))


def test_the_retrieval_stage_can_use_a_reranker() -> None:
    bounds = {"model": "words", "by": "reranker", "reject": None, "person": 0.5, "accept": None}
    waterfall = build(Scripted("faith", {"q": 0.8}), model=Reranker(), retrieval=bounds, faithfulness=at())
    asked = [retrieved("a b c", "a x", "x"), retrieved("a b c", "a b c x y z")]
    assessment = waterfall.assess(FAITHFULNESS, asked)
    value = 1 / (1 + exp(1))
    assert finding_of(assessment).reason == f"sent to a person at retrieval: top probability {value:.2f} is below 0.50"
    assert finding_of(assessment, 1).score == 0.8
    assert assessment.written_notes[0].message == "1 of 3 pairs is longer than words reads and was cut"
    classifier = Reranker(("no", "yes"))
    with pytest.raises(
        UsageError, match=r"retrieval.model: a reranker has one label, but the model 'words' has no, yes"
    ):
        build(Scripted("faith", {}), model=classifier, retrieval=bounds, faithfulness=at()).assess(FAITHFULNESS, asked)


def test_samples_accepted_before_faithfulness_have_the_highest_score() -> None:
    faith = Scripted("faith", {})
    waterfall = build(faith, retrieval={"model": "words", "accept": 0.9}, faithfulness=at())
    assessment = waterfall.assess(RUBRIC, [retrieved("a b", "a b")])
    assert (scores_of(assessment), faith.asked) == ([5.0], [])
    assert finding_of(assessment).reason == "accepted at retrieval: top similarity 1.00 reaches 0.90"


def test_stages_ask_judges_for_what_they_can_do() -> None:
    grader = Scripted("grader", {"q": 4.0}, ("grade",))
    local = Scripted("local", {"q": 0.5}, ("support", "usefulness"))
    asked: list[str] = []
    for judge in (grader, local):
        faith = Scripted("faith", {"q": 0.8})
        stages = {"answerability": at(judge.context.name), "relevance": at(judge.context.name, person=0.6)}
        waterfall = build(faith, judge, faithfulness=at(), **stages)
        waterfall.expect([FAITHFULNESS])
        asked += [f"{judge.context.name}: {', '.join(judge.expected)}"]
        assessment = waterfall.assess(FAITHFULNESS, samples_for("q", answer="It is as red as a rose."))
        asked += [str(finding_of(assessment).score)]
        assert faith.expected == ["faithfulness"]
    assert asked == ["grader: answerability, relevance", "0.8", "local: answerability, relevance", "None"]


def test_answers_of_a_few_words_are_not_compared_with_the_question() -> None:
    near = Scripted("near", {"q": 0.0}, ("usefulness",))
    faith = Scripted("faith", {"q": 0.8})
    waterfall = build(faith, near, faithfulness=at(), relevance=at("near", person=0.3))
    assert scores_of(waterfall.assess(FAITHFULNESS, samples_for("q", answer="In 1999."))) == [0.8]
    assert scores_of(waterfall.assess(FAITHFULNESS, samples_for("q", answer="It was opened in 1999."))) == [None]
    assert len(near.asked) == 1


def test_a_refusal_is_right_if_the_contexts_do_not_contain_the_answer() -> None:
    judges = Scripted("holds", {"a": 0.1, "b": 0.9}, ("support",)), Scripted("faith", {})
    waterfall = build(*judges, answerability=at("holds", person=0.5), faithfulness=at())
    assessment = waterfall.assess(FAITHFULNESS, samples_for("a", "b", answer="I don't know."))
    assert scores_of(assessment) == [None, None]
    right, wrong = (finding_of(assessment, place).reason or "" for place in range(2))
    assert right.startswith("the answer refuses, and answerability does not show")
    assert wrong.startswith("sent to a person at answerability: the answer is a refusal")
    assert "1 sent to a person (50%), 1 without anything to judge (50%)" in assessment.written_notes[0].message


def test_the_users_own_phrases_are_refusals_too() -> None:
    judges = Scripted("holds", {"a": 0.1}, ("support",)), Scripted("faith", {"a": 0.9})
    stages = {"answerability": at("holds", person=0.5), "faithfulness": at()}
    said = samples_for("a", answer="That is above my pay grade.")
    before = build(*judges, **stages).assess(FAITHFULNESS, said)
    after = build(*judges, **stages, phrases=["above my pay grade"]).assess(FAITHFULNESS, said)
    assert (finding_of(before).reason or "").startswith("sent to a person at answerability: answerability 0.10")
    assert (finding_of(after).reason or "").startswith("the answer refuses, and answerability does not show")


def test_failures_and_answers_without_claims_keep_their_reason() -> None:
    faith = Scripted("faith", {"a": Failed("timeout", raw="x"), "b": None})
    assessment = build(faith, faithfulness=at(person=0.5)).assess(FAITHFULNESS, samples_for("a", "b"))
    assert list(assessment.findings) == [
        Failed("at faithfulness: timeout", raw="x"),
        Finding(None, reason="nothing to judge", decided_by="faithfulness"),
    ]


def test_claims_and_confidence_stay_with_the_finding() -> None:
    said = Finding(0.8, (claim(0.8, "supported"),), confidence=0.4)
    assessment = build(Scripted("faith", {"q": said}), faithfulness=at(person=0.9)).assess(
        FAITHFULNESS, samples_for("q")
    )
    assert finding_of(assessment).claims == said.claims
    accepted = build(Scripted("faith", {"q": said}), faithfulness=at()).assess(FAITHFULNESS, samples_for("q"))
    assert accepted.written_notes[0].message.endswith("coverage against risk: 100% 0.600")


def test_risk_grows_with_coverage() -> None:
    scores = {name: 1 - place / 10 for place, name in enumerate("abcdefgh")}
    assessment = build(Scripted("faith", dict(scores)), faithfulness=at()).assess(FAITHFULNESS, samples_for(*scores))
    risks = "25% 0.050, 50% 0.150, 75% 0.250, 100% 0.350"
    assert assessment.written_notes[0].message.endswith(f"coverage against risk: {risks}")


def test_every_stage_has_defaults_and_refers_to_its_judge() -> None:
    assert registry.load("judges", "waterfall") is Waterfall
    node = WaterfallNode(use="waterfall")
    assert names_in(node, "judges") == ("overlap", "embedding")
    assert names_in(node, "models") == ("minilm",)
    with pytest.raises(ValidationError, match=r"reject \(0.5\) is above person \(0.35\)"):
        WaterfallNode(use="waterfall", retrieval={"reject": 0.5})


def test_unsuitable_judges_and_models_are_refused() -> None:
    able = Scripted("faith", {}, ("support", "usefulness", "claims"))
    assert build(able, faithfulness=at(), relevance=at()).check() is None
    assert build(able, faithfulness=at()).abilities == {"support", "claims"}
    useful = Scripted("useful", {}, ("usefulness",))
    assert build(useful, faithfulness=at("useful")).check() == (
        "faithfulness.judge: 'useful' can neither assess support nor grade"
    )
    bad = build(able, useful, faithfulness=at(), answerability=at("useful"))
    assert bad.check() == "answerability.judge: 'useful' can neither grade nor assess support"
    with pytest.raises(UsageError, match=r"the model 'words' .* is not an embedding model; name one, such as minilm"):
        build(able, model=Reranker(), retrieval={"model": "words"}, faithfulness=at()).check()
    with pytest.raises(UsageError, match="cannot assess usefulness"):
        build(able, faithfulness=at()).assess(PRECISION, samples_for("q"))


def test_an_estimate_counts_all_stages() -> None:
    faith, after = Scripted("faith", {}, model="llm"), Scripted("after", {}, ("grade",), model="llm")
    calls = build(faith, after, faithfulness=at(), relevance=at("after")).estimate(FAITHFULNESS, samples_for("q")).calls
    assert list(calls["llm"]) == ["faithfulness q", "relevance q"]


def test_no_samples_are_assessed_without_error() -> None:
    assessment = build(Scripted("faith", {}), faithfulness=at()).assess(FAITHFULNESS, [])
    assert (list(assessment.findings), assessment.notes) == ([], ())


def test_the_values_of_all_stages_are_read_as_if_none_decided() -> None:
    scores: dict[str, Any] = {"a": 0.1, "b": 0.3, "c": 0.95, "d": Failed("timeout"), "e": None, "f": 0.5}
    faith = Scripted("faith", scores)
    after = Scripted("after", {"b": 0.25, "f": 1.0}, ("grade",))
    waterfall = build(
        faith, after, faithfulness=at(reject=0.2, person=0.5, accept=0.9), relevance=at("after", person=0.9)
    )
    assert waterfall.read_stages(FAITHFULNESS, samples_for(*"abcdef")) == {
        "faithfulness": [-1.0, 0.3, 0.95, -1.0, -1.0, 0.5],
        "relevance": [None, 0.25, None, None, None, 1.0],
    }
    assert after.asked == [["b", "f"]]


def calibrated(folder: Path, *judges: Scripted, person: float, **stages: Any) -> Waterfall:
    """A waterfall whose calibration sends answers about faithfulness below a bound to a person."""
    plain = build(*judges, **stages)
    context = replace(plain.context, folder=folder)
    entry = describe(plain, FAITHFULNESS, map=None, steps=(StepBounds("faithfulness", person=person),))
    write(folder / "c.json", entry)
    return Waterfall(plain.node.model_copy(update={"calibration": "c.json"}), context)


def test_a_calibration_says_what_goes_to_a_person(tmp_path: Path) -> None:
    faith = Scripted("faith", {"a": 0.1, "b": 0.69, "c": 0.7})
    waterfall = calibrated(tmp_path, faith, person=0.7, faithfulness={"judge": "faith", "reject": 0.2})
    assert waterfall.check() is None
    assert scores_of(waterfall.assess(FAITHFULNESS, samples_for("a", "b", "c"))) == [0.0, None, 0.7]
    tone = Scripted("faith", {"a": 4.0})
    other = calibrated(tmp_path, tone, person=0.9, faithfulness={"judge": "faith", "reject": 0.2})
    assert scores_of(other.assess(RUBRIC, samples_for("a"))) == [4.0]


def test_a_bound_of_the_spec_and_a_calibration_conflict(tmp_path: Path) -> None:
    faith = Scripted("faith", {})
    told = calibrated(tmp_path, faith, person=0.7, faithfulness=at()).check()
    assert told == "faithfulness has its own 'person', which the calibration would replace; remove one"


def reply_with(grade: int) -> FakeChatModel:
    return FakeChatModel(lambda _: {"reason": "so", "grade": grade})


@pytest.mark.parametrize("stage", ["answerability", "relevance"])
@pytest.mark.parametrize(
    ("grade", "outcome"), [(1, None), (3, None), (5, None), (6, 0.8), (7, 0.8), (9, 1.0), (10, 1.0), (11, "failed")]
)
def test_a_stage_is_graded_on_its_judges_own_scale(stage: str, grade: int, outcome: float | str | None) -> None:
    """From 1 to 10, 5 is 0.44 and 7 is 0.67: a person decides below 0.5, and 0.8 accepts."""
    model = reply_with(grade)
    context = Context("grader", models={"llm": model})
    node = GradeNode(use="grade", model="llm", scale="1-10", guide={"1": "none", "10": "all"}, probabilities=False)
    grader, faith = GradeJudge(node, context), Scripted("faith", {"q": 0.8})
    waterfall = build(faith, grader, faithfulness=at(), **{stage: at("grader", person=0.5, accept=0.8)})
    sample = Sample("q", "Who made it?", answer="an answer", contexts=("Ada made it.",))
    (found,) = waterfall.assess(FAITHFULNESS, [sample]).findings
    if outcome == "failed":
        assert isinstance(found, Failed)
    else:
        assert isinstance(found, Finding)
        expected = 0.8 if stage == "relevance" and outcome == 1.0 else outcome
        assert found.score == expected
    assert "Grade from 1 (not at all) to 10 (completely).\n1: none\n10: all" in text_of(model.calls[0])


def test_stages_that_decided_nothing_stay_in_the_funnel() -> None:
    faith, after = Scripted("faith", {"a": 0.8, "b": 0.1}), Scripted("after", {"a": 1.0}, ("grade",))
    waterfall = build(faith, after, faithfulness=at(reject=0.2), relevance=at("after"))
    (note,) = waterfall.assess(FAITHFULNESS, samples_for("a", "b")).written_notes
    assert note.table == (
        ("stage", "reached", "accepted", "rejected"),
        ("faithfulness", "2", "0", "1"),
        ("relevance", "1", "0", "0"),
        ("the last stage", "1", "1", "0"),
    )


class Scaled(Scripted):
    """Asks its own question, on its own scale."""

    @property
    def scale(self) -> tuple[float, float]:
        return 1.0, 10.0


def test_its_scale_is_that_of_the_judge_that_gives_the_score() -> None:
    """A rubric without a scale of its own takes it from there; the judges of other stages have no say."""
    judges = (Scaled("wide", {}, ("grade",)), Scripted("narrow", {}, ("grade",)))
    assert build(*judges, faithfulness=at("wide"), relevance=at("narrow")).scale == (1.0, 10.0)


def scored(query_id: str, *scores: float | None) -> Sample:
    contexts = tuple(f"context {at}" for at in range(len(scores)))
    return Sample(query_id, query_id, answer="an answer", contexts=contexts, scores=scores or None)


def test_the_retrieval_stage_can_use_the_retrievers_own_scores() -> None:
    bounds = {"by": "scores", "reject": 0.2, "person": None, "accept": 0.8}
    faith = Scripted("faith", {"b": 0.7, "d": 0.6})
    waterfall = build(faith, retrieval=bounds, faithfulness=at())
    assert waterfall.check() is None
    asked = [scored("a", 0.1, 0.19), scored("b", 0.25, 0.3), scored("c", 0.4, 0.8), scored("d")]
    assessment = waterfall.assess(FAITHFULNESS, asked)
    assert scores_of(assessment) == [0.0, 0.7, 1.0, 0.6]
    assert faith.asked == [["b", "d"]], "answers without scores go on to the next stage"
    assert finding_of(assessment, 0).reason == "rejected at retrieval: top score 0.19 is below 0.20"
    assert finding_of(assessment, 2).reason == "accepted at retrieval: top score 0.80 reaches 0.80"


def test_a_context_without_a_score_leaves_the_others_theirs() -> None:
    waterfall = build(Scripted("faith", {"a": 0.7}), retrieval={"by": "scores", "reject": 0.2}, faithfulness=at())
    assert scores_of(waterfall.assess(FAITHFULNESS, [scored("a", None, 0.1)])) == [0.0]


def test_scores_that_no_answer_has_are_a_warning() -> None:
    waterfall = build(Scripted("faith", {"a": 0.7, "b": 0.7}), retrieval={"by": "scores"}, faithfulness=at())
    notes = waterfall.assess(FAITHFULNESS, [scored("a"), scored("b")]).written_notes
    (warning,) = [note for note in notes if note.level == "warning"]
    assert warning.message == (
        "judges.tested.retrieval: no answer has scores of its contexts, so 'by: scores' decides nothing; record a "
        "score for each context, or use 'by: similarity'"
    )
    assert not any(note.level == "warning" for note in waterfall.assess(FAITHFULNESS, [scored("a", 0.9)]).written_notes)


def test_no_model_is_asked_for_scores() -> None:
    node = WaterfallNode(use="waterfall", retrieval={"by": "scores"}, relevance=None)
    assert names_in(node, "models") == ()
    with pytest.raises(ValidationError, match=r"'by: scores' reads the retriever's scores and asks no model; remove"):
        WaterfallNode(use="waterfall", retrieval={"by": "scores", "model": "minilm"})
    with pytest.raises(ValidationError, match=r"'by: similarity' needs a model; name one with 'model'"):
        WaterfallNode(use="waterfall", retrieval={"model": None})


def test_scores_beyond_0_and_1_are_refused_unless_it_is_rounding() -> None:
    waterfall = build(Scripted("faith", {"a": 0.7}), retrieval={"by": "scores"}, faithfulness=at())
    assert scores_of(waterfall.assess(FAITHFULNESS, [scored("a", 1.0000001)])) == [0.7]
    assert scores_of(waterfall.assess(FAITHFULNESS, [scored("a", -0.2)])) == [0.0]
    message = r"retrieval: the retriever's scores are not between 0 and 1: 12.5 in a; use 'by: similarity' or"
    with pytest.raises(UsageError, match=message):
        waterfall.assess(FAITHFULNESS, [scored("a", 3.0, 12.5)])


def test_scores_come_from_the_recorded_answers(tmp_path: Path) -> None:
    rows = [
        {
            "query_id": "q1",
            "question": "Is it red?",
            "answer": "It is red.",
            "contexts": [{"text": "Red.", "score": 0.9}],
        },
        {
            "query_id": "q2",
            "question": "Is it blue?",
            "answer": "It is blue.",
            "contexts": ["Red."],
            "scores": [0.1],
        },
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    stages = {"retrieval": {"by": "scores", "reject": 0.2, "accept": 0.8}, "answerability": None, "relevance": None}
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"app": {"use": "file", "path": "rows.jsonl"}},
        "judges": {"stages": {"use": "waterfall", **stages}},
        "metrics": [{"use": "faithfulness", "judge": "stages"}],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    outcome = run(tmp_path / "spec.yaml", Options(quiet=True, output=tmp_path / "out"))
    assert dict(outcome.evaluation.values.select("query_id", "value").iter_rows()) == {"q1": 1.0, "q2": 0.0}
