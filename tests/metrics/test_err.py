import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 4, "b": 2, "c": 1, "n": 0, "m": -1, "z": 9}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        # s(b) = 3/16, s(a) = 15/16: 1/1 * 3/16 + 1/2 * 15/16 * 13/16 = 96/512 + 195/512
        ("err", "ba", 291 / 512),
        # x, n and m never stop: 1/4 * 1/16
        ("err", "xnmc", 1 / 64),
        ("err@3", "xnmc", 0.0),  # c below the cutoff
        # max_grade 2: s(b) = 3/4, s(c) = 1/4: 3/4 + 1/2 * 1/4 * 1/4
        ("err(max_grade=2)", "bc", 25 / 32),
        ("err", "z", 15 / 16),  # 9 counts as 4
        ("err(judged_only=true)", "xmc", 1 / 16),  # x and m are removed
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == pytest.approx(expected, rel=1e-15)


def test_no_relevant_document() -> None:
    assert value_of("err@20", {"a": 0}, "a") == 0.0


def test_missing_query() -> None:
    assert missing_value("err@20", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("err", cutoff=20).name == "err@20"
    assert plugin("err", max_grade=3).name == "err(max_grade=3)"
