import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("recall@2", "axbc", 1 / 3),  # a of a, b, c
        ("recall@100", "axb", 2 / 3),  # a and b of a, b, c
        ("recall@2", "abc", 2 / 3),  # three relevant documents do not fit into two ranks
        ("recall(rel=2)@1", "abc", 1.0),  # a of a
        ("recall(judged_only=true)@2", "xyab", 2 / 3),  # a and b move up to ranks 1 and 2
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("recall@5", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("recall@5", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("recall", cutoff=100).name == "recall@100"
