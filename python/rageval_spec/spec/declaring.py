"""Models that a spec names without declaring them are declared for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context
from rageval_spec.spec.checking import Checked, PluginBlock
from rageval_spec.spec.defaults import DEFAULT_MODELS
from rageval_spec.spec.nodes import SECTIONS
from rageval_spec.spec.places import KeyPath, Place, nearest_place


def add_default_models(checked: Checked, places: dict[KeyPath, Place], folder: Path) -> list[Diagnostic]:
    """Declare the default models that blocks name and the spec does not, each at the place that names it first.

    They come after the declared models, so that a digest is what it is with the block written out; what cannot be
    built is diagnosed at that place too.
    """
    if "models" not in checked.names:
        return []
    diagnostics = []
    for name, place in _list_wanted(checked, places).items():
        path = ("models", name)
        checked.names["models"].append(name)
        places[path] = place
        try:
            block = _build(path, place, folder)
        except (RagevalError, ValidationError) as error:
            checked.incomplete.add("models")
            diagnostics.append(place.diagnose(f"the model '{name}' cannot be had: {error}", "plugin"))
        else:
            checked.blocks.append(block)
    checked.blocks.sort(key=lambda block: SECTIONS.index(block.section))
    return diagnostics


def _list_wanted(checked: Checked, places: Mapping[KeyPath, Place]) -> dict[str, Place]:
    wanted: dict[str, Place] = {}
    declared = checked.names["models"]
    for block, found in checked.references():
        if found.section == "models" and found.name in DEFAULT_MODELS and found.name not in declared:
            place = nearest_place(places, (*block.path, *found.path)) or block.place
            wanted.setdefault(found.name, place)
    return wanted


def _build(path: tuple[str, str], place: Place, folder: Path) -> PluginBlock:
    name = path[1]
    plugin_class = registry.load("models", DEFAULT_MODELS[name]["use"])
    node = plugin_class.node_type.model_validate(dict(DEFAULT_MODELS[name]), by_alias=True)
    return PluginBlock("models", path, name, place, node, plugin_class(node, Context(name, folder)))
