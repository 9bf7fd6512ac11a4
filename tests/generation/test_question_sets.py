import pytest

from rageval_spec.generation.mixes import Mix
from rageval_spec.generation.question_sets import QuestionSet, Share
from tests.generation.writing import Workshop

MIX = Mix({"factual": 50, "procedural": 50}, {"easy": 50, "hard": 50}, {"plain": 100})


def row(type: str, difficulty: str | None) -> dict[str, str | None]:
    return {"type": type, "difficulty": difficulty, "kind": "single", "style": "plain"}


def test_shares_are_counted_and_difficulties_as_they_were_measured() -> None:
    made = QuestionSet([row("factual", "easy"), row("factual", "medium"), row("procedural", None)])
    assert made.count_shares(MIX) == [
        Share("type", "factual", 2, 1.5),
        Share("type", "procedural", 1, 1.5),
        Share("difficulty", "easy", 1, 1.0),
        Share("difficulty", "hard", 0, 1.0),
        Share("difficulty", "medium", 1, 0.0),
        Share("kind", "single", 3, 3.0),
    ]


def test_what_is_not_as_ordered_is_told() -> None:
    rows = [row("factual", "easy")] * 6 + [row("procedural", "easy")] * 5
    assert QuestionSet(rows, (), ("1 question: none passed the checks in 4 attempts",)).list_differences(MIX) == [
        "1 question is missing: none passed the checks in 4 attempts",
        "their mix is not as ordered: difficulty easy: 11 instead of 6; difficulty hard: none instead of 6",
    ]


def test_reasons_are_counted_the_most_frequent_first() -> None:
    rejected = [{"reason": reason} for reason in ("leak", "known", "leak", "duplicate")]
    assert [*QuestionSet([], rejected).reasons.items()] == [("leak", 2), ("duplicate", 1), ("known", 1)]


def test_what_is_stored_is_read_back(workshop: Workshop) -> None:
    made = workshop.make("count: 3")
    unpacked = QuestionSet.unpack(made.pack())
    assert unpacked is not None
    assert [*unpacked.rows] == [*made.rows]
    assert unpacked.pack() == made.pack()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"format": 99, "rows": []}', b'{"format": 1, "lines": []}'])
def test_what_is_damaged_is_made_again(content: bytes) -> None:
    assert QuestionSet.unpack(content) is None
