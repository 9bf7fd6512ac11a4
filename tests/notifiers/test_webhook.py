"""`webhook`: the JSON, the names of messages, and signatures that receivers can check."""

import base64
import hashlib
import hmac

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.notifiers.webhook import sign
from rageval_spec.plugin.secrets import Secret
from tests.models.endpoint import Answer
from tests.notifiers.alert_messages import HOSTILE, build, make_end, make_message
from tests.notifiers.receivers import refuse_then_take, serving


def test_it_posts_what_the_page_of_the_documentation_says() -> None:
    with serving() as server:
        build("webhook", url=f"{server.url}/hook").send([make_message(), make_message("k2", value=None, interval=None)])
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.headers["content-type"]) == ("POST", "/hook", "application/json")
    assert asked.content["version"] == 1
    first, second = asked.content["alerts"]
    assert first["id"] == "k1-firing-critical"
    assert (first["began"], first["ended"]) == ("2025-11-24T16:00:00.000Z", None)
    assert first["interval"]["low"] == 0.551
    assert first["worst"][0]["answer"] == HOSTILE
    assert (second["value"], second["interval"]) == (None, None)


def test_a_message_has_the_same_name_each_time_and_another_one_for_each_state() -> None:
    asked = refuse_then_take(lambda url: build("webhook", url=url))
    assert {one.headers["idempotency-key"] for one in asked} == {"k1-firing-critical"}
    with serving() as server:
        notifier = build("webhook", url=server.url)
        for messages in ([make_message("a"), make_message("b")], [make_message("b"), make_message("a")], [make_end()]):
            notifier.send(messages)
    names = [one.headers["idempotency-key"] for one in server.asked]
    assert names[0] == names[1] != names[2] == "k1-resolved-critical"


def test_a_receiver_can_check_who_signed() -> None:
    with serving() as server:
        build("webhook", url=server.url, secret="a secret of ours").send([make_message()])
    (asked,) = server.asked
    signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
    digest = hmac.new(b"a secret of ours", signed, hashlib.sha256).digest()
    assert asked.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the documentation of Svix, whose libraries check such signatures."""
    body = b'{"event_type":"ping","data":{"success":true}}'
    found = sign("msg_loFOjxBNrRLzqYUf", 1731705121, body, "whsec_plJ3nmyCDGBKInavdOK15jsl")
    assert found["webhook-signature"] == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


def test_own_headers_are_sent() -> None:
    with serving() as server:
        build("webhook", url=server.url, headers={"Authorization": "Bearer abc"}).send([make_message()])
    assert server.asked[0].headers["authorization"] == "Bearer abc"


def test_any_reply_with_status_2xx_counts_as_taken() -> None:
    with serving(Answer(b"<html>thanks</html>", 201, Content_Type="text/html"), Answer(b"", 204)) as server:
        notifier = build("webhook", url=server.url)
        notifier.send([make_message()])
        notifier.send([make_end()])
    assert len(server.asked) == 2


def test_a_failure_names_the_host_and_not_the_secret_address() -> None:
    with serving(Answer({"seen": "/hooks/T0123/abcdef"}, 403)) as server:
        url = Secret(f"{server.url}/hooks/T0123/abcdef", "${secret:HOOK}")
        with pytest.raises(RagevalError) as raised:
            build("webhook", url=url).send([make_message()])
    assert str(raised.value).startswith(f"monitor.notify.webhook: {server.url}/*** ")
    assert "403" in str(raised.value)
    assert "abcdef" not in str(raised.value)


def test_a_redirect_is_not_followed() -> None:
    moved = Answer(b"", 302, Location="http://127.0.0.1:1/")
    with serving(moved) as server, pytest.raises(RagevalError, match="302"):
        build("webhook", url=server.url).send([make_message()])
