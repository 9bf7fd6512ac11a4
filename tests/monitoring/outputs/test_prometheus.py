"""What promtool and a real Prometheus make of `/metrics`, of the rules and of the dashboard's queries."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.drawing.openmetrics import MetricFamily, render_families
from rageval_spec.monitoring.assembly import open_monitor
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
    names = ("rageval-rules.yml", "rageval-rules.test.yml", "rageval-dashboard.json")
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
    helps = {one.name: one.told for one in families}
    for side in ("low", "high"):
        assert helps[f"rageval_ab_difference_{side}"].startswith(f"The {side} end of the interval")
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


@pytest.mark.parametrize("changed", ["", "for: 600s", "== 1", "> 300", "severity: high"])
def test_the_tests_that_come_with_the_rules_hold_and_can_fail(tmp_path: Path, changed: str) -> None:
    write_rules(write_monitor(tmp_path))
    rules, tests = tmp_path / "rageval-rules.yml", tmp_path / "rageval-rules.test.yml"
    others = {"for: 600s": "for: 900s", "== 1": "== 2", "> 300": "> 400", "severity: high": "severity: low"}
    if changed:
        assert changed in rules.read_text()
        rules.write_text(rules.read_text().replace(changed, others[changed]))
    found = subprocess.run([find_program("promtool"), "test", "rules", tests], capture_output=True)
    assert (found.returncode != 0) == bool(changed), found.stderr.decode()
    tested = {one["alert_rule_test"][0]["alertname"] for one in yaml.safe_load(tests.read_bytes())["tests"]}
    assert tested == {rule["alert"] for rule in list_rules(tmp_path)}


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


def test_a_client_of_the_older_text_format_gets_it(server: Prometheus) -> None:
    for accept, kind in (
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text;q=0.5,text/plain;q=0.3",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        ("*/*", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ):
        request = urllib.request.Request(f"{server.target}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=5) as reply:
            assert reply.headers["content-type"] == kind
            assert reply.read().endswith(b"# EOF\n") == kind.startswith("application")


def test_a_tool_that_is_down_does_not_make_the_monitor_unwell(server: Prometheus) -> None:
    assert fetch(f"{server.target}/healthz") == b"ok\n"
    assert fetch(f"{server.target}/ready") == b"ok\n"
