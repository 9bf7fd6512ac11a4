import polars as pl
import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("rr", "xnbma", 1 / 3),  # b, the first relevant one, at rank 3
        ("rr(rel=2)", "xnbma", 1 / 5),  # a at rank 5
        ("rr@2", "xnb", 0.0),  # below the cutoff
        ("rr@10", "ab", 1.0),
        ("rr", "nm", 0.0),
        ("rr(judged_only=true)", "xnb", 1 / 2),  # x is removed
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("rr", {"a": 0}, "a") == 0.0


def test_missing_query() -> None:
    assert missing_value("rr", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("rr").name == "rr"
    assert plugin("rr", cutoff=10).name == "rr@10"


def test_values_tell_the_rank_of_the_first_relevant_document() -> None:
    ranks = [*range(1, 200), 0]
    values = pl.DataFrame({
        "value": [*(1 / rank if rank else 0.0 for rank in ranks), None],
        "status": [*["scored"] * len(ranks), "error"],
        "reason": None,
    })  # fmt: skip
    found = plugin("rr").find_ranks(values)
    assert found is not None
    assert found.to_list() == ranks
    assert plugin("ndcg").find_ranks(values) is None
