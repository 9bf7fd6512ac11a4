import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("success@3", "xnb", 1.0),  # b at rank 3
        ("success@2", "xnb", 0.0),  # b below the cutoff
        ("success@10", "ab", 1.0),
        ("success(rel=2)@3", "xnb", 0.0),  # b is not relevant from 2 on
        ("success@2", "nm", 0.0),
        ("success(judged_only=true)@1", "xmb", 1.0),  # x and m are removed: b at rank 1
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("success@5", {"a": 0}, "a") == 0.0


def test_missing_query() -> None:
    assert missing_value("success@5", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("success", cutoff=5).name == "success@5"
