from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.exchange.mlflow.names import name_metrics

ACCEPTED = re.compile(r"[\w\-. :/]{1,250}")
"""What MLflow accepts, besides that no part of a name may be empty, `.` or `..`."""


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("ndcg@10", "ndcg_at_10"),
        ("ndcg(gain=exp)@10", "ndcg_gain_exp__at_10"),
        ("latency@p95", "latency_p95"),
        ("faithfulness", "faithfulness"),
        ("safety/toxicity", "safety/toxicity"),
        ("../etc", "__/etc"),
        ("//", "metric"),
        ("Qualität", "Qualität"),
    ],
)
def test_names_keep_what_mlflow_accepts(metric: str, name: str) -> None:
    assert name_metrics([metric]) == {metric: name}


def test_a_name_that_needs_no_change_keeps_it() -> None:
    assert name_metrics(["ndcg@10", "ndcg_at_10"]) == {"ndcg@10": "ndcg_at_10_2", "ndcg_at_10": "ndcg_at_10"}


@given(st.lists(st.text(min_size=1, max_size=300)))
def test_all_names_are_accepted_and_different(metrics: list[str]) -> None:
    named = name_metrics(metrics)
    assert list(named) == list(dict.fromkeys(metrics))
    assert len(set(named.values())) == len(named)
    for name in named.values():
        assert ACCEPTED.fullmatch(name)
        assert not {"", ".", ".."} & set(name.split("/"))
        assert ACCEPTED.fullmatch(f"{name}/scored")
