"""A spec's alerts as alerting rules of Prometheus.

The monitor decides whether the condition of an alert holds, with the false alarms that the spec allows, and shows that
as `rageval_alert_holds`: a threshold on the numbers themselves would fire by chance. Prometheus waits for `for:`,
routes and groups. Further rules watch the monitor itself.

Several processes of one monitor show the same alerts, so rules take the maximum over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.openmetrics import escape_label
from rageval_spec.monitoring.looks.looking import list_alerts, name_experiment
from rageval_spec.monitoring.tables import MOST_FAILURES
from rageval_spec.plugin import AnswerMetric
from rageval_spec.spec.blocks.monitor import COVERAGE, MonitorNode, seconds_of

RULES_FILE, TESTS_FILE = "rageval-rules.yml", "rageval-rules.test.yml"
_FEED = "{feed}"
"""Stands for the name of a feed in a summary."""
_STEP = 10.0
"""Seconds between two evaluations of the rules in their tests."""
_LATE = 300.0
"""Seconds that a trace may be overdue, and a feed unread, before the rules of the monitor itself fire."""


class Example(NamedTuple):
    """A series on which a rule fires `after` so many seconds if it has the value `loud`, and not if `quiet`.

    None for a value stands for a series that is not there. The alert has the labels, and its severity.
    """

    metric: str
    labels: Mapping[str, str]
    loud: float | None
    quiet: float
    after: float = 0.0


class AlertingRule(NamedTuple):
    """A rule; `seconds` is how long its condition must hold."""

    name: str
    expression: str
    severity: str
    summary: str
    example: Example
    seconds: float = 0.0

    def dump(self) -> dict[str, Any]:
        """The rule as Prometheus reads it. Braces of templates in names stay text."""
        return {
            "alert": self.name,
            "expr": self.expression,
            **({"for": f"{self.seconds:.0f}s"} if self.seconds else {}),
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary.replace("{{", '{{ "{{" }}').replace(_FEED, "{{ $labels.feed }}")},
        }

    def list_tests(self) -> Iterator[dict[str, Any]]:
        """Unit tests of promtool: the rule fires in time, not before, and not on a value that is well."""
        one = self.example
        shown = {"exp_labels": {**one.labels, "severity": self.severity},
                 "exp_annotations": {"summary": self.summary.replace(_FEED, one.labels.get("feed", ""))}}  # fmt: skip
        end = self.seconds + one.after
        cases = [(one.loud, end + _STEP, [shown]), (one.quiet, end + _STEP, [])]
        for value, moment, alerts in [*cases, *([(one.loud, end - _STEP, [])] if end else [])]:
            labels = dict(one.labels) | ({"severity": self.severity} if one.metric == "rageval_alert_holds" else {})
            metric = "another_metric" if value is None else one.metric
            series = {"series": select(metric, **labels), "values": f"{value or 0:g}x{int(end // 60) + 2}"}
            expected = {"eval_time": f"{moment:.0f}s", "alertname": self.name, "exp_alerts": alerts}
            yield {"interval": "1m", "input_series": [series], "alert_rule_test": [expected]}


def list_rules(monitor: str, node: MonitorNode, metrics: Mapping[str, AnswerMetric[Any]]) -> list[AlertingRule]:
    """A rule for each alert and severity of a spec, by the monitor's name, and the rules of the monitor itself."""
    found = []
    for key, (name, alert) in list_alerts(node, metrics).items():
        seconds = seconds_of(alert.for_) if alert.for_ else 0.0
        told: dict[str, str] = {
            severity: f"{alert.metric} is surely worse than {bound}." for severity, bound in alert.bounds.items()
        }
        if alert.drift is not None:
            steps = alert.drift.model_dump(exclude_none=True)
            told = {severity: f"{alert.metric} has surely moved by {size} or more." for severity, size in steps.items()}
        found += [_watch(name, monitor, ("=", key), severity, text, seconds) for severity, text in told.items()]
    if COVERAGE in node.alerts:
        text = "Traces are not judged, a feed is not read, or a tool takes no values: see the monitor's page."
        found += [_watch("coverage", monitor, ("=~", "coverage:.*"), one, text) for one in ("critical", "warning")]
    if node.ab is not None:
        (_, name), chosen = name_experiment(node.ab.metric, node.ab.by), ("=~", "ab:.*")
        found.append(_watch(name, monitor, chosen, "low", "One of the two systems is surely better."))
        found.append(_watch(name, monitor, chosen, "high", "The systems do not get the shares that were set."))
    return [*found, *_list_own(monitor, node)]


def _watch(
    name: str, monitor: str, chosen: tuple[str, str], severity: str, told: str, seconds: float = 0.0
) -> AlertingRule:
    """A rule on the alerts whose key is, or matches, a text."""
    sign, key = chosen
    held = (
        f'{select("rageval_alert_holds", monitor=monitor, severity=severity)[:-1]},alert{sign}"{escape_label(key)}"}}'
    )
    labels = {"monitor": monitor, "alert": key.removesuffix(".*"), "name": name}
    expression = f"max by (alert, monitor, name) ({held}) == 1"
    return AlertingRule(name, expression, severity, told, Example("rageval_alert_holds", labels, 1, 0), seconds)


def _list_own(monitor: str, node: MonitorNode) -> list[AlertingRule]:
    """What Prometheus can see of the monitor, also where it can tell nobody itself."""

    def ask(name: str, *by: str) -> str:
        return f"max by ({', '.join((*by, 'monitor'))}) ({select(name, monitor=monitor)})"

    late = max(_LATE, 3 * seconds_of(node.every))
    there, polled = select("rageval_build_info", monitor=monitor), ask("rageval_feed_polled_timestamp_seconds", "feed")
    lag, waiting = ask("rageval_lag_seconds"), ask("rageval_messages_waiting")
    failures = f"{ask('rageval_destination_failures', 'destination')} > {MOST_FAILURES}"
    told = ("Prometheus sees no process of the monitor.", f"The feed {_FEED} cannot be read.",
            "Traces wait too long to be judged.", "A notifier does not take messages of alerts.",
            "A tool does not take values or numbers.")  # fmt: skip

    def show(name: str, loud: float | None, quiet: float, after: float = 0.0, **labels: str) -> Example:
        return Example(name, {"monitor": monitor, **labels}, loud, quiet, after)

    stale = show("rageval_feed_polled_timestamp_seconds", 0, 2 * _STEP, late, feed="live")
    down = show("rageval_destination_failures", MOST_FAILURES + 1, MOST_FAILURES, destination="phoenix")
    absent, lags = show("rageval_build_info", None, 1), show("rageval_lag_seconds", late + 1, late - 1)
    rules = [
        AlertingRule("RagevalMonitorAbsent", f"absent({there})", "critical", told[0], absent, late),
        AlertingRule("RagevalFeedStale", f"time() - {polled} > {late:g}", "critical", told[1], stale),
        AlertingRule("RagevalLag", f"{lag} > {late:g}", "warning", told[2], lags, late),
        AlertingRule("RagevalMessagesWaiting", f"{waiting} > 0", "critical", told[3],
                     show("rageval_messages_waiting", 1, 0), late),
    ]  # fmt: skip
    return [
        *rules,
        *([AlertingRule("RagevalDestinationDown", failures, "warning", told[4], down)] if node.send else []),
    ]


def select(name: str, /, **labels: str) -> str:
    """A selector of PromQL, with any text as a label's value."""
    chosen = ",".join(f'{label}="{escape_label(text)}"' for label, text in labels.items())
    return f"{name}{{{chosen}}}"


def render_rules(monitor: str, rules: Sequence[AlertingRule]) -> bytes:
    """The file with the rules."""
    groups = [{"name": f"rageval {make_visible(monitor)}", "rules": [one.dump() for one in rules]}]
    return _write({"groups": groups}, f"check rules {RULES_FILE}")


def render_tests(rules: Sequence[AlertingRule]) -> bytes:
    """The file with the unit tests of the rules."""
    tests = [test for one in rules for test in one.list_tests()]
    content = {"rule_files": [RULES_FILE], "evaluation_interval": f"{_STEP:.0f}s", "tests": tests}
    return _write(content, f"test rules {TESTS_FILE}")


def _write(content: Mapping[str, Any], command: str) -> bytes:
    import yaml

    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
    return f"# Written by rageval-spec monitor rules; check it with: promtool {command}\n{text}".encode()
