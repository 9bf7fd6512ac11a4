from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.errors import UsageError
from rageval_spec.plugin import JudgeName, ModelName, Node, SystemName
from rageval_spec.plugin.block_names import ReferredSection, find_circles, list_references, names_in, order_by_reference


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)

    system: SystemName
    note: str = "no name"


class Everything(Node):
    one: SystemName
    maybe: ModelName | None = None
    several: tuple[SystemName, ...] = ()
    weights: dict[SystemName, float] = Field(default={})
    by_dataset: dict[str, ModelName] = Field(default={})
    parts: list[Part] = Field(default=[])
    part: Part | None = None
    pair: tuple[str, JudgeName] | None = None
    either: SystemName | list[ModelName] | None = None
    word: Literal["all", "none"] | SystemName = "all"
    from_: Annotated[SystemName, Field(min_length=1)] | None = Field(default=None, alias="from")
    text: str = "bm25"
    texts: str | list[str] = "bm25"


def found(**keys: object) -> list[tuple[ReferredSection, str, tuple[str | int, ...]]]:
    node = Everything.model_validate({"use": "everything", "one": "a", **keys})
    return [(block.section, block.name, block.path) for block in list_references(node)][1:]


def test_a_key_of_any_shape_can_hold_names_of_blocks() -> None:
    assert found(maybe="m") == [("models", "m", ("maybe",))]
    assert found(several=["b", "a"]) == [("systems", "b", ("several", 0)), ("systems", "a", ("several", 1))]
    assert found(weights={"b": 0.5}) == [("systems", "b", ("weights", "b"))]
    assert found(by_dataset={"nq": "m"}) == [("models", "m", ("by_dataset", "nq"))]
    assert found(parts=[{"system": "x"}]) == [("systems", "x", ("parts", 0, "system"))]
    assert found(part={"system": "x"}) == [("systems", "x", ("part", "system"))]
    assert found(pair=("text", "strict")) == [("judges", "strict", ("pair", 1))]
    assert found(**{"from": "x"}) == [("systems", "x", ("from",))]


def test_a_value_is_read_by_the_member_of_the_union_that_fits_it() -> None:
    assert found(either="s") == [("systems", "s", ("either",))]
    assert found(either=["m"]) == [("models", "m", ("either", 0))]
    assert found(word="none") == []
    assert found(word="s") == [("systems", "s", ("word",))]
    assert found(text="a", texts=["a"]) == []


def test_the_schema_says_which_keys_name_a_block() -> None:
    node = Everything(use="everything", one="b", weights={"b": 0.5})
    assert [block.is_key for block in list_references(node)] == [False, True]


def test_names_in_are_distinct_and_of_one_section() -> None:
    node = Everything(use="everything", one="b", several=("a", "b"), maybe="m")
    assert names_in(node, "systems") == ("b", "a")
    assert names_in(node, "models") == ("m",)
    assert names_in(node, "judges") == ()


class Naming(Node):
    systems: tuple[SystemName, ...] = ()


def graph(**names: str) -> dict[str, Naming]:
    return {name: Naming(use="naming", systems=tuple(others.split())) for name, others in names.items()}


def test_levels_follow_references_and_then_the_order_of_the_spec() -> None:
    assert order_by_reference(graph(top="fused", fused="dense bm25", dense="", bm25="", other="dense")) == (
        ("dense", "bm25"),
        ("fused", "other"),
        ("top",),
    )
    assert order_by_reference({}) == ()
    assert order_by_reference(graph(a="elsewhere")) == (("a",),)


@pytest.mark.parametrize(
    ("nodes", "circles"),
    [
        (graph(a="b", b=""), []),
        (graph(a="a"), [("a", "a")]),
        (graph(a="b", b="a"), [("a", "b", "a")]),
        (graph(into="b", b="c x", c="b", x=""), [("b", "c", "b")]),
        (graph(a="b c", b="c", c="a"), [("a", "c", "a")]),
        (graph(a="b", b="a", c="d", d="c"), [("a", "b", "a"), ("c", "d", "c")]),
    ],
)
def test_circles(nodes: dict[str, Naming], circles: list[tuple[str, ...]]) -> None:
    assert find_circles(nodes) == circles


def test_nodes_in_a_circle_have_no_order() -> None:
    with pytest.raises(UsageError, match="in a cycle: b -> c -> b"):
        order_by_reference(graph(a="b", b="c", c="b"))


@given(
    st.dictionaries(
        st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3).map(" ".join), max_size=6
    )
)
def test_an_order_exists_exactly_where_no_circle_does(names: dict[str, str]) -> None:
    nodes = graph(**names)
    if circles := find_circles(nodes):
        for circle in circles:
            assert circle[0] == circle[-1]
            assert all(other in nodes[name].systems for name, other in pairwise(circle))
        with pytest.raises(UsageError):
            order_by_reference(nodes)
        return
    levels = order_by_reference(nodes)
    assert sorted(name for level in levels for name in level) == sorted(nodes)
    for number, level in enumerate(levels):
        before = {name for earlier in levels[:number] for name in earlier}
        last = {*levels[number - 1]} if number else set()
        for name in level:
            needed = {*nodes[name].systems} & nodes.keys()
            assert needed <= before
            assert not number or needed & last
