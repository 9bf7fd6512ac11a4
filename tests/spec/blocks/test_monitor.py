"""Names of notifiers in `monitor:`: each has its own, and alerts name those that are there."""

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
