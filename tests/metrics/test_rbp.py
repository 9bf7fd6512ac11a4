import pytest
from pydantic import ValidationError

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("rbp", "axb", 0.328),  # (1 - 0.8) * (0.8^0 + 0.8^2) = 0.2 * 1.64
        ("rbp(p=0.5)", "xab", 0.375),  # 0.5 * (0.5^1 + 0.5^2)
        ("rbp(p=0.5)@2", "xab", 0.25),  # 0.5 * 0.5^1
        ("rbp(rel=2)", "ab", 0.2),  # 0.2 * 0.8^0: b is not relevant from 2 on
        ("rbp", "nm", 0.0),
        ("rbp(judged_only=true,p=0.5)", "xa", 0.5),  # x is removed: 0.5 * 0.5^0
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == pytest.approx(expected, rel=1e-14)


def test_no_relevant_document() -> None:
    assert value_of("rbp", {"a": 0}, "a") == 0.0


def test_missing_query() -> None:
    assert missing_value("rbp", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("rbp").name == "rbp"
    assert plugin("rbp", p=0.95, cutoff=10).name == "rbp(p=0.95)@10"
    with pytest.raises(ValidationError, match="less than 1"):
        plugin("rbp", p=1.0)
