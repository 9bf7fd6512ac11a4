from __future__ import annotations

import pytest

from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import read_yaml


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a: 1\n\tb: 2\n", 2, "a tab cannot indent YAML", "indent with spaces"),
        ('a: "open\n', 1, "this quote is not closed", "add the closing quote"),
        ("a: [1, 2\nb: 3\n", 2, "',' or ']' is missing before this", "the '[' on line 1 is not closed"),
        ("a: {b: 1\n", 1, "this '{' is not closed", "add '}'"),
        ("a: {b: ${C}}\n", 1, "inside { } or [ ] a variable needs quotes", 'write "${NAME}"'),
        ("a: b: c\n", 1, "a ':' may not stand here", "indent the line as those it belongs to, or quote"),
        ("a: @b\n", 1, "text cannot start with '@'", "put it between quotes"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document starts here", "a spec is one document"),
        ('a: "\\q"\n', 1, "'\\q' is no escape that YAML knows", "between double quotes write"),
        ("a: !x 1\n", 1, "", ""),
    ],
)
def test_what_is_no_yaml_is_explained_at_its_place(text: str, line: int, message: str, hint: str) -> None:
    _, diagnostics = read_yaml(Source("spec.yaml", text))
    assert diagnostics
    first = diagnostics[0]
    assert first.position.line == line
    assert message in first.message
    assert hint in (first.hint or "")
