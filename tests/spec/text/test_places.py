from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.diagnostics import NOWHERE
from rageval_spec.spec.text.places import Places, SourceText, TextPlace, cut, quote


def test_offsets_become_lines_and_columns() -> None:
    source = SourceText("spec.yaml", "ab\r\ncd: é\nlast")
    found = [source.place(offset).position for offset in (0, 4, 8, 10, 99)]
    assert [(p.line, p.column) for p in found] == [(1, 1), (2, 1), (2, 5), (3, 1), (3, 5)]
    assert source.place(4, 6).position.width == 2
    assert source.place(4, 99).position.width == 5  # up to the end of the line
    assert SourceText("--set", "a", first_line=7).place(0).position.line == 7


def test_a_source_line_shows_no_control_characters() -> None:
    assert SourceText("spec.yaml", "a: \x1b[31m").place(0).source_line == "a: \ufffd[31m"


def test_a_place_can_be_narrowed_to_a_word_in_it() -> None:
    place = SourceText("spec.yaml", "key: a ${B} ${B}").place(5)
    assert place.narrow("${B}").position.column == 8
    assert place.narrow("${B}", 6).position.column == 13
    assert place.narrow("absent") is place


def test_messages_escape_control_characters_and_hide_credentials() -> None:
    found = SourceText("spec.yaml", "x").place(0).diagnose("a\x1b\u200b", "code", "b\n")
    assert (found.message, found.hint) == ("a\\x1b\\u200b", "b\\n")


LONG = "hunter2" * 20


@pytest.mark.parametrize("text", [f"https://user:{LONG}@host", f"see http://host/?api_key={LONG}", f"sk-{LONG}"])
def test_a_truncated_credential_is_hidden_too(text: str) -> None:
    assert "hunter2" not in quote(text)
    assert len(quote(text)) == 63
    place = SourceText("spec.yaml", f"timeout: {text}").place(9)
    assert "hunter2" not in str(place.diagnose(f"expected a number, found the text {quote(text)}", "type"))


@given(st.text(), st.integers(0, 60))
def test_every_offset_has_a_place_within_its_line(text: str, offset: int) -> None:
    source = SourceText("spec.yaml", text)
    place = source.place(offset)
    lines = re.split(r"\r\n|\r|\n", text)
    assert 1 <= place.position.line <= len(lines)
    line = lines[place.position.line - 1]
    assert 1 <= place.position.column <= len(line) + 2  # a carriage return and a line feed together end one line
    assert len(place.source_line) == len(line.rstrip())
    shown = str(place.diagnose("message", "code"))
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)


def test_a_missing_key_has_the_place_of_the_nearest_enclosing_block() -> None:
    places = Places({key: SourceText("s", "").place(0) for key in [(), ("gates",), ("gates", 0)]})
    assert places.nearest(("gates", 0, "min")) is places["gates", 0]
    assert places.nearest(("metrics", 1)) is places[()]


@pytest.mark.parametrize(("text", "shown"), [("a", "'a'"), ("a\nb", "'a\\nb'"), ("x" * 61, f"'{'x' * 60}…'")])
def test_quoted_text_is_one_short_line(text: str, shown: str) -> None:
    assert quote(text) == shown
    assert quote(text) == f"'{cut(text)}'"


def test_another_message_refers_to_a_line_or_a_key_path() -> None:
    assert SourceText("spec.yaml", "a\nb").place(2).where == "on line 2"
    assert TextPlace("metrics.0", NOWHERE, "").where == "at metrics.0"
