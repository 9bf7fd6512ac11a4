import pytest
from pydantic import ValidationError

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "c": 1, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        # precision at the ranks: 0, 1/2, 2/3, 2/4, 3/5; with R = 3 the level 0.5 needs int(2.4) = 2 documents
        ("iprec@0.5", "xabyc", 2 / 3),
        ("iprec@0", "xabyc", 2 / 3),  # the best precision at any rank
        ("iprec@0.1", "xabyc", 2 / 3),  # int(1.2) = 1 document: ranks 2 to 5
        ("iprec@0.8", "xabyc", 3 / 5),  # int(3.3) = 3 documents: rank 5
        ("iprec@1", "xaby", 0.0),  # three documents were not retrieved
        ("iprec(rel=2)@1", "xab", 1 / 2),  # R = 1: a at rank 2
        ("iprec(judged_only=true)@1", "xabmc", 1.0),  # x and m are removed
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_relevant_document() -> None:
    assert value_of("iprec@0", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("iprec@0", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("iprec", recall=0.1).name == "iprec@0.1"
    assert plugin("iprec", recall=1, rel=2).name == "iprec(rel=2)@1"
    assert plugin("iprec", recall=0.0).name == "iprec@0"
    with pytest.raises(ValidationError, match="recall"):
        plugin("iprec")
