from __future__ import annotations

import pytest

from rageval_spec.reports.shared.markup import escape, format_table, longest_tick_run, quote, quote_cell


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
