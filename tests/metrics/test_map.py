import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("map", "xanb", 1 / 3),  # (1/2 at a + 2/4 at b + 0 for c) / 3
        ("map@2", "xanb", 1 / 6),  # (1/2 at a) / 3: divided by R, not by the cutoff
        ("map", "abc", 1.0),
        ("map(rel=2)", "xanb", 1 / 2),  # (1/2 at a) / 1
        ("map(judged_only=true)", "xamb", 2 / 3),  # x and m are removed: (1/1 + 2/2 + 0) / 3
        ("map@10", "nm", 0.0),
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == pytest.approx(expected, rel=1e-15)


def test_no_relevant_document() -> None:
    assert value_of("map", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("map", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("map").name == "map"
    assert plugin("map", cutoff=100, rel=2).name == "map(rel=2)@100"
