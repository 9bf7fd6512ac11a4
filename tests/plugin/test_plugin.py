from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from rageval_spec.plugin import Context, Node, Plugin


class Shape(Node):
    size: int = 1
    from_: str | None = Field(default=None, alias="from")
    later: tuple[str, ...] = ()


class Thing(Plugin[Shape]):
    node_type = Shape
    version = "3"
    later_keys = frozenset({"later"})


def build(**keys: object) -> Thing:
    return Thing(Shape.model_validate({"use": "thing", **keys}), Context("mine"))


def test_a_node_is_frozen_and_knows_no_further_keys() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        build(seize=2)
    with pytest.raises(ValidationError, match="frozen"):
        build().node.size = 2  # type: ignore[misc]


def test_content_is_the_node_in_yaml_types_with_word_and_version() -> None:
    assert build(size=2, **{"from": "x"}).content() == {
        "word": "thing",
        "version": "3",
        "node": {"use": "thing", "size": 2, "from": "x"},
    }


def test_a_key_added_later_counts_only_if_it_is_not_at_its_default() -> None:
    assert build(later=[]).content() == build().content()
    assert build(later=["a"]).content()["node"]["later"] == ["a"]


def test_a_plugin_names_no_files_and_finds_no_fault_unless_it_says_so() -> None:
    thing = build()
    assert (thing.inputs(), thing.check(), tuple(thing.check_files()), thing.known_as) == ((), None, (), ())
