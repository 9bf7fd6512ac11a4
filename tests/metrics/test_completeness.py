from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.judges import RuleJudge, measure, metric, sample, value_of

TEXTS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6)


def test_hand_worked() -> None:
    # the answer has two of the three claims of the reference; its other claims do not count
    one = sample(answer="in Paris|330 m high|made of wood", reference="in Paris|330 m high|built in 1889")
    (found,) = measure(metric("completeness", RuleJudge()), one)
    assert found.value == pytest.approx(2 / 3)
    assert found.details is not None
    assert [claim["text"] for claim in found.details["claims"]] == ["in Paris", "330 m high", "built in 1889"]


@given(TEXTS, TEXTS)
def test_covered_claims_over_claims(answer: list[str], reference: list[str]) -> None:
    one = sample(answer="|".join(answer), reference="|".join(reference))
    expected = sum(claim in answer for claim in reference) / len(reference)
    assert value_of(metric("completeness", RuleJudge()), one) == pytest.approx(expected)


def test_edges() -> None:
    found = measure(
        metric("completeness", RuleJudge()),
        sample(answer="", reference="a"),
        sample(answer="a", reference=" "),
        sample(answer="a", reference="|"),
        sample(answer="b", references=("a", "b")),  # the first reference is used
        sample(answer="broken", reference="a"),
    )
    assert [(one.value, one.status, one.reason) for one in found] == [
        (0.0, "scored", "the answer is empty"),
        (None, "unscorable", "the reference is empty"),
        (None, "unscorable", "the reference makes no claim"),
        (0.0, "scored", None),
        (None, "error", "the reply is no JSON"),
    ]
