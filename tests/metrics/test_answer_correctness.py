from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.data.findings import Finding
from rageval_spec.plugin import Context
from tests.metrics.judges import RuleJudge, TableModel, measure, metric, sample, value_of

ANSWER, REFERENCE = "born in Germany|in 1879|in Munich", "born in Germany|in 1879|in Ulm"
MODEL = TableModel({ANSWER: [1, 0], REFERENCE: [3, 4], "a": [1, 0], "b": [-1, 0], "|": [1, 0], "none": [0, 0]})


def test_hand_worked() -> None:
    # 2 right, 1 wrong, 1 missing: F1 = 2 / (2 + 0.5 * 2) = 2/3; cosine 0.6
    built = metric("answer_correctness", RuleJudge(), MODEL)
    (found,) = measure(built, sample(answer=ANSWER, reference=REFERENCE))
    assert found.value == pytest.approx(0.75 * 2 / 3 + 0.25 * 0.6)
    assert found.details is not None
    assert found.details["f"] == pytest.approx(2 / 3)
    assert found.details["similarity"] == pytest.approx(0.6)
    assert found.details["answer"]["score"] == pytest.approx(2 / 3)
    assert len(found.details["reference"]["claims"]) == 3


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"weights": [1, 1]}, (2 / 3 + 0.6) / 2),
        ({"weights": [3, 1]}, 0.75 * 2 / 3 + 0.25 * 0.6),  # only their ratio matters
        ({"weights": [2, 0]}, 2 / 3),
        ({"beta": 2.0}, 0.75 * 2 / 3 + 0.25 * 0.6),  # precision equals recall
    ],
)
def test_keys(keys: dict[str, Any], expected: float) -> None:
    built = metric("answer_correctness", RuleJudge(), MODEL, **keys)
    assert value_of(built, sample(answer=ANSWER, reference=REFERENCE)) == pytest.approx(expected)


def test_beta_weighs_recall() -> None:
    built = metric("answer_correctness", RuleJudge(), MODEL, beta=2.0, weights=[1, 0])
    assert value_of(built, sample(answer="a", reference="a|b")) == pytest.approx(5 * 0.5 / (4 + 0.5))


def test_no_model_is_needed_if_similarity_has_no_weight() -> None:
    built = metric("answer_correctness", RuleJudge(), weights=[1, 0])
    assert value_of(built, sample(answer="a", reference="a")) == 1.0


def test_all_texts_are_embedded_at_once() -> None:
    model = TableModel(MODEL.vectors)
    samples = [sample("1", answer="a", reference="a"), sample("2", answer="b", reference="a")]
    found = measure(metric("answer_correctness", RuleJudge(), model), *samples)
    assert model.asked == [("document", ("a", "b"))]
    assert [one.value for one in found] == [pytest.approx(1.0), pytest.approx(-0.25)]  # a cosine of -1 is kept


def test_edges() -> None:
    judge, model = RuleJudge(), TableModel({**MODEL.vectors, "broken": [1, 0]}, cut=["a"])
    built = metric("answer_correctness", judge, model)
    samples = [
        sample("1", answer=" ", reference="a"),
        sample("2", answer="a", reference=""),
        sample("3", answer="|", reference="a"),
        sample("4", answer="a", reference="|"),
        sample("5", answer="broken", reference="a"),
        sample("6", answer="none", reference="a"),
    ]
    found = measure(built, *samples)
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "the answer is empty"),
        (None, "unscorable", "the reference is empty"),
        (0.25, "scored", "the answer makes no claim"),
        (None, "unscorable", "the reference makes no claim"),
        (None, "error", "the reply is no JSON"),
        (None, "error", "minilm gives a vector of zeros for 'none'"),
    ]
    assert [note.code for note in built.compute(samples).written_notes] == ["texts_truncated"]


@pytest.mark.parametrize("weights", [[0, 1], [1], [1, -1], [1, math.inf], [1, math.nan], [math.nan, 1], [1, 1, 1]])
def test_invalid_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValidationError):
        metric("answer_correctness", RuleJudge(), MODEL, weights=weights)


def test_a_model_of_another_kind_is_refused() -> None:
    built: Any = metric("answer_correctness", RuleJudge())
    other = type(built)(built.node, Context("c", judges=built.context.judges, models={"minilm": built}))
    assert "gives no embeddings" in str(other.check())


@pytest.mark.parametrize("undecided", ["correctness", "completeness"])
def test_undecided_claims_never_score_0(undecided: str) -> None:
    judge = RuleJudge()
    judge.say = lambda _: Finding(None, reason="sent to a person") if judge.asked[-1][0] == undecided else None
    (found,) = measure(metric("answer_correctness", judge, weights=[1, 0]), sample(answer="a", reference="a"))
    assert (found.value, found.status, found.reason) == (None, "unscorable", "sent to a person")


def test_a_refusal_without_claims_claims_nothing() -> None:
    judge = RuleJudge()
    judge.say = lambda _: Finding(None, reason="nothing to judge") if judge.asked[-1][0] == "correctness" else None
    built = metric("answer_correctness", judge, weights=[1, 0])
    (found,) = measure(built, sample(answer="I don't know.", reference="a"))
    assert (found.value, found.status, found.reason) == (0.0, "scored", "the answer refuses: 'i don't know'")
