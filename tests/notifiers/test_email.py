"""`email`: mails that people can read and mail programs can thread, by a server that may fail."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from rageval_spec.errors import RagevalError
from rageval_spec.plugin.secrets import Secret
from tests.notifiers.alert_messages import HOSTILE, build, make_end, make_message
from tests.notifiers.smtp_server import SmtpServer, make_certificate

Start = Callable[..., SmtpServer]


@pytest.fixture
def start() -> Iterator[Start]:
    servers = []

    def begin(*failures: str, **options: Any) -> SmtpServer:
        servers.append(SmtpServer(*failures, **options))
        return servers[-1]

    yield begin
    for one in servers:
        one.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


def read(mail: Any, kind: str) -> str:
    text: str = mail.message.get_body((kind,)).get_content()
    return text


def test_people_see_what_they_need(start: Start) -> None:
    server = start()
    build("email", **server.keys).send([make_message()])
    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == ("alerts@example.com", ["ada@example.com"])
    assert mail.message["Subject"] == "[support-bot] critical: faithfulness below 0.700"
    for kind in ("plain", "html"):
        for told in ("0.612 [0.551, 0.673] (95% interval)", "Moved: model", "Who wrote it?", "not supported"):
            assert told in read(mail, kind)
    assert '<a href="https://traces.example/t1">' in read(mail, "html")
    assert "Page: https://watch.example/bot.html" in read(mail, "plain")


def test_nothing_from_outside_acts_in_a_mail(start: Start) -> None:
    server = start()
    build("email", **server.keys).send([make_message(name=f"a\r\nBcc: eve@evil.example {HOSTILE}", summary=HOSTILE)])
    (mail,) = server.mails
    assert mail.message["Bcc"] is None
    assert mail.recipients == ["ada@example.com"]
    assert "<https://evil" not in read(mail, "html")
    assert "&lt;b&gt;hi" in read(mail, "html")
    assert not {"\x1b", "\u202e"} & set(read(mail, "plain") + read(mail, "html") + mail.message["Subject"])


def test_an_alert_and_its_end_are_one_conversation(start: Start) -> None:
    server = start()
    notifier = build("email", **server.keys)
    for message in (make_message(severity="warning"), make_message(), make_end()):
        notifier.send([message])
    mails = [one.message for one in server.mails]
    assert len({one["Message-ID"] for one in mails}) == 3
    assert {one["In-Reply-To"] for one in mails} == {"<k1@example.com>"}
    assert mails[0]["Message-ID"] == "<k1-firing-warning@example.com>"


def test_alerts_that_began_together_are_one_mail_to_which_each_end_answers(start: Start) -> None:
    server = start()
    notifier = build("email", **server.keys)
    notifier.send([make_message("a"), make_message("b", name="latency above 5", severity="low")])
    notifier.send([make_end("b")])
    both, end = (one.message for one in server.mails)
    assert both["References"] == "<a@example.com> <b@example.com>"
    assert both["Subject"].startswith("[support-bot] 2 alerts, the worst critical: faithfulness below 0.700, latency")
    assert end["In-Reply-To"] == "<b@example.com>"


def test_a_mail_that_was_not_taken_is_sent_again_with_the_same_id(start: Start) -> None:
    server = start("busy", "dies")
    notifier = build("email", **server.keys)
    with pytest.raises(RagevalError, match=r"monitor.notify.email: 127.0.0.1 answered 421 too busy"):
        notifier.send([make_message()])
    with pytest.raises(RagevalError, match=r"monitor.notify.email: 127.0.0.1 could not be used"):
        notifier.send([make_message()])
    notifier.send([make_message()])
    assert len(server.mails) == 2, "the server that died had taken it"
    assert len({one.message["Message-ID"] for one in server.mails}) == 1


def test_who_has_a_mail_does_not_get_it_again_when_others_do(start: Start) -> None:
    server = start()
    server.refused = {"bob@example.com"}
    notifier = build("email", **{**server.keys, "to": ["ada@example.com", "bob@example.com"]})
    with pytest.raises(RagevalError, match=r"took the mail, but not for bob@example\.com"):
        notifier.send([make_message()])
    server.refused = set()
    notifier.send([make_message()])
    assert [one.recipients for one in server.mails] == [["ada@example.com"], ["bob@example.com"]]


@pytest.mark.parametrize("is_ssl", [False, True])
def test_it_logs_in_over_an_encrypted_connection(
    start: Start, certificate: Path, is_ssl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start(certificate=certificate, is_ssl=is_ssl)
    notifier = build("email", **server.keys, user="ada", password=Secret("right", "${secret:SMTP}"))
    with pytest.raises(RagevalError, match="certificate verify failed"):
        notifier.send([make_message()])
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    notifier.send([make_message()])
    ((_, _, _, user, is_encrypted),) = server.mails
    assert (user, is_encrypted) == ("ada", True)


def test_a_wrong_password_is_not_shown(start: Start) -> None:
    server = start()
    notifier = build("email", **server.keys, user="ada", password=Secret("s3cr3t-s3cr3t", "${secret:SMTP}"))
    with pytest.raises(RagevalError, match="535 wrong password") as raised:
        notifier.send([make_message()])
    assert "s3cr3t" not in str(raised.value)


def test_a_server_without_encryption_says_what_to_write(start: Start) -> None:
    server = start()
    with pytest.raises(RagevalError, match="offers no STARTTLS; write 'security: ssl', or 'security: none'"):
        build("email", **{**server.keys, "security": "starttls"}).send([make_message()])
    assert server.mails == []


@pytest.mark.parametrize("wrong", [{"to": ["nobody"]}, {"to": []}, {"from": "a@b\r\nBcc: c"}, {"security": "tls"},
                                   {"host": "mail.example.com", "security": "none", "password": "x"}])  # fmt: skip
def test_wrong_keys_are_refused(wrong: dict[str, Any]) -> None:
    keys = {"host": "127.0.0.1", "from": "alerts@example.com", "to": ["ada@example.com"]}
    with pytest.raises(ValidationError):
        build("email", **{**keys, **wrong})
