from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Claim, Finding
from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of
from tests.metrics.scoring import value_of as kernel_value

VERDICTS = st.lists(st.booleans(), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ("101", (1 + 2 / 3) / 2),
        ("011", (1 / 2 + 2 / 3) / 2),
        ("110", 1.0),
        ("001", 1 / 3),
        ("111", 1.0),  # exactly, without an epsilon in the denominator
        ("000", 0.0),
    ],
)
def test_hand_worked(useful: str, expected: float) -> None:
    contexts = tuple("a" if mark == "1" else "x" for mark in useful)
    assert value_of(metric("context_precision", RuleJudge()), sample(contexts=contexts, reference="a|b")) == expected


@given(VERDICTS)
def test_mean_of_precision_at_useful_positions(verdicts: list[bool]) -> None:
    precisions = [sum(verdicts[: k + 1]) / (k + 1) for k in range(len(verdicts)) if verdicts[k]]
    expected = sum(precisions) / len(precisions) if precisions else 0.0
    one = sample(contexts=tuple("a" if verdict else "x" for verdict in verdicts), reference="a")
    assert value_of(metric("context_precision", RuleJudge()), one) == pytest.approx(expected)


@given(VERDICTS)
def test_it_equals_average_precision_if_all_relevant_documents_are_retrieved(verdicts: list[bool]) -> None:
    docs = "abcdefgh"[: len(verdicts)]
    judged = {doc: int(verdict) for doc, verdict in zip(docs, verdicts, strict=True)}
    if any(verdicts):
        found = value_of(metric("context_precision", by="ids"), sample(context_ids=tuple(docs), relevant=judged))
        assert found == pytest.approx(kernel_value("map", judged, docs))


def test_details_have_every_context() -> None:
    (found,) = measure(metric("context_precision", RuleJudge()), sample(contexts=("x", "", "a"), reference="a"))
    assert found.details == {
        "score": found.value,
        "contexts": [
            {"text": "x", "score": 0.0, "verdict": "not_enough_info", "useful": False},
            {"text": "", "score": 0.0, "verdict": "not_enough_info", "reason": "the text is empty", "useful": False},
            {"text": "a", "score": 1.0, "verdict": "supported", "useful": True},
        ],
        "part": "contexts",
        "against": "reference",
        "judge": "rule",
    }
    assert found.value == pytest.approx(1 / 3)


def test_long_contexts_are_cut_in_details() -> None:
    claims = (Claim("a" * 200, 1.0, start=0, end=200), Claim("b" * 300, 0.0, start=202, end=502))
    judge = RuleJudge(say=lambda _: Finding(0.5, claims, decided_by="nli"))
    (found,) = measure(metric("context_precision", judge), sample(contexts=("a" * 200, "b" * 300), reference="a"))
    assert found.details == {
        "score": 1.0,
        "decided_by": "nli",
        "contexts": [
            {"text": "a" * 200, "score": 1.0, "useful": True},
            {"text": "b" * 199 + "…", "score": 0.0, "useful": False},
        ],
        "part": "contexts",
        "against": "reference",
        "judge": "rule",
    }


def test_with_the_answer_no_reference_is_needed() -> None:
    judge = RuleJudge()
    built = metric("context_precision", judge, with_="answer")
    assert built.needs == {"contexts", "answer"}
    assert value_of(built, sample(contexts=("x", "a"), answer="a")) == 0.5
    assert judge.criteria[0].against == "answer"
    assert metric("context_precision", judge).needs == {"contexts", "reference"}
    assert metric("context_precision", judge).criteria()[0].name != judge.criteria[0].name


def test_scores_without_verdicts_are_cut_in_the_middle() -> None:
    scores = (0.49, 0.5)
    judge = RuleJudge(say=lambda one: Finding(0.5, tuple(Claim(text, s) for text, s in zip("xy", scores, strict=True))))
    assert value_of(metric("context_precision", judge), sample(contexts=("x", "y"), reference="a")) == 0.5


def test_edges() -> None:
    found = measure(
        metric("context_precision", RuleJudge()),
        sample(contexts=(), reference="a"),
        sample(contexts=("x",), reference="a"),
        sample(contexts=("a",), reference=""),
        sample(contexts=("a", "broken"), reference="a"),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "there are no contexts, or only empty ones"),
        (0.0, "scored", "no context is useful"),
        (None, "unscorable", "the reference is empty"),
        (None, "error", "the reply is no JSON"),
    ]


def test_by_ids_hand_worked() -> None:
    built = metric("context_precision", by="ids")
    # two parts of one relevant document, an unjudged document, another relevant document
    (found,) = measure(built, sample(context_ids=("a", "a", "x", "b"), relevant={"a": 1, "b": 2, "n": 0}))
    assert found.value == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert found.details is not None
    assert found.details["contexts"][2] == {"id": "x", "useful": False}
    assert built.name == "context_precision(by=ids)"
    assert (built.judges(), built.criteria()) == ((), ())


def test_by_ids_edges() -> None:
    found = measure(
        metric("context_precision", by="ids", rel=2),
        sample(context_ids=("a",), relevant={"a": 1}),
        sample(context_ids=("a", "b"), relevant={"a": 1, "b": 2}),
        sample(context_ids=(), relevant={"b": 2}),
    )
    assert [(one.value, one.status) for one in found] == [(None, "unscorable"), (0.5, "scored"), (0.0, "scored")]
    assert found[0].reason == "no relevant document"
