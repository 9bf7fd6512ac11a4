from __future__ import annotations

import pytest
from rich.text import Text

from rageval_spec.drawing.terminal import render_text, wrap_name
from rageval_spec.drawing.view import Items, write_text


def test_colours_can_be_turned_off_and_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert b"\x1b[" in render_text(lambda _: [Text("red", "red")])
    monkeypatch.setenv("NO_COLOR", "1")
    assert render_text(lambda _: [Text("red", "red")]) == b"red\n"


def test_a_wrapped_sentence_continues_in_its_column() -> None:
    text = write_text([Items([("note", "one two three four five six seven eight nine ten", "")])], 40)
    first, second = text.decode().splitlines()[:2]
    assert first.startswith("note one two")
    assert second.startswith("     ")


def test_long_names_are_chopped_after_punctuation() -> None:
    lines = wrap_name("answer_correctness(model=minilm,weights=0.5)", 28)
    assert lines == ["answer_correctness(", "model=minilm,weights=0.5)"]


def test_a_text_that_is_to_be_copied_keeps_its_lines() -> None:
    line = "path: " + "a word " * 20 + "end"
    assert render_text(lambda _: [Text(line, no_wrap=True, overflow="ignore")], 40).decode() == f"{line}\n"
    assert len(render_text(lambda _: [Text(line)], 40).decode().splitlines()) > 3
