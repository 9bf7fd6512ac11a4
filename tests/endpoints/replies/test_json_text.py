from __future__ import annotations

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError
from rageval_spec.endpoints.replies.json_text import MOST_STARTS, Piece, find_pieces, parse_strictly


def test_pieces_have_offsets_and_values_or_faults() -> None:
    text = 'So {you} say {"a": 1} and {"b": 1/2}.'
    assert [*find_pieces(text)] == [
        Piece(3, 4, None, 'line 1: a colon is missing after "you"', began=False),
        Piece(13, 21, {"a": 1}),
        Piece(26, 33, None, "line 1: a key is missing", began=True),
    ]


def test_a_citation_is_a_list_only_at_the_beginning_of_a_line_or_after_a_colon() -> None:
    assert [piece.value for piece in find_pieces("as in [1]: [2]\n[3] and [4]")] == [[2], [3]]


def test_a_reply_with_too_many_brackets_is_not_read_in_part() -> None:
    assert len([*find_pieces("{}" * MOST_STARTS)]) == MOST_STARTS
    with pytest.raises(UnreadableReplyError, match="too many brackets"):
        [*find_pieces("{}" * MOST_STARTS + '{"a": 1}')]


def test_strict_json_can_have_raw_line_breaks_but_no_repeated_keys() -> None:
    assert parse_strictly('{"a": "x\ny"}') == {"a": "x\ny"}
    with pytest.raises(ValueError, match='it says "a" twice'):
        parse_strictly('{"a": 1, "a": 1}')
