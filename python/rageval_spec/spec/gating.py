"""Names metrics, and resolves what gates refer to."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import pairwise
from typing import Any

from rageval_spec.diagnostics import Diagnostic, Severity, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Metric
from rageval_spec.spec.attainable import Unattainable, find_unattainable
from rageval_spec.spec.gates import GateNode
from rageval_spec.spec.nodes import NamedMetric
from rageval_spec.spec.places import KeyPath, Place, nearest_place, quote
from rageval_spec.spec.plugin_blocks import PluginBlocks
from rageval_spec.spec.references import list_hint

_BOUNDS = {"min", "max", "target", "at_least", "baseline", "max_drop", "alpha", "min_scored"}


def name_metrics(blocks: PluginBlocks) -> tuple[list[NamedMetric], list[Diagnostic]]:
    """The metrics with their names in tables, from `as:` or from the plugin."""
    metrics: list[NamedMetric] = []
    diagnostics: list[Diagnostic] = []
    first: dict[str, Place] = {}
    for block in blocks.of("metrics"):
        try:
            name = block.node.as_ or _own_name(block.plugin)
        except RagevalError as error:
            blocks.incomplete.add("metrics")
            diagnostics.append(block.place.diagnose(str(error), "value"))
            continue
        if name in first:
            message = f"the metric {quote(name)} is listed twice, first {first[name].where}"
            hint = "remove one, or name one of them with 'as:'"
            diagnostics.append(block.place.diagnose(message, "duplicate-metric", hint))
            continue
        first[name] = block.place
        metrics.append(NamedMetric(name, block.node))
    return metrics, diagnostics


def resolve_gates(
    blocks: PluginBlocks,
    metrics: list[NamedMetric],
    gates: Mapping[int, GateNode],
    partial_gates: Container[int],
    places: Mapping[KeyPath, Place],
) -> tuple[tuple[GateNode, ...], list[Diagnostic]]:
    """The gates, each with its metric's name in tables, and diagnostics.

    `gates` are by index; those in `partial_gates` lack their wrong keys.
    """
    resolver = _Resolver(blocks, metrics, places)
    resolved = tuple(resolver.resolve(index, gate, index not in partial_gates) for index, gate in gates.items())
    return resolved, resolver.diagnostics


def _own_name(plugin: Any) -> str:
    metric: Metric[Any] = plugin
    return metric.name


class _Resolver:
    def __init__(self, blocks: PluginBlocks, metrics: list[NamedMetric], places: Mapping[KeyPath, Place]) -> None:
        self.blocks = blocks
        self.metrics = metrics
        self.plugins: dict[int, Any] = {id(block.node): block.plugin for block in blocks.of("metrics")}
        self.places = places
        self.diagnostics: list[Diagnostic] = []

    def resolve(self, index: int, gate: GateNode, whole: bool) -> GateNode:
        """The gate with its metric's name. Errors are added to the diagnostics. `whole`: it has no wrong key."""
        name = self._find_metric(gate.metric)
        if name is None and "metrics" not in self.blocks.incomplete:
            message = f"the spec has no metric {quote(gate.metric)}"
            self._report(index, "metric", message, "dangling", self._suggest_metric(gate.metric))
        self._check_reference(index, "system", gate.system)
        self._check_reference(index, "dataset", gate.dataset)
        self._check_baseline(index, gate)
        for key, message, hint in _find_contradictions(gate, whole):
            self._report(index, key, message, "gate", hint)
        for found in self._find_unattainable(gate, name):
            self._report(index, found.key, found.message, "gate", found.hint)
        return gate if name is None else gate.model_copy(update={"metric": name})

    def _find_unattainable(self, gate: GateNode, name: str | None) -> Iterator[Unattainable]:
        for metric in self.metrics:
            if metric.name == name:
                yield from find_unattainable(gate, self.plugins[id(metric.node)], metric.name)

    def _find_metric(self, text: str) -> str | None:
        """The metric that a gate means: its name in tables, or another spelling of the same measure."""
        names = [metric.name for metric in self.metrics]
        if text in names:
            return text
        canonical = _canonical(text)
        return canonical if canonical in names else None

    def _suggest_metric(self, text: str) -> str | None:
        canonical = _canonical(text)
        for metric in self.metrics:
            if canonical is not None and canonical == _own_name(self.plugins[id(metric.node)]):
                return f"it is called {quote(metric.name)} here"
        names = [metric.name for metric in self.metrics]
        if near := suggest(text, names):
            return near
        if canonical is not None:
            return f"add {canonical} to 'metrics:'"
        return list_hint(names)

    def _check_reference(self, index: int, key: str, name: str | None) -> None:
        known = self.blocks.names.get(f"{key}s", [])
        if name is not None and known and name not in known:
            hint = suggest(name, known) or list_hint(known)
            self._report(index, key, f"the spec has no {key} {quote(name)}", "dangling", hint)

    def _check_baseline(self, index: int, gate: GateNode) -> None:
        if gate.baseline is None:
            return
        systems = self.blocks.names.get("systems", [])
        if gate.baseline in systems:
            if gate.system == gate.baseline or systems == [gate.baseline]:
                message = f"the gate compares {quote(gate.baseline)} with itself"
                hint = "name another system, or a label in the history"
                self._report(index, "baseline", message, "gate", hint)
            return
        near = suggest(gate.baseline, systems)
        if near is not None:
            message = f"{quote(gate.baseline)} is not a system in the spec, so it is looked up in the history"
            self._report(index, "baseline", message, "baseline", near, warning=True)

    def _report(self, index: int, key: str, message: str, code: str, hint: str | None, warning: bool = False) -> None:
        place = nearest_place(self.places, ("gates", index, *filter(None, key.split("."))))
        if place is not None:
            severity: Severity = "warning" if warning else "error"
            self.diagnostics.append(place.diagnose(message, code, hint, severity))


def _canonical(text: str) -> str | None:
    """The kernel's own spelling of a measure, or None if the text is not a measure."""
    from rageval_spec import kernels

    try:
        return kernels.parse_measure(text).text
    except UsageError:
        return None


def _find_contradictions(gate: GateNode, whole: bool) -> Iterator[tuple[str, str, str | None]]:
    """Contradictions within one gate, as (key, message, hint). `whole`: no wrong key was removed from it."""
    if whole and not gate.model_fields_set & _BOUNDS:
        yield "", "the gate has no bound", "add 'min', 'max', 'target', 'at_least' or 'baseline'"
    if gate.decide == "certain" and gate.on != "mean":
        yield "on", f"'on: {gate.on}' has no effect with 'decide: certain', which looks at both ends", "remove 'on'"
    if gate.decide == "certain" and gate.alpha is not None:
        hint = "remove 'alpha', and set the confidence of intervals under 'statistics'"
        yield "alpha", "'alpha' has no effect with 'decide: certain', which looks at the interval", hint
    if whole and gate.decide != "certain" and gate.baseline is None and gate.on_inconclusive is not None:
        message = "a gate without a baseline is only inconclusive with 'decide: certain'"
        yield "on_inconclusive", message, "add 'decide: certain'"
    yield from _find_severity_faults(gate)
    for key in ("max_drop", "alpha", "accept_changes", "severities"):
        if whole and getattr(gate, key) is not None and gate.baseline is None:
            yield key, f"{quote(key)} needs a 'baseline' to compare with", "add 'baseline:'"
    if gate.min is not None and gate.max is not None and gate.min > gate.max:
        yield "min", f"no value is at least {gate.min:g} and at most {gate.max:g}", "swap 'min' and 'max'"
    elif gate.target is not None:
        if gate.min is not None and gate.target < gate.min:
            yield "target", f"the target {gate.target:g} is below 'min', {gate.min:g}, so it can never warn", None
        if gate.max is not None and gate.target > gate.max:
            yield "target", f"the target {gate.target:g} is above 'max', {gate.max:g}, so it can never warn", None


def _find_severity_faults(gate: GateNode) -> Iterator[tuple[str, str, str | None]]:
    """Severities that are not larger than the one before, as (key, message, hint)."""
    if gate.severities is None:
        return
    drops = gate.severities.drops
    if not drops:
        yield "severities", "no severity has a size", "write sizes such as {low: 5%, medium: 10%, high: 15%}"
    for (less, small), (more, large) in pairwise(drops.items()):
        if small.is_share == large.is_share and large.number <= small.number:
            message = f"{quote(more)} severity ({large}) must begin above {quote(less)} severity ({small})"
            yield f"severities.{more}", message, None
