import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("set_precision", "xanb", 0.5),  # a and b of 4
        ("set_precision(rel=2)", "xanb", 0.25),  # a of 4
        ("set_precision(judged_only=true)", "xamb", 1.0),  # x and m are removed: a and b of 2
        ("set_precision(judged_only=true)", "xy", 0.0),  # nothing is left
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("set_precision", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("set_precision", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("set_precision").name == "set_precision"
