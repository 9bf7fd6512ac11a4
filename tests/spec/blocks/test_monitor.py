"""Names of notifiers and the address in `monitor:`, and what is told of wrong ones."""

from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

TEXT = """\
version: 1
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [exact_match]
monitor:
  alerts: [{metric: exact_match, warning: 0.8, notify: %s}]
  notify: %s
"""
HOOKS = "[{use: webhook, url: 'http://a'}, {use: webhook, url: 'http://b', name: team}]"


def faults(alert: str, notify: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loads(TEXT % (alert, notify), check_files=False)
    return [f"{one.position.line}:{one.position.column}: {one.message}; {one.hint}" for one in caught.value.diagnostics]


def test_an_alert_may_name_its_notifiers() -> None:
    spec = loads(TEXT % ("[team, webhook]", HOOKS), check_files=False)
    assert [one.use for one in spec.notifiers] == ["webhook", "webhook"]


@pytest.mark.parametrize(
    ("alert", "notify", "told"),
    [
        ("[teem]", HOOKS, "5:57: there is no notifier 'teem'; did you mean 'team'?"),
        ("[pager]", HOOKS, "5:57: there is no notifier 'pager'; there are webhook, team"),
        ("[pager]", "[]", "5:57: there is no notifier 'pager'; add one under 'notify:' of 'monitor:'"),
    ],
)
def test_an_unknown_name_is_reported_with_what_to_write(alert: str, notify: str, told: str) -> None:
    assert faults(alert, notify) == [told]


def test_two_notifiers_of_one_name_are_reported() -> None:
    hooks = "[{use: webhook, url: 'http://a'}, {use: webhook, url: 'http://b'}]"
    found = faults("[webhook]", hooks)
    assert found == ["6:51: there is a notifier 'webhook' before; add a name: {use: webhook, name: ...}"]
    named = "[{use: webhook, url: 'http://a', name: x}, {use: command, run: [a], name: x}]"
    assert len(faults("[x]", named)) == 1


def test_a_name_that_a_wrong_notifier_could_have_is_not_reported() -> None:
    assert [one.partition(": ")[2][:20] for one in faults("[team]", "[{use: webhook, naem: team, url: 'http://a'}]")]
    assert not any("no notifier" in one for one in faults("[team]", "[{use: webhook, naem: team, url: 'http://a'}]"))


@pytest.mark.parametrize("address", ["localhost:http", "127.0.0.1:99999", "http://127.0.0.1:9464", "::1"])
def test_an_address_that_is_none_is_reported_at_its_line(address: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(TEXT % ("[]", f"[]\n  serve: '{address}'"), check_files=False)
    assert [(one.position.line, one.message) for one in caught.value.diagnostics] == [
        (7, f"'serve': '{address}' is not an address; write a host and a port: 127.0.0.1:9464")
    ]


def test_an_address_can_be_a_host_alone() -> None:
    spec = loads(TEXT % ("[]", "[]\n  serve: 0.0.0.0"), check_files=False)
    assert spec.monitor is not None
    assert spec.monitor.serve == "0.0.0.0"


WATCHED = """\
version: 1
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: overlap}, latency@p95]
monitor:
"""


def tell(monitor: str, systems: str = "{use: file, path: traces.jsonl, follow: true}") -> list[str]:
    """What is wrong with a spec whose monitor has these lines: `line:column: message; hint`."""
    lines = "".join(f"  {line}\n" for line in monitor.splitlines())
    text = WATCHED.replace("{use: file, path: traces.jsonl, follow: true}", systems) + (lines or "  {}\n")
    with pytest.raises(SpecError) as caught:
        loads(text, check_files=False)
    found = caught.value.diagnostics
    return [
        f"{one.position.line}:{one.position.column}: {one.message}" + (f"; {one.hint}" if one.hint else "")
        for one in found
    ]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("every: 5", "5:10: 'every': 5 has no unit; write 5s, 5m or 5h"),
        ("every: 0s", "5:10: 'every': '0s' is too short; write a duration longer than 0, such as 60s or 30d"),
        (
            "keep: forever",
            "5:9: 'keep': 'forever' is not a duration; write a number and s, m, h, d or w, such as 60s or 30d",
        ),
        ("false_alarms: 1", "5:17: 'false_alarms': 1 is not a rate; write in how long: 1 per 1h, or 1 per 90d"),
        ("budget: {calls: 600}", "5:19: 'calls': 600 is not a rate; write in how long: 600 per 1h, or 600 per 90d"),
        (
            "budget: {calls: many}",
            "5:19: 'calls': 'many' is not a rate; write a number and a duration: 1 per 90d, 600 per 1h",
        ),
        ("sample: {rate: 5}", "5:18: 'rate': 5 is more than all; for 5% write 5%"),
        ("sample: {rate: 150%}", "5:18: 'rate': '150%' is more than all; write a share of at most 100%"),
        ("sample: {rate: 0%}", "5:18: 'rate': '0%' is not a share; write a share above 0, such as 5%"),
        ("sample: {rate: half}", "5:18: 'rate': 'half' is not a share; write a share above 0, such as 5%"),
        (
            "alerts: [{metric: faithfulness}]",
            "5:12: this block: needs a bound, such as 'warning: 0.8', or 'drift: {high: 10%}'; it has neither",
        ),
        (
            "alerts: [{metric: faithfulness, warning: 1, drift: {low: 1%}}]",
            "5:12: this block: needs a bound, such as 'warning: 0.8', or 'drift: {high: 10%}'; it has both",
        ),
        (
            "alerts: [{metric: faithfulness, drift: {low: 10%, high: 5%}}]",
            "5:35: 'drift': 'high' must be a larger step than 'low'",
        ),
        (
            "alerts: [{metric: faithfulness, drift: {low: some}}]",
            "5:48: 'low': 'some' is not a step; write 5% (of the level before), 2pp or 0.05",
        ),
        (
            "alerts: [{metric: faithfulness, warning: 0.7, critical: 0.8}]",
            "5:59: a lower faithfulness is worse, so 'critical' must be below 'warning' (0.7); "
            "exchange the two numbers",
        ),
        (
            "alerts: [{metric: latency@p95, warning: 10, critical: 5}]",
            "5:57: a lower latency@p95 is better, so 'critical' must be above 'warning' (10); exchange the two numbers",
        ),
        (
            "alerts: [{metric: faithfulness, warning: 80}]",
            "5:44: faithfulness is always between 0 and 1, so not 80; for 80% write 0.8",
        ),
        (
            "alerts: [{metric: latency@p95, warning: -1}]",
            "5:43: latency@p95 is always at least 0, so not -1; write a bound at least 0",
        ),
        (
            "windows: [{name: last, queries: 20}]\nalerts: [{metric: faithfulness, warning: 0.8, window: last, "
            "min_samples: 30}]",
            "6:76: the window 'last' has 20 queries, so never 30 samples; write at most 20",
        ),
    ],
)
def test_a_value_that_cannot_work_is_reported_where_it_is_with_what_to_write(written: str, told: str) -> None:
    assert tell(written) == [told]


def test_steps_of_two_units_are_not_compared() -> None:
    text = WATCHED + "  alerts: [{metric: faithfulness, drift: {low: 10%, high: 5pp}}]\n"
    assert loads(text, check_files=False).monitor is not None


@pytest.mark.parametrize(
    ("system", "told"),
    [
        ("{use: file, path: a.jsonl}", "a monitor reads files that grow; add 'follow: true'"),
        ("{use: file, path: a.csv, follow: true}", "a monitor reads JSON Lines as they are written, not .csv files"),
        (
            "{use: file, path: a.jsonl.gz, follow: true}",
            "a monitor reads JSON Lines as they are written, not .gz files",
        ),
        ("{use: file, path: {a: b.jsonl}, follow: true}", "a monitor reads one file, or one folder of files"),
        ("{use: otel, path: spans}", "a monitor reads files that grow; add 'follow: true'"),
        ("{use: phoenix, project: a, limit: 5}", "a monitor reads all traces as they come; remove 'limit'"),
        ("{use: http, url: 'http://127.0.0.1:1'}", "'use: http' has no traces to watch; write {use: file"),
    ],
)
def test_a_system_that_has_nothing_to_watch_is_reported(system: str, told: str) -> None:
    (found,) = tell("every: 5m", system)
    assert told in found


def test_missing_datasets_are_told_beside_another_mistake() -> None:
    with pytest.raises(SpecError) as caught:
        loads("version: 1\nsystems: {a: {use: file, path: a.jsonl}}\nmetricss: [exact_match]\n", check_files=False)
    told = [one.message for one in caught.value.diagnostics]
    assert told[0] == "the key 'datasets' is missing"
    assert "or what to watch: monitor:" in str(caught.value.diagnostics[0].hint)
    assert "unknown key 'metricss'" in told


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ("{metric: latency, warning: 5}", "there is an alert 'latency above 5.000 (hour)' before"),
        ("{metric: latency, warning: 5, window: day}", None),
        ("{metric: latency, drift: {low: 5%}}", None),
        ("{metric: latency, warning: 9, name: latency above 5.000 (hour)}", "choose another"),
        ("coverage, coverage", "there is an alert 'coverage' before; remove one of them"),
    ],
)
def test_two_alerts_of_one_name_are_reported(second: str, told: str | None) -> None:
    text = TEXT.replace("exact_match", "latency").replace("warning: 0.8, notify: %s}", f"critical: 5}}, {second}")
    text = text.replace("notify: %s", "every: 5m")
    if told is None:
        loads(text, check_files=False)
        return
    with pytest.raises(SpecError) as caught:
        loads(text, check_files=False)
    (found,) = caught.value.diagnostics
    assert told in f"{found.message}; {found.hint}"
