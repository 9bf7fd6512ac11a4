"""What promtool and a real Prometheus make of `/metrics`, of the rules and of the dashboard's queries."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.drawing.openmetrics import MetricFamily, render_families
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.looks.looking import list_alerts
from rageval_spec.spec import load
from tests.monitoring.outputs.prometheus_server import (
    HOSTILE,
    Prometheus,
    fetch,
    find_program,
    scraping,
    wait_for,
    write_monitor,
)


def write_rules(spec: Path) -> None:
    command = ["monitor", "rules", str(spec), "-o", str(spec.parent)]
    found = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    names = ("rageval-rules.yml", "rageval-dashboard.json")
    assert found.output == "".join(f"wrote {spec.parent / name}\n" for name in names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `monitor rules` writes."""
    found = tmp_path_factory.mktemp("rules")
    write_rules(write_monitor(found))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(tmp_path_factory.mktemp("prometheus"), write_rules) as found:
        yield found


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[MetricFamily]:
    """The numbers of a monitor that went round once."""
    with open_monitor(load(write_monitor(tmp_path_factory.mktemp("once"), "127.0.0.1:0"))) as loop:
        loop.poll()
        late = loop.clock() + 10
        loop.clock = lambda: late
        loop.delivery = None
        loop.run_once()
        assert loop.publish is not None
        return list(loop.publish(late + 10))


def find(families: list[MetricFamily], name: str, **labels: str) -> dict[str, float]:
    """The samples of a metric by those labels that are not asked for."""
    (family,) = [one for one in families if one.name == name]
    return {
        "/".join(text for key, text in found.items() if key != "monitor" and key not in labels): float(number)
        for found, number in family.samples
        if number is not None and labels.items() <= found.items()
    }


def test_promtool_finds_nothing_to_complain_about(families: list[MetricFamily]) -> None:
    """It reads only the older text format."""
    command = [find_program("promtool"), "check", "metrics"]
    checked = subprocess.run(command, input=render_families(families, is_old=True), capture_output=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_the_parser_of_openmetrics_reads_the_same_numbers(families: list[MetricFamily]) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus-client is not installed")
    text = render_families(families).decode()
    read = {one.name: one for one in parser.text_string_to_metric_families(text)}
    written = {one.name: [pair for pair in one.samples if pair[1] is not None] for one in families}
    assert {name: len(one.samples) for name, one in read.items()} == {
        name: len(samples) for name, samples in written.items() if samples
    }
    (version,) = [one.labels["version"] for one in read["rageval_build_info"].samples]
    assert version
    counts = {
        one.labels["state"]: one.value for one in read["rageval_traces"].samples if one.labels["metric"] == HOSTILE
    }
    assert sum(counts.values()) == read["rageval_traces_seen"].samples[0].value == 300


def test_no_two_samples_have_the_same_labels(families: list[MetricFamily]) -> None:
    for one in families:
        labels = [tuple(sorted(found.items())) for found, _ in one.samples]
        assert len(labels) == len({*labels}), one.name


def test_each_alert_of_the_spec_is_shown_also_before_it_ever_held(families: list[MetricFamily]) -> None:
    (family,) = [one for one in families if one.name == "rageval_alert_firing"]
    states = {labels["name"]: number for labels, number in family.samples}
    assert states["errors {{ in }} production"] == 1
    assert states["latency changed"] == 0


def test_the_ab_test_keeps_its_readable_name_after_it_ended(families: list[MetricFamily]) -> None:
    for name in ("rageval_alert_firing", "rageval_alert_holds"):
        (family,) = [one for one in families if one.name == name]
        keys = {labels["alert"]: labels["name"] for labels, _ in family.samples}
        assert keys[f"ab:{HOSTILE}:variant"] == f"A/B test of {HOSTILE} by variant"


def test_the_ab_test_is_shown_with_its_shares_difference_and_interval(families: list[MetricFamily]) -> None:
    named = {"metric": HOSTILE, "by": "variant"}
    assert find(families, "rageval_ab_share_ratio", **named) == {"a": 0.5, "b": 0.5}
    assert find(families, "rageval_ab_share_p_value", **named)[""] > 0.01
    means = find(families, "rageval_ab_mean", **named)
    sides = {"first": "a", "second": "b"}
    (difference,), (low,), (high,) = (
        find(families, f"rageval_ab_difference{side}", **named, **sides).values() for side in ("", "_low", "_high")
    )
    assert difference == pytest.approx(means["b"] - means["a"])
    assert low < difference < high
    assert sum(find(families, "rageval_ab_samples", **named).values()) == 270


def test_prometheus_reads_every_number(server: Prometheus) -> None:
    assert server.last_error == ""
    wait_for(lambda: server.query('rageval_window_samples{metric="error_rate",window="last"} == 300'), "all are judged")
    (level,) = wait_for(
        lambda: server.query('round(rageval_window_value{metric="error_rate",window="last"}, 0.0001) == 0.1'), "a level"
    )
    assert float(level["value"][1]) == pytest.approx(0.1)
    names = {one["metric"]["metric"] for one in server.query("rageval_window_value")}
    assert names == {HOSTILE, "latency", "error_rate"}
    (up,) = server.query("up")
    assert up["value"][1] == "1"


def test_the_rules_fire_in_prometheus_on_what_the_monitor_decided(server: Prometheus) -> None:
    def find_firing() -> list[dict[str, Any]]:
        alerts = server.ask("alerts")["alerts"]
        return [one for one in alerts if one["state"] == "firing" and one["labels"]["name"].startswith("errors")]

    (alert,) = wait_for(find_firing, "the alert fires")
    assert alert["labels"]["alertname"] == "errors {{ in }} production"
    assert alert["labels"]["severity"] == "warning"
    assert alert["annotations"] == {"summary": "error_rate is surely worse than 0.01."}
    rules = [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
    assert [rule["lastError"] for rule in rules if rule.get("lastError")] == []
    assert {rule["health"] for rule in rules} == {"ok"}


def test_every_query_of_the_dashboard_has_a_result(server: Prometheus) -> None:
    queries = list_expressions(server.spec.parent)
    assert len(queries) > 20
    for query in queries:
        if "cost_dollars" not in query:  # nothing costs anything here
            wait_for(lambda query=query: server.query(query), query)  # type: ignore[misc]


def list_expressions(folder: Path) -> list[str]:
    """The queries of the dashboard."""
    panels = json.loads((folder / "rageval-dashboard.json").read_bytes())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def list_rules(folder: Path) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((folder / "rageval-rules.yml").read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def test_every_expression_is_promql(folder: Path) -> None:
    parser = pytest.importorskip("promql_parser", reason="promql-parser is not installed")
    for expression in (*list_expressions(folder), *(rule["expr"] for rule in list_rules(folder))):
        parser.parse(expression)


def test_promtool_accepts_the_rules(folder: Path) -> None:
    command = [find_program("promtool"), "check", "rules", str(folder / "rageval-rules.yml")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


MONITOR = "bot {{ 1 }}"
CASES: list[tuple[str, str, str, float, str, dict[str, str] | None]] = [
    # the alert, a series that it is about, its value, when it is looked at, and what fires
    ("errors {{ in }} production", "rageval_alert_holds", "1", 10, "warning", {"alert": "?", "name": "n"}),
    ("latency changed", "rageval_alert_holds", "0", 10, "high", None),
    ("latency changed", "rageval_alert_holds", "1", 10, "high", {"alert": "?", "name": "n"}),
    ("coverage", "rageval_alert_holds", "1", 10, "critical", {"alert": "coverage:feed:live", "name": "feed live"}),
    (f"{HOSTILE} below 0.950 (15m)", "rageval_alert_holds", "1", 590, "critical", None),
    (f"{HOSTILE} below 0.950 (15m)", "rageval_alert_holds", "1", 610, "critical", {"alert": "?", "name": "n"}),
    (
        f"A/B test of {HOSTILE} by variant",
        "rageval_alert_holds",
        "1",
        10,
        "high",
        {"alert": "ab:x:variant", "name": "n"},
    ),
    ("RagevalFeedStale", "rageval_feed_polled_timestamp_seconds", "0", 290, "critical", None),
    ("RagevalFeedStale", "rageval_feed_polled_timestamp_seconds", "0", 310, "critical", {"feed": "live"}),
    ("RagevalLag", "rageval_lag_seconds", "301", 310, "warning", {}),
    ("RagevalLag", "rageval_lag_seconds", "299", 310, "warning", None),
    ("RagevalMessagesWaiting", "rageval_messages_waiting", "1", 310, "critical", {}),
    ("RagevalDestinationDown", "rageval_destination_failures", "4", 10, "warning", {"destination": "phoenix"}),
    ("RagevalDestinationDown", "rageval_destination_failures", "3", 10, "warning", None),
    ("RagevalMonitorAbsent", "another_metric", "1", 310, "critical", {}),
    ("RagevalMonitorAbsent", "rageval_build_info", "1", 310, "critical", None),
]


def make_test(folder: Path, *case: Any) -> dict[str, Any]:
    """A unit test of promtool."""
    name, metric, value, at, severity, shown = case
    (rule,) = [one for one in list_rules(folder) if (one["alert"], one["labels"]["severity"]) == (name, severity)]
    labels = {"monitor": MONITOR, **(shown or {})}
    if labels.get("alert") == "?":
        spec = load(folder / "spec.yaml")
        assert spec.monitor is not None
        keys = {known: key for key, (known, _) in list_alerts(spec.monitor, {}).items()}
        labels["alert"] = keys[name]
    given = ",".join(f"{key}={json.dumps(text)}" for key, text in (labels | {"severity": severity}).items())
    summary = rule["annotations"]["summary"].replace('{{ "{{" }}', "{{")
    fires = [{"exp_labels": labels | {"severity": severity}, "exp_annotations": {"summary": summary}}]
    expected = {"eval_time": f"{at}s", "alertname": name, "exp_alerts": [] if shown is None else fires}
    return {"interval": "1m", "input_series": [{"series": f"{metric}{{{given}}}", "values": f"{value}x60"}],
            "alert_rule_test": [expected]}  # fmt: skip


@pytest.mark.parametrize("delay", ["600s", "900s"])
def test_the_rules_fire_in_time_and_not_before(tmp_path: Path, delay: str) -> None:
    """The tests fail on rules that wait longer, so they can fail."""
    write_rules(write_monitor(tmp_path))
    rules = tmp_path / "rageval-rules.yml"
    tests = [make_test(tmp_path, *case) for case in CASES]
    assert rules.read_text().count("for: 600s") == 2
    rules.write_text(rules.read_text().replace("for: 600s", f"for: {delay}"))
    content = {"rule_files": [rules.name], "evaluation_interval": "10s", "tests": tests}
    (tmp_path / "tests.yml").write_text(json.dumps(content))
    found = subprocess.run([find_program("promtool"), "test", "rules", tmp_path / "tests.yml"], capture_output=True)
    assert found.returncode == (delay != "600s"), found.stderr.decode()


def test_each_alert_has_a_rule_for_each_severity(folder: Path) -> None:
    found: dict[str, list[str]] = {}
    for rule in list_rules(folder):
        found.setdefault(rule["alert"], []).append(rule["labels"]["severity"])
    assert found == {
        f"{HOSTILE} below 0.950 (15m)": ["warning", "critical"],
        "errors {{ in }} production": ["warning"],
        "latency changed": ["low", "high"],
        "coverage": ["critical", "warning"],
        f"A/B test of {HOSTILE} by variant": ["low", "high"],
        "RagevalMonitorAbsent": ["critical"],
        "RagevalFeedStale": ["critical"],
        "RagevalLag": ["warning"],
        "RagevalMessagesWaiting": ["critical"],
        "RagevalDestinationDown": ["warning"],
    }


def test_panels_do_not_cover_one_another(folder: Path) -> None:
    panels = json.loads((folder / "rageval-dashboard.json").read_text())["panels"]
    cells = [(x, y) for panel in panels for at in [panel["gridPos"]]
             for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]  # fmt: skip
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_a_panel_draws_the_bounds_of_the_alerts(folder: Path) -> None:
    panels = {one["title"]: one for one in json.loads((folder / "rageval-dashboard.json").read_text())["panels"]}
    steps = panels[HOSTILE]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert [(one["color"], one["value"]) for one in steps] == [("transparent", None), ("red", 0.9), ("orange", 0.95)]


def test_grafanas_own_types_keep_every_key_of_the_dashboard(folder: Path) -> None:
    """They leave out what the schema does not know."""
    reason = "grafana-foundation-sdk is not installed"
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason=reason)
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins", reason=reason)
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder", reason=reason)
    plugins.register_default_plugins()
    content = json.loads((folder / "rageval-dashboard.json").read_bytes())
    kept = json.loads(encoder.JSONEncoder().encode(models.Dashboard.from_json(content)))
    assert list(find_lost(content, kept)) == []


def find_lost(content: Any, kept: Any, place: str = "") -> Iterator[str]:
    """The places of what is not kept as it was; further keys do not count."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from find_lost(value, kept.get(key), f"{place}/{key}") if key in (kept or {}) else [f"{place}/{key}"]
    elif isinstance(content, list):
        pairs = zip(content, kept, strict=True)
        yield from (lost for number, pair in enumerate(pairs) for lost in find_lost(*pair, f"{place}/{number}"))
    elif content != kept:
        yield place


def test_a_tool_that_is_down_does_not_make_the_monitor_unwell(server: Prometheus) -> None:
    assert fetch(f"{server.target}/healthz") == b"ok\n"
    assert fetch(f"{server.target}/ready") == b"ok\n"
