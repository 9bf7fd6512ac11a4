"""Incidents that open and resolve under one key."""

from rageval_spec.plugin.secrets import Secret
from tests.notifiers.receivers import FIRING, RESOLVED, receive, send


def test_an_alert_opens_an_incident_and_its_end_resolves_it() -> None:
    with receive(reply=b'{"status": "success"}') as got:
        send("pagerduty", {"url": got.url, "routing_key": Secret("r0uting")}, [FIRING], [RESOLVED])
    (path, _, opened), (_, _, resolved) = got.requests
    assert path == "/v2/enqueue"
    assert (opened["event_action"], opened["dedup_key"], opened["routing_key"]) == ("trigger", "k1", "r0uting")
    assert opened["payload"]["severity"] == "critical"
    assert opened["payload"]["timestamp"] == "2025-11-24T16:00:00Z"
    assert opened["payload"]["custom_details"]["value"] == "0.500 [0.400, 0.600]"
    assert resolved == {"event_action": "resolve", "dedup_key": "k1", "routing_key": "r0uting"}
