"""Checks the names by which blocks refer to each other: undeclared names, cycles, and unused blocks.

Default models and judges that a spec names without declaring them are declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context, Node
from rageval_spec.plugin.block_names import NamedBlock, ReferredSection, find_circles, list_references
from rageval_spec.plugin.secrets import MARK
from rageval_spec.registry import name_one
from rageval_spec.spec.blocks import spec_node
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.blocks.spec_node import DefaultedSection
from rageval_spec.spec.text.places import Places, TextPlace, cut, list_hint, quote
from rageval_spec.spec.text.yaml_tree import YamlMapping, child

_SECTIONS: tuple[ReferredSection, ...] = get_args(ReferredSection)
_NAMING = {"datasets", "systems", "models", "judges", "metrics"}
"""Sections whose blocks can name others."""


def check_references(checked: PluginBlocks, tree: YamlMapping, places: Places) -> list[Diagnostic]:
    """Diagnostics of wrong references between blocks, and warnings of blocks that nothing refers to."""
    diagnostics: list[Diagnostic] = []
    doubtful: set[str] = set()
    for block, found in checked.references():
        known = checked.names.get(found.section)
        if known is not None and found.name not in known and not found.name.startswith(MARK):
            doubtful.add(found.section)
            message = f"the spec has no {name_one(found.section)} {quote(found.name)}"
            place = _place(tree, places, block, found)
            diagnostics.append(place.diagnose(message, "unknown-name", _suggest(checked, block, found)))
    return [*diagnostics, *_explain_circles(checked, tree, places), *_warn_of_unused(checked, doubtful)]


def _place(tree: YamlMapping, places: Places, block: PluginBlock, found: NamedBlock) -> TextPlace:
    path = (*block.path, *found.path)
    if found.is_key:
        owner = child(tree, path[:-1])
        if isinstance(owner, YamlMapping) and str(path[-1]) in owner.entries:
            return owner.entries[str(path[-1])].key_place
    return places.nearest(path)


def _explain_circles(checked: PluginBlocks, tree: YamlMapping, places: Places) -> Iterator[Diagnostic]:
    for section in _SECTIONS:
        blocks = {block.name: block for block in (*checked.blocks, *checked.partial_blocks) if block.section == section}
        for circle in find_circles({name: block.node for name, block in blocks.items()}, section):
            first = blocks[circle[0]]
            found = next(f for f in list_references(first.node) if (f.section, f.name) == (section, circle[1]))
            kind, hint = name_one(section), "change one of them so that it does not refer to the others"
            message = f"these {section} refer to each other in a cycle: {' -> '.join(map(cut, circle))}"
            if len(circle) == 2:
                message, hint = f"the {kind} {quote(circle[0])} names itself", f"name another {kind}"
            yield _place(tree, places, first, found).diagnose(message, "circular-reference", hint)


def _warn_of_unused(checked: PluginBlocks, doubtful: set[str]) -> Iterator[Diagnostic]:
    """Warn of models and judges that no block names, unless a wrong block or an undeclared name could mean them."""
    if checked.incomplete & _NAMING:
        return
    named = {(found.section, found.name) for _, found in checked.references()}
    for block in checked.blocks:
        if block.section in {"models", "judges"} - doubtful and (block.section, block.name) not in named:
            kind = name_one(block.section)
            users = "system, judge or metric" if kind == "model" else "judge or metric"
            message = f"no {users} names the {kind} {quote(block.name)}"
            hint = f"to use it, write '{kind}: {block.name}' in the block that needs it"
            hint += "; remove it unless only 'generate' uses it"
            yield block.place.diagnose(message, "unused-block", hint, "warning")


def _suggest(checked: PluginBlocks, block: PluginBlock, found: NamedBlock) -> str:
    others = [name for name in checked.names[found.section] if (found.section, name) != (block.section, block.name)]
    known = [*dict.fromkeys((*others, *spec_node.default_blocks(found.section)))]
    return (
        _suggest_section(checked, found)
        or _suggest_user(checked, block, found)
        or suggest(found.name, known)
        or _suggest_declaration(found.section, found.name)
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
    return next((f"it is the name of a {name_one(section)}" for section in others), None)


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


def _suggest_declaration(section: ReferredSection, written: str) -> str | None:
    """How to declare what a name seems to mean: a word for `use:`, or a model on a hub."""
    name = cut(written)
    if written in registry.words(section):
        more = ", ..." if spec_node.needs_more(section, written) else ""
        return f"declare it: {section}: {{{name}: {{use: {name}{more}}}}}"
    if section == "models":
        short = cut(written.rstrip("/").rpartition("/")[2].removesuffix(".onnx").lower()) or "embedder"
        if short in spec_node.DEFAULT_IDS:
            return f"the embedded model is called '{spec_node.DEFAULT_IDS[short]}'"
        if "/" in written or written.endswith(".onnx"):
            return f"declare it: models: {{{short}: {{use: onnx, model: {name}}}}}"
    return None


def add_defaults(checked: PluginBlocks, places: Places, folder: Path) -> list[Diagnostic]:
    """Declare the default judges and models that blocks name but the spec does not declare.

    Each gets the place where it is first named; if it cannot be built, the diagnostic points there. Defaults follow
    the declared blocks, so that the digest is the same as with the block written out. Judges come first, because they
    name judges and models themselves.
    """
    diagnostics: list[Diagnostic] = []
    for section in get_args(DefaultedSection):
        while section in checked.names and (wanted := _list_wanted(section, checked, places)):
            for name, place in wanted.items():
                checked.names[section].append(name)
                places[section, name] = place
                try:
                    node = make_default(section, name)
                    plugin = registry.load(section, node.use)(node, Context(name, folder))
                except (RagevalError, ValidationError) as error:
                    checked.incomplete.add(section)
                    message = f"the {name_one(section)} '{name}' cannot be used: {error}"
                    diagnostics.append(place.diagnose(message, "broken-plugin"))
                else:
                    checked.blocks.append(PluginBlock(section, (section, name), name, place, node, plugin))
    checked.blocks.sort(key=lambda block: spec_node.SECTIONS.index(block.section))
    return diagnostics


def make_default(section: DefaultedSection, name: str) -> Node:
    """The node of the block that an undeclared name means."""
    block = dict(spec_node.default_block(section, name) or {})
    node: Node = registry.load(section, block["use"]).node_type.model_validate(block, by_alias=True)
    return node


def _list_wanted(section: DefaultedSection, checked: PluginBlocks, places: Places) -> dict[str, TextPlace]:
    wanted: dict[str, TextPlace] = {}
    for block, found in checked.references():
        is_declared = found.section != section or found.name in checked.names[section]
        if not is_declared and spec_node.default_block(section, found.name):
            wanted.setdefault(found.name, places.nearest((*block.path, *found.path)))
    return wanted
