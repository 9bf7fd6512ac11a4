"""The names that blocks say of one another: those that nothing has, circles, and what nothing names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.references import NamedBlock, ReferredSection, find_circles, list_references
from rageval_spec.spec.checking import Checked, PluginBlock
from rageval_spec.spec.defaults import DEFAULT_MODELS
from rageval_spec.spec.places import KeyPath, Place, cut, nearest_place, quote
from rageval_spec.spec.reading import YamlMapping, YamlNode, YamlSequence

_SECTIONS: tuple[ReferredSection, ...] = get_args(ReferredSection)
_NAMING = {"systems", "models", "judges", "metrics"}
"""Sections whose blocks may name others."""


def check_references(checked: Checked, tree: YamlMapping, places: Mapping[KeyPath, Place]) -> list[Diagnostic]:
    """What is wrong with the names that blocks say of others, and warnings of what no block names."""
    checker = _Checker(checked, tree, places)
    return [*checker.find_dangling(), *checker.find_circles(), *checker.find_unused()]


def list_hint(names: Sequence[str]) -> str | None:
    """`there are a, b`, or None where there are none."""
    return f"there {'are' if len(names) > 1 else 'is'} {', '.join(names)}" if names else None


class _Checker:
    def __init__(self, checked: Checked, tree: YamlMapping, places: Mapping[KeyPath, Place]) -> None:
        self.checked = checked
        self.tree = tree
        self.places = places
        self.blocks = [*checked.blocks, *checked.partial_blocks]

    def find_dangling(self) -> Iterator[Diagnostic]:
        """Names of blocks that are not there."""
        for block in self.blocks:
            for found in list_references(block.node):
                if found.name not in self.checked.names.get(found.section, [found.name]):
                    kind = found.section.removesuffix("s")
                    hint = self._suggest(block, found)
                    place = self._place(block, found)
                    yield place.diagnose(f"the spec has no {kind} {quote(found.name)}", "dangling", hint)

    def find_circles(self) -> Iterator[Diagnostic]:
        """Blocks that name themselves, by way of others or at once."""
        for section in _SECTIONS:
            blocks = {block.name: block for block in self.blocks if block.section == section}
            for circle in find_circles({name: block.node for name, block in blocks.items()}, section):
                first = blocks[circle[0]]
                found = next(f for f in list_references(first.node) if (f.section, f.name) == (section, circle[1]))
                yield self._place(first, found).diagnose(*_explain_circle(section, circle))

    def find_unused(self) -> Iterator[Diagnostic]:
        """Models and judges that no block names; nothing is said where a wrong block may name them."""
        if self.checked.incomplete & _NAMING:
            return
        named = {(found.section, found.name) for block in self.blocks for found in list_references(block.node)}
        for block in self.checked.blocks:
            if block.section in ("models", "judges") and (block.section, block.name) not in named:
                kind = block.section.removesuffix("s")
                users = "system, judge or metric" if kind == "model" else "judge or metric"
                message = f"no {users} names the {kind} {quote(block.name)}"
                hint = f"write '{kind}: {block.name}' in the block that is to use it, or remove it"
                yield block.place.diagnose(message, "unused", hint, "warning")

    def _place(self, block: PluginBlock, found: NamedBlock) -> Place:
        path = (*block.path, *found.path)
        place = _key_place(self.tree, path) if found.is_key else None
        return place or nearest_place(self.places, path) or block.place

    def _suggest(self, block: PluginBlock, found: NamedBlock) -> str:
        """What to write instead of a name that nothing has."""
        others = [
            name for name in self.checked.names[found.section] if (found.section, name) != (block.section, block.name)
        ]
        defaults = [name for name in DEFAULT_MODELS if found.section == "models" and name not in others]
        known = [*others, *defaults]
        return (
            _suggest_section(self.checked, found)
            or suggest(found.name, known)
            or _suggest_block(found)
            or list_hint(known)
            or f"declare it under '{found.section}:'"
        )


def _suggest_section(checked: Checked, found: NamedBlock) -> str | None:
    """Which other section has a block of that name."""
    for section in ("systems", "models", "judges", "datasets"):
        if section != found.section and found.name in checked.names.get(section, []):
            other, kind = section.removesuffix("s"), found.section.removesuffix("s")
            return f"{quote(found.name)} is a {other}, and a {kind} is wanted"
    if found.section == "systems" and found.name in DEFAULT_MODELS:
        return f"{quote(found.name)} is a model: give a system of its own {{use: dense, model: {found.name}}}"
    return None


def _suggest_block(found: NamedBlock) -> str | None:
    """How to declare what a name seems to mean: a model of a hub, or a word that `use:` may say."""
    name = cut(found.name)
    if found.section == "models":
        default = next((model for model in DEFAULT_MODELS if model in _fold(found.name)), None)
        if default is not None:
            return f"the embedded one is called '{default}'"
        if "/" in found.name or found.name.endswith(".onnx"):
            return f"declare it: models: {{{_short_name(found.name)}: {{use: onnx, model: {name}}}}}"
    if found.name in registry.words(found.section):
        return f"it is a word of 'use:', and no block is called so: {found.section}: {{{name}: {{use: {name}, ...}}}}"
    return None


def _short_name(model: str) -> str:
    """A name for a block, from a model's id or path."""
    return cut(model.rstrip("/").rpartition("/")[2].removesuffix(".onnx").lower()) or "embedder"


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _explain_circle(section: ReferredSection, circle: Sequence[str]) -> tuple[str, str, str]:
    """The message, the code and the hint."""
    if len(circle) == 2:
        kind = section.removesuffix("s")
        return f"the {kind} {quote(circle[0])} names itself", "circle", f"name another {kind}"
    way = " -> ".join(map(cut, circle))
    return f"these {section} name one another in a circle: {way}", "circle", "one of them must name none of the others"


def _key_place(tree: YamlMapping, path: KeyPath) -> Place | None:
    """Where the last key of a path stands, and not its value."""
    node: YamlNode | None = tree
    for step in path[:-1]:
        node = _child(node, step)
    entry = node.entries.get(str(path[-1])) if isinstance(node, YamlMapping) else None
    return entry.key_place if entry else None


def _child(node: YamlNode | None, step: str | int) -> YamlNode | None:
    if isinstance(node, YamlMapping) and step in node.entries:
        return node.entries[str(step)].value
    if isinstance(node, YamlSequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None
