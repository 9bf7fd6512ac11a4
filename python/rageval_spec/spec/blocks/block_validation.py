"""The tree of a spec -> the validated node and plugin of every block, or a diagnostic for each error."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rageval_spec import registry
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Context, Judge, Node, RankingMetric
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec.blocks import spec_node
from rageval_spec.spec.blocks.error_explanation import CheckedBlock, diagnose_secret, explain, list_keys, place_of
from rageval_spec.spec.blocks.gates import NUMBER_OR_SHARE, GateNode
from rageval_spec.spec.blocks.plugin_blocks import PluginBlock, PluginBlocks
from rageval_spec.spec.blocks.plugin_lookup import correct_word, find_plugin, load_plugin, suggest_metric
from rageval_spec.spec.blocks.slices import SliceNode
from rageval_spec.spec.blocks.stopping import StoppingNode
from rageval_spec.spec.text import yaml_tree
from rageval_spec.spec.text.places import KeyPath, TextPlace, nearest_place, quote

M = TypeVar("M", bound=BaseModel)

_TYPED: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("int_type", "float_type"), (int, float)),
    "bool_type": (bool,),
    NUMBER_OR_SHARE: (int,),
}
"""The types that a variable's text can be read as, by pydantic's name for the error that it is text."""


def validate(
    block: CheckedBlock, model: type[M], secrets: Mapping[str, str], foreign: Collection[str] = ()
) -> tuple[M | None, list[Diagnostic]]:
    """The node of a block, and its diagnostics.

    Validation is strict and works on JSON, like a JSON Schema: text is not a number, only a field's alias is its key,
    and a float without a fraction is an integer.

    Args:
        block: the block.
        model: the type of its node.
        secrets: the actual text for each marked text.
        foreign: keys that are validated elsewhere.
    """
    data = yaml_tree.to_data(block.node)
    errors: list[ErrorDetails] = []
    for _ in range(3):
        try:
            text = json.dumps(data)
            node = model.model_validate_json(text, strict=True, by_alias=True, by_name=False, context=secrets)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        else:
            return node, list(_find_misplaced_secrets(block, node, foreign)) if secrets else []
        if not (_make_integers(data, errors) | _type_variables(block.node, data, errors)):
            break
    return None, explain(block, errors)


def drop_wrong_entries(
    mapping: yaml_tree.YamlMapping, model: type[BaseModel], secrets: Mapping[str, str]
) -> yaml_tree.YamlMapping:
    """A mapping without its wrong entries, so that the others can be checked further."""
    text = json.dumps(yaml_tree.to_data(mapping))
    try:
        model.model_validate_json(text, strict=True, by_alias=True, by_name=False, context=secrets)
    except ValidationError as error:
        wrong = {step for found in error.errors(include_url=False) for step in found["loc"][:1]}
        entries = {key: entry for key, entry in mapping.entries.items() if key not in wrong}
        return yaml_tree.YamlMapping(mapping.place, entries)
    return mapping


def list_places(node: yaml_tree.YamlNode, place: TextPlace) -> dict[KeyPath, TextPlace]:
    """The place of every key path of a tree. `place` is the place of the tree itself."""
    places: dict[KeyPath, TextPlace] = {}
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


def _make_integers(data: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Turn floats without a fraction into integers where those are expected. Returns whether any changed."""
    changed = False
    for error in errors:
        if error["type"] != "int_type":
            continue
        changed |= _make_integer(data, error["loc"])
    return changed


def _type_variables(node: yaml_tree.YamlNode, data: Any, errors: Sequence[ErrorDetails]) -> bool:
    """Where a number or a boolean is expected, read text from a variable as YAML. Returns whether any changed."""
    changed = False
    for error in errors:
        if error["type"] in _TYPED:
            changed |= _type_variable(node, data, error["loc"], _TYPED[error["type"]])
    return changed


def _type_variable(
    node: yaml_tree.YamlNode, data: Any, location: Sequence[str | int], wanted: tuple[type, ...]
) -> bool:
    parent: Any = None
    key: Any = None
    for step in location:
        inner = _step_into(node, step)
        if inner is not None:  # pydantic adds a step for the name of one of several types
            parent, key, node = data, step, inner
            data = data[step]
    if (
        parent is None
        or not isinstance(node, yaml_tree.YamlScalar)
        or not node.from_environment
        or not isinstance(data, str)
    ):
        return False
    value = yaml_tree.resolve_scalar(data.strip())
    if type(value) not in wanted:
        return False
    node.value = parent[key] = value  # type: ignore[assignment]
    return True


def _step_into(node: yaml_tree.YamlNode, step: str | int) -> yaml_tree.YamlNode | None:
    if isinstance(node, yaml_tree.YamlMapping):
        entry = node.entries.get(str(step)) if isinstance(step, str) else None
        return None if entry is None else entry.value
    if isinstance(node, yaml_tree.YamlSequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def _make_integer(data: Any, location: Sequence[str | int]) -> bool:
    parent: Any = None
    key: Any = None
    value = data
    for step in location:
        if isinstance(value, dict | list) and step in (value if isinstance(value, dict) else range(len(value))):
            parent, key, value = value, step, value[step]  # type: ignore[index]
    if parent is None or not isinstance(value, float) or not value.is_integer():
        return False
    parent[key] = int(value)
    return True


def _find_misplaced_secrets(block: CheckedBlock, node: BaseModel, foreign: Collection[str]) -> Iterator[Diagnostic]:
    places = list_places(block.node, block.place)
    waiting: list[tuple[KeyPath, Any]] = [((), node.model_dump(by_alias=True, exclude=set(foreign)))]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [((*path, index), inner) for index, inner in enumerate(value)]
        elif isinstance(value, str) and value.startswith(MARK):
            yield diagnose_secret(nearest_place(places, path) or block.place)


_BLOCKS: dict[str, type[BaseModel]] = {
    "ranking": spec_node.RankingNode,
    "statistics": spec_node.StatisticsNode,
    "diagnosis": spec_node.DiagnosisNode,
    "limits": spec_node.LimitsNode,
    "stopping": StoppingNode,
}


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
    meant = [*_find_meant(tree)]
    for section in spec_node.NAMED_SECTIONS:
        if section in tree.entries or section not in meant:
            checker.check_mapping(section, tree.entries.get(section))
    for section in spec_node.LISTED_SECTIONS:
        checker.check_list(section, _entry_or_default(tree, section))
    return checker.checked


def _entry_or_default(tree: yaml_tree.YamlMapping, section: str) -> yaml_tree.YamlEntry | None:
    default = spec_node.SpecNode.model_fields[section].get_default()
    if section in tree.entries or not isinstance(default, tuple):
        return tree.entries.get(section)
    words: list[yaml_tree.YamlNode] = [yaml_tree.YamlScalar(tree.place, word, word) for word in default]
    return yaml_tree.YamlEntry(tree.place, yaml_tree.YamlSequence(tree.place, words))


class _Checker:
    def __init__(self, secrets: Mapping[str, str], folder: Path) -> None:
        self.secrets = secrets
        self.folder = folder
        self.checked = CheckedSpec()
        self.judges: dict[str, Judge[Any]] = {}

    def check_spec(self, tree: yaml_tree.YamlMapping) -> None:
        """Check the spec as a whole, and its gates and slices one by one."""
        spec, diagnostics = validate(
            CheckedBlock(tree, tree.place, spec_node.SpecNode), spec_node.SpecNode, self.secrets, spec_node.SECTIONS
        )
        self.checked.spec = spec
        self.checked.diagnostics += [_point_to_block(diagnostic, tree) for diagnostic in diagnostics]
        gates = tree.entries["gates"].value if "gates" in tree.entries else None
        for index, node in enumerate(gates.items if isinstance(gates, yaml_tree.YamlSequence) else ()):
            if isinstance(node, yaml_tree.YamlMapping) and not _has_fault(node):
                self._check_gate(index, node)

        slices = tree.entries["slices"].value if "slices" in tree.entries else None
        for index, node in enumerate(slices.items if isinstance(slices, yaml_tree.YamlSequence) else ()):
            self._check_slice(index, node)

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

    def _check_gate(self, index: int, node: yaml_tree.YamlMapping) -> None:
        right = drop_wrong_entries(node, GateNode, self.secrets)
        gate, _ = validate(CheckedBlock(right, node.place, GateNode), GateNode, self.secrets)
        if gate is not None:
            self.checked.gates[index] = gate
            if right is not node:
                self.checked.partial_gates.add(index)

    def check_mapping(self, section: registry.Section, entry: yaml_tree.YamlEntry | None) -> None:
        """Check a section whose blocks have names."""
        if entry is not None and not isinstance(entry.value, yaml_tree.YamlMapping):
            return
        entries = entry.value.entries if entry is not None and isinstance(entry.value, yaml_tree.YamlMapping) else {}
        self.checked.names[section] = list(entries)
        for name, inner in entries.items():
            self._check_plugin(section, (section, name), place_of(inner.key_place, inner.value), inner.value)

    def check_list(self, section: registry.Section, entry: yaml_tree.YamlEntry | None) -> None:
        """Check a section that is a list of blocks or words."""
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
            self._check_plugin(section, (section, index), node.place, node, title)

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
            self._reject(section, place.diagnose(str(error), "value"))
        else:
            blocks.append(PluginBlock(section, path, name, place, node, plugin))
            if isinstance(plugin, Judge):
                self.judges[name] = plugin

    def _reject(self, section: registry.Section, *diagnostics: Diagnostic) -> None:
        self.checked.incomplete.add(section)
        self.checked.diagnostics += diagnostics


def _has_fault(node: yaml_tree.YamlNode) -> bool:
    return any(scalar.faulty for scalar in yaml_tree.walk_scalars(node))


def _find_meant(tree: yaml_tree.YamlMapping) -> Iterator[str]:
    """The sections that unknown top-level keys are misspellings of. They are not reported as missing."""
    keys = list_keys(spec_node.SpecNode)
    for key in tree.entries:
        if key not in keys:
            yield from (section for section in spec_node.SECTIONS if suggest(key, keys) == f"did you mean '{section}'?")


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


def _as_mapping(scalar: yaml_tree.YamlScalar, values: Mapping[str, yaml_tree.ScalarValue]) -> yaml_tree.YamlMapping:
    """The block that a bare word means. Every value has the word's place."""
    place = scalar.place
    return yaml_tree.YamlMapping(
        place,
        {
            key: yaml_tree.YamlEntry(place, yaml_tree.YamlScalar(place, value, str(value)))
            for key, value in values.items()
        },
    )


def _read_percentile(text: str) -> dict[str, yaml_tree.ScalarValue] | None:
    """The block that a percentile means: `latency@p95` is `{use: latency, percentile: 95}`."""
    word, _, cutoff = text.partition("@p")
    if not cutoff.isdecimal() or word not in registry.words("metrics"):
        return None
    return {"use": word, "percentile": int(cutoff)} if "percentile" in _keys_of(word) else None


def _keys_of(metric: str) -> Iterable[str]:
    return load_plugin("metrics", metric).node_type.model_fields


def _expand_metric(scalar: yaml_tree.YamlScalar) -> yaml_tree.YamlMapping | Diagnostic:
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
