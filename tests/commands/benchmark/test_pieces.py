from __future__ import annotations

import pytest

from rageval_spec.commands.benchmark.pieces import RefusedError, name_after, read_pieces, refuse, write_text


def test_a_piece_knows_its_place_in_the_argument() -> None:
    first, second = read_pieces("--system", ["bm25", "hybrid:bm25+dense"])
    word, rest = second.partition(":")
    assert rest is not None
    parts = rest.split("+")
    assert (first.text, word.text, [part.text for part in parts]) == ("bm25", "hybrid", ["bm25", "dense"])
    with pytest.raises(RefusedError) as refused:
        refuse(parts[1], "unknown", "write another")
    assert str(refused.value.diagnostics[0]).startswith("--system:2:13: unknown; write another")


def test_without_a_separator_there_is_one_piece() -> None:
    (piece,) = read_pieces("--system", ["bm25"])
    assert piece.partition(":") == (piece, None)
    assert piece.split("+") == [piece]


@pytest.mark.parametrize(
    ("text", "name"),
    [("a/b:c", "a-b-c"), ("..hidden..", "hidden"), ("x" * 300, "x" * 100), ("", ""), ('"quoted"', "quoted")],
)
def test_names_contain_only_characters_that_file_names_can_contain(text: str, name: str) -> None:
    assert name_after(text) == name


def test_a_written_text_is_literal() -> None:
    (piece,) = read_pieces("DATASET", ["${HOME}"])
    assert write_text(piece.place, piece.text).value == "$${HOME}"
