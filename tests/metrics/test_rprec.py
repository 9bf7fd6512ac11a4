import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("rprec", "axb", 0.5),  # R = 2: a of a, x
        ("rprec", "ba", 1.0),
        ("rprec", "a", 0.5),  # one retrieved, still divided by R
        ("rprec(rel=2)", "ba", 0.0),  # R = 1: b is not relevant from 2 on
        ("rprec(judged_only=true)", "xyab", 1.0),
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("rprec", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("rprec", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("rprec", rel=2).name == "rprec(rel=2)"
