from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.judges import RuleJudge, calls, measure, metric, sample, value_of

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=8)


def test_hand_worked() -> None:
    contexts = ("in Paris|on the Seine", "330 m high")
    one = sample(reference="in Paris|330 m high|built in 1889|by Eiffel", contexts=contexts)
    assert value_of(metric("context_recall", RuleJudge()), one) == 0.5


def test_the_answer_is_not_needed() -> None:
    assert metric("context_recall", RuleJudge()).needs == {"contexts", "reference"}
    assert metric("context_recall", by="ids").needs == {"context_ids", "relevant"}


def test_edges() -> None:
    judge = RuleJudge()
    found = measure(
        metric("context_recall", judge),
        sample("1", contexts=(), reference="a"),
        sample("2", contexts=("a",), reference=""),
        sample("3", contexts=("a",), reference="|"),
        sample("4", contexts=("broken",), reference="a"),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "there are no contexts, or only empty ones"),
        (None, "unscorable", "the reference is empty"),
        (None, "unscorable", "the reference makes no claim"),
        (None, "error", "the reply is no JSON"),
    ]
    assert judge.asked == [("context_recall", ("3", "4"))]


def test_by_ids_hand_worked() -> None:
    built = metric("context_recall", by="ids")
    one = sample(context_ids=("x", "a", "c", "a"), relevant={"a": 1, "b": 2, "c": 1, "n": 0, "m": -1})
    (found,) = measure(built, one)
    assert found.value == pytest.approx(2 / 3)
    assert found.details == {"relevant": ["a", "b", "c"], "found": ["a", "c"]}
    assert value_of(metric("context_recall", by="ids", rel=2), one) == 0.0
    assert calls(built.estimate([one])) == []
    assert (built.criteria(), built.judges()) == ((), ())


@given(IDS, st.sets(st.sampled_from("abcdefgh"), min_size=1))
def test_by_ids_is_recall_of_documents(ids: list[str], relevant: set[str]) -> None:
    one = sample(context_ids=tuple(ids), relevant=dict.fromkeys(relevant, 1))
    expected = sum(doc in ids for doc in relevant) / len(relevant)
    assert value_of(metric("context_recall", by="ids"), one) == pytest.approx(expected)


def test_by_ids_edges() -> None:
    found = measure(
        metric("context_recall", by="ids"),
        sample(context_ids=("a",), relevant={"a": 0}),
        sample(context_ids=(), relevant={"a": 1}),
        sample(contexts=(), relevant={"a": 1}),
    )
    assert not sample(contexts=()).lacks("context_ids")
    assert sample(contexts=("text",)).lacks("context_ids")
    assert [(one.value, one.status, one.reason) for one in found] == [
        (None, "unscorable", "no relevant document"),
        (0.0, "scored", "there are no contexts, or only empty ones"),
        (0.0, "scored", "there are no contexts, or only empty ones"),
    ]
