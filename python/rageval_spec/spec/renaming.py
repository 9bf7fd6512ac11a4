"""Keys that earlier releases used instead of `columns:`. Specs that use them are still read, with a warning."""

from __future__ import annotations

from collections.abc import Mapping

from rageval_spec.diagnostics import Diagnostic
from rageval_spec.plugin.dataset import DatasetNode
from rageval_spec.spec.places import Place, quote
from rageval_spec.spec.reading import YamlEntry, YamlMapping, YamlNode
from rageval_spec.spec.words import find_plugin

COLUMNS = "columns"


def adopt_former_keys(tree: YamlMapping) -> list[Diagnostic]:
    """Move the content of former keys to `columns:`, in place. Returns a warning for each such key."""
    datasets = tree.entries.get("datasets")
    if datasets is None or not isinstance(datasets.value, YamlMapping):
        return []
    found: dict[Diagnostic, None] = {}
    for name, entry in datasets.value.entries.items():
        if isinstance(entry.value, YamlMapping):
            block, diagnostics = _adopt(entry.value, _former_columns(entry.value))
            datasets.value.entries[name] = YamlEntry(entry.key_place, block)
            found.update(dict.fromkeys(diagnostics))
    return list(found)


def _former_columns(block: YamlMapping) -> Mapping[str, str]:
    plugin = find_plugin("datasets", block, block.place)
    node_type = getattr(plugin, "node_type", None)
    if isinstance(node_type, type) and issubclass(node_type, DatasetNode):
        return node_type.former_columns
    return {}


def _adopt(block: YamlMapping, former: Mapping[str, str]) -> tuple[YamlMapping, list[Diagnostic]]:
    """The block with `columns:`. Aliases can share its content, so it is copied rather than changed."""
    if not former.keys() & block.entries.keys():
        return block, []
    entries = {key: entry for key, entry in block.entries.items() if key not in former}
    diagnostics: list[Diagnostic] = []
    for key, file in former.items():
        if key not in block.entries:
            continue
        old = block.entries[key]
        part = file if file == "corpus" or file in block.entries else ""
        diagnostics.append(_warn(old.key_place, key, part))
        value = _nest(old, part) if part else old.value
        present = entries.get(COLUMNS)
        if present is not None:
            value, twice = _merge(present.value, value)
            diagnostics += [_refuse_twice(place, key, name) for name, place in twice]
        entries[COLUMNS] = YamlEntry(old.key_place if present is None else present.key_place, value)
    return YamlMapping(block.place, entries, block.size, block.height), diagnostics


def _nest(entry: YamlEntry, part: str) -> YamlMapping:
    return YamlMapping(entry.value.place, {part: YamlEntry(entry.key_place, entry.value)})


def _merge(first: YamlNode, second: YamlNode) -> tuple[YamlNode, list[tuple[str, Place]]]:
    """Merge two mappings. Also returns the keys that both have, with their places in the second."""
    if not isinstance(first, YamlMapping) or not isinstance(second, YamlMapping):
        return first, []
    twice = [(key, entry.key_place) for key, entry in second.entries.items() if key in first.entries]
    return YamlMapping(first.place, {**second.entries, **first.entries}), twice


def _warn(place: Place, key: str, part: str) -> Diagnostic:
    inside = f"{COLUMNS}: {{{part}: {{...}}}}" if part else f"{COLUMNS}: {{...}}"
    return place.diagnose(f"{quote(key)} is now part of '{COLUMNS}'", "former-key", f"write {inside}", "warning")


def _refuse_twice(place: Place, key: str, name: str) -> Diagnostic:
    message = f"{quote(name)} is defined under both {quote(key)} and '{COLUMNS}'"
    return place.diagnose(message, "duplicate-key", f"keep only the one under '{COLUMNS}'")
