"""A dashboard of Grafana with the numbers of a monitor: alerts, windows of each metric, the ledger, feeds, tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rageval_spec.diagnostics import make_visible
from rageval_spec.monitoring.outputs.alerting_rules import select
from rageval_spec.plugin import AnswerMetric
from rageval_spec.spec.blocks.monitor import MonitorNode

DASHBOARD_FILE = "rageval-dashboard.json"
_SCHEMA = 39
_COLUMNS, _WIDTH, _HEIGHT = 24, 12, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLORS = {"warning": "orange", "critical": "red"}


class Panel(NamedTuple):
    """A panel, with its queries and their legends, and the bounds of alerts that it draws, each with its color."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    told: str = ""
    bounds: Sequence[tuple[float, str]] = ()

    def dump(self, number: int) -> dict[str, Any]:
        """The panel as Grafana reads it; panels stand two in a row."""
        targets = [
            {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(self.queries)
        ]
        defaults: dict[str, Any] = {"unit": self.unit}
        if self.bounds:
            steps = [{"color": "transparent", "value": None},
                     *({"color": color, "value": bound} for bound, color in sorted(self.bounds))]  # fmt: skip
            defaults |= {"thresholds": {"mode": "absolute", "steps": steps},
                         "custom": {"thresholdsStyle": {"mode": "line"}}}  # fmt: skip
        row, column = divmod(number * _WIDTH, _COLUMNS)
        return {
            "id": number + 1, "type": "timeseries", "title": self.title, "description": self.told,
            "datasource": _SOURCE, "gridPos": {"x": column, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
            "targets": targets, "fieldConfig": {"defaults": defaults, "overrides": []}, "options": {},
        }  # fmt: skip


def render_dashboard(monitor: str, node: MonitorNode, metrics: Mapping[str, AnswerMetric[Any]]) -> bytes:
    """The dashboard as JSON that Grafana imports; the data source is chosen there."""
    panels = [*_list_panels(monitor, node, metrics)]
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    content = {
        "uid": f"rageval-{hashlib.sha256(monitor.encode()).hexdigest()[:12]}",
        "title": f"rageval-spec {make_visible(monitor)}", "tags": ["rageval-spec"], "schemaVersion": _SCHEMA,
        "editable": True, "refresh": "1m", "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [source]}, "panels": [panel.dump(number) for number, panel in enumerate(panels)],
    }  # fmt: skip
    return f"{json.dumps(content, indent=2)}\n".encode()


def _list_panels(monitor: str, node: MonitorNode, metrics: Mapping[str, AnswerMetric[Any]]) -> Iterator[Panel]:
    def ask(name: str, /, *by: str, **labels: str) -> str:
        return f"max by ({', '.join(by)}) ({select(f'rageval_{name}', monitor=monitor, **labels)})"

    cell, legend = ("metric", "window"), "{{metric}} {{window}}"
    yield Panel("Alerts that fire", [(ask("alert_firing", "name", "severity"), "{{name}} {{severity}}")])
    for metric, plugin in metrics.items():
        ends = [(ask(f"window_{side}", "window", metric=metric), f"{{{{window}}}}{after}")
                for side, after in (("value", ""), ("low", " low"), ("high", " high"))]  # fmt: skip
        alerts = [one for one in node.alerts if not isinstance(one, str) and one.metric == metric]
        bounds = [(bound, _COLORS[severity]) for one in alerts for severity, bound in one.bounds.items()]
        yield Panel(make_visible(metric), ends, told=plugin.info.summary, bounds=bounds)
    yield Panel("Percentiles", [(ask("window_percentile", *cell, "percentile"), f"{legend} p{{{{percentile}}}}")])
    yield Panel("Traces by state", [(ask("traces", "metric", "state"), "{{metric}} {{state}}")])
    yield Panel("Judged traces", [(ask("window_samples", *cell), legend)])
    yield Panel("Coverage", [(ask("window_coverage_ratio", *cell), legend)], "percentunit")
    yield Panel("Cost of judging", [(ask("window_cost_dollars", *cell), legend)], "currencyUSD", told="Where known.")
    yield Panel("How long traces wait", [(ask("lag_seconds", "monitor"), "")], "s")
    polled = f"time() - {ask('feed_polled_timestamp_seconds', 'feed')}"
    yield Panel("Since feeds were read", [(polled, "{{feed}}")], "s")
    unread = select("rageval_rows_unread_total", monitor=monitor)
    yield Panel("Rows that could not be read", [(f"sum(increase({unread}[1h]))", "")])
    yield Panel("Messages that wait", [(ask("messages_waiting", "monitor"), "")])
    if node.send:
        yield Panel("Values that wait", [(ask("values_waiting", "destination"), "{{destination}}")])
    if node.ab is not None:
        ends = [(ask(f"ab_difference{side}", "first", "second"), f"{{{{second}}}} less {{{{first}}}}{after}")
                for side, after in (("", ""), ("_low", " low"), ("_high", " high"))]  # fmt: skip
        yield Panel(f"A/B test of {make_visible(node.ab.metric)}", ends)
        shares = [(ask("ab_share_ratio", "arm"), "{{arm}}")]
        yield Panel(f"Shares by {make_visible(node.ab.by)}", shares, "percentunit")
