"""The block `monitor:` how production is watched, and the checks of what it refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rageval_spec.data.outcomes import SEVERITIES, DropSeverity
from rageval_spec.diagnostics import Diagnostic, suggest
from rageval_spec.libraries import compile_later
from rageval_spec.plugin import AnswerMetric, Metric, System
from rageval_spec.spec.blocks.plugin_blocks import PluginBlocks, SpecBlock
from rageval_spec.spec.text.places import KeyPath, Places, list_hint, quote
from rageval_spec.wording import DURATION, format_number, read_duration

_HERE = ("monitor",)
COVERAGE: Literal["coverage"] = "coverage"
_SHARE = compile_later(r"(\d{1,2}(?:\.\d+)?|100(?:\.0+)?) ?%")
_STEP = compile_later(r"(\d{1,9}(?:\.\d+)?) ?(%|pp)?")
_ROUNDING = 1e-9
_EVENTS = compile_later(rf"(\d{{1,6}}(?:\.\d+)?) per ({DURATION})")


def seconds_of(duration: str) -> float:
    """The seconds of a duration. Raises `ValueError` if it is none, or of length 0."""
    seconds = read_duration(duration)
    if seconds is None:
        raise ValueError(f"{quote(duration)} is not a duration; write a number and s, m, h, d or w, such as 60s or 30d")
    if not seconds:
        raise ValueError(f"{quote(duration)} is too short; write a duration longer than 0, such as 60s or 30d")
    return seconds


def read_share(value: float | str) -> float:
    """The number above 0 and up to 1 of `5%` or `0.05`. Raises `ValueError` if it is none."""
    found = _SHARE.fullmatch(str(value).strip())
    share = float(found[1]) / 100 if found else value
    if not isinstance(share, str) and 0 < share <= 1:
        return float(share)
    if not isinstance(value, str) and 1 < value <= 100:
        raise ValueError(f"{value:g} is more than all; for {value:g}% write {value:g}%")
    number = re.fullmatch(r"(\d+(?:\.\d+)?) ?%?", str(value).strip())
    if number and float(number[1]) > 0:
        raise ValueError(f"{quote(str(value))} is more than all; write a share of at most 100%")
    raise ValueError(f"{quote(str(value))} is not a share; write a share above 0, such as 5%")


class Step(NamedTuple):
    """How far a number moves: by an amount, or by a share of what it was."""

    size: float
    is_share: bool

    def amount(self, level: float) -> float:
        """The step as an amount, from a level."""
        return self.size * abs(level) if self.is_share else self.size


def read_step(value: float | str) -> Step:
    """The step of `0.05`, `2pp` (two hundredths) or `5%` (of the level before).

    Raises `ValueError` if it is none of these.
    """
    found = _STEP.fullmatch(str(value).strip())
    if found is None or float(found[1]) == 0:
        raise ValueError(f"{quote(str(value))} is not a step; write 5% (of the level before), 2pp or 0.05")
    return Step(float(found[1]) / (100 if found[2] else 1), found[2] == "%")


class Rate(NamedTuple):
    """So many events in so many seconds."""

    events: float
    seconds: float


def read_rate(text: str) -> Rate:
    """The rate of `1 per 90d`. Raises `ValueError` if it is none."""
    found = _EVENTS.fullmatch(text.strip())
    seconds = read_duration(found[2]) if found else None
    if found is None or not seconds or float(found[1]) == 0:
        raise ValueError(f"{quote(text)} is not a rate; write a number and a duration: 1 per 90d, 600 per 1h")
    return Rate(float(found[1]), seconds)


def _check_by(read: Callable[[Any], object]) -> AfterValidator:
    """A value stays as it is written, unless `read` raises `ValueError`."""

    def check(value: Any) -> Any:
        read(value)
        return value

    return AfterValidator(check)


def _refuse_number(told: str) -> BeforeValidator:
    """A number alone is refused; `told` says what to write, with `{0}` for the number."""

    def refuse(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise ValueError(told.format(value))
        return value

    return BeforeValidator(refuse)


def _look_like(pattern: str) -> Any:
    return Field(json_schema_extra={"pattern": f"^{pattern}$"})


USUAL_PORT = 9464
"""Where numbers and health are if `serve` names no port: the one of OpenTelemetry's exporter for Prometheus."""


def _read_port(value: Any) -> Any:
    """A port that is written without quotes is text as well."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_address(text: str) -> tuple[str, int]:
    from rageval_spec.endpoints.http_server import split_address  # only specs with an address need it

    return split_address(text, USUAL_PORT)


_NO_UNIT = _refuse_number("{0} has no unit; write {0}s, {0}m or {0}h")
_NO_TIME = _refuse_number("{0} is not a rate; write in how long: {0} per 1h, or {0} per 90d")
Duration: TypeAlias = Annotated[str, _NO_UNIT, _check_by(seconds_of), _look_like(rf"\s*{DURATION}\s*")]
Share: TypeAlias = Annotated[float | str, _check_by(read_share), _look_like(_SHARE.pattern)]
StepSize: TypeAlias = Annotated[float | str, _check_by(read_step), _look_like(_STEP.pattern)]
EventRate: TypeAlias = Annotated[str, _NO_TIME, _check_by(read_rate), _look_like(_EVENTS.pattern)]
Address: TypeAlias = Annotated[str, BeforeValidator(_read_port), _check_by(_read_address)]


class SampleNode(SpecBlock):
    """`sample:` which traces are judged."""

    EXAMPLE = "{rate: 5%}"
    rate: Share = Field(default=1.0, description="The share of the traces to judge: `5%`. Default: all.")
    at_least: int = Field(
        default=0, ge=0, description="How many traces of each stratum and hour to judge before `rate` decides."
    )
    by: str | None = Field(
        default=None, description="The column of the traces whose values are strata, such as `route` or `session`."
    )
    always: tuple[Literal["errors", "thumbs_down"], ...] = Field(
        default=(), description="Traces to judge in any case: those without an answer, and those that users disliked."
    )


class WindowNode(SpecBlock):
    """An entry of `windows:` a stretch of time, or the last so many judged queries."""

    EXAMPLE = "{name: hour, length: 1h}"
    name: str = Field(min_length=1, max_length=60, description="The name of the window in alerts.")
    length: Duration | None = Field(default=None, description="How long it is: `1h`.")
    queries: int | None = Field(default=None, ge=10, description="Of how many of the last judged queries it is.")
    slide: bool = Field(
        default=False,
        description="Look at the last stretch of this length each time, in place of stretches one after the other.",
    )

    @model_validator(mode="after")
    def _check_one(self) -> WindowNode:
        if (self.length is None) == (self.queries is None):
            raise ValueError("needs either 'length' or 'queries'")
        return self

    @property
    def seconds(self) -> float | None:
        """Its length; None for a number of queries."""
        return None if self.length is None else seconds_of(self.length)


class BaselineNode(SpecBlock):
    """`baseline:` what production is compared with."""

    EXAMPLE = "{window: 7d}"
    window: Duration | None = Field(default=None, description="What came in so long before: `7d`.")
    dataset: str | None = Field(
        default=None,
        description="The newest record of the history on this dataset. Production cannot answer its questions, so "
        "evaluate it with `rageval-spec run`.",
    )

    @model_validator(mode="after")
    def _check_one(self) -> BaselineNode:
        if (self.window is None) == (self.dataset is None):
            raise ValueError("needs either 'window' or 'dataset', or write the label of a record")
        return self


def _refuse_duration(value: Any) -> Any:
    if isinstance(value, str) and read_duration(value) is not None:
        raise ValueError(f"{quote(value)} would be the label of a record; for a duration write {{window: {value}}}")
    return value


class StepsNode(SpecBlock):
    """`drift:` of an alert: from which size on a change has a severity."""

    EXAMPLE = "{low: 5%, high: 15%}"
    low: StepSize | None = Field(default=None, description="A change of this size has low severity: `5%`, `2pp`.")
    medium: StepSize | None = Field(default=None, description="A change of this size has medium severity.")
    high: StepSize | None = Field(default=None, description="A change of this size has high severity.")

    @model_validator(mode="after")
    def _check_any(self) -> StepsNode:
        if not self.steps:
            raise ValueError("needs at least one of 'low', 'medium' and 'high'")
        for (milder, first), (worse, second) in pairwise(self.steps.items()):
            if first.is_share == second.is_share and first.size >= second.size:
                raise ValueError(f"{quote(worse)} must be a larger step than {quote(milder)}")
        return self

    @property
    def steps(self) -> dict[DropSeverity, Step]:
        """The step from which each severity begins, from the least severe to the worst."""
        written = {severity: getattr(self, severity) for severity in SEVERITIES}
        return {severity: read_step(value) for severity, value in written.items() if value is not None}


class AlertNode(SpecBlock):
    """An entry of `alerts:` a level that must hold, or a change that must be noticed."""

    EXAMPLE = "{metric: faithfulness, warning: 0.8}"
    metric: str = Field(description="The metric's name in this spec, or a series of feedback: `feedback.thumbs`.")
    warning: float | None = Field(default=None, description="Warn when the number is surely worse than this.")
    critical: float | None = Field(default=None, description="Alert when the number is surely worse than this.")
    window: Annotated[str, _NO_UNIT] | None = Field(
        default=None, description="The window of `warning` and `critical`: an entry of `windows`, or a length: `15m`."
    )
    min_samples: int = Field(default=10, ge=1, description="Decide nothing on fewer judged queries than this.")
    drift: StepsNode | None = Field(default=None, description="Alert when the level moves by steps of this size.")
    direction: Literal["worse", "both"] = Field(
        default="worse", description="Which changes count for `drift`: only those for the worse, or both."
    )
    for_: Duration | None = Field(
        default=None, alias="for", description="Fire only when the condition has held for so long: `10m`."
    )
    cooldown: Duration | None = Field(
        default=None, description="After it was resolved, do not fire again for so long: `1h`."
    )
    name: str | None = Field(default=None, min_length=1, max_length=100, description="The alert's name in messages.")
    notify: tuple[str, ...] | None = Field(
        default=None, description="The names of the notifiers to tell. Default: all of `notify:`."
    )

    @model_validator(mode="after")
    def _check_kind(self) -> AlertNode:
        is_level = self.warning is not None or self.critical is not None
        if is_level == (self.drift is not None):
            found = "it has both" if is_level else "it has neither"
            raise ValueError(f"needs a bound, such as 'warning: 0.8', or 'drift: {{high: 10%}}'; {found}")
        return self

    @property
    def bounds(self) -> dict[Literal["warning", "critical"], float]:
        """The bounds that are set, by their severity, the mildest first."""
        both: dict[Literal["warning", "critical"], float | None] = {"warning": self.warning, "critical": self.critical}
        return {severity: bound for severity, bound in both.items() if bound is not None}


class ExperimentNode(SpecBlock):
    """`ab:` two systems in production that are compared while traces arrive."""

    EXAMPLE = "{by: variant, metric: faithfulness}"
    by: str = Field(
        min_length=1, description="The attribute of the traces that tells the two systems apart: `variant`."
    )
    metric: str = Field(description="The metric's name in this spec, or a series of feedback: `feedback.thumbs`.")
    shares: dict[str, Share] = Field(
        default={}, description="Which share of the traces each is to get: `{a: 90%, b: 10%}`. Default: half each."
    )

    @model_validator(mode="after")
    def _check_two(self) -> ExperimentNode:
        total = sum(map(read_share, self.shares.values()))
        if self.shares and (len(self.shares) != 2 or abs(total - 1) > _ROUNDING):
            raise ValueError("'shares' needs two values of the attribute, whose shares add up to 100%")
        return self


class HourlyBudgetNode(SpecBlock):
    """`budget:` what judging can use at most."""

    EXAMPLE = "{calls: 600 per 1h}"
    calls: EventRate | None = Field(default=None, description="Calls to models: `600 per 1h`.")
    cost: EventRate | None = Field(default=None, description="US dollars: `2.50 per 1h`.")

    @property
    def most_cost(self) -> float | None:
        """The US dollars of one stretch; None without a limit."""
        return None if self.cost is None else read_rate(self.cost).events


class MonitorNode(SpecBlock):
    """`monitor:` how production is watched."""

    EXAMPLE = "{every: 5m, alerts: [coverage]}"
    every: Duration = Field(default="5m", description="How often traces are fetched and alerts are decided.")
    settle: Duration = Field(
        default="60s", description="A trace is judged when its root ended and nothing of it came for so long."
    )
    sample: SampleNode = Field(default=SampleNode(), description="Which traces are judged. Default: all.")
    windows: tuple[WindowNode, ...] = Field(
        default=(WindowNode(name="hour", length="1h"), WindowNode(name="day", length="24h")),
        description="The windows whose numbers are shown and that alerts can name. Default: `hour` and `day`.",
    )
    baseline: Annotated[str | BaselineNode, BeforeValidator(_refuse_duration), _NO_UNIT] = Field(
        default=BaselineNode(window="7d"),
        description="What changes are measured from: the label of a record of the history, `{window: 7d}` before, or "
        "`{dataset: NAME}`.",
    )
    false_alarms: EventRate = Field(
        default="1 per 90d",
        description="How many false alarms all alerts of the spec together may raise on average when nothing changes.",
    )
    alerts: tuple[Literal["coverage"] | AlertNode, ...] = Field(
        default=(COVERAGE,),
        description="What to alert about. `coverage`: a metric judged nothing although traces came.",
    )
    ab: ExperimentNode | None = Field(
        default=None, description="Two systems, told apart by an attribute of the traces, to compare at any time."
    )
    anchors: str | None = Field(
        default=None,
        description="A file of frozen answers (`calibrate --freeze`). When an alert on changes begins, the judge is "
        "asked again about them, to tell whether the judge moved.",
    )
    notify: tuple[Any, ...] = Field(
        default=(), description="Who is told of alerts: blocks with `use:`, such as `{use: webhook, url: ...}`."
    )
    send: tuple[Any, ...] = Field(
        default=(),
        description="Where values go back to their traces, and numbers to: the words of tools, such as `langfuse`, or "
        "blocks with `use:` and the keys that the tool has under `reports:`.",
    )
    budget: HourlyBudgetNode = Field(
        default=HourlyBudgetNode(), description="What judging can use at most. What is over it is counted as such."
    )
    retry_for: Duration = Field(
        default="24h", description="How long a judgement that failed is tried again before it counts as failed."
    )
    serve: Address | None = Field(
        default=None,
        description="The address for `/metrics` (OpenMetrics), `/healthz` and `/ready`: `127.0.0.1:9464`. Needs the "
        "extra `serve`. Default: none.",
    )
    keep: Duration = Field(default="30d", description="How long the texts of judged traces are kept; numbers stay.")
    page: str | None = Field(
        default=None,
        min_length=1,
        description="A file that is written at each look, `monitor.html`: windows, alerts, the ledger, trends and the "
        "worst answers as one HTML page. Relative paths start at the folder of the spec. Default: none.",
    )
    page_url: str | None = Field(
        default=None, min_length=1, description="The address at which people see the page, for messages of alerts."
    )


class AlertFault(NamedTuple):
    """What is wrong with an entry of the block: where in it, and what to write."""

    path: KeyPath
    message: str
    hint: str | None = None


def check_monitor(node: MonitorNode, blocks: PluginBlocks, places: Places) -> list[Diagnostic]:
    """What is wrong with the references of a monitor. A name that a wrong block could have is not reported."""
    checks = [
        ("metrics", _check_metrics(node, blocks.metrics)),
        ("", _check_bounds(node, blocks.metrics)),
        ("metrics", _check_names(node, blocks.metrics)),
        ("", _check_windows(node)),
        ("datasets", _check_baseline(node, blocks.names)),
        ("notifiers", _check_notifiers(node, blocks)),
        ("", _check_destinations(blocks)),
    ]
    faults = [fault for section, found in checks if section not in blocks.incomplete for fault in found]
    told = [((*_HERE, *path), message, hint) for path, message, hint in faults]
    systems = [(block.path, block.plugin) for block in blocks.of("systems") if isinstance(block.plugin, System)]
    unwatched = ((path, fault) for path, plugin in systems if (fault := plugin.find_watch_fault()) is not None)
    told += [((*path, *fault.key), fault.message, fault.hint) for path, fault in unwatched]
    return [places.diagnose(path, message, "wrong-monitor", hint) for path, message, hint in told]


def _list_alerts(node: MonitorNode) -> list[tuple[int, AlertNode]]:
    """The alerts on a metric, each with its place among all."""
    return [(index, alert) for index, alert in enumerate(node.alerts) if not isinstance(alert, str)]


def _find_repeated(names: Sequence[str]) -> list[int]:
    """The places of names that are there before."""
    return [place for place, name in enumerate(names) if name in names[:place]]


def _check_metrics(node: MonitorNode, metrics: Mapping[str, Metric[Any]]) -> Iterator[AlertFault]:
    judged = [name for name, metric in metrics.items() if isinstance(metric, AnswerMetric)]
    named: list[tuple[KeyPath, str]] = [(("alerts", index, "metric"), one.metric) for index, one in _list_alerts(node)]
    named += [] if node.ab is None else [(("ab", "metric"), node.ab.metric)]
    for place, name in named:
        if name in judged or name.startswith("feedback."):
            continue
        if name in metrics:
            told = f"{quote(name)} needs judged documents, which traces of production do not have"
            yield AlertFault(place, told, "name a metric of answers")
        else:
            yield AlertFault(place, f"the spec has no metric {quote(name)}", suggest(name, judged) or list_hint(judged))


def _check_bounds(node: MonitorNode, metrics: Mapping[str, Metric[Any]]) -> Iterator[AlertFault]:
    """Bounds that a metric cannot reach, or that are in the wrong order."""
    for index, alert in _list_alerts(node):
        metric = metrics.get(alert.metric)
        if not isinstance(metric, AnswerMetric):
            continue
        low, high = metric.bounds
        for name, bound in alert.bounds.items():
            if bound >= low and (high is None or bound <= high):
                continue
            range_ = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
            hint = f"for {bound:g}% write {bound / 100:g}" if high == 1 < bound <= 100 else f"write a bound {range_}"
            yield AlertFault(("alerts", index, name), f"{alert.metric} is always {range_}, so not {bound:g}", hint)
        if alert.warning is None or alert.critical is None:
            continue
        is_lower_better = metric.higher_is_better is False
        if alert.critical < alert.warning if is_lower_better else alert.critical > alert.warning:
            better, side = ("better", "above") if is_lower_better else ("worse", "below")
            told = f"a lower {alert.metric} is {better}, so 'critical' must be {side} 'warning' ({alert.warning:g})"
            yield AlertFault(("alerts", index, "critical"), told, "exchange the two numbers")


def _check_windows(node: MonitorNode) -> Iterator[AlertFault]:
    names = [one.name for one in node.windows]
    for index in _find_repeated(names):
        told = f"there is a window {quote(names[index])} before"
        yield AlertFault(("windows", index, "name"), told, "choose another")
    for index, alert in _list_alerts(node):
        window = next((one for one in node.windows if one.name == alert.window), None)
        if window is not None and window.queries is not None and alert.min_samples > window.queries:
            told = f"the window {quote(window.name)} has {window.queries} queries, so never {alert.min_samples} samples"
            place = "min_samples" if "min_samples" in alert.model_fields_set else "window"
            yield AlertFault(("alerts", index, place), told, f"write at most {window.queries}")
        if alert.window is not None and window is None and not read_duration(alert.window):
            hint = suggest(alert.window, names) or f"{list_hint(names)}, or write a length such as 15m"
            yield AlertFault(("alerts", index, "window"), f"there is no window {quote(alert.window)}", hint)


def name_alert(alert: AlertNode, windows: Sequence[WindowNode], *, lower_is_better: bool) -> str:
    """What an alert is called in messages and silences: its `name`, or `faithfulness below 0.700 (hour)`."""
    if alert.name is not None or alert.drift is not None:
        return alert.name or f"{alert.metric} changed"
    bound = alert.critical if alert.warning is None else alert.warning
    assert bound is not None, "an alert without steps has a bound"
    window = alert.window or (windows[0].name if windows else "hour")
    return f"{alert.metric} {'above' if lower_is_better else 'below'} {format_number(bound)} ({window})"


def _check_names(node: MonitorNode, metrics: Mapping[str, Metric[Any]]) -> Iterator[AlertFault]:
    is_low = {name: metric.higher_is_better is False for name, metric in metrics.items()}
    names = [
        one if isinstance(one, str) else name_alert(one, node.windows, lower_is_better=is_low.get(one.metric, False))
        for one in node.alerts
    ]
    for index in _find_repeated(names):
        alert, told = node.alerts[index], f"there is an alert {quote(names[index])} before"
        if isinstance(alert, str):
            yield AlertFault(("alerts", index), told, "remove one of them")
        else:
            key, hint = ("name", "choose another") if alert.name else ("metric", "give one of them a 'name'")
            yield AlertFault(("alerts", index, key), told, hint)


def _check_notifiers(node: MonitorNode, blocks: PluginBlocks) -> Iterator[AlertFault]:
    found = blocks.of("notifiers")
    names = [block.node.name or block.node.use for block in found]
    for place in _find_repeated(names):
        path, one = found[place].path[len(_HERE) :], found[place].node
        told = f"there is a notifier {quote(names[place])} before"
        yield AlertFault((*path, "name" if one.name else "use"), told, f"add a name: {{use: {one.use}, name: ...}}")
    for index, alert in _list_alerts(node):
        for place, name in enumerate(alert.notify or ()):
            if name not in names:
                hint = suggest(name, names) or (list_hint(names) if names else "add one under 'notify:' of 'monitor:'")
                yield AlertFault(("alerts", index, "notify", place), f"there is no notifier {quote(name)}", hint)


_OF_EVALUATIONS = {"path", "dataset", "experiment", "run", "project", "file", "time"}
"""Keys of reports that say where a whole evaluation goes."""


def can_take(report: Any) -> bool:
    """Whether a running monitor can send values or numbers where a report sends an evaluation."""
    return bool(getattr(getattr(report, "target_type", None), "takes", ()))


def _check_destinations(blocks: PluginBlocks) -> Iterator[AlertFault]:
    for block in blocks.of("reports"):
        if block.path[:2] != (*_HERE, "send"):
            continue
        path, node, plugin = block.path[len(_HERE) :], block.node, cast(Any, block.plugin)
        if not can_take(plugin):
            told = f"the report {quote(node.use)} keeps no traces and no numbers of a monitor"
            yield AlertFault(path, told, "name a tool: langfuse, phoenix, mlflow, langsmith, otel or dogstatsd")
            continue
        for key in sorted(node.model_fields_set & {*_OF_EVALUATIONS, *plugin.target_type.monitor_keys}):
            told = f"{quote(key)} has no meaning here: a monitor sends values to their traces"
            yield AlertFault((*path, key), told, f"remove {quote(key)}")


def _check_baseline(node: MonitorNode, names: Mapping[str, Sequence[str]]) -> Iterator[AlertFault]:
    dataset, datasets = getattr(node.baseline, "dataset", None), names.get("datasets", ())
    if dataset is not None and dataset not in datasets:
        hint = suggest(dataset, datasets) or list_hint(datasets)
        yield AlertFault(("baseline", "dataset"), f"the spec has no dataset {quote(dataset)}", hint)
