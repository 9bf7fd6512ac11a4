""""""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.plugin.block_names import Reference
from rageval_spec.spec.blocks.block_validation import validate
from rageval_spec.spec.blocks.error_explanation import CheckedBlock, describe, list_keys, models_at, named_section
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.yaml_tree import YamlMapping, read_yaml


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(Strict):
    start: int = Field(description="Where it begins.")
    end: int = 0


class Named(Strict):
    style: Literal["plain", "exact"] = "plain"


class Node(Strict):
    count: int = Field(default=1, ge=1, le=3_000_000)
    share: float = Field(default=0.5, gt=0, lt=1)
    flag: bool = False
    mode: Literal["fast", "exact"] = "fast"
    level: Literal[1, 2, 3] = 1
    text: str = Field(default="x", min_length=1, max_length=5)
    url: str = Field(default="http://x", pattern="^https?://")
    table: str = Field(default="t.csv", pattern=r"\.(csv|jsonl|xlsx)$")
    scale: tuple[int, ...] = ()
    words: list[Annotated[str, Field(min_length=2)]] = Field(default=["aa", "bb"], min_length=2)
    step: Literal["last"] | Annotated[int, Field(ge=1)] | None = None
    either: Literal["all"] | int | list[str] = "all"
    span: Span | None = None
    node: Named | None = None
    ends: Span | int = 0
    base_url: str = ""
    as_: str = Field(default="", alias="as")


def faults(text: str, title: str | None = None, model: type[BaseModel] = Node) -> list[str]:
    """Each diagnostic as `line:column message; hint`."""
    root, problems = read_yaml(SourceText("spec.yaml", text))
    assert isinstance(root, YamlMapping) and not problems
    node, diagnostics = validate(CheckedBlock(root, root.place, model, title), model, {})
    assert (node is None) == bool(diagnostics)
    return [
        f"{d.position.line}:{d.position.column} {d.message}" + (f"; {d.hint}" if d.hint else "") for d in diagnostics
    ]


def test_keys_are_those_of_yaml() -> None:
    assert list_keys(Node)[-2:] == ("base_url", "as")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{a: 1}", "a mapping"),
        ("[1]", "a list"),
        ("", "nothing"),
        ("~", "nothing"),
        ("true", "true"),
        ("yes", "yes, which YAML reads as true"),
        ("Off", "Off, which YAML reads as false"),
        ("1.50", "the number 1.50"),
        ("abc", "the text 'abc'"),
        ('"a\\nb\\e"', "the text 'a\\nb\\x1b'"),
        ("x" * 100, f"the text '{'x' * 60}…'"),
    ],
)
def test_values_are_described_as_they_are_written(text: str, shown: str) -> None:
    root, _ = read_yaml(SourceText("spec.yaml", f"key: {text}"))
    assert isinstance(root, YamlMapping)
    assert describe(root.entries["key"].value) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count: 0", "1:8 'count' must be at least 1, not the number 0"),
        ("step: 0", "1:7 'step' must be at least 1, not the number 0"),
        ("count: 3000001", "1:8 'count' must be at most 3000000, not the number 3000001"),
        ("share: 0", "1:8 'share' must be above 0, not the number 0"),
        ("share: 1", "1:8 'share' must be below 1, not the number 1"),
        ("share: 95", "1:8 'share' must be below 1, not the number 95; for 95% write 0.95"),
        ('text: ""', "1:1 'text' must not be empty"),
        ("text: abcdef", "1:7 'text' must have at most 5 characters, not the text 'abcdef'"),
        ("words: [aa]", "1:1 'words' must have at least 2 entries, but has 1"),
        ("words: []", "1:1 'words' must have at least 2 entries, but has none"),
        ("words: [aa, b]", "1:13 '1' must have at least 2 characters, not the text 'b'"),
        ("table: t.xls", "1:8 'table' must end in .csv, .jsonl or .xlsx, not the text 't.xls'"),
        ("url: example.org", "1:6 'url' must begin with http:// or https://, not the text 'example.org'; "
         "write http://example.org"),
        ("url: localhost:8000/v1", "1:6 'url' must begin with http:// or https://, not the text "
         "'localhost:8000/v1'; write http://localhost:8000/v1"),
        ("url: nothing", "1:6 'url' must begin with http:// or https://, not the text 'nothing'"),
    ],
)  # fmt: skip
def test_bounds_are_explained_in_words(text: str, expected: str) -> None:
    assert faults(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count: '7'", "expected a whole number, found the text '7'; remove the quotes"),
        ("count: 7.5", "expected a whole number, found the number 7.5"),
        ("count: yes", "expected a whole number, found yes, which YAML reads as true"),
        ("share: 1e-3", "expected a number, found the text '1e-3'; write 0.001: YAML 1.1 reads 1e-3 as text"),
        ("flag: 'true'", "expected true or false, found the text 'true'; remove the quotes"),
        ("text: 12", 'expected text, found the number 12; quote it: "12"'),
        ("text: no", 'expected text, found no, which YAML reads as false; quote it: "no"'),
        ("text:", "expected text, found nothing; write a value, or remove the key"),
        ("mode: fats", "expected fast or exact, found the text 'fats'; did you mean 'fast'?"),
        ("mode: EXACT", "expected fast or exact, found the text 'EXACT'; did you mean 'exact'?"),
        ("level: 4", "expected 1, 2 or 3, found the number 4"),
        ("scale: 1-5", "expected a list, found the text '1-5'; write [1, 5]"),
        ("scale: 0 .. 10", "expected a list, found the text '0 .. 10'; write [0, 10]"),
        ("scale: one", "expected a list, found the text 'one'; write [one]"),
        ("scale: {a: 1}", "expected a list, found a mapping; begin each entry with '- '"),
        ("share: 95%", "expected a number, found the text '95%'; write 0.95"),
        ("span: 3", "expected a mapping, found the number 3; the known keys are start, end"),
        ("node: exact", "expected a mapping, found the text 'exact'; write {style: exact}"),
        ("either: 1.5", "expected a whole number, a list or all, found the number 1.5"),
        ("either: al", "expected a whole number, a list or all, found the text 'al'; did you mean 'all'?"),
        ("either: [1]", 'expected text, found the number 1; quote it: "1"'),
    ],
)
def test_a_wrong_type_says_what_to_write(text: str, expected: str) -> None:
    (found,) = faults(text)
    assert found.partition(" ")[2] == expected


def test_a_value_with_several_types_is_explained_by_the_closest() -> None:
    assert faults("ends: {start: x}") == ["1:15 expected a whole number, found the text 'x'"]
    assert faults("ends: {end: 1}") == ["1:1 the key 'start' is missing; add 'start:', where it begins"]
    assert faults("ends: {start: 1, ned: 2}") == ["1:18 unknown key 'ned'; did you mean 'end'?"]


def test_a_wrong_entry_does_not_make_the_list_too_short() -> None:
    assert faults("words: [aa, 1]") == ['1:13 expected text, found the number 1; quote it: "1"']


def test_a_misspelled_required_key_is_reported_once() -> None:
    assert faults("span: {strat: 1}") == ["1:8 unknown key 'strat'; did you mean 'start'?"]
    assert faults("span: {end: 1}") == ["1:1 the key 'start' is missing; add 'start:', where it begins"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("cuont: 1", "did you mean 'count'?"),
        ("url_: http://x", "did you mean 'url'?"),
        ("as_: x", "did you mean 'as'?"),
        ("base-url: x", "did you mean 'base_url'?"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(text: str, hint: str) -> None:
    (found,) = faults(text)
    assert found == f"1:1 unknown key '{text.partition(':')[0]}'; {hint}"


def test_an_unknown_key_without_a_similar_one_lists_all() -> None:
    assert faults("{start: 1, q: 1}", model=Span) == ["1:12 unknown key 'q'; the known keys are start, end"]


def test_a_bare_word_that_needs_more_says_what_to_write() -> None:
    assert faults(
        "{use: tail}", "the metric 'tail'", type("Tail", (Strict,), {"__annotations__": {"use": str, "start": int}})
    ) == ["1:1 the metric 'tail' needs 'start'; write {use: tail, start: ...}"]


def test_all_errors_in_a_block_are_reported() -> None:
    assert len(faults("count: 0\nshare: 2\nmode: slow\nspan: {start: a, end: b}\nother: 1\n")) == 6


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1e300, "fast", "", "a\x1b", "1-5", "true"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["start", "end", "use", "other"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*list_keys(Node), "other"]), VALUES, max_size=4))
def test_every_error_has_its_place_and_no_wording_of_pydantic(data: dict[str, Any]) -> None:
    text = yaml.safe_dump(data)
    root, _ = read_yaml(SourceText("spec.yaml", text))
    assert isinstance(root, YamlMapping)
    node, diagnostics = validate(CheckedBlock(root, root.place, Node), Node, {})
    assert (node is None) == bool(diagnostics)
    lines = text.splitlines()
    for found in diagnostics:
        assert 1 <= found.position.column <= len(lines[found.position.line - 1]) + 1
        assert "Input should" not in str(found) and "validation error" not in str(found)
        assert "\x1b" not in str(found)
        assert found.message.isprintable()


class Inner(BaseModel):
    model: Annotated[str, Reference("models")] = ""


class Other(BaseModel):
    size: int = 1


class Outer(BaseModel):
    one: Inner | Other | None = None
    several: tuple[Inner, ...] = ()
    by_name: dict[str, Other] = Field(default_factory=dict)
    systems: list[Annotated[str, Reference("systems")]] = Field(default_factory=list)
    as_: str = Field(default="", alias="as")


def test_the_nodes_that_a_path_can_lead_to() -> None:
    assert list(models_at(Outer, ())) == [Outer]
    assert list(models_at(Outer, ("one",))) == [Inner, Other]
    assert list(models_at(Outer, ("several", 3))) == [Inner]
    assert list(models_at(Outer, ("by_name", "any"))) == [Other]
    assert list(models_at(Outer, ("one", "size"))) == []
    assert list(models_at(Outer, ("absent",))) == []


def test_the_section_whose_names_a_path_takes() -> None:
    assert named_section(Outer, ("one", "model")) == "models"
    assert named_section(Outer, ("several", 0, "model")) == "models"
    assert named_section(Outer, ("systems", 0)) == "systems"
    assert named_section(Outer, ("one", "size")) is None
    assert named_section(Outer, ("as",)) is None
