from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import read_yaml


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a: 1\n\tb: 2\n", 2, "a tab cannot indent YAML", "indent with spaces"),
        ('a: "open\n', 1, "this quote is not closed", "add the closing quote"),
        ("a: [1, 2\nb: 3\n", 2, "',' or ']' is missing before this", "the '[' on line 1 is not closed"),
        ("a: {b: 1\n", 1, "this '{' is not closed", "add '}'"),
        ("a: {b: ${C}}\n", 1, "a variable inside { } or [ ] needs quotes", 'write "${NAME}"'),
        ("a: b: c\n", 1, "a ':' is not allowed here", "indent this line like its neighbours, or quote"),
        ("a: @b\n", 1, "text cannot start with '@'", "put it in quotes"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document starts here", "a spec must be a single document"),
        ('a: "\\q"\n', 1, "'\\q' is not a valid escape sequence", "in double quotes, write"),
        ("a: !x 1\n", 1, "the tag '!x' has no meaning in a spec", ""),
        ("a: !<\n", 1, "tags ('!...') have no meaning in a spec", "quote text that starts with '!'"),
        ("a: *\n", 1, "a name is missing after '*' or '&'", "quote text that starts with them"),
        ("a: |x\n", 1, "nothing can follow '|' or '>' on this line", "put the text on the next line"),
        ("a: - b\n", 1, "a '-' is not allowed here", "put the list on the next line"),
        ("- a\nb: 1\n", 2, "this line is part of a list but does not begin with '- '", ""),
        ("a: 1\nword\nb: 2\n", 2, "the ':' after this key is missing", "write 'key: value'"),
    ],
)
def test_text_that_is_not_yaml_is_explained_at_its_place(text: str, line: int, message: str, hint: str) -> None:
    _, diagnostics = read_yaml(Source("spec.yaml", text))
    assert diagnostics
    first = diagnostics[0]
    assert first.position.line == line
    assert message in first.message
    assert hint in (first.hint or "")


@given(st.text(st.sampled_from("ab:-[]{}'\"\\\n\t #&*!|>%@,?$0"), max_size=30))
def test_any_text_is_read_or_explained_within_it_in_plain_words(text: str) -> None:
    """None of PyYAML's own wording is shown."""
    root, diagnostics = read_yaml(Source("spec.yaml", text))
    assert root is None or not diagnostics or root.place.path == "spec.yaml"
    lines = text.split("\n")
    for found in diagnostics:
        assert 1 <= found.position.line <= len(lines)
        assert found.message.isprintable()
        assert not re.search(
            "while (scanning|parsing)|<(block|stream|scalar|document)|expected .* but found", found.message
        )
