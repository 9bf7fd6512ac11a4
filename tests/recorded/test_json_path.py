""""""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.recorded.json_path import PathError, list_keys, name_kind, parse_path

CONTENT: dict[str, Any] = {
    "choices": [{"message": {"content": "because"}}, {"message": {"content": "no"}}],
    "sources": [{"text": "a", "id": 1}, {"text": "b", "id": 2}],
    "odd key": {"it's": {"a.b": 3}},
    "0": "zero",
    "none": None,
    "empty": [],
    "counts": {"a": 1, "b": 2},
    "größe": 5,
    "kebab-case": 6,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", CONTENT),
        ("$.choices[0].message.content", "because"),
        ("choices[0].message.content", "because"),
        ("choices.0.message.content", "because"),
        ("choices[-1].message.content", "no"),
        ("$['choices'][1]['message'][\"content\"]", "no"),
        ("sources[*].text", ["a", "b"]),
        ("sources.*.id", [1, 2]),
        ("counts[*]", [1, 2]),
        ("empty[*].text", []),
        ("$['odd key']['it\\'s'][\"a.b\"]", 3),
        ("0", "zero"),
        ("none", None),
        ("größe", 5),
        (" kebab-case ", 6),
    ],
)
def test_a_path_finds(path: str, found: Any) -> None:
    assert parse_path(path).find(CONTENT) == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("choice", "choice finds nothing: the reply has no 'choice'; it has 'choices', 'sources', 'odd key'"),
        ("choices[2]", "choices[2] finds nothing: 'choices' is a list of 2, which has no 2"),
        ("choices[-3]", "'choices' is a list of 2, which has no -3"),
        ("choices.message", "'choices' is a list of 2, which has no 'message'"),
        ("choices[0].message.text", "'choices'[0].'message' has no 'text'; it has 'content'"),
        ("none.x", "'none' is null, which has no 'x'"),
        ("größe.x", "'größe' is a number, which has no 'x'"),
        ("none[*]", "'none' is null, but '*' needs a list"),
        ("sources[*].title", "'sources'[0] has no 'title'; it has 'text', 'id'"),
    ],
)
def test_a_path_that_finds_nothing_says_what_is_there(path: str, message: str) -> None:
    with pytest.raises(PathError) as caught:
        parse_path(path).find(CONTENT)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "path", ["", " ", "a..b", "a.", "$..a", "a[", "a[1:2]", "a[?(@.b)]", "a['b]", "a b", "a[1.5]", ".[0]", "$a b", "a]"]
)
def test_invalid_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid path|the path is empty"):
        parse_path(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(content=JSON, choices=st.lists(st.integers(0, 5), max_size=5))
def test_a_path_written_for_any_place_finds_it(content: Any, choices: list[int]) -> None:
    """Walk down a random path, and write the path in brackets."""
    path, value = "$", content
    for choice in choices:
        if isinstance(value, dict) and value:
            key = list(value)[choice % len(value)]
            escaped = key.replace("\\", "\\\\").replace("'", "\\'")
            path, value = f"{path}['{escaped}']", value[key]
        elif isinstance(value, list) and value:
            path, value = f"{path}[{choice % len(value)}]", value[choice % len(value)]
    if path.strip() == path:
        assert parse_path(path).find(content) == value


@given(text=st.text(max_size=20), content=JSON)
def test_any_text_is_a_path_or_is_refused(text: str, content: Any) -> None:
    try:
        path = parse_path(text)
    except ValueError:
        return
    try:
        path.find(content)
    except PathError as error:
        assert str(error)


def test_values_are_named_by_their_kind() -> None:
    kinds = [name_kind(value) for value in json.loads('[null, true, 1, 1.5, "x", [1], {}]')]
    assert kinds == ["null", "a Boolean", "a number", "a number", "text", "a list of 1", "an object"]
    assert list_keys(range(15)).endswith("11, ...") and list_keys([]) == "nothing"
