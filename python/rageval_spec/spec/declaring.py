"""Declares the default models and judges that a spec names without declaring them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context
from rageval_spec.spec.defaults import default_block
from rageval_spec.spec.nodes import SECTIONS
from rageval_spec.spec.places import KeyPath, Place, nearest_place
from rageval_spec.spec.plugin_blocks import PluginBlock, PluginBlocks

_Section = Literal["judges", "models"]


def add_defaults(checked: PluginBlocks, places: dict[KeyPath, Place], folder: Path) -> list[Diagnostic]:
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
    checked.blocks.sort(key=lambda block: SECTIONS.index(block.section))
    return diagnostics


def _add(section: _Section, checked: PluginBlocks, places: dict[KeyPath, Place], folder: Path) -> list[Diagnostic]:
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


def _list_wanted(section: _Section, checked: PluginBlocks, places: Mapping[KeyPath, Place]) -> dict[str, Place]:
    wanted: dict[str, Place] = {}
    declared = checked.names[section]
    for block, found in checked.references():
        if found.section == section and found.name not in declared and default_block(section, found.name):
            place = nearest_place(places, (*block.path, *found.path)) or block.place
            wanted.setdefault(found.name, place)
    return wanted


def _build(section: _Section, name: str, place: Place, folder: Path) -> PluginBlock:
    block = dict(default_block(section, name) or {})
    plugin_class = registry.load(section, block["use"])
    node = plugin_class.node_type.model_validate(block, by_alias=True)
    return PluginBlock(section, (section, name), name, place, node, plugin_class(node, Context(name, folder)))
