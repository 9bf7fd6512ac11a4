"""The block of a gate, and the checks of what it refers to and of its bounds.

Metrics get their names here, because gates refer to them. A bound is wrong if no value of the metric can meet it, or
if every value meets it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rageval_spec.data.outcomes import SEVERITIES, ChangedPart, Drop, DropSeverity, read_drop
from rageval_spec.diagnostics import Diagnostic, Severity, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Metric, MetricNode
from rageval_spec.spec.blocks.history_block import SpecBlock
from rageval_spec.spec.blocks.plugin_blocks import PluginBlocks
from rageval_spec.spec.text.places import KeyPath, TextPlace, list_hint, nearest_place, quote


class NamedMetric(NamedTuple):
    """An entry of `metrics:`: its name in tables and its node."""

    name: str
    node: MetricNode


NUMBER_OR_SHARE = "number_or_share"
"""The type of pydantic's error for text that is neither; the text of a variable can still be read as a number."""
_NEWER_GATE_KEYS = {"at_least", "slice", "decide", "on_inconclusive", "accept_changes", "severities"}


def _check_drop(value: float | str) -> float | str:
    try:
        read_drop(value)
    except ValueError:
        told = "must be a number of 0 or more such as 0.02, or a share of the baseline's number such as 5%"
        raise PydanticCustomError(NUMBER_OR_SHARE, told) from None
    return value


DropValue: TypeAlias = Annotated[float | str, AfterValidator(_check_drop)]


class SeveritiesNode(SpecBlock):
    """`severities:` of a gate: from which size on a drop has a severity."""

    low: DropValue | None = Field(default=None, description="A larger drop than this has low severity.")
    medium: DropValue | None = Field(default=None, description="A larger drop than this has medium severity.")
    high: DropValue | None = Field(default=None, description="A larger drop than this has high severity.")

    @property
    def drops(self) -> dict[DropSeverity, Drop]:
        """The size from which each severity begins, from the least severe to the worst."""
        written = {severity: getattr(self, severity) for severity in SEVERITIES}
        return {severity: read_drop(value) for severity, value in written.items() if value is not None}


SliceName: TypeAlias = Annotated[str, AfterValidator(partial(normalize, "NFC"))]
"""The name of a slice. Accents are composed, as in the values of columns that slices are named after."""


class GateNode(SpecBlock):
    """An entry of `gates:` a bound on an aggregate."""

    metric: str = Field(description="The metric's name in this spec: `ndcg@10`, or the name set with `as:`.")
    system: str | None = Field(default=None, description="Apply the gate only to this system. Default: every system.")
    dataset: str | None = Field(
        default=None, description="Apply the gate only to this dataset. Default: every dataset."
    )
    slice: SliceName | None = Field(
        default=None,
        description="Apply the gate only to this slice of the queries: `difficulty=hard`, the name of a slice, or a "
        "column under `slices` for each of its slices. Default: all queries.",
    )
    min: float | None = Field(default=None, description="Fail below this.")
    max: float | None = Field(default=None, description="Fail above this.")
    target: float | None = Field(default=None, description="Warn if the bound holds but this target is missed.")
    at_least: str | None = Field(
        default=None, description="Fail if the value is worse than this word of the metric's scale under `bands`."
    )
    on: Literal["mean", "lower", "upper"] = Field(
        default="mean", description="What must clear the bound: the mean, or an end of its interval."
    )
    decide: Literal["mean", "certain"] | None = Field(
        default=None,
        description="mean (the default): the number that `on` selects decides. certain: the whole interval must clear "
        "the bound; the gate fails if none of it does, and is inconclusive in between.",
    )
    on_inconclusive: Literal["pass", "warn", "fail"] | None = Field(
        default=None, description="What an inconclusive gate counts as for the outcome. Default: warn."
    )
    baseline: str | None = Field(
        default=None,
        description="Compare with a system in the spec, or with an earlier evaluation: a label, the id of a record, "
        "`previous` (the newest record), `branch:main` (the newest of a branch that passed), `commit:abc123`, or a "
        "folder with results.",
    )
    max_drop: DropValue | None = Field(
        default=None,
        description="Fail if the number is below the baseline's by more than this; above it, where low values are "
        "better. Write a number, or a share of the baseline's number, for example `5%`.",
    )
    severities: SeveritiesNode | None = Field(
        default=None,
        description="How bad a drop from the baseline is, by its size. Without `max_drop`, a drop of low severity "
        "warns, and one of medium or high severity fails; with `max_drop`, only that decides.",
    )
    alpha: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="With `baseline`: fail only if the adjusted p-value of a drop is below this; otherwise warn.",
    )
    accept_changes: tuple[ChangedPart, ...] | None = Field(
        default=None,
        description="Compare with an earlier evaluation although these parts changed since then: `references`, "
        "`qrels`, `judge`, `prompt`, `model`, `metric`. Without it, the gate is inconclusive if a part changed that "
        "its metric uses.",
    )
    min_scored: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description=(
            "Fail if a smaller share of the queries could be scored. Metrics of answers do not count queries that "
            "cannot have a value, for example queries without a reference."
        ),
    )

    @property
    def need(self) -> str | None:
        """The key by which an interval decides, as it is written; None if the number itself does."""
        if self.decide == "certain":
            return "decide: certain"
        return None if self.on == "mean" else f"on: {self.on}"

    def content(self) -> dict[str, Any]:
        """The gate's keys in JSON types. Unset keys that older versions lack are left out, so that digests stay."""
        content = self.model_dump(mode="json", by_alias=True)
        return {key: value for key, value in content.items() if value is not None or key not in _NEWER_GATE_KEYS}


_BOUNDS = {"min", "max", "target", "at_least", "baseline", "max_drop", "alpha", "min_scored"}


def name_metrics(blocks: PluginBlocks) -> tuple[list[NamedMetric], list[Diagnostic]]:
    """The metrics with their names in tables, from `as:` or from the plugin."""
    metrics: list[NamedMetric] = []
    diagnostics: list[Diagnostic] = []
    first: dict[str, TextPlace] = {}
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
    places: Mapping[KeyPath, TextPlace],
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
    def __init__(self, blocks: PluginBlocks, metrics: list[NamedMetric], places: Mapping[KeyPath, TextPlace]) -> None:
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
    if whole and gate.need is None and gate.baseline is None and gate.on_inconclusive is not None:
        message = "a gate without a baseline is only inconclusive with 'decide: certain' or 'on: lower | upper'"
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


class Unattainable(NamedTuple):
    """A key of a gate (`severities.low` for one inside another), what is wrong with it, and what to write instead."""

    key: str
    message: str
    hint: str | None = None


def find_unattainable(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[Unattainable]:
    """The keys of a gate that do not fit its metric. `name` is the metric's name in the spec."""
    if gate.baseline is not None and (reason := _explain_no_comparison(metric)):
        message = f"{quote(name)} {reason}, so it cannot be compared with a baseline"
        yield Unattainable("baseline", message, "use 'min' or 'max'")
    lower_is_better = metric.higher_is_better is False
    range_ = _describe_range(metric)
    yield from _find_too_high(gate, metric, name, range_)
    for key in ("min", "target"):
        value = getattr(gate, key)
        if value is not None and value < metric.bounds[0] and not (key == "target" and lower_is_better):
            never = "fail" if key == "min" else "warn"
            yield Unattainable(key, f"{quote(name)} is never below {value:g}, so the gate can never {never}: {range_}")
    for key in ("max", "target"):
        value = getattr(gate, key)
        if value is not None and value < metric.bounds[0] and (key == "max" or lower_is_better):
            yield Unattainable(key, f"{quote(name)} is never {value:g} or less: {range_}")
    yield from _find_too_large(gate, metric, name, range_)


def check_percentages(checked: PluginBlocks, places: Mapping[KeyPath, TextPlace]) -> Iterator[Diagnostic]:
    """An error for each metric that is to be shown as a percentage, although its values are no shares."""
    for block in checked.of("metrics"):
        metric = block.plugin
        if isinstance(metric, Metric) and metric.is_percent and not metric.is_share:
            place = nearest_place(places, (*block.path, "show_as")) or block.place
            message = f"{quote(metric.name)} cannot be shown as a percentage: {_describe_values(metric)}"
            hint = "remove 'show_as'; only a metric whose values are from 0 to 1 can have it"
            yield place.diagnose(message, "value", hint)


def _describe_values(metric: Metric[Any]) -> str:
    """Why the values of a metric are no shares."""
    if metric.statistic == "sum":
        return "its number is a sum"
    if metric.info.unit is not None:
        return f"its values are in {metric.info.unit}"
    low, high = metric.bounds
    return "its values can be any number" if math.isinf(low) and high is None else _describe_range(metric)


def _describe_range(metric: Metric[Any]) -> str:
    low, high = metric.bounds
    return f"its values are between {low:g} and {high:g}" if high is not None else f"its values are {low:g} or more"


def _find_too_high(gate: GateNode, metric: Metric[Any], name: str, range_: str) -> Iterator[Unattainable]:
    """Bounds above the highest possible value."""
    high = metric.bounds[1]
    if high is None:
        return
    lower_is_better = metric.higher_is_better is False
    for key in ("min", "target"):
        value = getattr(gate, key)
        if value is not None and value > high and not (key == "target" and lower_is_better):
            message = f"{quote(name)} is never {value:g} or more: {range_}"
            yield Unattainable(key, message, _suggest_share(value, high))
    for key in ("max", "target"):
        value = getattr(gate, key)
        if value is not None and value > high and (key == "max" or lower_is_better):
            never = "fail" if key == "max" else "warn"
            message = f"{quote(name)} is never above {value:g}, so the gate can never {never}: {range_}"
            yield Unattainable(key, message, _suggest_share(value, high))


def _find_too_large(gate: GateNode, metric: Metric[Any], name: str, range_: str) -> Iterator[Unattainable]:
    """Drops that are larger than the range of the values, or than the whole of a number that cannot be negative."""
    (low, high), lower_is_better = metric.bounds, metric.higher_is_better is False
    moves = "rises" if lower_is_better else "drops"
    for key, written in _list_drops(gate):
        drop = read_drop(written)
        if drop.is_share and drop.number > 1 and low >= 0 and not lower_is_better:
            yield Unattainable(key, f"{quote(name)} never {moves} by more than 100%: {range_}")
        elif not drop.is_share and high is not None and drop.number > high - low:
            message = f"{quote(name)} never {moves} by more than {drop.number:g}: {range_}"
            hint = f"for {drop.number:g}% of the baseline's number write {drop.number:g}%"
            share = _suggest_share(drop.number, high)
            yield Unattainable(key, message, hint if share is None else f"{share}; {hint}")


def _list_drops(gate: GateNode) -> Iterator[tuple[str, float | str]]:
    if gate.max_drop is not None:
        yield "max_drop", gate.max_drop
    for key in SEVERITIES if gate.severities is not None else ():
        if (written := getattr(gate.severities, key)) is not None:
            yield f"severities.{key}", written


def _explain_no_comparison(metric: Metric[Any]) -> str | None:
    if metric.statistic == "sum":
        return "is a count"
    return "has no better or worse direction" if metric.higher_is_better is None else None


def _suggest_share(value: float, high: float) -> str | None:
    """A hint for a share that was written as a percentage."""
    return f"for {value:g}% write {value / 100:g}" if high == 1 and value <= 100 else None
