import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("judged@4", "axny", 0.5),  # a and n of 4
        ("judged@10", "axn", 2 / 3),  # a and n of the 3 that were retrieved
        ("judged", "axnyz", 0.4),  # a and n of 5
        ("judged@1", "m", 1.0),  # a negative relevance is a judgement
        ("judged@2", "xy", 0.0),
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("judged@1", {"a": 0}, "a") == 1.0


def test_missing_query() -> None:
    assert missing_value("judged@10", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("judged", cutoff=10).name == "judged@10"
