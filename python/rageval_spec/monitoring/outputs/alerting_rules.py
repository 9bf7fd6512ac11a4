"""A spec's alerts as alerting rules of Prometheus, with unit tests of the rules for promtool.

The monitor decides whether the condition of an alert holds, with the false alarms that the spec allows, and shows that
as `rageval_alert_holds`: a threshold on the numbers themselves would fire by chance. Prometheus waits for `for:`,
routes and groups. Further rules watch the monitor itself.

Several processes of one monitor show the same alerts, so rules take the maximum over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.openmetrics import escape_label
from rageval_spec.monitoring.looks.looking import list_alerts
from rageval_spec.monitoring.tables import MOST_FAILURES
from rageval_spec.plugin import AnswerMetric
from rageval_spec.spec.blocks.monitor import COVERAGE, MonitorNode, seconds_of

RULES_FILE, TESTS_FILE = "rageval-rules.yml", "rageval-rules.test.yml"
_LATE = 300.0
"""Seconds that a trace may be overdue, and a feed unread, before the rules of the monitor itself fire."""
_STEP = 10
"""Seconds between two evaluations of the rules in their tests."""


@dataclass(frozen=True)
class AlertingRule:
    """A rule.

    Attributes:
        seconds: how long the condition must hold.
        series, value: a series for which it fires, and the number that it always has; for the rule's test.
        shown: the labels of the alert that come from that series.
        silent_for: how many seconds from 0 on it does not fire for that series, besides `seconds`.
    """

    name: str
    expression: str
    severity: str
    summary: str
    series: str
    seconds: float = 0.0
    shown: Mapping[str, str] = field(default_factory=dict)
    value: float = 1
    silent_for: float = 0.0

    def dump(self) -> dict[str, Any]:
        """The rule as Prometheus reads it. Braces of templates in names stay text."""
        return {
            "alert": self.name,
            "expr": self.expression,
            **({"for": f"{self.seconds:.0f}s"} if self.seconds else {}),
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary.replace("{{", '{{ "{{" }}')},
        }

    def dump_test(self) -> dict[str, Any]:
        """It fires once its condition has held long enough, and not before."""
        silent = self.seconds + self.silent_for
        labels = {"severity": self.severity, **{key: make_visible(text) for key, text in self.shown.items()}}
        fires = [{"exp_labels": labels, "exp_annotations": {"summary": self.summary}}]
        times = [*([(silent - _STEP, [])] if silent else []), (silent + _STEP, fires)]
        cases = [{"eval_time": f"{at:.0f}s", "alertname": self.name, "exp_alerts": alerts} for at, alerts in times]
        series = {"series": self.series, "values": f"{self.value:g}x{silent // 60 + 5:.0f}"}
        return {"interval": "1m", "input_series": [series], "alert_rule_test": cases}


def list_rules(monitor: str, node: MonitorNode, metrics: Mapping[str, AnswerMetric[Any]]) -> list[AlertingRule]:
    """A rule for each alert and severity of a spec, by the monitor's name, and the rules of the monitor itself."""
    found = []
    for key, name, alert, told in list_alerts(node, metrics):
        seconds = seconds_of(alert.for_) if alert.for_ else 0.0
        found += [_watch_alert(monitor, name, key, severity, text, seconds) for severity, text in told.items()]
    if COVERAGE in node.alerts:
        text = "Traces are not judged, a feed is not read, or a tool takes no values: see the monitor's page."
        found += [
            _watch_alert(monitor, "coverage", "coverage:.*", severity, text) for severity in ("critical", "warning")
        ]
    if node.ab is not None:
        name, key = f"A/B test of {node.ab.metric} by {node.ab.by}", f"ab:{node.ab.metric}:{node.ab.by}"
        found.append(_watch_alert(monitor, name, key, "low", "One of the two systems is surely better."))
        found.append(_watch_alert(monitor, name, key, "high", "The systems do not get the shares that were set."))
    return [*found, *_watch_monitor(monitor, node)]


def _watch_alert(monitor: str, name: str, key: str, severity: str, told: str, seconds: float = 0.0) -> AlertingRule:
    shown = {"monitor": monitor, "alert": key.replace(".*", "example"), "name": name}
    chosen = select("rageval_alert_holds", monitor=monitor, severity=severity, **({} if "*" in key else {"alert": key}))
    if "*" in key:
        chosen = f'{chosen[:-1]},alert=~"{key}"}}'
    held = select("rageval_alert_holds", **shown, severity=severity)
    expression = f"max by (alert, monitor, name) ({chosen}) == 1"
    return AlertingRule(name, expression, severity, told, held, seconds, shown)


def _watch_monitor(monitor: str, node: MonitorNode) -> Iterator[AlertingRule]:
    """What Prometheus can see of the monitor, also where it can tell nobody itself."""
    own, late = {"monitor": monitor}, max(_LATE, 3 * seconds_of(node.every))
    there, elsewhere = (select("rageval_build_info", monitor=name) for name in (monitor, f"not {monitor}"))
    yield AlertingRule("RagevalMonitorAbsent", f"absent({there})", "critical",
                       "Prometheus sees no process of the monitor.", elsewhere, late, own)  # fmt: skip
    feed = {**own, "feed": "live"}
    polled = f"max by (feed, monitor) ({select('rageval_feed_polled_timestamp_seconds', **own)})"
    yield AlertingRule("RagevalFeedStale", f"time() - {polled} > {late:g}", "critical", "The feed cannot be read.",
                       select("rageval_feed_polled_timestamp_seconds", **feed), 0.0, feed, 0, late)  # fmt: skip
    lag = select("rageval_lag_seconds", **own)
    yield AlertingRule("RagevalLag", f"max by (monitor) ({lag}) > {late:g}", "warning",
                       "Traces wait too long to be judged.", lag, late, own, late + 1)  # fmt: skip
    waiting = select("rageval_messages_waiting", **own)
    yield AlertingRule("RagevalMessagesWaiting", f"max by (monitor) ({waiting}) > 0", "critical",
                       "A notifier does not take messages of alerts.", waiting, late, own)  # fmt: skip
    if node.send:
        tool, failures = {**own, "destination": "phoenix"}, select("rageval_destination_failures", **own)
        expression = f"max by (destination, monitor) ({failures}) > {MOST_FAILURES}"
        yield AlertingRule("RagevalDestinationDown", expression, "warning", "A tool does not take values or numbers.",
                           select("rageval_destination_failures", **tool), late, tool, MOST_FAILURES + 1)  # fmt: skip


def select(name: str, /, **labels: str) -> str:
    """A selector of PromQL, with any text as a label's value."""
    chosen = ",".join(f'{label}="{escape_label(text)}"' for label, text in labels.items())
    return f"{name}{{{chosen}}}"


def render_rules(monitor: str, rules: Sequence[AlertingRule]) -> bytes:
    """The file with the rules."""
    groups = [{"name": f"rageval {make_visible(monitor)}", "rules": [one.dump() for one in rules]}]
    return _write({"groups": groups}, f"check it with: promtool check rules {RULES_FILE}")


def render_tests(rules: Sequence[AlertingRule]) -> bytes:
    """The file with a unit test of each rule."""
    tests = [one.dump_test() for one in rules]
    content = {"rule_files": [RULES_FILE], "evaluation_interval": f"{_STEP}s", "tests": tests}
    return _write(content, f"run it with: promtool test rules {TESTS_FILE}")


def _write(content: Mapping[str, Any], advice: str) -> bytes:
    import yaml

    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
    return f"# Written by rageval-spec monitor rules; {advice}\n{text}".encode()
