"""Checks the names by which blocks refer to each other: undeclared names, cycles, and unused blocks.

Default models and judges that a spec names without declaring them are declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context
from rageval_spec.plugin.block_names import NamedBlock, ReferredSection, find_circles, list_references
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec.blocks import spec_node
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.text.places import KeyPath, TextPlace, cut, list_hint, nearest_place, quote
from rageval_spec.spec.text.yaml_tree import YamlMapping, YamlNode, YamlSequence

_SECTIONS: tuple[ReferredSection, ...] = get_args(ReferredSection)
_NAMING = {"datasets", "systems", "models", "judges", "metrics"}
"""Sections whose blocks can name others."""


def check_references(checked: PluginBlocks, tree: YamlMapping, places: Mapping[KeyPath, TextPlace]) -> list[Diagnostic]:
    """Diagnostics of wrong references between blocks, and warnings of blocks that nothing refers to."""
    dangling = [(block, found) for block, found in checked.references() if _is_dangling(checked, found)]
    diagnostics = [
        _place(tree, places, block, found).diagnose(
            f"the spec has no {_kind(found.section)} {quote(found.name)}",
            "dangling",
            _suggest(checked, block, found),
        )
        for block, found in dangling
    ]
    diagnostics += _explain_circles(checked, tree, places)
    diagnostics += _warn_of_unused(checked, {found.section for _, found in dangling})
    return diagnostics


def _is_dangling(checked: PluginBlocks, found: NamedBlock) -> bool:
    known = checked.names.get(found.section)
    return known is not None and found.name not in known and not found.name.startswith(MARK)


def _kind(section: str) -> str:
    return registry.name_one(section)


def _place(tree: YamlMapping, places: Mapping[KeyPath, TextPlace], block: PluginBlock, found: NamedBlock) -> TextPlace:
    """Where a block names another."""
    path = (*block.path, *found.path)
    place = _key_place(tree, path) if found.is_key else None
    return place or nearest_place(places, path) or block.place


def _explain_circles(
    checked: PluginBlocks, tree: YamlMapping, places: Mapping[KeyPath, TextPlace]
) -> Iterator[Diagnostic]:
    for section in _SECTIONS:
        blocks = {block.name: block for block in (*checked.blocks, *checked.partial_blocks) if block.section == section}
        for circle in find_circles({name: block.node for name, block in blocks.items()}, section):
            first = blocks[circle[0]]
            found = next(f for f in list_references(first.node) if (f.section, f.name) == (section, circle[1]))
            yield _place(tree, places, first, found).diagnose(*_explain_circle(section, circle))


def _explain_circle(section: ReferredSection, circle: Sequence[str]) -> tuple[str, str, str]:
    """The message, the code and the hint."""
    if len(circle) == 2:
        return f"the {_kind(section)} {quote(circle[0])} names itself", "circle", f"name another {_kind(section)}"
    way = " -> ".join(map(cut, circle))
    hint = "change one of them so that it does not refer to the others"
    return f"these {section} refer to each other in a cycle: {way}", "circle", hint


def _warn_of_unused(checked: PluginBlocks, doubtful: set[ReferredSection]) -> Iterator[Diagnostic]:
    """Warn of models and judges that no block names, unless a wrong block or an undeclared name could mean them."""
    if checked.incomplete & _NAMING:
        return
    named = {(found.section, found.name) for _, found in checked.references()}
    for block in checked.blocks:
        if block.section in {"models", "judges"} - doubtful and (block.section, block.name) not in named:
            kind = _kind(block.section)
            users = "system, judge or metric" if kind == "model" else "judge or metric"
            message = f"no {users} names the {kind} {quote(block.name)}"
            hint = f"to use it, write '{kind}: {block.name}' in the block that needs it; otherwise remove this one"
            yield block.place.diagnose(message, "unused", hint, "warning")


def _suggest(checked: PluginBlocks, block: PluginBlock, found: NamedBlock) -> str:
    """What to write instead of an undeclared name."""
    others = [name for name in checked.names[found.section] if (found.section, name) != (block.section, block.name)]
    section = found.section
    defaults = spec_node.default_names(section) if section == "models" or section == "judges" else []
    defaults = [name for name in defaults if name not in others]
    known = [*others, *defaults]
    return (
        _suggest_section(checked, found)
        or _suggest_user(checked, block, found)
        or suggest(found.name, known)
        or _suggest_declaration(found)
        or list_hint(known)
        or f"declare it under '{found.section}:'"
    )


def _suggest_section(checked: PluginBlocks, found: NamedBlock) -> str | None:
    """A hint if another section has a block of that name."""
    if found.section == "systems" and (
        found.name in spec_node.DEFAULT_MODELS or found.name in checked.names.get("models", [])
    ):
        return f"it is a model; add a system {{use: dense, model: {cut(found.name)}}} and name that system"
    others = (section for section in spec_node.NAMED_SECTIONS if found.name in checked.names.get(section, []))
    return next((f"it is the name of a {_kind(section)}" for section in others), None)


def _suggest_user(checked: PluginBlocks, block: PluginBlock, found: NamedBlock) -> str | None:
    """A hint if the word of a block was written instead of its name."""
    alike = [
        cut(other.name)
        for other in (*checked.blocks, *checked.partial_blocks)
        if other.section == found.section and other.node.use == found.name and other is not block
    ]
    if not alike:
        return None
    blocks = "blocks" if len(alike) > 1 else "block"
    return f"the {blocks} with 'use: {found.name}' {'are' if len(alike) > 1 else 'is'} called {', '.join(alike)}"


def _suggest_declaration(found: NamedBlock) -> str | None:
    """How to declare what a name seems to mean: a word for `use:`, or a model on a hub."""
    name = cut(found.name)
    if found.name in registry.words(found.section):
        fields = registry.load(found.section, found.name).node_type.model_fields
        needs_more = any(field.is_required() for key, field in fields.items() if key != "use")
        return f"declare it: {found.section}: {{{name}: {{use: {name}{', ...' if needs_more else ''}}}}}"
    if found.section == "models":
        short = _short_name(found.name)
        if short in spec_node.DEFAULT_IDS:
            return f"the embedded model is called '{spec_node.DEFAULT_IDS[short]}'"
        if "/" in found.name or found.name.endswith(".onnx"):
            return f"declare it: models: {{{short}: {{use: onnx, model: {name}}}}}"
    return None


def _short_name(model: str) -> str:
    """A name for a block, from a model's id or path."""
    return cut(model.rstrip("/").rpartition("/")[2].removesuffix(".onnx").lower()) or "embedder"


def _key_place(tree: YamlMapping, path: KeyPath) -> TextPlace | None:
    """The place of the last key of a path, rather than of its value."""
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


_Section = Literal["judges", "models"]


def add_defaults(checked: PluginBlocks, places: dict[KeyPath, TextPlace], folder: Path) -> list[Diagnostic]:
    """Declare the default judges and models that blocks name but the spec does not declare.

    Each gets the place where it is first named; if it cannot be built, the diagnostic points there. Defaults follow
    the declared blocks, so that the digest is the same as with the block written out. Judges come first, because they
    name judges and models themselves.
    """
    diagnostics: list[Diagnostic] = []
    sections: tuple[_Section, ...] = ("judges", "models")
    for section in sections:
        if section in checked.names:
            diagnostics += _add(section, checked, places, folder)
    checked.blocks.sort(key=lambda block: spec_node.SECTIONS.index(block.section))
    return diagnostics


def _add(section: _Section, checked: PluginBlocks, places: dict[KeyPath, TextPlace], folder: Path) -> list[Diagnostic]:
    diagnostics = []
    while wanted := _list_wanted(section, checked, places):
        for name, place in wanted.items():
            path = (section, name)
            checked.names[section].append(name)
            places[path] = place
            try:
                block = _build(section, name, place, folder)
            except (RagevalError, ValidationError) as error:
                checked.incomplete.add(section)
                kind = registry.name_one(section)
                diagnostics.append(place.diagnose(f"the {kind} '{name}' cannot be used: {error}", "plugin"))
            else:
                checked.blocks.append(block)
    return diagnostics


def _list_wanted(section: _Section, checked: PluginBlocks, places: Mapping[KeyPath, TextPlace]) -> dict[str, TextPlace]:
    wanted: dict[str, TextPlace] = {}
    declared = checked.names[section]
    for block, found in checked.references():
        if found.section == section and found.name not in declared and spec_node.default_block(section, found.name):
            place = nearest_place(places, (*block.path, *found.path)) or block.place
            wanted.setdefault(found.name, place)
    return wanted


def _build(section: _Section, name: str, place: TextPlace, folder: Path) -> PluginBlock:
    block = dict(spec_node.default_block(section, name) or {})
    plugin_class = registry.load(section, block["use"])
    node = plugin_class.node_type.model_validate(block, by_alias=True)
    return PluginBlock(section, (section, name), name, place, node, plugin_class(node, Context(name, folder)))
