import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("set_f", "xanb", 4 / 7),  # P = 2/4, R = 2/3: 2 * (1/3) / (7/6)
        ("set_f(beta=4)", "xanb", 5 / 8),  # 5 * (1/3) / (4 * 1/2 + 2/3)
        ("set_f(beta=0)", "xanb", 1 / 2),  # P
        ("set_f", "xnm", 0.0),  # P = R = 0
        ("set_f(rel=2)", "xanb", 2 / 5),  # P = 1/4, R = 1: 2 * (1/4) / (5/4)
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == pytest.approx(expected, rel=1e-15)


def test_no_relevant_document() -> None:
    assert value_of("set_f", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("set_f", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("set_f").name == "set_f"
    assert plugin("set_f", beta=2).name == "set_f(beta=2)"
