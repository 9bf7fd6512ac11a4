"""The blocks of a spec that belong to plugins, those with `use:`, and the base of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict

from rageval_spec import registry
from rageval_spec.dataclass import dataclass, field
from rageval_spec.plugin import Metric, Plugin
from rageval_spec.plugin.block_names import NamedBlock, list_references
from rageval_spec.spec.text.places import KeyPath, TextPlace


class SpecBlock(BaseModel):
    """A YAML block without `use:`. Frozen; an unknown key is an error."""

    EXAMPLE: ClassVar[str] = ""
    """What messages suggest in place of a word or a number; "" for the list of keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class PluginBlock(NamedTuple):
    """A block with `use:`. `path` is its key path, `name` the name that its plugin gets."""

    section: registry.Section
    path: KeyPath
    name: str
    place: TextPlace
    node: Any
    plugin: Plugin[Any]


@dataclass
class PluginBlocks:
    """The blocks of all sections, and what is known of those that are wrong.

    Attributes:
        blocks: the valid blocks.
        partial_blocks: wrong blocks without their wrong keys. Their files and references are checked all the same.
        names: the keys of each section's mapping, including wrong blocks. A section that cannot be read has no entry.
        incomplete: sections with a wrong block. A name that looks undeclared could be declared in it.
        metrics: the valid metrics, by their names in tables.
    """

    blocks: list[PluginBlock] = field(default_factory=list)
    partial_blocks: list[PluginBlock] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    incomplete: set[str] = field(default_factory=set)
    metrics: dict[str, Metric[Any]] = field(default_factory=dict)

    def references(self) -> Iterator[tuple[PluginBlock, NamedBlock]]:
        """The references of each block; for wrong blocks, those in valid keys."""
        for block in self.blocks:
            yield from ((block, found) for found in list_references(block.node))
        for block in self.partial_blocks:
            yield from ((block, found) for found in list_references(block.node, written_only=True))

    def of(self, section: registry.Section) -> list[PluginBlock]:
        return [block for block in self.blocks if block.section == section]
