""""""

from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.diagnostics import make_json_visible
from rageval_spec.drawing.escaping import (
    IN_LINES,
    IN_ONE_LINE,
    escape,
    escape_column,
    format_table,
    is_plain,
    longest_tick_run,
    quote,
    quote_cell,
)
from rageval_spec.drawing.question_tables import protect_lines
from rageval_spec.wording import protect_cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("*bold* <b> @you", "\\*bold\\* &lt;b&gt; @<!-- -->you"),
        ("me@example.org", "me@example.org"),
        ("a\nb\x1b", "a\\\\nb\\\\x1b"),
    ],
)
def test_text_loses_its_effect(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(("name", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("", "`  `")])
def test_a_code_span_is_fenced_by_more_ticks_than_it_holds(name: str, span: str) -> None:
    assert quote(name) == span


def test_a_cell_cannot_end_its_cell() -> None:
    assert quote_cell("a|b") == "`a\\|b`"


def test_runs_of_ticks_are_counted() -> None:
    assert (longest_tick_run("a``b```", 0), longest_tick_run("a", 2)) == (3, 2)


def test_tables_have_a_line_below_their_header() -> None:
    assert format_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


CHARACTERS = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x11000))]
TEXTS = pl.Series([*CHARACTERS, *(f"a{one}" for one in CHARACTERS), "", "a\n=b"])


def test_the_searches_find_every_text_that_is_changed() -> None:
    texts = TEXTS.to_list()
    assert TEXTS.str.contains(IN_ONE_LINE).to_list() == [protect_cell(text) != text for text in texts]
    assert TEXTS.str.contains(IN_LINES).to_list() == [protect_lines(text) != text for text in texts]


def test_a_column_is_escaped_like_each_of_its_texts() -> None:
    for change in (protect_cell, make_json_visible):
        assert escape_column(TEXTS, change).to_list() == [change(text) for text in TEXTS.to_list()]


@pytest.mark.parametrize("texts", [[None, "fine"], [None], []])
def test_a_column_without_such_texts_is_returned(texts: list[str | None]) -> None:
    column = pl.Series(texts, dtype=pl.String)
    assert escape_column(column, protect_cell) is column


def test_what_is_none_stays_none_and_the_order_is_kept() -> None:
    column = pl.Series(["=1", None, "fine", "a\x07"])
    assert escape_column(column, protect_cell).to_list() == ["'=1", None, "fine", r"a\x07"]


def test_json_is_plain_if_it_is_ascii_without_a_delete_character() -> None:
    assert is_plain(pl.Series(['{"a": "b\\u0007"}', None, "{}"]))
    assert not is_plain(pl.Series(['{"a": "\u2028"}']))
    assert not is_plain(pl.Series(['{"a": "\x7f"}']))
