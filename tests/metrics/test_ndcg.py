import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 3, "b": 2, "c": 1, "n": 0}


def test_hand_worked() -> None:
    # dcg@3 = 0 + 3/log2(3) + 2/log2(4) = 1.892789 + 1 = 2.892789
    # ideal@3 = 3/log2(2) + 2/log2(3) + 1/log2(4) = 3 + 1.261860 + 0.5 = 4.761860; 2.892789 / 4.761860 = 0.607492
    assert value_of("ndcg@3", GRADES, "xab") == pytest.approx(0.607492, abs=5e-7)


def test_exponential_gain() -> None:
    # dcg@3 = 7/log2(3) + 3/log2(4) = 4.416508 + 1.5 = 5.916508
    # ideal@3 = 7 + 3/log2(3) + 1/log2(4) = 7 + 1.892789 + 0.5 = 9.392789; 5.916508 / 9.392789 = 0.629899
    assert value_of("ndcg(gain=exp)@3", GRADES, "xab") == pytest.approx(0.629899, abs=5e-7)


def test_without_a_cutoff_the_ideal_ranking_has_every_judged_document() -> None:
    # dcg = 3; ideal = 3 + 2/log2(3) + 1/log2(4) = 4.761860; 3 / 4.761860 = 0.630006
    assert value_of("ndcg", GRADES, "a") == pytest.approx(0.630006, abs=5e-7)


@pytest.mark.parametrize(
    ("judgements", "ranking", "expected"),
    [
        ({"a": 0}, "a", 0.0),
        ({"a": -1, "b": -2}, "ab", 0.0),
        ({"a": 1, "b": -5}, "ab", 1.0),
        ({"a": 1}, "a", 1.0),
        ({"a": 1}, "xyz", 0.0),
    ],
)
def test_no_gain_and_negative_relevance(judgements: dict[str, int], ranking: str, expected: float) -> None:
    assert value_of("ndcg@10", judgements, ranking) == expected


def test_the_relevance_level_has_no_effect() -> None:
    assert value_of("ndcg@3", GRADES, "cba", relevance_level=3) == value_of("ndcg@3", GRADES, "cba")


def test_judged_only_closes_the_gaps() -> None:
    assert value_of("ndcg(judged_only=true)@3", GRADES, "xayb") == value_of("ndcg@3", GRADES, "ab")


def test_missing_query() -> None:
    assert missing_value("ndcg@10", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("ndcg", cutoff=10).name == "ndcg@10"
    assert plugin("ndcg", cutoff=10, gain="exp").name == "ndcg(gain=exp)@10"
    assert plugin("ndcg", gain="linear", judged_only=True).name == "ndcg(judged_only=true)"
