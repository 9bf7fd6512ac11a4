"""What all notifiers that post have in common: one request for a try, own headers, and no secret in a message."""

from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.errors import RagevalError
from rageval_spec.notifiers.shared.posting import write_json
from rageval_spec.plugin.secrets import Secret
from tests.models.endpoint import Answer, Hangup
from tests.notifiers.alert_messages import build, make_end, make_message
from tests.notifiers.receivers import serving

WORDS = ["alertmanager", "pagerduty", "slack", "webhook"]


def make(word: str, url: str | Secret, **keys: Any) -> Any:
    needed: dict[str, Any] = {"routing_key": "R" * 32} if word == "pagerduty" else {}
    return build(word, url=url, **keys, **needed)


@pytest.mark.parametrize("word", WORDS)
def test_a_receiver_that_hangs_up_after_it_took_a_message_gets_it_once_for_each_try(word: str) -> None:
    """A connection that was kept and breaks would make the client post twice in one try."""
    with serving(Answer(b"ok"), Hangup()) as server:
        notifier = make(word, server.url)
        notifier.send([make_message()])
        with pytest.raises(RagevalError):
            notifier.send([make_end()])
    assert len(server.asked) == 2


@pytest.mark.parametrize("word", WORDS)
def test_headers_are_sent_and_not_shown(word: str) -> None:
    headers = {"Authorization": Secret("Bearer s3cr3ts3cr3t", "Bearer ${secret:TOKEN}")}
    with serving(Answer(b"who is s3cr3ts3cr3t?", 401)) as server, pytest.raises(RagevalError, match="401") as raised:
        make(word, f"{server.url}/hooks/abcdefgh?code=hijklmnop", headers=headers).send([make_message()])
    assert server.asked[0].headers["authorization"] == "Bearer s3cr3ts3cr3t"
    for secret in ("s3cr3t", "abcdefgh", "hijklmnop"):
        assert secret not in str(raised.value)
    assert str(raised.value).startswith(f"monitor.notify.{word}: {server.url}/***")


@pytest.mark.parametrize("word", ["slack", "webhook"])
def test_a_short_path_masks_no_names(word: str) -> None:
    """Neither the notifier's name nor words of the reply."""
    headers = {"X-Team": Secret("hook", "${secret:TEAM}")}
    with serving(Answer(b"the slackbot is down", 500)) as server, pytest.raises(RagevalError) as raised:
        make(word, f"{server.url}/slack", headers=headers).send([make_message()])
    assert (
        str(raised.value)
        == f"monitor.notify.{word}: {server.url}/*** answered 500 Internal Server Error: the slackbot is down"
    )


@pytest.mark.parametrize("url", ["ftp://example.com/s3cr3t", "s3cr3t.example.com", "http://user:s3cr3t@example.com"])
@pytest.mark.parametrize("word", WORDS)
def test_a_wrong_url_is_refused_and_not_shown(word: str, url: str) -> None:
    with pytest.raises(ValidationError) as raised:
        make(word, Secret(url, "${secret:HOOK}"))
    (fault,) = raised.value.errors()
    assert fault["loc"] == ("url",)
    assert "s3cr3t" not in fault["msg"]


def test_json_has_no_nan() -> None:
    assert write_json({"é": [1.5, None]}) == b'{"\\u00e9": [1.5, null]}'
    with pytest.raises(ValueError, match="JSON"):
        write_json(float("nan"))
