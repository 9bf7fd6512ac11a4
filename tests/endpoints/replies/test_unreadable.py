from __future__ import annotations

from rageval_spec.endpoints.replies.unreadable import name_place, quote_reply, show_value


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
