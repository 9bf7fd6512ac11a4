import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("set_recall", "xanbm", 2 / 3),  # a and b of a, b, c
        ("set_recall(rel=2)", "xanb", 1.0),  # a of a
        ("set_recall", "xnm", 0.0),
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("set_recall", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("set_recall", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("set_recall", rel=3).name == "set_recall(rel=3)"
