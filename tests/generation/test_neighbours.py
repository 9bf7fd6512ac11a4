from __future__ import annotations

import numpy as np
import pytest

from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import Chunk
from rageval_spec.generation.neighbours import Group, find_groups, find_names

FILLER = [
    "Bread is baked early in the morning before shops open.",
    "Rivers carry sand down to the coast every spring.",
    "Most trains were late because of snow on the line.",
    "A violin needs new strings about once each year.",
    "Old maps show roads that nobody uses any more.",
    "Farmers sow wheat in autumn and harvest it in summer.",
]


def chunk(doc_id: str, text: str, number: int = 0) -> Chunk:
    return Chunk(f"{doc_id}#{number}" if number else doc_id, doc_id, 0, len(text), text)


def corpus(*texts: str) -> list[Chunk]:
    return [chunk(f"d{place}", text) for place, text in enumerate([*texts, *FILLER])]


def test_chunks_that_share_a_rare_name_are_neighbours_wherever_they_stand() -> None:
    chunks = corpus(
        "The pump was designed by Ada Zimmer for mines.", "Bees sleep.", "Later, Ada Zimmer moved to Ghent."
    )
    assert find_groups(chunks, None, 5) == [Group((0, 2), ("ada zimmer",))]


def test_chunks_that_stand_side_by_side_in_a_document_are_not_neighbours() -> None:
    first, second = "The pump was designed by Ada Zimmer for mines.", "Later, Ada Zimmer moved to Ghent."
    beside = [chunk("d", first, 1), chunk("d", second, 2), *corpus()]
    apart = [chunk("d", first, 1), chunk("d", FILLER[0], 2), chunk("d", second, 3), *corpus()]
    assert find_groups(beside, None, 5) == []
    assert [group.chunks for group in find_groups(apart, None, 5)] == [(0, 2)]


def test_chunks_that_say_the_same_are_not_neighbours() -> None:
    text = "The pump was designed by Ada Zimmer for mines."
    assert find_groups(corpus(text, f"{text} Twice."), None, 5) == []
    vectors = np.eye(8, dtype=np.float32)
    vectors[1] = vectors[0]
    assert (0, 1) not in {group.chunks for group in find_groups(corpus("One.", "Two."), vectors, 5)}


def test_a_name_in_many_chunks_connects_nothing() -> None:
    assert find_groups(corpus(*(f"In Ghent, {text}" for text in FILLER)), None, 9) == []


def test_near_vectors_make_neighbours_without_names_and_the_nearest_come_first() -> None:
    vectors = np.eye(8, dtype=np.float32)
    vectors[1, 0], vectors[3, 2] = 0.9, 0.2
    first, *_ = find_groups(corpus("bees sleep", "drones rest"), vectors, 9)
    assert first.chunks == (0, 1)
    assert first.similarity == pytest.approx(0.9 / np.sqrt(1.81))
    assert first.names == ()


def test_no_chunk_is_used_twice_before_all_are_used_once() -> None:
    names = ["Ada Zimmer", "Ada Zimmer", "Bo Quist", "Bo Quist"]
    texts = [f"{text} So said {name}." for text, name in zip(FILLER, names, strict=False)]
    texts[1] += " She met Bo Quist."
    chunks = [chunk(f"d{place}", text) for place, text in enumerate([*texts, *FILLER * 5])]
    groups = [group.chunks for group in find_groups(chunks, None, 9)]
    assert groups[:2] in ([(0, 1), (2, 3)], [(2, 3), (0, 1)])
    assert len(groups) == len(set(groups)) == 4


def test_groups_can_have_three_members_that_are_all_connected() -> None:
    texts = [f"{text} So said Ada Zimmer." for text in FILLER[:3]]
    chunks = [chunk(f"d{place}", text) for place, text in enumerate([*texts, *FILLER * 5])]
    assert find_groups(chunks, None, 9, size=3) == [Group((0, 1, 2), ("ada zimmer",))]


def test_names_are_neither_numbers_nor_letters() -> None:
    assert find_names("In 1884 Nikola Tesla paid $50 to J. for Model X.") == ["nikola tesla", "model x"]


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 2 chunks, not 1"):
        find_groups(corpus(), None, 1, size=1)
    with pytest.raises(UsageError, match="there are 6 chunks, but 2 vectors"):
        find_groups(corpus(), np.eye(2, dtype=np.float32), 1)
    assert find_groups([], np.empty((0, 3), np.float32), 4) == []
