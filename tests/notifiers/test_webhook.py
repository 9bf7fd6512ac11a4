"""Alerts as JSON at a URL."""

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.plugin.secrets import Secret
from tests.notifiers.receivers import FIRING, RESOLVED, receive, send


def test_it_posts_all_that_is_known_of_an_alert() -> None:
    with receive() as got:
        send("webhook", {"url": Secret(f"{got.url}/hook/s3cret")}, [FIRING], [RESOLVED])
    (path, headers, first), (_, _, last) = got.requests
    assert path == "/hook/s3cret"
    assert headers["content-type"] == "application/json"
    (alert,) = first["alerts"]
    assert (alert["key"], alert["state"], alert["value"], alert["interval"]["low"]) == ("k1", "firing", 0.5, 0.4)
    assert alert["worst"][0]["trace_id"] == "t1"
    assert (last["alerts"][0]["key"], last["alerts"][0]["state"]) == ("k1", "resolved")


def test_a_refusal_is_an_error_that_hides_the_address() -> None:
    with receive(403, reply=b"no such hook s3cret") as got, pytest.raises(RagevalError) as error:
        send("webhook", {"url": Secret(f"{got.url}/hook/s3cret")}, [FIRING])
    assert "notify.webhook" in str(error.value)
    assert "403" in str(error.value)
    assert "/hook/s3cret" not in str(error.value)


def test_a_server_that_fails_once_gets_the_alert_again() -> None:
    with receive(503) as got:
        send("webhook", {"url": Secret(got.url)}, [FIRING])
    assert [content["alerts"][0]["key"] for _, _, content in got.requests] == ["k1", "k1"]
