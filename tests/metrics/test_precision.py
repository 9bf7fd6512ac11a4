import pytest
from pydantic import ValidationError

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("precision@4", "axbn", 0.5),  # a and b of 4
        ("precision@5", "ab", 0.4),  # a and b of 5, though two were retrieved
        ("precision(rel=2)@2", "ab", 0.5),  # only a is relevant
        ("precision@2", "nm", 0.0),
        ("precision(judged_only=true)@2", "xyamb", 1.0),  # x, y and the negative m are removed: a, b
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("precision@1", {"a": 0}, "a") == 0.0


def test_missing_query() -> None:
    assert missing_value("precision@5", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("precision", cutoff=5, rel=2).name == "precision(rel=2)@5"
    with pytest.raises(ValidationError, match="cutoff"):
        plugin("precision")
