import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 1, "b": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("ranking", "expected"),
    [
        # a at rank 1: 1; b at rank 3 below a and n: 1/3 + 2/3 * 2/2 * (1 + e)/(2 + 2e) = 1/3 + 1/3; (1 + 2/3) / 2
        ("anb", 5 / 6),
        # x is outside the pool: b at rank 3: 1/3 + 2/3 * 1/2 * (1 + e)/(1 + 2e), e = 0.00001: 0.6666633
        ("axb", (1 + 1 / 3 + 1 / 3 * 1.00001 / 1.00002) / 2),
        # m is in the pool and not judged: b at rank 3: 1/3 + 2/3 * 2/2 * (1 + e)/(1 + 2e)
        ("amb", (1 + 1 / 3 + 2 / 3 * 1.00001 / 1.00002) / 2),
        # a at rank 2 below x: 1/2 + 1/2 * 0/1 * e/2e = 1/2; b not retrieved: (1/2) / 2
        ("xa", 0.25),
    ],
)
def test_hand_worked(ranking: str, expected: float) -> None:
    assert value_of("infap", GRADES, ranking) == pytest.approx(expected, rel=1e-12)


def test_no_relevant_document() -> None:
    assert value_of("infap", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("infap", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("infap", rel=2).name == "infap(rel=2)"
