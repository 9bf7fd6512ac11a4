from __future__ import annotations

import polars as pl
import pytest

from rageval_spec.diagnostics import make_json_visible
from rageval_spec.reports.shared.escaping import IN_LINES, IN_ONE_LINE, escape_column, is_plain
from rageval_spec.reports.shared.question_rows import protect_lines
from rageval_spec.wording import protect_cell

CHARACTERS = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x11000))]
TEXTS = pl.Series([*CHARACTERS, *(f"a{one}" for one in CHARACTERS), "", "a\n=b"])


def test_the_searches_find_every_text_that_is_changed() -> None:
    texts = TEXTS.to_list()
    assert TEXTS.str.contains(IN_ONE_LINE).to_list() == [protect_cell(text) != text for text in texts]
    assert TEXTS.str.contains(IN_LINES).to_list() == [protect_lines(text) != text for text in texts]


def test_a_column_is_escaped_like_each_of_its_texts() -> None:
    for escape in (protect_cell, make_json_visible):
        assert escape_column(TEXTS, escape).to_list() == [escape(text) for text in TEXTS.to_list()]


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
