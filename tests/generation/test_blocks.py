from __future__ import annotations

from rageval_spec.generation.blocks import find_paragraphs, trim_block


def test_blank_lines_separate_paragraphs_even_if_they_hold_spaces() -> None:
    text = "\n one\ntwo \n \t\n\n\nthree\n"
    assert [text[block.start : block.end] for block in find_paragraphs(text)] == ["one\ntwo", "three"]


def test_paragraphs_of_a_part_have_offsets_in_the_whole_text() -> None:
    text = "one\n\ntwo\n\nthree"
    assert [text[block.start : block.end] for block in find_paragraphs(text, 5)] == ["two", "three"]
    assert [text[block.start : block.end] for block in find_paragraphs(text, 0, 8)] == ["one", "two"]


def test_white_space_is_no_block() -> None:
    assert list(find_paragraphs(" \n\n ")) == []
    assert list(trim_block("code", "a  b", 1, 3)) == []
