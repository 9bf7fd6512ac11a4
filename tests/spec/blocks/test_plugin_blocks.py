from __future__ import annotations

from pathlib import Path

from rageval_spec.plugin import Context
from rageval_spec.registry import Section
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.text.places import SourceText
from tests.spec import plugins


def block(section: Section, name: str, **keys: object) -> PluginBlock:
    plugin_class = plugins.load(section, str(keys["use"]))
    node = plugin_class.node_type.model_validate(keys)
    place = SourceText("spec.yaml", "").place(0)
    return PluginBlock(section, (section, name), name, place, node, plugin_class(node, Context(name, Path())))


def test_the_blocks_of_a_section_keep_the_order_of_the_spec() -> None:
    blocks = PluginBlocks(
        [
            block("systems", "second", use="sparse"),
            block("datasets", "d", use="folder", path="p"),
            block("systems", "first", use="sparse"),
        ]
    )
    assert [found.name for found in blocks.of("systems")] == ["second", "first"]
    assert blocks.of("judges") == []


def test_a_wrong_block_is_not_among_those_of_its_section() -> None:
    blocks = PluginBlocks(partial_blocks=[block("systems", "s", use="sparse")])
    assert blocks.of("systems") == []


def test_references_are_with_the_block_that_names_them() -> None:
    blocks = PluginBlocks([block("systems", "s", use="sparse"), block("systems", "t", use="dense", model="e5")])
    assert [(user.name, found.section, found.name) for user, found in blocks.references()] == [("t", "models", "e5")]


def test_references_of_wrong_blocks_are_those_that_are_written() -> None:
    written, by_default = block("systems", "s", use="dense", model="e5"), block("systems", "t", use="dense")
    whole = PluginBlocks([written, by_default])
    assert [found.name for _, found in whole.references()] == ["e5", "minilm"]
    partial = PluginBlocks([by_default], [written, by_default])
    assert [(user.name, found.name) for user, found in partial.references()] == [("t", "minilm"), ("s", "e5")]
