from __future__ import annotations

import pytest

from rageval_spec.judging.claims import Statement, find_evidence, place_claims
from rageval_spec.judging.segments import split_segments

TEXT = "Ada Lovelace wrote the first program. She was born in London in 1815, and died there."


def place(text: str, sentence: int | None) -> str:
    (claim,) = place_claims([Statement(text, sentence)], split_segments(TEXT))
    assert claim.text == text
    return TEXT[claim.start : claim.end]


def test_a_claim_marks_the_sentence_that_it_cites() -> None:
    assert place("Ada died in London.", 2) == "She was born in London in 1815, and died there."


@pytest.mark.parametrize("number", [None, 0, 3, -1])
def test_a_claim_that_cites_no_sentence_marks_the_most_similar_one(number: int | None) -> None:
    assert place("The first program was written by Ada Lovelace", number).startswith("Ada Lovelace wrote")
    assert place("Ada Lovelace was born in 1815", number).startswith("She was born")


def test_a_claim_in_the_words_of_the_text_marks_them() -> None:
    assert place("born in London in 1815", 2) == "born in London in 1815"
    assert place("Ada Lovelace wrote the first program.", 1) == "Ada Lovelace wrote the first program."


def test_a_full_stop_that_is_not_in_the_text_is_not_marked() -> None:
    assert place("She was born in London in 1815.", 2) == "She was born in London in 1815"
    assert place("...", 1) == "Ada Lovelace wrote the first program."


SOURCES = ("The tower is 330 m tall. It was built in 1889.", "Paris has a tower;\nit was built in 1889.")


@pytest.mark.parametrize(
    ("evidence", "named", "found"),
    [
        ("The tower is 330 m tall.", 0, 0),
        ("the TOWER  is 330 m\ntall", 1, 0),
        ("it was built in 1889.", 1, 1),
        ("it was built in 1889.", 0, 0),
        ('"Paris has a tower; it was built"', 0, 1),
        ("The tower ... was built in 1889", -1, 0),
        ("was built … The tower", 0, None),
        ("The tower is 331 m tall.", 0, None),
        ("", 0, None),
        ("...", 0, None),
        ("The tower [...] in 1889", 0, 0),
        ("tower [ … ] in 1889", 0, None),
        ("no" + " " * 1_000_000 + "tower", 0, None),
        ("The" + " " * 1_000_000 + "tower" + " " * 1_000_000 + "...", 0, 0),
        ("Paris", 7, 1),
    ],
)
def test_evidence_counts_only_if_a_source_contains_it(evidence: str, named: int, found: int | None) -> None:
    assert find_evidence(evidence, named, SOURCES) == found
