from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.spec import reading
from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml, to_data


def read(text: str) -> YamlNode:
    root, diagnostics = read_yaml(Source("spec.yaml", text))
    assert diagnostics == []
    assert root is not None
    return root


def diagnose(text: str) -> list[str]:
    """Each diagnostic as `line:column message`."""
    _, diagnostics = read_yaml(Source("spec.yaml", text))
    return [f"{d.position.line}:{d.position.column} {d.message}" for d in diagnostics]


def value_position(text: str, key: str) -> tuple[int, int, int]:
    root = read(text)
    assert isinstance(root, YamlMapping)
    position = root.entries[key].value.place.position
    return position.line, position.column, position.width


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyYAML's C parser, and its Python parser, which is used if the C parser is missing."""
    monkeypatch.setattr(reading, "_LOADER", getattr(yaml, request.param))
    return request.param


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a: 1\nb: text # comment\n", (2, 4, 4)),
        ("a: 1\r\nb: text\r\n", (2, 4, 4)),
        ("a: 1\rb: text\r", (2, 4, 4)),
        ('a: "😀é"\nb: "quoted"', (2, 4, 8)),
        ("{a: 😀😀, b: x}", (1, 12, 1)),
        ("a: |\n  two\n  lines\nb: >\n  text\n  more\n", (4, 4, 1)),
        ("a: 1\n\n\nb:\n\n  text", (6, 3, 4)),
        ("a: 1\nb: &name text", (2, 4, 10)),
    ],
)
def test_columns_count_characters_and_lines_end_as_in_an_editor(text: str, position: tuple[int, int, int]) -> None:
    assert value_position(text, "b") == position


@pytest.mark.usefixtures("loader")
def test_keys_are_text_as_written() -> None:
    root = read('on: 1\n010: 2\nnull: 3\n2024-01-01: 4\n"quoted key": 5\n? long\n: 6')
    assert to_data(root) == {"on": 1, "010": 2, "null": 3, "2024-01-01": 4, "quoted key": 5, "long": 6}


@pytest.mark.usefixtures("loader")
def test_anchors_and_merge_keys() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 5}\nd: *a\ne: {<<: *b}\nf: {'<<': 1}"
    root = read(text)
    assert to_data(root) == yaml.safe_load(text.replace("f: {'<<': 1}", "f: {'<<': 1}"))


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n\tb: 1", "2:1 a tab cannot indent YAML"),
        ("a: [1, 2", "1:4 this '[' is not closed"),
        ("a: {b: [1}", "1:10 ',' or ']' is missing before this"),
        ('a: "x', "1:4 this quote is not closed"),
        ("a: b: c", "1:5 a ':' is not allowed here"),
        ("a: 1\nword\nb: 2", "2:1 the ':' after this key is missing"),
        ("a: @x", "1:4 text cannot start with '@'"),
        ("- a\nb: 1", "2:1 this line is part of a list but does not begin with '- '"),
        ("a: ]", "1:4 this is not allowed here"),
        ("a: {b: ${X}}", "1:8 a variable inside { } or [ ] needs quotes"),
        ('a: "C:\\data"', "1:7 '\\d' is not a valid escape sequence"),
        ("a: -", "1:4 a '-' is not allowed here"),
        ("a: >9x", "1:6 nothing can follow '|' or '>' on this line"),
        ("%YAML 3.0\n---\na: 1", "1:1 a line that starts with '%' is a directive"),
        ("a: 1\n...\nb: 2", "3:1 a second YAML document starts here"),
        ("a: &a [*a]", "1:8 the alias '*a' is inside the block that it refers to"),
        ("a: !!python/object:os.system x", "1:4 the tag '!!python/object:os.system' has no meaning in a spec"),
        ("[a]: 1", "1:1 a key must be text"),
        ("*a : 1", "1:1 a key must be text"),
        ("a: b\n a: 1", "2:3 a ':' is not allowed here"),
    ],
)
def test_errors_have_their_place_and_say_what_is_wrong(text: str, expected: str) -> None:
    assert diagnose(text)[0] == expected


@pytest.mark.usefixtures("loader")
def test_the_tag_of_text_makes_text() -> None:
    assert to_data(read("a: !!str 010")) == {"a": "010"}


def test_a_duplicate_key_is_an_error_and_the_first_counts() -> None:
    root, diagnostics = read_yaml(Source("spec.yaml", "a: 1\nb: 2\na: 3\n"))
    assert [(d.position.line, d.message, d.hint) for d in diagnostics] == [
        (3, "the key 'a' is already defined on line 1", "remove one of them")
    ]
    assert root is not None
    assert to_data(root) == {"a": 1, "b": 2}


@pytest.mark.parametrize("levels", [50, 51, 5000])
@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_depth_is_bounded(levels: int, opening: str) -> None:
    text = opening * levels + "1" + {"[": "]", "{a: ": "}"}[opening] * levels
    found = diagnose(text)
    assert found == [] if levels <= 50 else "nested more than 50 levels deep" in found[0]


def test_aliases_count_with_the_size_they_expand_to() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more than 100,000 values with its aliases expanded" in diagnose("\n".join(lines))[0]
    chain = ["c0: &c0 [1]"] + [f"c{n}: &c{n} [*c{n - 1}]" for n in range(1, 60)]
    assert "nested more than 50 levels deep" in diagnose("\n".join(chain))[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: \0", "2:4 the character U+0000 cannot be part of a YAML text"),
        ("a: \x1b[31m", "1:4 the character U+001B cannot be part of a YAML text"),
        ("a: \ud800", "1:4 the character U+D800 cannot be part of a YAML text"),
        ('a: "\\0"', "1:4 the character U+0000 cannot be part of a value"),
        ('"\\0": 1', "1:1 the character U+0000 cannot be part of a key"),
        ("a: " + "x" * 1_000_000, "1:1 the spec has 1,000,003 characters; the limit is 1,000,000"),
    ],
)
def test_characters_that_are_not_allowed_are_refused(text: str, expected: str) -> None:
    assert diagnose(text) == [expected]


def test_a_message_never_carries_control_characters_to_the_terminal() -> None:
    _, diagnostics = read_yaml(Source("spec.yaml", "a: \x1b[31m\u202e"))
    assert not {"\x1b", "\u202e"} & set(str(diagnostics[0]))


TREES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.text("ab ~#:-[]{}'\"\\\n😀", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc:#", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@given(TREES, st.booleans())
def test_what_pyyaml_writes_is_read_back(tree: Any, flow: bool) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True)
    assert to_data(read(text)) == tree


@given(TREES)
def test_every_place_lies_within_its_line(tree: Any) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    lines = text.split("\n")
    waiting = [read(text)]
    while waiting:
        node = waiting.pop()
        position = node.place.position
        assert node.place.source_line == lines[position.line - 1].rstrip()
        assert 1 <= position.column <= len(node.place.source_line) + 1
        if isinstance(node, YamlSequence):
            waiting += node.items
        elif isinstance(node, YamlMapping):
            waiting += [entry.value for entry in node.entries.values()]
        else:
            assert isinstance(node, YamlScalar)
