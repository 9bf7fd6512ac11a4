"""Names of values at places that several answers share."""

from __future__ import annotations

from rageval_spec.exchange.shared.naming import Names
from rageval_spec.exchange.shared.scores import Score


def score(system: str) -> Score:
    return Score("golden", system, "q1", "faithfulness", 0.5, "scored", None, None, {})


def test_only_those_who_come_later_to_a_place_are_named_in_full() -> None:
    names = Names()
    assert names.choose("t1", score("v1"), "faithfulness") == "faithfulness"
    assert names.choose("t1", score("v1"), "ndcg@10") == "ndcg@10"
    assert names.choose("t1", score("v2"), "faithfulness") == "faithfulness (golden/v2)"
    assert names.choose("t2", score("v2"), "faithfulness") == "faithfulness"
