import pytest

from tests.metrics.scoring import missing_value, plugin, value_of

GRADES = {"a": 2, "b": 1, "n": 0, "o": 0, "p": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("bpref", "nab", 0.5),  # R = 2, N = 3: each of a and b has 1 of min(3, 2) above it: (1/2 + 1/2) / 2
        ("bpref", "xymanb", 0.75),  # unjudged x, y and the negative m do not count: (1 + 1/2) / 2
        ("bpref", "nopa", 0.0),  # 3 above a, bounded by R = 2: (1 - 2/2) / 2
        ("bpref", "a", 0.5),  # nothing above a, b not retrieved: 1 / 2
        ("bpref(rel=2)", "ba", 0.0),  # R = 1, N = 4: b stands above a: 1 - 1/1
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_no_document_judged_not_relevant() -> None:
    assert value_of("bpref", {"a": 1, "b": 1}, "xa") == 0.5


def test_no_relevant_document() -> None:
    assert value_of("bpref", {"a": 0, "b": -1}, "ab") == 0.0


def test_missing_query() -> None:
    assert missing_value("bpref", GRADES) == 0.0


def test_measure() -> None:
    assert plugin("bpref").name == "bpref"
