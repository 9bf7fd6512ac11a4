""""""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import (
    Trap,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    is_number_elsewhere,
    is_word_for_boolean,
    read_yaml,
    resolve_scalar,
    spell_number,
    to_data,
)


def read(text: str) -> YamlNode:
    root, diagnostics = read_yaml(SourceText("spec.yaml", text))
    assert diagnostics == []
    assert root is not None
    return root


def diagnose(text: str) -> list[str]:
    """Each diagnostic as `line:column message`."""
    _, diagnostics = read_yaml(SourceText("spec.yaml", text))
    return [f"{d.position.line}:{d.position.column} {d.message}" for d in diagnostics]


def value_position(text: str, key: str) -> tuple[int, int, int]:
    root = read(text)
    assert isinstance(root, YamlMapping)
    position = root.entries[key].value.place.position
    return position.line, position.column, position.width


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyYAML's C parser, and its Python parser, which is used if the C parser is missing."""
    monkeypatch.setattr(yaml_tree, "_LOADER", getattr(yaml, request.param))
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
    root, diagnostics = read_yaml(SourceText("spec.yaml", "a: 1\nb: 2\na: 3\n"))
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
    _, diagnostics = read_yaml(SourceText("spec.yaml", "a: \x1b[31m\u202e"))
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("No", False),
        ("on", True),
        ("7", 7),
        ("-7", -7),
        ("+1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0", 0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.5e+3", 1500.0),
        ("1e3", "1e3"),
        ("08", "08"),
        ("y", "y"),
        ("ndcg@10", "ndcg@10"),
        ("0x_", "0x_"),
    ],
)
def test_values(text: str, value: object) -> None:
    resolved = resolve_scalar(text)
    assert (type(resolved), resolved) == (type(value), value)


@pytest.mark.parametrize(
    "text", ["12:30", "1:30.5", "010", "-017", "2024-01-01", "2024-01-01 12:30:00", ".inf", "-.INF", ".nan", "9" * 30]
)
def test_traps(text: str) -> None:
    assert isinstance(resolve_scalar(text), Trap)


PLAIN = st.text(alphabet="0123456789eE+-._:xboOytrufalsn~ ", min_size=1, max_size=12)


@given(PLAIN)
def test_a_scalar_that_is_not_a_trap_has_the_value_that_pyyaml_reads(text: str) -> None:
    expected = _read(text)
    assume(isinstance(expected, str | int | float | bool | None))
    resolved = resolve_scalar(text.strip())
    if not isinstance(resolved, Trap):
        assert (type(resolved), resolved) == (type(expected), expected)


@given(st.from_regex(r"[-+]?[0-9]{1,4}(\.[0-9]{0,3})?e[0-9]{1,2}|[0-9]{1,3}e-[0-9]|0o[0-7]{1,5}", fullmatch=True))
def test_numbers_of_yaml_1_2_only_are_spelled_for_both_versions(text: str) -> None:
    assume(is_number_elsewhere(text))
    number = int(text, 8) if text.startswith("0o") else float(text)
    assume(number == 0 or 1e-15 < abs(number) < 1e15)
    spelled = resolve_scalar(spell_number(text))
    assert isinstance(spelled, int | float)
    assert math.isclose(spelled, number, rel_tol=1e-4)


@pytest.mark.parametrize("text", ["0o" + "7" * 9000, "1e400", "9" * 5000 + "e1"])
def test_numbers_of_any_length_can_be_spelled(text: str) -> None:
    assert len(spell_number(text)) < 50


def test_words_for_booleans_are_those_that_only_yaml_1_1_reads_as_booleans() -> None:
    words = {"no", "off", "on", "yes", "true", "false", "True", "y", "n"}
    assert {word for word in words if is_word_for_boolean(word)} == {"no", "off", "on", "yes"}


def _read(text: str) -> Any:
    """Read the text as the value of a key, where `---` is text and not the start of a document."""
    try:
        return yaml.safe_load(f"key: {text}")["key"]
    except (yaml.YAMLError, ValueError):
        assume(False)


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
    _, diagnostics = read_yaml(SourceText("spec.yaml", text))
    assert diagnostics
    first = diagnostics[0]
    assert first.position.line == line
    assert message in first.message
    assert hint in (first.hint or "")


@given(st.text(st.sampled_from("ab:-[]{}'\"\\\n\t #&*!|>%@,?$0"), max_size=30))
def test_any_text_is_read_or_explained_within_it_in_plain_words(text: str) -> None:
    """None of PyYAML's own wording is shown."""
    root, diagnostics = read_yaml(SourceText("spec.yaml", text))
    assert root is None or not diagnostics or root.place.path == "spec.yaml"
    lines = text.split("\n")
    for found in diagnostics:
        assert 1 <= found.position.line <= len(lines)
        assert found.message.isprintable()
        assert not re.search(
            "while (scanning|parsing)|<(block|stream|scalar|document)|expected .* but found", found.message
        )
