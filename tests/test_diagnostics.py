from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.diagnostics import (
    NOWHERE,
    Diagnostic,
    Position,
    SpecError,
    dump_visible,
    make_json_visible,
    make_visible,
    suggest,
)


@given(st.text(), st.booleans())
def test_visible_text_is_one_printable_line(text: str, strict: bool) -> None:
    shown = make_visible(text, strict=strict)
    assert len(shown.splitlines()) <= 1
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(shown)
    shown.encode()
    assert shown.isprintable() or not strict


def test_visible_text_keeps_letters_and_escapes_hidden_characters() -> None:
    assert make_visible("Ärger 😀 é") == "Ärger 😀 é"
    assert make_visible("a\nb\x1b[0m\u202egpj\u2028\ud800") == "a\\nb\\x1b[0m\\u202egpj\\u2028\\ud800"
    assert make_visible("a\nb\tc\x1b", keep="\n\t") == "a\nb\tc\\x1b"


def test_zero_width_joiners_stay_unless_strict() -> None:
    persian = "می\u200cخواهم"
    assert make_visible(persian) == persian
    assert make_visible(persian, strict=True) == "می\\u200cخواهم"


def diagnostic(line: str, column: int, width: int, **more: Any) -> Diagnostic:
    position = Position(3, column, width)
    return Diagnostic("spec.yaml", position, "unknown key 'k'", "unknown-key", source_line=line, **more)


def test_a_diagnostic_shows_its_line_with_a_caret() -> None:
    shown = str(diagnostic("a: {k: 1}", 5, 1, hint="did you mean 'key'?"))
    assert shown == "spec.yaml:3:5: unknown key 'k'; did you mean 'key'? [unknown-key]\n  a: {k: 1}\n      ^"
    assert str(diagnostic("", 1, 1, severity="warning")) == "spec.yaml:3:1: warning: unknown key 'k' [unknown-key]"


def test_carets_stand_below_wide_characters_and_within_long_lines() -> None:
    _, shown, caret = str(diagnostic("名前: k", 5, 1)).splitlines()
    assert caret.index("^") == len("  ") + 2 * 2 + len(": ")
    line = "x" * 200 + "HERE" + "y" * 200
    _, shown, caret = str(diagnostic(line, 201, 4)).splitlines()
    assert len(shown) < 110
    assert shown[caret.index("^") : caret.rindex("^") + 1] == "HERE"


def test_errors_of_a_spec_are_sorted_by_place() -> None:
    late = Diagnostic("spec.yaml", Position(9, 1), "late", "x")
    early = Diagnostic("spec.yaml", Position(2, 7), "early", "x")
    error = SpecError([late, early])
    assert error.diagnostics == (early, late)
    assert str(error) == "spec.yaml:2:7: early [x]\nspec.yaml:9:1: late [x]"
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("word", "expected"),
    [("cutof", "cutoff"), ("CUTOFF", "cutoff"), ("min-scored", "min_scored"), ("zebra", None), ("", None)],
)
def test_suggestions_are_near_words(word: str, expected: str | None) -> None:
    assert suggest(word, ["cutoff", "min_scored"]) == (expected and f"did you mean '{expected}'?")


def test_visible_json_means_the_same() -> None:
    content = {"a\x9b": ["\u202e\x7f\u2028", "Ärger 😀"]}
    text = make_json_visible(json.dumps(content, indent=2, ensure_ascii=False))
    assert json.loads(text) == content
    assert all(line.isprintable() for line in text.split("\n"))
    assert "Ärger 😀" in text


def test_a_diagnostic_outside_a_text_begins_with_its_key_path() -> None:
    diagnostic = Diagnostic("systems.bm25.k1", NOWHERE, "'k1' must be above 0", "value", "write 0.9")
    assert str(diagnostic) == "systems.bm25.k1: 'k1' must be above 0; write 0.9 [value]"


def test_json_for_a_terminal_means_the_same_and_shows_what_is_hidden() -> None:
    text = dump_visible({"b": "\x1b[31m é", "a": [1]}, sort_keys=True)
    assert text == '{\n  "a": [\n    1\n  ],\n  "b": "\\u001b[31m é"\n}\n'
    assert json.loads(text) == {"a": [1], "b": "\x1b[31m é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_visible(float("nan"))


def test_help_on_the_function_that_hides_control_characters_shows_none() -> None:
    assert make_visible(make_visible.__doc__ or "", keep="\n") == make_visible.__doc__
