import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("f1@2", "axb", 0.4),  # P = 1/2, R = 1/3: 2 * (1/6) / (5/6)
        ("f1@3", "abc", 1.0),  # P = R = 1
        ("f1@5", "ab", 0.5),  # P = 2/5 though two were retrieved, R = 2/3: 2 * (4/15) / (16/15)
        ("f1@2", "xn", 0.0),  # P = R = 0
        ("f1(rel=2)@2", "ab", 2 / 3),  # P = 1/2, R = 1: 2 * (1/2) / (3/2)
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == pytest.approx(expected, rel=1e-15)


def test_no_relevant_document() -> None:
    assert value_of("f1@5", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("f1@5", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("f1", cutoff=10).name == "f1@10"
