from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.errors import UsageError
from rageval_spec.generation.split import Sourced, Split, divide_rows, read_shares, split_questions

SHARES = {"validation": 0.3, "test": 0.7}


def test_shares_are_read_from_two_numbers() -> None:
    assert read_shares("30:70") == {"validation": 0.3, "test": 0.7}
    assert read_shares("1:3") == {"validation": 0.25, "test": 0.75}


@pytest.mark.parametrize("text", ["30", "30:70:0", "a:b", "0:100", "-1:2", "nan:1", "inf:1", ""])
def test_other_shares_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="such as 30:70"):
        read_shares(text)


def test_sizes_and_kinds_are_as_wanted_and_no_document_is_in_both() -> None:
    random = Random(1)
    questions = [
        Sourced((f"d{place // 3}",), (f"type: {random.choice('ab')}", f"difficulty: {random.choice(['easy', 'hard'])}"))
        for place in range(300)
    ]
    split = split_questions(questions, SHARES)
    assert split.remarks == ()
    assert Counter(split.sides)["validation"] == pytest.approx(90, abs=1)
    documents = {side: {questions[i].documents for i in range(300) if split.sides[i] == side} for side in SHARES}
    assert documents["validation"].isdisjoint(documents["test"])
    for kind in ("type: a", "difficulty: hard"):
        found = Counter(side for side, one in zip(split.sides, questions, strict=True) if kind in one.kinds)
        assert found["validation"] / 90 == pytest.approx(found["test"] / 210, abs=0.05)


def test_questions_over_several_documents_keep_them_together() -> None:
    questions = [Sourced(("a", "b")), Sourced(("b", "c")), Sourced(("c",)), *(Sourced((f"x{n}",)) for n in range(7))]
    split = split_questions(questions, SHARES)
    assert len(set(split.sides[:3])) == 1
    assert Counter(split.sides) == {"validation": 3, "test": 7}


def test_it_is_said_when_the_shares_are_impossible() -> None:
    split = split_questions([Sourced(("only",), ("type: a",))] * 10, SHARES)
    assert set(split.sides) == {"test"}
    assert split.remarks == (
        "validation has 0 questions instead of 3: 10 questions share documents, and no document may be in both sets",
        "test has 10 questions instead of 7: 10 questions share documents, and no document may be in both sets",
    )


def test_it_is_said_when_the_mix_is_impossible() -> None:
    questions = [*[Sourced(("a",), ("type: x",))] * 30, *[Sourced((f"b{n}",), ("type: y",)) for n in range(70)]]
    split = split_questions(questions, {"validation": 0.5, "test": 0.5})
    assert Counter(split.sides)["validation"] == pytest.approx(50, abs=3)
    assert any("% type: x instead of 30%" in remark for remark in split.remarks)


def test_questions_without_documents_can_be_on_either_side() -> None:
    assert Counter(split_questions([Sourced(())] * 10, SHARES).sides) == {"validation": 3, "test": 7}
    assert split_questions([], SHARES) == Split((), ())


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=30))
def test_a_document_is_never_in_both_sets(documents: list[list[str]]) -> None:
    questions = [Sourced(tuple(found)) for found in documents]
    sides = split_questions(questions, SHARES).sides
    seen: dict[str, str] = {}
    for side, question in zip(sides, questions, strict=True):
        assert all(seen.setdefault(document, side) == side for document in question.documents)


def test_the_order_of_questions_does_not_matter() -> None:
    questions = [Sourced((f"d{place % 17}",), (f"type: {place % 3}",)) for place in range(60)]
    shuffled = Random(5).sample(range(60), 60)
    straight = split_questions(questions, SHARES).sides
    mixed = split_questions([questions[place] for place in shuffled], SHARES).sides
    assert [straight[place] for place in shuffled] == list(mixed)


def test_rows_get_a_column_with_their_set() -> None:
    rows = [{"n": n, "type": "a", "sources": [{"document": f"d{n % 5}"}]} for n in range(10)]
    divided, remarks = divide_rows(rows, "40:60")
    assert [{**row} for row in rows] == [{key: row[key] for key in row if key != "split"} for row in divided]
    assert Counter(row["split"] for row in divided) == {"validation": 4, "test": 6}
    assert remarks == ()
