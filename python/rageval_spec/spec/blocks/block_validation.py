"""The tree of a spec -> the validated node and plugin of every block, or a diagnostic for each error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rageval_spec import registry
from rageval_spec.dataclass import dataclass, field
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Context, Judge, Metric, Node, RankingMetric
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec.blocks import spec_node
from rageval_spec.spec.blocks.error_explanation import CheckedBlock, diagnose_secret, explain, list_keys, place_of
from rageval_spec.spec.blocks.gates import NUMBER_OR_SHARE, GateNode, StoppingNode
from rageval_spec.spec.blocks.monitor import MonitorNode
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.blocks.plugin_lookup import correct_word, find_plugin, suggest_metric
from rageval_spec.spec.blocks.slices import SliceNode
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import KeyPath, Places, TextPlace, quote, walk_values

M = TypeVar("M", bound=BaseModel)

_TYPED: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("int_type", "float_type"), (int, float)),
    "bool_type": (bool,),
    NUMBER_OR_SHARE: (int,),
}
"""The types that a variable's text can be read as, by pydantic's name for the error that it is text."""


def validate(
    block: CheckedBlock, model: type[M], secrets: Mapping[str, str], foreign: Mapping[str, Any] = MappingProxyType({})
) -> tuple[M | None, list[Diagnostic]]:
    """The node of a block, and its diagnostics.

    Validation is strict and works on JSON, like a JSON Schema: text is not a number, only a field's alias is its key,
    and a float without a fraction is an integer. `secrets` has the actual text for each marked text; what `foreign`
    names, as the argument `exclude` of pydantic does, is validated elsewhere.
    """
    data = yaml_tree.to_data(block.node)
    errors: list[ErrorDetails] = []
    for _ in range(3):
        try:
            node = _validate(model, data, secrets)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        else:
            return node, list(_find_misplaced_secrets(block, node, foreign)) if secrets else []
        if not _repair(block.node, data, errors):
            break
    return None, explain(block, errors)


def _validate(model: type[M], data: Any, secrets: Mapping[str, str]) -> M:
    return model.model_validate_json(json.dumps(data), strict=True, by_alias=True, by_name=False, context=secrets)


def drop_wrong_entries(
    mapping: yaml_tree.YamlMapping, model: type[BaseModel], secrets: Mapping[str, str]
) -> yaml_tree.YamlMapping:
    """A mapping without its wrong entries, so that the others can be checked further."""
    try:
        _validate(model, yaml_tree.to_data(mapping), secrets)
    except ValidationError as error:
        wrong = {step for found in error.errors(include_url=False) for step in found["loc"][:1]}
        entries = {key: entry for key, entry in mapping.entries.items() if key not in wrong}
        return yaml_tree.YamlMapping(mapping.place, entries)
    return mapping


def list_places(node: yaml_tree.YamlNode, place: TextPlace) -> Places:
    """The place of every key path of a tree. `place` is the place of the tree itself."""
    places = Places()
    waiting: list[tuple[KeyPath, TextPlace, yaml_tree.YamlNode]] = [((), place, node)]
    while waiting:
        path, where, current = waiting.pop()
        places[path] = where
        if isinstance(current, yaml_tree.YamlMapping):
            for key, entry in current.entries.items():
                waiting.append(((*path, key), place_of(entry.key_place, entry.value), entry.value))
        elif isinstance(current, yaml_tree.YamlSequence):
            waiting += [((*path, index), item.place, item) for index, item in enumerate(current.items)]
    return places


def _repair(root: yaml_tree.YamlNode, data: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Make integers of floats without a fraction, and read text from variables as YAML, where those are expected.

    Returns whether anything changed.
    """
    changed = False
    for error in errors:
        node, value, parent, key = root, data, None, None
        for step in error["loc"]:
            inner = yaml_tree.child(node, (step,))
            if inner is not None:  # pydantic adds a step for the name of one of several types
                node, parent, key, value = inner, value, step, value[step]
        read = value
        if error["type"] == "int_type" and isinstance(value, float) and value.is_integer():
            read = int(value)
        elif isinstance(node, yaml_tree.YamlScalar) and node.from_environment and isinstance(value, str):
            read = yaml_tree.resolve_scalar(value.strip())
        if parent is not None and read is not value and type(read) in _TYPED.get(error["type"], ()):
            parent[key] = read
            if isinstance(node, yaml_tree.YamlScalar) and node.from_environment:
                node.value = read
            changed = True
    return changed


def _find_misplaced_secrets(block: CheckedBlock, node: BaseModel, foreign: Mapping[str, Any]) -> Iterator[Diagnostic]:
    places = list_places(block.node, block.place)
    for path, value in walk_values(node.model_dump(by_alias=True, exclude=dict(foreign))):
        if isinstance(value, str) and value.startswith(MARK):
            yield diagnose_secret(places.nearest(path))


_BLOCKS: dict[str, type[BaseModel]] = {
    "ranking": spec_node.RankingNode,
    "statistics": spec_node.StatisticsNode,
    "diagnosis": spec_node.DiagnosisNode,
    "limits": spec_node.LimitsNode,
    "stopping": StoppingNode,
    "monitor": MonitorNode,
}

_FOREIGN: Mapping[str, Any] = {
    **dict.fromkeys((*spec_node.NAMED_SECTIONS, *spec_node.LISTED_SECTIONS), True),
    **dict.fromkeys(spec_node.SINGLE_SECTIONS, True),
    "monitor": {path[1]: True for path in spec_node.INNER_SECTIONS},
}
"""The parts of a spec that belong to plugins."""


@dataclass
class CheckedSpec(PluginBlocks):
    """The result of checking a tree: the blocks of plugins, and the rest of the spec.

    Wrong blocks appear in the diagnostics, not in the lists.

    Attributes:
        spec: the parts that belong to no plugin; None if one of them is wrong.
        gates: the gates by index, without their wrong keys. A gate that needs a wrong key is left out.
        partial_gates: the indexes of gates without some of their keys.
        slices: the entries of `slices:` by index; wrong ones are left out.
        diagnostics: what is wrong.
    """

    spec: spec_node.SpecNode | None = None
    gates: dict[int, GateNode] = field(default_factory=dict)
    partial_gates: set[int] = field(default_factory=set)
    slices: dict[int, SliceNode] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def check_tree(tree: yaml_tree.YamlMapping, secrets: Mapping[str, str], folder: Path) -> CheckedSpec:
    """Validate every block of a spec. References to other blocks and to files are not checked here."""
    checker = _Checker(secrets, folder)
    checker.check_spec(tree)
    keys = list_keys(spec_node.SpecNode)
    misspelt = [suggest(key, keys) for key in tree.entries if key not in keys]
    for section in spec_node.NAMED_SECTIONS:
        if section in tree.entries or f"did you mean '{section}'?" not in misspelt:  # else it is not missing
            checker.check_mapping(section, tree.entries.get(section))
    for section in spec_node.LISTED_SECTIONS:
        default = spec_node.SpecNode.model_fields[section].get_default()
        entry = tree.entries.get(section)
        if entry is None and isinstance(default, tuple):
            words: list[yaml_tree.YamlNode] = [yaml_tree.YamlScalar(tree.place, word, word) for word in default]
            entry = yaml_tree.YamlEntry(tree.place, yaml_tree.YamlSequence(tree.place, words))
        checker.check_list(section, entry, (section,))
    for path, section in spec_node.INNER_SECTIONS.items():
        checker.check_list(section, _find_entry(tree, path), path)
    for key, section in spec_node.SINGLE_SECTIONS.items():
        if (entry := tree.entries.get(key)) is not None:
            checker.check_single(section, entry, (key,))
    return checker.checked


class _Checker:
    def __init__(self, secrets: Mapping[str, str], folder: Path) -> None:
        self.secrets = secrets
        self.folder = folder
        self.checked = CheckedSpec()
        self.judges: dict[str, Judge[Any]] = {}

    def check_spec(self, tree: yaml_tree.YamlMapping) -> None:
        block = CheckedBlock(tree, tree.place, spec_node.SpecNode)
        self.checked.spec, diagnostics = validate(block, spec_node.SpecNode, self.secrets, _FOREIGN)
        self.checked.diagnostics += [_point_to_block(diagnostic, tree) for diagnostic in diagnostics]
        for key, check in (("gates", self._check_gate), ("slices", self._check_slice)):
            entries = yaml_tree.child(tree, (key,))
            for index, node in enumerate(entries.items if isinstance(entries, yaml_tree.YamlSequence) else ()):
                check(index, node)

    def _check_slice(self, index: int, node: yaml_tree.YamlNode) -> None:
        if isinstance(node, yaml_tree.YamlScalar) and isinstance(node.value, str) and not node.faulty:
            node = _as_mapping(node, {"by": node.value})
        entry = None
        if isinstance(node, yaml_tree.YamlMapping) and not _has_fault(node):
            entry, _ = validate(CheckedBlock(node, node.place, SliceNode), SliceNode, self.secrets)
        if entry is None:
            self.checked.incomplete.add("slices")
        else:
            self.checked.slices[index] = entry

    def _check_gate(self, index: int, node: yaml_tree.YamlNode) -> None:
        if not isinstance(node, yaml_tree.YamlMapping) or _has_fault(node):
            return
        right = drop_wrong_entries(node, GateNode, self.secrets)
        gate, _ = validate(CheckedBlock(right, node.place, GateNode), GateNode, self.secrets)
        if gate is not None:
            self.checked.gates[index] = gate
            if right is not node:
                self.checked.partial_gates.add(index)

    def check_mapping(self, section: registry.Section, entry: yaml_tree.YamlEntry | None) -> None:
        if entry is not None and not isinstance(entry.value, yaml_tree.YamlMapping):
            return
        entries = entry.value.entries if entry is not None and isinstance(entry.value, yaml_tree.YamlMapping) else {}
        self.checked.names[section] = list(entries)
        for name, inner in entries.items():
            self._check_plugin(section, (section, name), place_of(inner.key_place, inner.value), inner.value)

    def check_list(self, section: registry.Section, entry: yaml_tree.YamlEntry | None, path: KeyPath) -> None:
        if entry is None or not isinstance(entry.value, yaml_tree.YamlSequence):
            return
        for index, node in enumerate(entry.value.items):
            title = None
            if isinstance(node, yaml_tree.YamlScalar) and isinstance(node.value, str) and not node.faulty:
                title = f"the {section.removesuffix('s')} {quote(node.text)}"
                expanded = _expand_metric(node) if section == "metrics" else _as_mapping(node, {"use": node.value})
                if isinstance(expanded, Diagnostic):
                    self._reject(section, expanded)
                    continue
                node = expanded
            self._check_plugin(section, (*path, index), node.place, node, title)

    def check_single(self, section: registry.Section, entry: yaml_tree.YamlEntry, path: KeyPath) -> None:
        node = entry.value
        if isinstance(node, yaml_tree.YamlScalar) and isinstance(node.value, str) and not node.faulty:
            node = _as_mapping(node, {"use": node.value})
        self._check_plugin(section, path, place_of(entry.key_place, node), node)

    def _check_plugin(
        self,
        section: registry.Section,
        path: KeyPath,
        place: TextPlace,
        node: yaml_tree.YamlNode,
        title: str | None = None,
        is_whole: bool = True,
    ) -> None:
        """Check a block; `is_whole` is False if its word was corrected, so that it may not be what the user meant."""
        if isinstance(node, yaml_tree.YamlScalar) and node.faulty:
            self.checked.incomplete.add(section)
            return
        found = find_plugin(section, node, place)
        if isinstance(found, Diagnostic):
            self._reject(section, found)
            if found.code == "unknown-word" and isinstance(node, yaml_tree.YamlMapping) and title is None:
                corrected = correct_word(section, node)
                if corrected is not None:
                    self._check_plugin(section, path, place, corrected, is_whole=False)
            return
        block = CheckedBlock(node, place, found.node_type, title)
        validated, diagnostics = validate(block, found.node_type, self.secrets)
        if validated is not None and not diagnostics and not _has_fault(node):
            blocks = self.checked.blocks if is_whole else self.checked.partial_blocks
            self._build(blocks, section, path, place, validated)
            return
        self._reject(section, *(one for one in diagnostics if is_whole or one.code != "missing-key"))
        if isinstance(node, yaml_tree.YamlMapping) and not _has_fault(node):
            right = block._replace(node=drop_wrong_entries(node, found.node_type, self.secrets))
            rest, _ = validate(right, found.node_type, self.secrets)
            if rest is not None:
                self._build(self.checked.partial_blocks, section, path, place, rest)

    def _build(
        self, blocks: list[PluginBlock], section: registry.Section, path: KeyPath, place: TextPlace, node: Node
    ) -> None:
        name = path[-1] if isinstance(path[-1], str) else node.use
        try:
            context = Context(name, self.folder, judges=self.judges)
            plugin = registry.load(section, node.use)(node, context)
        except RagevalError as error:
            self._reject(section, place.diagnose(str(error), "wrong-value"))
        else:
            blocks.append(PluginBlock(section, path, name, place, node, plugin))
            if isinstance(plugin, Judge):
                self.judges[name] = plugin

    def _reject(self, section: registry.Section, *diagnostics: Diagnostic) -> None:
        self.checked.incomplete.add(section)
        self.checked.diagnostics += diagnostics


def _find_entry(tree: yaml_tree.YamlMapping, path: KeyPath) -> yaml_tree.YamlEntry | None:
    owner = yaml_tree.child(tree, path[:-1])
    return owner.entries.get(str(path[-1])) if isinstance(owner, yaml_tree.YamlMapping) else None


def _has_fault(node: yaml_tree.YamlNode) -> bool:
    return any(scalar.faulty for scalar in yaml_tree.walk_scalars(node))


def _point_to_block(diagnostic: Diagnostic, tree: yaml_tree.YamlMapping) -> Diagnostic:
    """For an unknown top-level key, name the block that has a key of that name, if any."""
    if diagnostic.code != "unknown-key":
        return diagnostic
    for key, entry in tree.entries.items():
        at_top = entry.key_place.path == diagnostic.path and entry.key_place.position == diagnostic.position
        owner = next((block for block, model in _BLOCKS.items() if key in list_keys(model)), None)
        if at_top and owner is not None:
            return entry.key_place.diagnose(diagnostic.message, diagnostic.code, f"it is a key of '{owner}:'")
    return diagnostic


def _load(metric: str) -> type[Metric[Any]]:
    plugin: type[Metric[Any]] = registry.load("metrics", metric)
    return plugin


def _as_mapping(scalar: yaml_tree.YamlScalar, values: Mapping[str, yaml_tree.ScalarValue]) -> yaml_tree.YamlMapping:
    """The block that a bare word means. Every value has the word's place."""
    at = scalar.place
    scalars = {key: yaml_tree.YamlScalar(at, value, str(value)) for key, value in values.items()}
    return yaml_tree.YamlMapping(at, {key: yaml_tree.YamlEntry(at, value) for key, value in scalars.items()})


def _expand_metric(scalar: yaml_tree.YamlScalar) -> yaml_tree.YamlMapping | Diagnostic:
    """The block that a bare metric means: a measure that the kernel can parse, or another word of the section."""
    from rageval_spec import kernels

    text = str(scalar.value)
    if text.startswith(MARK):
        return diagnose_secret(scalar.place)
    try:
        measure = kernels.parse_measure(text)
    except UsageError as error:
        word, _, percentile = text.partition("@p")
        if (
            percentile.isdecimal()
            and registry.has_word("metrics", word)
            and "percentile" in _load(word).node_type.model_fields
        ):
            return _as_mapping(scalar, {"use": word, "percentile": int(percentile)})
        if registry.has_word("metrics", text) and not issubclass(_load(text), RankingMetric):
            return _as_mapping(scalar, {"use": text})
        message, _, hint = str(error).partition("; ")
        if message.startswith("unknown"):
            hint = suggest_metric(text) or hint or suggest(text, registry.words("metrics")) or ""
        elif of_answers := [one for one in registry.words("metrics") if one.endswith(f"_{text}")]:
            hint += f" for rankings, or for answers {' or '.join(map(repr, of_answers))}"
        return scalar.place.diagnose(message, "unknown-metric", hint or None)
    cutoff = {} if measure.cutoff is None else {"cutoff": measure.cutoff}
    return _as_mapping(scalar, {"use": measure.name, **cutoff, **measure.parameters})
