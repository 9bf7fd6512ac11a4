from __future__ import annotations

import pytest

from rageval_spec.audit.words import contains, drop_fillers, find_numbers, find_overlap, is_yes_or_no, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Who won Super Bowl XLIX?", ("who", "won", "super", "bowl", "xlix")),
        ("It cost $1,200.50 (5%)", ("it", "cost", "1200.50", "5%")),
        ("Bob Marley's face", ("bob", "marley", "face")),
        ("ＡＢＣ straße", ("abc", "strasse")),
        ("東京 tower", ("東", "京", "tower")),
        ("नमस्ते", ("नमस्ते",)),
        ("", ()),
    ],
)
def test_words_have_no_case_and_no_punctuation(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text) == words


def test_articles_are_fillers_unless_nothing_else_is_there() -> None:
    assert drop_fillers(["what", "is", "the", "price"]) == ("what", "is", "price")
    assert drop_fillers(["the", "the"]) == ("the", "the")


def test_small_numbers_can_be_words() -> None:
    assert find_numbers(["three", "and", "14"]) == {"3", "14"}


def test_yes_and_no_are_told_by_the_first_word() -> None:
    assert is_yes_or_no(("nein", "das", "stimmt"))
    assert not is_yes_or_no(("nobody",)) and not is_yes_or_no(())


def test_a_part_stands_in_order_and_without_gaps() -> None:
    words = ("the", "new", "york", "times")
    assert contains(words, ("new", "york"))
    assert not contains(words, ("york", "new")) and not contains(words, ("new", "times")) and not contains(words, ())


def test_overlap_counts_repeated_words() -> None:
    assert find_overlap(("a", "a", "b"), ("a", "b", "b")) == pytest.approx(2 / 3)
    assert find_overlap((), ("a",)) == 0.0
