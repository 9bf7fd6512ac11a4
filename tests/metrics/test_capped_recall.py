import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("capped_recall@2", "abc", 1.0),  # 2 hits / min(2, 3): the best possible at two ranks
        ("capped_recall@2", "axb", 0.5),  # 1 hit / min(2, 3)
        ("capped_recall@10", "axb", 2 / 3),  # 2 hits / min(10, 3)
        ("capped_recall(rel=2)@2", "xa", 1.0),  # 1 hit / min(2, 1)
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("capped_recall@5", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("capped_recall@5", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("capped_recall", cutoff=10).name == "capped_recall@10"
