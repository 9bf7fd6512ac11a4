""""""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError, put_in_order
from rageval_spec.endpoints.replies.json_text import (
    MOST_STARTS,
    JsonCandidate,
    drop_thoughts,
    find_ends,
    find_pieces,
    name_place,
    parse_strictly,
    quote_reply,
    show_value,
)


def test_pieces_have_offsets_and_values_or_faults() -> None:
    text = 'So {you} say {"a": 1} and {"b": 1/2}.'
    assert [*find_pieces(text)] == [
        JsonCandidate(3, 4, None, 'line 1: a colon is missing after "you"', began=False),
        JsonCandidate(13, 21, {"a": 1}),
        JsonCandidate(26, 33, None, "line 1: a key is missing", began=True),
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


def test_a_reply_is_quoted_on_one_line() -> None:
    assert quote_reply(" I would\n rather  not. ") == '"I would rather not."'
    assert quote_reply("a\x00\x1b[2J\u202eb") == '"a\\x00\\x1b[2J\\u202eb"'


def test_a_long_reply_is_shortened() -> None:
    for text in ("word " * 100_000, "x" * 121, "x" * 120 + "\n" * 500 + "y"):
        quoted = quote_reply(text)
        assert quoted.endswith(' ..."')
        assert len(quoted) < 130
    assert quote_reply("x" * 120) == f'"{"x" * 120}"'


def test_values_and_places_are_named() -> None:
    assert show_value({"a": "\u00fc"}) == '{"a": "\\u00fc"}'
    assert show_value("x" * 100).endswith("x...")
    assert (name_place(""), name_place("a[0].b")) == ("the reply", "'a[0].b'")


def test_thoughts_are_dropped() -> None:
    assert drop_thoughts("<think>no</think>\n\ufeff yes ") == "yes"
    assert drop_thoughts("perhaps\nnot\n</thinking>yes") == "yes"
    assert drop_thoughts('<think>it quotes "</think>yes", so\n</think>\n\nno') == "no"
    assert drop_thoughts("<think>no</think>\n<thinking>no</thinking>yes") == "yes"
    assert drop_thoughts("No: it says </think>yes") == "No: it says </think>yes"
    assert drop_thoughts("<think>for ever") == "<think>for ever"


def test_models_mark_their_thoughts_in_several_ways() -> None:
    for opening, closing in (("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")):
        assert drop_thoughts(f"{opening}no{closing}yes") == "yes"
        assert drop_thoughts(f"perhaps\n{closing}\nyes") == "yes"


def test_ends_of_thoughts_begin_a_line() -> None:
    text = "so </think> it\n  </think>yes"
    assert [text[end:] for end in find_ends(text)] == ["yes"]


def items(*pairs: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"context": number, "verdict": verdict} for number, verdict in pairs]


def verdicts(*pairs: tuple[int, str]) -> list[str]:
    return [item["verdict"] for item in put_in_order(items(*pairs), "context", "verdict")]


def test_items_are_put_in_the_order_of_their_numbers() -> None:
    assert verdicts((2, "no"), (3, "no"), (1, "yes")) == ["yes", "no", "no"]
    assert verdicts((1, "no")) == ["no"]


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, "yes"), (1, "no")],
        [(2, "no"), (2, "yes")],
        [(1, "yes"), (1, "no"), (3, "yes")],
        [(1, "yes"), (1, "yes"), (2, "yes")],
    ],
)
def test_a_repeated_number_is_unreadable(pairs: list[tuple[int, str]]) -> None:
    with pytest.raises(UnreadableReplyError, match=r'there is no verdict with "context": [123], and two with another'):
        verdicts(*pairs)


def test_unnumbered_items_count_by_position() -> None:
    assert verdicts((1, "yes"), (1, "no"), (1, "yes")) == ["yes", "no", "yes"]
    assert verdicts((2, "no"), (2, "no")) == ["no", "no"]
