""""""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.endpoints.replies import UnreadableReplyError, put_in_order
from rageval_spec.endpoints.replies.json_text import (
    MOST_STARTS,
    drop_thoughts,
    name_place,
    parse_strictly,
    quote_reply,
    read_json,
    show_value,
)


@pytest.mark.parametrize("before", ['So {you} say {"a": 1}', "as in [1]: [2]\n[3] and [4]", "{}" * (MOST_STARTS - 1)])
def test_thoughts_that_hold_whole_json_end_with_their_tag(before: str) -> None:
    assert drop_thoughts(f"{before}\n</think> yes") == "yes"


@pytest.mark.parametrize("before", ['and {"b": 1/2}.', "so:\n[3,", "{}" * MOST_STARTS + "{}"])
def test_a_tag_after_broken_json_or_too_many_brackets_is_a_quotation(before: str) -> None:
    assert drop_thoughts(text := f"{before}\n</think> yes") == text


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
    assert drop_thoughts("<think>no</think>\n<thinking>no</thinking>yes") == "yes"
    assert drop_thoughts("No: it says </think>yes") == "No: it says </think>yes"
    assert drop_thoughts("<think>for ever") == "<think>for ever"


def test_models_mark_their_thoughts_in_several_ways() -> None:
    for opening, closing in (("<thought>", "</thought>"), ("<reasoning>", "</reasoning>"), ("[THINK]", "[/THINK]")):
        assert drop_thoughts(f"{opening}no{closing}yes") == "yes"
        assert drop_thoughts(f"perhaps\n{closing}\nyes") == "yes"


@pytest.mark.parametrize(
    "text",
    [
        *[
            "No: it says\n</think>\n</think>\nyes",
            "no </think>\nyes",
            '{"a": "\n</think>\nyes"}',
            '{"a": 1,\n</think>\nyes',
        ],
        *['{"a": 1/2}\n</think>\nyes', "<think>for ever\nyes"],
    ],
)
def test_a_tag_that_a_reply_quotes_ends_no_thoughts(text: str) -> None:
    assert drop_thoughts(text) == text


def test_after_thoughts_a_further_tag_is_part_of_the_reply() -> None:
    """Which of the two ends the thoughts cannot be told, so nothing after the second one is read alone."""
    assert drop_thoughts("<think>hm</think>It says\n</think>\nyes") == "It says\n</think>\nyes"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("```json\n{'a': 1,}\n```", {"a": 1}),
        ('~~~\n["a"]\n~~~', ["a"]),
        ('``` {"a": 1} ```', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
    ],
)
def test_json_is_the_whole_reply(text: str, value: object) -> None:
    assert read_json(text) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('So: {"a": 1}', "there is text before the JSON; the reply must be the JSON alone"),
        ('{"a": 1} So.', "there is text after the JSON; the reply must be the JSON alone"),
        ('{"a": 1}\n{"a": 1}', "there is text after the JSON; the reply must be the JSON alone"),
        ('```\n{"a": 1}\n```\nSo.', "there is text after the JSON; the reply must be the JSON alone"),
        ('{"a": ', "it ends in the middle"),
        ("So be it.", "there is no JSON in it"),
    ],
)
def test_json_beside_other_text_is_refused(text: str, fault: str) -> None:
    with pytest.raises(UnreadableReplyError) as raised:
        read_json(text)
    assert str(raised.value) == fault


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
