"""`pagerduty`: one event for each alert, by the Events API v2."""

import json

import pytest

from rageval_spec.data.alerts import AlertSeverity
from rageval_spec.errors import RagevalError
from rageval_spec.plugin.secrets import Secret
from tests.models.endpoint import Answer
from tests.notifiers.alert_messages import build, make_end, make_message
from tests.notifiers.receivers import refuse_then_take, serving

KEY = Secret("R0123456789abcdefR0123456789abcd", "${secret:PAGERDUTY}")


def test_an_alert_opens_an_incident_and_its_end_resolves_it() -> None:
    with serving() as server:
        notifier = build("pagerduty", url=f"{server.url}/v2/enqueue", routing_key=KEY)
        notifier.send([make_message()])
        notifier.send([make_end()])
    first, last = (one.content for one in server.asked)
    assert (first["event_action"], first["dedup_key"], first["routing_key"]) == ("trigger", "k1", KEY.reveal())
    payload = first["payload"]
    assert (payload["severity"], payload["source"], payload["timestamp"]) == (
        "critical", "live", "2025-11-24T16:00:00.000Z",
    )  # fmt: skip
    assert payload["summary"].startswith("faithfulness below 0.700: faithfulness is 0.612")
    assert payload["custom_details"]["Moved: model"] == "its replies are half as long as last week"
    assert payload["custom_details"]["Worst answer 1"]["question"] == "Who wrote it?"
    assert [one["href"] for one in first["links"]] == ["https://watch.example/bot.html", "https://traces.example/t1"]
    assert last == {"routing_key": KEY.reveal(), "event_action": "resolve", "dedup_key": "k1"}


@pytest.mark.parametrize(
    ("severity", "there"),
    [("critical", "critical"), ("high", "error"), ("medium", "warning"), ("warning", "warning"), ("low", "info")],
)
def test_severities_are_those_of_pagerduty(severity: AlertSeverity, there: str) -> None:
    with serving() as server:
        build("pagerduty", url=server.url, routing_key=KEY).send([make_message(severity=severity)])
    assert server.asked[0].content["payload"]["severity"] == there


def test_it_stays_within_the_limits() -> None:
    long = make_message(name="é" * 5_000, summary="x" * 600_000, page=None)
    with serving() as server:
        build("pagerduty", url=server.url, routing_key=KEY).send([long])
    content = server.asked[0].content
    assert len(content["payload"]["summary"]) <= 1_024
    assert "client_url" not in content
    assert len(json.dumps(content)) < 512_000


def test_by_default_it_posts_to_pagerduty() -> None:
    assert build("pagerduty", routing_key=KEY).node.url.reveal() == "https://events.pagerduty.com/v2/enqueue"


def test_what_was_not_taken_is_sent_again_under_the_same_name() -> None:
    asked = refuse_then_take(lambda url: build("pagerduty", url=url, routing_key=KEY))
    assert {one.content["dedup_key"] for one in asked} == {"k1"}


def test_a_failure_does_not_show_the_key() -> None:
    reply = {"status": "invalid event", "errors": [f"no routing key {KEY.reveal()}"]}
    with serving(Answer(reply, 400)) as server, pytest.raises(RagevalError, match="invalid event") as raised:
        build("pagerduty", url=server.url, routing_key=KEY).send([make_message()])
    assert KEY.reveal() not in str(raised.value)
