"""`email`: sends alerts by SMTP."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from html import escape
from typing import Literal

from pydantic import Field

from rageval_spec.data.alerts import AlertMessage
from rageval_spec.drawing.alert_text import name_alerts, render_alerts
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Notifier, NotifierNode
from rageval_spec.plugin.secrets import Secret

_DOMAIN = "rageval-spec.invalid"
_TIMEOUT = 20.0


class EmailNode(NotifierNode):
    """Sends alerts by SMTP."""

    host: str = Field(min_length=1, description="The mail server.")
    port: int | None = Field(
        default=None, ge=1, le=65_535, description="Its port. Default: 587; 465 with `security: tls`, 25 with `none`."
    )
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="starttls: encrypt after the greeting; tls: from the start; none: not at all."
    )
    user: str | None = Field(default=None, description="The name to log in with. Default: none.")
    password: Secret | None = Field(default=None, description="The password, as `${secret:SMTP_PASSWORD}`.")
    sender: str = Field(alias="from", min_length=3, description="The sender: `monitor@example.org`.")
    to: tuple[str, ...] = Field(min_length=1, description="Who gets the mail.")


class Email(Notifier[EmailNode]):
    """Sends one mail for a group of alerts, as text and as HTML. The mail that ends an alert answers the one before."""

    node_type = EmailNode
    known_as = ("smtp", "mail")

    def send(self, messages: Sequence[AlertMessage]) -> None:
        try:
            with self._connect() as server:
                if self.node.security == "starttls":
                    server.starttls()
                if self.node.user is not None:
                    server.login(self.node.user, self.node.password.reveal() if self.node.password else "")
                server.send_message(self._write(messages))
        except (smtplib.SMTPException, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise RagevalError(f"notify.{self.name}: {self.node.host} did not take the mail: {reason}") from None

    def _connect(self) -> smtplib.SMTP:
        usual = {"starttls": 587, "tls": 465, "none": 25}
        port = self.node.port or usual[self.node.security]
        kind = smtplib.SMTP_SSL if self.node.security == "tls" else smtplib.SMTP
        return kind(self.node.host, port, timeout=_TIMEOUT)

    def _write(self, messages: Sequence[AlertMessage]) -> EmailMessage:
        first, text = messages[0], render_alerts(messages)
        mail = EmailMessage()
        mail["Subject"] = name_alerts(messages)
        mail["From"] = self.node.sender
        mail["To"] = ", ".join(self.node.to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = f"<{first.key}.{first.state}.{first.severity}@{_DOMAIN}>"
        if first.state == "resolved":
            mail["In-Reply-To"] = mail["References"] = f"<{first.key}.firing.{first.severity}@{_DOMAIN}>"
        mail.set_content(text)
        mail.add_alternative(f"<pre>{escape(text)}</pre>", subtype="html")
        return mail


PLUGIN = Email
