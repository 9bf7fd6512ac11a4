"""Alerts as mails that mail programs put in one thread."""

from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

import pytest

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.errors import RagevalError
from tests.notifiers.receivers import FIRING, RESOLVED, receive_mail, send


def mail(*groups: Sequence[AlertMessage], to: str = "team@example.org") -> list[Message]:
    with receive_mail() as (port, mails):
        keys: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": port,
            "security": "none",
            "from": "monitor@example.org",
            "to": [to],
        }
        send("email", keys, *groups)
    return [message_from_bytes(one, policy=default) for one in mails]


def test_a_mail_has_the_alert_as_text_and_as_html() -> None:
    (sent,) = mail([FIRING])
    assert sent["Subject"] == "bot: faithfulness below 0.7 (critical)"
    assert (sent["From"], sent["To"]) == ("monitor@example.org", "team@example.org")
    text, page = (part.get_content() for part in sent.iter_parts())  # type: ignore[attr-defined]
    assert "bound:   0.700" in text
    assert "question: Who?" in text
    assert "&lt;!channel&gt; &amp; &lt;http" in page


def test_the_mail_that_ends_an_alert_answers_the_first() -> None:
    began, ended = mail([FIRING], [RESOLVED])
    assert ended["In-Reply-To"] == began["Message-ID"]
    assert ended["Subject"] == "bot: faithfulness below 0.7 (resolved)"


def test_a_refused_address_is_an_error() -> None:
    with pytest.raises(RagevalError, match=r"notify.email: 127.0.0.1 did not take the mail"):
        mail([FIRING], to="refused@example.org")


def test_a_server_that_is_not_there_is_an_error() -> None:
    keys = {"host": "127.0.0.1", "port": 1, "security": "none", "from": "monitor@example.org", "to": ["a@example.org"]}
    with pytest.raises(RagevalError, match="Connection refused"):
        send("email", keys, [FIRING])
