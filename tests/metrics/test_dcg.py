import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 3, "b": 2, "n": 0}


def test_hand_worked() -> None:
    # 0 + 3/log2(3) + 2/log2(4) = 1.892789 + 1 = 2.892789
    assert value_of("dcg@3", GRADES, "xab") == pytest.approx(2.892789, abs=5e-7)


def test_exponential_gain() -> None:
    # 7/log2(3) + 3/log2(4) = 4.416508 + 1.5 = 5.916508
    assert value_of("dcg(gain=exp)@3", GRADES, "xab") == pytest.approx(5.916508, abs=5e-7)


@pytest.mark.parametrize(
    ("judgements", "ranking", "expected"),
    [({"a": 0}, "a", 0.0), ({"a": -2}, "a", 0.0), ({"a": 3}, "a", 3.0), ({"a": 3}, "xyzwva", 0.0)],
)
def test_edges(judgements: dict[str, int], ranking: str, expected: float) -> None:
    assert value_of("dcg@5", judgements, ranking) == expected


def test_missing_query() -> None:
    assert missing_value("dcg", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("dcg").name == "dcg"
    assert plugin("dcg", gain="exp", cutoff=5).name == "dcg(gain=exp)@5"
