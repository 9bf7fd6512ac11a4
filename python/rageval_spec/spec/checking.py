"""The tree of a spec -> the validated node and plugin of every block, and diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Context, Judge, Node, RankingMetric
from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.explaining import Block, diagnose_secret, list_keys, place_of
from rageval_spec.spec.nodes import (
    LISTED_SECTIONS,
    NAMED_SECTIONS,
    SECTIONS,
    DiagnosisNode,
    GateNode,
    LimitsNode,
    RankingNode,
    SpecNode,
    StatisticsNode,
)
from rageval_spec.spec.places import KeyPath, Place, quote
from rageval_spec.spec.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.reading import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    walk_scalars,
)
from rageval_spec.spec.scalars import ScalarValue
from rageval_spec.spec.slices import SliceNode
from rageval_spec.spec.stopping import StoppingNode
from rageval_spec.spec.validating import drop_wrong_entries, validate
from rageval_spec.spec.words import find_plugin, load_plugin, suggest_metric

_BLOCKS: dict[str, type[BaseModel]] = {
    "ranking": RankingNode,
    "statistics": StatisticsNode,
    "diagnosis": DiagnosisNode,
    "limits": LimitsNode,
    "stopping": StoppingNode,
}


@dataclass
class Checked(PluginBlocks):
    """The result of checking a tree: the blocks of plugins, and the rest of the spec.

    Wrong blocks appear in the diagnostics, not in the lists.

    Attributes:
        spec: the parts that belong to no plugin; None if one of them is wrong.
        gates: the gates by index, without their wrong keys. A gate that needs a wrong key is left out.
        partial_gates: the indexes of gates without some of their keys.
        slices: the entries of `slices:` by index; wrong ones are left out.
        diagnostics: what is wrong.
    """

    spec: SpecNode | None = None
    gates: dict[int, GateNode] = field(default_factory=dict)
    partial_gates: set[int] = field(default_factory=set)
    slices: dict[int, SliceNode] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def check_tree(tree: YamlMapping, secrets: Mapping[str, str], folder: Path) -> Checked:
    """Validate every block of a spec. References to other blocks and to files are not checked here."""
    checker = _Checker(secrets, folder)
    checker.check_spec(tree)
    meant = [*_find_meant(tree)]
    for section in NAMED_SECTIONS:
        if section in tree.entries or section not in meant:
            checker.check_mapping(section, tree.entries.get(section))
    for section in LISTED_SECTIONS:
        checker.check_list(section, _entry_or_default(tree, section))
    return checker.checked


def _entry_or_default(tree: YamlMapping, section: str) -> YamlEntry | None:
    default = SpecNode.model_fields[section].get_default()
    if section in tree.entries or not isinstance(default, tuple):
        return tree.entries.get(section)
    words: list[YamlNode] = [YamlScalar(tree.place, word, word) for word in default]
    return YamlEntry(tree.place, YamlSequence(tree.place, words))


class _Checker:
    def __init__(self, secrets: Mapping[str, str], folder: Path) -> None:
        self.secrets = secrets
        self.folder = folder
        self.checked = Checked()
        self.judges: dict[str, Judge[Any]] = {}

    def check_spec(self, tree: YamlMapping) -> None:
        """Check the spec as a whole, and its gates and slices one by one."""
        spec, diagnostics = validate(Block(tree, tree.place, SpecNode), SpecNode, self.secrets, SECTIONS)
        self.checked.spec = spec
        self.checked.diagnostics += [_point_to_block(diagnostic, tree) for diagnostic in diagnostics]
        gates = tree.entries["gates"].value if "gates" in tree.entries else None
        for index, node in enumerate(gates.items if isinstance(gates, YamlSequence) else ()):
            if isinstance(node, YamlMapping) and not _has_fault(node):
                self._check_gate(index, node)

        slices = tree.entries["slices"].value if "slices" in tree.entries else None
        for index, node in enumerate(slices.items if isinstance(slices, YamlSequence) else ()):
            self._check_slice(index, node)

    def _check_slice(self, index: int, node: YamlNode) -> None:
        if isinstance(node, YamlScalar) and isinstance(node.value, str) and not node.faulty:
            node = _as_mapping(node, {"by": node.value})
        entry = None
        if isinstance(node, YamlMapping) and not _has_fault(node):
            entry, _ = validate(Block(node, node.place, SliceNode), SliceNode, self.secrets)
        if entry is None:
            self.checked.incomplete.add("slices")
        else:
            self.checked.slices[index] = entry

    def _check_gate(self, index: int, node: YamlMapping) -> None:
        right = drop_wrong_entries(node, GateNode, self.secrets)
        gate, _ = validate(Block(right, node.place, GateNode), GateNode, self.secrets)
        if gate is not None:
            self.checked.gates[index] = gate
            if right is not node:
                self.checked.partial_gates.add(index)

    def check_mapping(self, section: registry.Section, entry: YamlEntry | None) -> None:
        """Check a section whose blocks have names."""
        if entry is not None and not isinstance(entry.value, YamlMapping):
            return
        entries = entry.value.entries if entry is not None and isinstance(entry.value, YamlMapping) else {}
        self.checked.names[section] = list(entries)
        for name, inner in entries.items():
            self._check_plugin(section, (section, name), place_of(inner.key_place, inner.value), inner.value)

    def check_list(self, section: registry.Section, entry: YamlEntry | None) -> None:
        """Check a section that is a list of blocks or words."""
        if entry is None or not isinstance(entry.value, YamlSequence):
            return
        for index, node in enumerate(entry.value.items):
            title = None
            if isinstance(node, YamlScalar) and isinstance(node.value, str) and not node.faulty:
                title = f"the {section.removesuffix('s')} {quote(node.text)}"
                expanded = _expand_metric(node) if section == "metrics" else _as_mapping(node, {"use": node.value})
                if isinstance(expanded, Diagnostic):
                    self._reject(section, expanded)
                    continue
                node = expanded
            self._check_plugin(section, (section, index), node.place, node, title)

    def _check_plugin(
        self, section: registry.Section, path: KeyPath, place: Place, node: YamlNode, title: str | None = None
    ) -> None:
        if isinstance(node, YamlScalar) and node.faulty:
            self.checked.incomplete.add(section)
            return
        found = find_plugin(section, node, place)
        if isinstance(found, Diagnostic):
            self._reject(section, found)
            return
        block = Block(node, place, found.node_type, title)
        validated, diagnostics = validate(block, found.node_type, self.secrets)
        if validated is not None and not diagnostics and not _has_fault(node):
            self._build(self.checked.blocks, section, path, place, validated)
            return
        self._reject(section, *diagnostics)
        if isinstance(node, YamlMapping) and not _has_fault(node):
            right = block._replace(node=drop_wrong_entries(node, found.node_type, self.secrets))
            rest, _ = validate(right, found.node_type, self.secrets)
            if rest is not None:
                self._build(self.checked.partial_blocks, section, path, place, rest)

    def _build(
        self, blocks: list[PluginBlock], section: registry.Section, path: KeyPath, place: Place, node: Node
    ) -> None:
        name = path[-1] if isinstance(path[-1], str) else node.use
        try:
            context = Context(name, self.folder, judges=self.judges)
            plugin = registry.load(section, node.use)(node, context)
        except RagevalError as error:
            self._reject(section, place.diagnose(str(error), "value"))
        else:
            blocks.append(PluginBlock(section, path, name, place, node, plugin))
            if isinstance(plugin, Judge):
                self.judges[name] = plugin

    def _reject(self, section: registry.Section, *diagnostics: Diagnostic) -> None:
        self.checked.incomplete.add(section)
        self.checked.diagnostics += diagnostics


def _has_fault(node: YamlNode) -> bool:
    return any(scalar.faulty for scalar in walk_scalars(node))


def _find_meant(tree: YamlMapping) -> Iterator[str]:
    """The sections that unknown top-level keys are misspellings of. They are not reported as missing."""
    keys = list_keys(SpecNode)
    for key in tree.entries:
        if key not in keys:
            yield from (section for section in SECTIONS if suggest(key, keys) == f"did you mean '{section}'?")


def _point_to_block(diagnostic: Diagnostic, tree: YamlMapping) -> Diagnostic:
    """For an unknown top-level key, name the block that has a key of that name, if any."""
    if diagnostic.code != "unknown-key":
        return diagnostic
    for key, entry in tree.entries.items():
        at_top = entry.key_place.path == diagnostic.path and entry.key_place.position == diagnostic.position
        owner = next((block for block, model in _BLOCKS.items() if key in list_keys(model)), None)
        if at_top and owner is not None:
            return entry.key_place.diagnose(diagnostic.message, diagnostic.code, f"it is a key of '{owner}:'")
    return diagnostic


def _as_mapping(scalar: YamlScalar, values: Mapping[str, ScalarValue]) -> YamlMapping:
    """The block that a bare word means. Every value has the word's place."""
    place = scalar.place
    return YamlMapping(
        place, {key: YamlEntry(place, YamlScalar(place, value, str(value))) for key, value in values.items()}
    )


def _read_percentile(text: str) -> dict[str, ScalarValue] | None:
    """The block that a percentile means: `latency@p95` is `{use: latency, percentile: 95}`."""
    word, _, cutoff = text.partition("@p")
    if not cutoff.isdecimal() or word not in registry.words("metrics"):
        return None
    return {"use": word, "percentile": int(cutoff)} if "percentile" in _keys_of(word) else None


def _keys_of(metric: str) -> Iterable[str]:
    return load_plugin("metrics", metric).node_type.model_fields


def _expand_metric(scalar: YamlScalar) -> YamlMapping | Diagnostic:
    """The block that a bare metric means: a measure that the kernel can parse, or another word of the section."""
    from rageval_spec import kernels

    text = str(scalar.value)
    if text.startswith(MARK):
        return diagnose_secret(scalar.place)
    try:
        measure = kernels.parse_measure(text)
    except UsageError as error:
        words = registry.words("metrics")
        if percentile := _read_percentile(text):
            return _as_mapping(scalar, percentile)
        if text in words and not issubclass(load_plugin("metrics", text), RankingMetric):
            return _as_mapping(scalar, {"use": text})
        message, _, hint = str(error).partition("; ")
        if message.startswith("unknown"):
            hint = suggest_metric(text) or hint or suggest(text, words) or ""
        return scalar.place.diagnose(message, "unknown-metric", hint or None)
    cutoff = {} if measure.cutoff is None else {"cutoff": measure.cutoff}
    return _as_mapping(scalar, {"use": measure.name, **cutoff, **measure.parameters})
