"""The blocks of gates and of `stopping:`, and the checks of what they refer to and of their bounds.

Metrics get their names here, because gates refer to them. A bound is wrong if no value of the metric can meet it, or
if every value meets it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rageval_spec.data.outcomes import SEVERITIES, ChangedPart, Counted, Drop, DropSeverity, read_drop
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Metric, MetricNode, System
from rageval_spec.spec.blocks.plugin_blocks import PluginBlocks, SpecBlock
from rageval_spec.spec.text.places import Places, TextPlace, list_hint, quote

if TYPE_CHECKING:
    from rageval_spec.data.bands import BandScale


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


class AllowedDrop(NamedTuple):
    """A drop from its baseline that a gate allows, and what a larger one means; a severity names it."""

    drop: Drop
    miss: Counted
    severity: DropSeverity | None = None


class GateBound(NamedTuple):
    """A bound of a gate on the number itself; with `passes_above`, the number must be at least the bound.

    `miss` is the outcome on the other side, `kind` what sentences call the bound, `scale` that of a word of a scale.
    """

    bound: float
    passes_above: bool
    miss: Counted
    kind: str
    scale: BandScale | None = None


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

    def list_bounds(self, *, lower_is_better: bool, scale: BandScale | None) -> Iterator[GateBound]:
        """The bounds `min`, `max`, `target` and `at_least`; `scale` is that of the metric."""
        if self.min is not None:
            yield GateBound(self.min, True, "fail", "minimum")
        if self.max is not None:
            yield GateBound(self.max, False, "fail", "maximum")
        if self.target is not None:
            yield GateBound(self.target, not lower_is_better, "warn", "target")
        if self.at_least is not None and scale is not None:
            bound = scale.bound_of(self.at_least)
            assert bound is not None, "the spec's check refuses the level without a bound"
            name = "" if scale.name == "custom" else f" ({scale.name})"
            kind = f"level {self.at_least}{name}, which starts at"
            yield GateBound(bound, not scale.lower_is_better, "fail", kind, scale)

    @property
    def allowed_drops(self) -> list[AllowedDrop]:
        """The drops that it allows; beside `max_drop`, severities decide nothing."""
        if self.baseline is None:
            return []
        graded = {} if self.severities is None else self.severities.drops
        found = [AllowedDrop(drop, "warn" if word == "low" else "fail", word) for word, drop in graded.items()]
        if self.max_drop is not None:
            found = [one._replace(miss="pass") for one in found]
            found.append(AllowedDrop(read_drop(self.max_drop), "fail"))
        return found or [AllowedDrop(Drop(0.0), "fail")]

    def content(self) -> dict[str, Any]:
        """The gate's keys in JSON types. Unset keys that older versions lack are left out, so that digests stay."""
        content = self.model_dump(mode="json", by_alias=True)
        return {key: value for key, value in content.items() if value is not None or key not in _NEWER_GATE_KEYS}


class StoppingNode(SpecBlock):
    """`stopping:` when to stop asking questions."""

    when: Literal["decided"] = Field(
        default="decided",
        description="decided: questions are asked and judged in a random order, until every gate's outcome is certain "
        "enough. Questions that were not asked by then are reported as such.",
    )
    confidence: float = Field(
        default=0.95,
        gt=0.5,
        lt=1,
        description="The probability that all gates have the outcome that they would have if every question had been "
        "asked.",
    )
    first: int = Field(default=30, ge=2, description="How many questions of each dataset to ask in any case.")
    batch: int = Field(
        default=20, ge=1, description="How many more questions to ask before looking at the gates again."
    )


_BOUNDS = {"min", "max", "target", "at_least", "baseline", "max_drop", "alpha", "min_scored"}
_Fault: TypeAlias = tuple[str, str, str | None]
"""A key of a gate (`severities.low` for one inside another), what is wrong with it, and what to write instead."""


def name_metrics(blocks: PluginBlocks) -> Iterator[Diagnostic]:
    """Give the metrics their names in tables, from `as:` or from the plugin."""
    first: dict[str, TextPlace] = {}
    for block in blocks.of("metrics"):
        metric: Any = block.plugin
        try:
            name = block.node.as_ or metric.name
        except RagevalError as error:
            blocks.incomplete.add("metrics")
            yield block.place.diagnose(str(error), "wrong-value")
            continue
        if name in first:
            message = f"the metric {quote(name)} is listed twice, first {first[name].where}"
            yield block.place.diagnose(message, "duplicate-metric", "remove one, or name one of them with 'as:'")
            continue
        first[name] = block.place
        blocks.metrics[name] = metric


def resolve_gates(
    blocks: PluginBlocks, gates: Mapping[int, GateNode], partial_gates: Container[int], places: Places
) -> tuple[tuple[GateNode, ...], list[Diagnostic]]:
    """The gates, each with its metric's name in tables, and diagnostics.

    `gates` are by index; those in `partial_gates` lack their wrong keys.
    """
    resolver = _Resolver(blocks, places)
    resolved = tuple(resolver.resolve(index, gate, index not in partial_gates) for index, gate in gates.items())
    return resolved, resolver.diagnostics


class _Resolver:
    def __init__(self, blocks: PluginBlocks, places: Places) -> None:
        self.blocks = blocks
        self.places = places
        self.diagnostics: list[Diagnostic] = []

    def resolve(self, index: int, gate: GateNode, whole: bool) -> GateNode:
        """The gate with its metric's name. Errors are added to the diagnostics. `whole`: it has no wrong key."""
        name: str | None = gate.metric
        if name not in self.blocks.metrics:  # perhaps another spelling of the same measure
            name = _canonical(gate.metric)
        metric = self.blocks.metrics.get(name or "")
        if metric is None and "metrics" not in self.blocks.incomplete:
            message = f"the spec has no metric {quote(gate.metric)}"
            self._report(index, "unknown-name", ("metric", message, self._suggest_metric(gate.metric)))
        self._check_reference(index, "system", gate.system)
        self._check_reference(index, "dataset", gate.dataset)
        self._check_baseline(index, gate)
        faults = [*_find_contradictions(gate, whole)]
        if metric is not None:
            faults += _find_unattainable(gate, metric, quote(str(name)))
        for fault in faults:
            self._report(index, "wrong-gate", fault)
        return gate if metric is None else gate.model_copy(update={"metric": name})

    def _suggest_metric(self, text: str) -> str | None:
        canonical = _canonical(text)
        for name, metric in self.blocks.metrics.items():
            if canonical is not None and canonical == metric.name:
                return f"it is called {quote(name)} here"
        names = [*self.blocks.metrics]
        if near := suggest(text, names):
            return near
        return f"add {canonical} to 'metrics:'" if canonical is not None else list_hint(names)

    def _check_reference(self, index: int, key: str, name: str | None) -> None:
        known = self.blocks.names.get(f"{key}s", [])
        if name is not None and known and name not in known:
            hint = suggest(name, known) or list_hint(known)
            self._report(index, "unknown-name", (key, f"the spec has no {key} {quote(name)}", hint))

    def _check_baseline(self, index: int, gate: GateNode) -> None:
        systems = self.blocks.names.get("systems", [])
        if gate.baseline in systems:
            if gate.system == gate.baseline or systems == [gate.baseline]:
                message = f"the gate compares {quote(gate.baseline)} with itself"
                self._report(
                    index, "wrong-gate", ("baseline", message, "name another system, or a label in the history")
                )
        elif gate.baseline is not None and (near := suggest(gate.baseline, systems)):
            message = f"{quote(gate.baseline)} is not a system in the spec, so it is looked up in the history"
            path = ("gates", index, "baseline")
            self.diagnostics.append(self.places.diagnose(path, message, "unknown-baseline", near, "warning"))

    def _report(self, index: int, code: str, fault: _Fault) -> None:
        key, message, hint = fault
        keys = key.split(".") if key else []
        self.diagnostics.append(self.places.diagnose(("gates", index, *keys), message, code, hint))


def _canonical(text: str) -> str | None:
    """The kernel's own spelling of a measure, or None if the text is not a measure."""
    from rageval_spec import kernels

    try:
        return kernels.parse_measure(text).text
    except UsageError:
        return None


def _find_contradictions(gate: GateNode, whole: bool) -> Iterator[_Fault]:
    """Contradictions within one gate. `whole`: no wrong key was removed from it."""
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
    drops = {} if gate.severities is None else gate.severities.drops
    if gate.severities is not None and not drops:
        yield "severities", "no severity has a size", "write sizes such as {low: 5%, medium: 10%, high: 15%}"
    for (less, small), (more, large) in pairwise(drops.items()):
        if small.is_share == large.is_share and large.number <= small.number:
            message = f"{quote(more)} severity ({large}) must begin above {quote(less)} severity ({small})"
            yield f"severities.{more}", message, None
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


def _find_unattainable(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[_Fault]:
    """The keys of a gate that do not fit its metric. `name` is the metric's name in the spec, in quotes."""
    if gate.baseline is not None and (metric.statistic == "sum" or metric.higher_is_better is None):
        reason = "is a count" if metric.statistic == "sum" else "has no better or worse direction"
        yield "baseline", f"{name} {reason}, so it cannot be compared with a baseline", "use 'min' or 'max'"
    (low, high), lower_is_better = metric.bounds, metric.higher_is_better is False
    range_ = _describe_range(metric)
    for key in ("min", "max", "target"):
        bound = getattr(gate, key)
        is_lowest = key == "min" or (key == "target" and not lower_is_better)
        never = f"so the gate can never {'warn' if key == 'target' else 'fail'}: {range_}"
        if bound is not None and high is not None and bound > high:
            told = f"is never {bound:g} or more: {range_}" if is_lowest else f"is never above {bound:g}, {never}"
            yield key, f"{name} {told}", _suggest_share(bound, high)
        if bound is not None and bound < low:
            told = f"is never below {bound:g}, {never}" if is_lowest else f"is never {bound:g} or less: {range_}"
            yield key, f"{name} {told}", None
    yield from _find_too_large(gate, metric, name)


def check_percentages(checked: PluginBlocks, places: Places) -> Iterator[Diagnostic]:
    """An error for each metric that is to be shown as a percentage, although its values are no shares."""
    for block in checked.of("metrics"):
        metric = block.plugin
        if isinstance(metric, Metric) and metric.is_percent and not metric.is_share:
            message = f"{quote(metric.name)} cannot be shown as a percentage: {_describe_values(metric)}"
            hint = "remove 'show_as'; only a metric whose values are from 0 to 1 can have it"
            yield places.diagnose((*block.path, "show_as"), message, "wrong-value", hint)


def _describe_values(metric: Metric[Any]) -> str:
    if metric.statistic == "sum":
        return "its number is a sum"
    if metric.info.unit is not None:
        return f"its values are in {metric.info.unit}"
    low, high = metric.bounds
    return "its values can be any number" if math.isinf(low) and high is None else _describe_range(metric)


def _describe_range(metric: Metric[Any]) -> str:
    low, high = metric.bounds
    return f"its values are between {low:g} and {high:g}" if high is not None else f"its values are {low:g} or more"


def _find_too_large(gate: GateNode, metric: Metric[Any], name: str) -> Iterator[_Fault]:
    """Drops that are larger than the range of the values, or than the whole of a number that cannot be negative."""
    (low, high), lower_is_better, range_ = metric.bounds, metric.higher_is_better is False, _describe_range(metric)
    moves = "rises" if lower_is_better else "drops"
    written = {f"severities.{severity}": getattr(gate.severities, severity, None) for severity in SEVERITIES}
    for key, value in {"max_drop": gate.max_drop, **written}.items():
        if value is None:
            continue
        drop = read_drop(value)
        if drop.is_share and drop.number > 1 and low >= 0 and not lower_is_better:
            yield key, f"{name} never {moves} by more than 100%: {range_}", None
        elif not drop.is_share and high is not None and drop.number > high - low:
            message = f"{name} never {moves} by more than {drop.number:g}: {range_}"
            hint = f"for {drop.number:g}% of the baseline's number write {drop.number:g}%"
            share = _suggest_share(drop.number, high)
            yield key, message, hint if share is None else f"{share}; {hint}"


def _suggest_share(value: float, high: float) -> str | None:
    """A hint for a share that was written as a percentage."""
    return f"for {value:g}% write {value / 100:g}" if high == 1 and value <= 100 else None


def explain_undecidable(gate: GateNode, metric: Metric[Any]) -> str | None:
    """Why a gate's outcome is known only after every question; None if it can be certain earlier.

    A confidence sequence is of a mean of bounded values, each of which depends on one question alone.
    """
    drops = () if gate.severities is None else gate.severities.drops.values()
    allows_share = isinstance(gate.max_drop, str) or any(drop.is_share for drop in drops)
    statistic = "percentile" if metric.statistic.startswith("p") else metric.statistic
    compared = {"group", "condition"} & getattr(metric, "needs", frozenset())
    reasons = (
        (gate.slice is not None, "it looks at a slice"),
        (gate.need is not None, "it looks at an interval over all questions"),
        (gate.alpha is not None, "it looks at a p-value"),
        (gate.min_scored == 1, "every question must have a value ('min_scored: 1')"),
        (metric.statistic != "mean", f"it looks at a {statistic}, not at a mean"),
        (metric.is_partial or bool(compared), "its values compare questions with one another"),
        (not is_bounded_mean(metric), "its values have no bounds"),
        (metric.bounds[0] < 0 and allows_share, "it looks at a share of a number that can be negative"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def is_bounded_mean(metric: Metric[Any]) -> bool:
    """Whether a metric's aggregate is a mean of values between two bounds, of which there are confidence sequences."""
    low, high = metric.bounds
    return metric.statistic == "mean" and high is not None and math.isfinite(low) and math.isfinite(high)


def check_stopping(
    node: StoppingNode | None, blocks: PluginBlocks, gates: Mapping[int, GateNode], places: Places
) -> Iterator[Diagnostic]:
    """Warnings where every question is asked: without gates, and for each gate that needs all of them.

    Specs without gates are no mistake: a baseline is recorded with `--set 'gates=[]'`. `gates` are by index.
    """
    if node is None:
        return
    systems = [type(block.plugin) for block in blocks.of("systems")]
    can_ask = any(issubclass(system, System) and system.can_answer for system in systems)
    can_ask = can_ask or "systems" in blocks.incomplete
    if not gates:
        message = "the spec has no gates, so there is nothing to decide and every question is asked, despite 'stopping'"
        yield places.diagnose(("stopping",), message, "idle-stopping", None, "warning")
    elif not can_ask:
        message = "no system of the spec answers questions, so 'stopping' has no effect: all queries are evaluated"
        yield places.diagnose(("stopping",), message, "idle-stopping", "remove it", "warning")
    for index, gate in gates.items() if can_ask else ():
        metric = blocks.metrics.get(gate.metric)
        if metric is not None and (reason := explain_undecidable(gate, metric)):
            message = f"every question is asked because of the gate on {quote(gate.metric)}, despite 'stopping'"
            yield places.diagnose(("gates", index, "metric"), f"{message}: {reason}", "idle-stopping", None, "warning")
