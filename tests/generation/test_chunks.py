""""""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.errors import UsageError
from rageval_spec.generation.chunks import (
    Chunk,
    choose_stop_words,
    count_words,
    cut_documents,
    find_headings,
    find_names,
    find_pairs,
    find_ranks,
    make_search,
    measure_difficulty,
)
from rageval_spec.generation.document_formats import Content, read_markdown
from rageval_spec.generation.documents import SourceDocument
from rageval_spec.plugin import Context

SENTENCE = "The pump must be drained before the first frost."


def document(source: str, pages: tuple[int, ...] = ()) -> SourceDocument:
    content: Content = read_markdown(source)
    return SourceDocument("d", "t", content.text, content.blocks, "d.md", "1", None, pages)


def cut(source: str, size: int = 200) -> list[Chunk]:
    return cut_documents([document(source)], size)


def test_a_short_document_is_one_chunk_with_its_own_id() -> None:
    (chunk,) = cut(f"# Pumps\n\n{SENTENCE}\n")
    assert chunk == Chunk("d", "d", 0, 57, f"# Pumps\n\n{SENTENCE}", ("Pumps",), None)


def test_chunks_begin_at_headings_and_know_what_they_stand_under() -> None:
    text = SENTENCE * 5
    source = f"# Pumps\n\n{text}\n\n## Winter\n\n{text}\n\n### Storage\n\n{text}\n\n## Summer\n\n{text}\n"
    chunks = cut(source, 60)
    assert [chunk.headings for chunk in chunks] == [
        ("Pumps",),
        ("Pumps", "Winter"),
        ("Pumps", "Winter", "Storage"),
        ("Pumps", "Summer"),
    ]
    assert [chunk.chunk_id for chunk in chunks] == ["d#1", "d#2", "d#3", "d#4"]


def test_a_heading_is_never_alone() -> None:
    chunks = cut(f"# Pumps\n\n## Winter\n\n{SENTENCE * 5}\n\n## Summer\n\n{SENTENCE * 5}", 50)
    assert [chunk.text.splitlines()[0] for chunk in chunks] == ["# Pumps", "## Summer"]


def test_short_sections_are_joined_but_not_over_the_end_of_a_chapter() -> None:
    source = f"# A\n\n{SENTENCE * 6}\n\n## A1\n\nShort.\n\n## A2\n\nShort.\n\n# B\n\n{SENTENCE * 6}"
    assert [chunk.text.count("#") for chunk in cut(source, 60)] == [5, 1]


def test_long_sections_are_cut_between_paragraphs_into_equal_parts() -> None:
    source = "\n\n".join([SENTENCE] * 12)
    assert [count_words(chunk.text) for chunk in cut(source, 50)] == [36, 36, 36]


def test_long_paragraphs_are_cut_between_sentences() -> None:
    chunks = cut(" ".join([SENTENCE] * 10), 30)
    assert {chunk.text[-6:] for chunk in chunks} == {"frost."}
    assert all(count_words(chunk.text) <= 30 for chunk in chunks)


def test_long_sentences_are_cut_between_words_and_endless_words_too() -> None:
    chunks = cut("word " * 100, 30)
    assert all(count_words(chunk.text) <= 30 for chunk in chunks)
    assert sum(count_words(chunk.text) for chunk in chunks) == 100
    assert max(len(chunk.text) for chunk in cut("x" * 5000, 10)) <= 400


def test_code_is_cut_between_lines() -> None:
    chunks = cut("```\n" + "one two. three\n" * 40 + "```", 30)
    assert all(chunk.text.startswith(("```", "one")) and chunk.text.endswith(("three", "```")) for chunk in chunks)


def test_pages_are_counted_from_one() -> None:
    found = cut_documents([document(f"{SENTENCE}\n\n{SENTENCE}\n\n{SENTENCE}", (0, 50))], 9)
    assert [chunk.page for chunk in found] == [1, 2, 2]


def test_scripts_without_spaces_are_measured_in_pairs_of_characters() -> None:
    assert count_words("ポンプは凍結前に排水する") == 6
    assert count_words("don't stop, 2nd time") == 4
    assert len(cut("ポンプは凍結前に排水する。" * 20, 30)) >= 4


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1, not 0"):
        cut("text", 0)


def test_lines_of_a_table_have_no_space_around_them() -> None:
    whole = document("| a |\n|---|\nOne sentence here. \n| b |\n")
    assert [chunk.text for chunk in cut_documents([whole], 3)][1:] == ["One sentence here.", "| b |"]


def test_headings_of_a_place() -> None:
    found = document("# A\n\nx\n\n### B\n\ny\n\n## C\n\nz")
    assert find_headings(found, found.text.index("y")) == ("A", "B")
    assert find_headings(found, found.text.index("z")) == ("A", "C")


PARTS = st.sampled_from((
    "# A", "## B\n", "\n\n", "One sentence here. ", "```\ncode\n\nmore\n```\n", "- item\n- item\n", "日本語の文。",
    "x" * 90, "\n| a |\n|---|\n| b |\n", "> quoted\n",
))  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=40).map("".join), st.integers(1, 40))
def test_chunks_are_parts_of_the_text_in_order_and_lose_nothing(source: str, size: int) -> None:
    whole = document(source)
    chunks = cut_documents([whole], size)
    assert all(whole.text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() for chunk in chunks)
    assert all(before.end <= after.start for before, after in pairwise(chunks))
    assert "".join("".join(chunk.text for chunk in chunks).split()) == "".join(source.split())
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


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
    assert find_pairs(chunks, None, 5) == [(0, 2)]


def test_chunks_that_stand_side_by_side_in_a_document_are_not_neighbours() -> None:
    first, second = "The pump was designed by Ada Zimmer for mines.", "Later, Ada Zimmer moved to Ghent."
    beside = [chunk("d", first, 1), chunk("d", second, 2), *corpus()]
    apart = [chunk("d", first, 1), chunk("d", FILLER[0], 2), chunk("d", second, 3), *corpus()]
    assert find_pairs(beside, None, 5) == []
    assert find_pairs(apart, None, 5) == [(0, 2)]


def test_chunks_that_say_the_same_are_not_neighbours() -> None:
    text = "The pump was designed by Ada Zimmer for mines."
    assert find_pairs(corpus(text, f"{text} Twice."), None, 5) == []
    vectors = np.eye(8, dtype=np.float32)
    vectors[1] = vectors[0]
    assert (0, 1) not in find_pairs(corpus("One.", "Two."), vectors, 5)


def test_a_name_in_many_chunks_connects_nothing() -> None:
    assert find_pairs(corpus(*(f"In Ghent, {text}" for text in FILLER)), None, 9) == []


def test_near_vectors_make_neighbours_without_names_and_the_nearest_come_first() -> None:
    vectors = np.eye(8, dtype=np.float32)
    vectors[1, 0], vectors[3, 2] = 0.9, 0.2
    first, *_ = find_pairs(corpus("bees sleep", "drones rest"), vectors, 9)
    assert first == (0, 1)


def test_no_chunk_is_used_twice_before_all_are_used_once() -> None:
    names = ["Ada Zimmer", "Ada Zimmer", "Bo Quist", "Bo Quist"]
    texts = [f"{text} So said {name}." for text, name in zip(FILLER, names, strict=False)]
    texts[1] += " She met Bo Quist."
    chunks = [chunk(f"d{place}", text) for place, text in enumerate([*texts, *FILLER * 5])]
    groups = find_pairs(chunks, None, 9)
    assert groups[:2] in ([(0, 1), (2, 3)], [(2, 3), (0, 1)])
    assert len(groups) == len(set(groups)) == 4


def test_names_are_neither_numbers_nor_letters() -> None:
    assert find_names("In 1884 Nikola Tesla paid $50 to J. for Model X.") == ["nikola tesla", "model x"]


def test_no_chunks_have_no_pairs() -> None:
    assert find_pairs([], np.empty((0, 3), np.float32), 4) == []


CORPUS = pl.DataFrame(
    {
        "doc_id": ["pump", "lamp", "door"],
        "title": ["Pumps", "Lamps", "Doors"],
        "text": ["The pump delivers water.", "The lamp gives light by day.", "The door opens, and the lamp stays on."],
    }
)


def test_the_products_own_retriever_ranks_the_chunks() -> None:
    search = make_search(CORPUS, None, 10, Context("golden"))
    rankings = search.rank({"q1": "Which lamp gives light?", "q2": "zebra"})
    assert rankings == {"bm25": {"q1": ["lamp", "door"], "q2": []}}
    assert search.rank({}) == {"bm25": {}}


def test_only_the_questions_are_counted_as_progress() -> None:
    shown: list[object] = []
    context = Context("golden", progress=lambda done, total, unit=None: shown.append(done))
    make_search(CORPUS, None, 10, context).rank({"q": "lamp"})
    assert not shown


def test_the_rank_of_several_sources_is_that_of_the_last_without_the_others() -> None:
    rankings = {"bm25": {"q": ["a", "b", "c", "d"]}, "dense": {"q": ["d", "a"]}}
    assert find_ranks(rankings, "q", ["b"]) == {"bm25": 2, "dense": None}
    assert find_ranks(rankings, "q", ["b", "a"]) == {"bm25": 1, "dense": None}
    assert find_ranks(rankings, "q", ["a", "d"]) == {"bm25": 3, "dense": 1}


@pytest.mark.parametrize(
    ("ranks", "difficulty"),
    [
        ({"bm25": 1}, "easy"),
        ({"bm25": 2}, "medium"),
        ({"bm25": 5}, "medium"),
        ({"bm25": 6}, "hard"),
        ({"bm25": None}, "hard"),
        ({"bm25": 1, "dense": 1}, "easy"),
        ({"bm25": 1, "dense": None}, "medium"),
        ({"bm25": 30, "dense": 4}, "medium"),
        ({"bm25": None, "dense": 9}, "hard"),
    ],
)
def test_difficulty_is_how_high_retrievers_rank_the_source(ranks: dict[str, int | None], difficulty: str) -> None:
    assert measure_difficulty(ranks) == difficulty


def test_stop_words_are_those_of_the_language_of_the_corpus() -> None:
    german = "Die Pumpe ist nicht an, und der Filter wird von der Firma mit einem neuen Netz geliefert."
    assert choose_stop_words([german] * 3) == "german"
    assert choose_stop_words(["The pump is not on, and the filter of the firm is in the box."]) == "english"
    assert choose_stop_words(["12345", ""]) == "none"
