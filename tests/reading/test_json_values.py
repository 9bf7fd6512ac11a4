from __future__ import annotations

import json

from rageval_spec.reading.json_values import list_keys, name_kind


def test_values_are_named_by_their_kind() -> None:
    kinds = [name_kind(value) for value in json.loads('[null, true, 1, 1.5, "x", [1], {}]')]
    assert kinds == ["null", "a Boolean", "a number", "a number", "text", "a list of 1", "an object"]
    assert list_keys(range(15)).endswith("11, ...") and list_keys([]) == "nothing"
