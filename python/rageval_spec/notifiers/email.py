"""`email`: mails by an SMTP server."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from rageval_spec.data.alerts import AlertMessage, identify_group
from rageval_spec.diagnostics import make_visible
from rageval_spec.drawing.alert_text import write_html, write_text, write_title
from rageval_spec.endpoints.http_server import is_local
from rageval_spec.errors import RagevalError
from rageval_spec.notifiers.shared.posting import TIMEOUT
from rageval_spec.plugin import Context, Notifier, NotifierNode
from rageval_spec.plugin.secrets import Redactor, Secret

_LONGEST_SUBJECT = 200
_PORTS = {"starttls": 587, "ssl": 465, "none": 25}


def _check_address(text: str) -> str:
    try:
        domain = Address(addr_spec=text).domain
    except (ValueError, IndexError):
        domain = ""
    if not domain or not text.isprintable() or not text.isascii():
        raise ValueError("must be an address such as alerts@example.com")
    return text


MailAddress = Annotated[str, AfterValidator(_check_address)]


class EmailNode(NotifierNode):
    """Mails by an SMTP server."""

    host: str = Field(min_length=1, description="The SMTP server: `smtp.example.com`.")
    port: int | None = Field(
        default=None, ge=1, le=65535, description="Its port. Default: 587, with `ssl` 465, with `none` 25."
    )
    security: Literal["starttls", "ssl", "none"] = Field(
        default="starttls",
        description="How the connection is encrypted. `none`: not at all, for a server on this host.",
    )
    user: Secret | None = Field(default=None, description="The user, if the server asks for one.")
    password: Secret | None = Field(default=None, description="The password of the user, as `${secret:SMTP_PASSWORD}`.")
    from_: MailAddress = Field(alias="from", description="The sender: `alerts@example.com`.")
    to: tuple[MailAddress, ...] = Field(min_length=1, description="Who gets the mails: `[ada@example.com]`.")

    @model_validator(mode="after")
    def _check_password(self) -> EmailNode:
        if self.security == "none" and self.password is not None and not is_local(self.host):
            raise ValueError("with 'security: none' the password could be read on its way; write starttls or ssl")
        return self


class Email(Notifier[EmailNode]):
    """Sends one mail, as plain text and HTML, for all alerts that began at the same look.

    Mail programs show an alert and its end as one conversation. A mail that is sent again has the same Message-ID.
    """

    node_type = EmailNode
    known_as = ("smtp", "mail")
    patience = 120.0

    def __init__(self, node: EmailNode, context: Context) -> None:
        """Connect to nothing yet."""
        super().__init__(node, context)
        self._taken: dict[str, set[str]] = {}  # who has a mail that others are still to get

    def send(self, messages: Sequence[AlertMessage]) -> None:
        mail, name = self._write(messages), identify_group(messages)
        missing = [one for one in self.node.to if one not in self._taken.get(name, ())]
        try:
            server = self._connect()
            try:
                if self.node.user is not None:
                    server.login(self.node.user.reveal(), self.node.password.reveal() if self.node.password else "")
                refused = server.send_message(mail, self.node.from_, missing)
            finally:
                with suppress(OSError, smtplib.SMTPException):
                    server.quit()
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise self._fail(describe_failure(error)) from None
        if refused:
            self._taken.setdefault(name, set()).update(set(missing) - set(refused))
            raise self._fail(f"took the mail, but not for {', '.join(refused)}")
        self._taken.pop(name, None)

    def _connect(self) -> smtplib.SMTP:
        """A server that is ready for mails, or to log in."""
        node = self.node
        port = node.port or _PORTS[node.security]
        trusted = None if node.security == "none" else ssl.create_default_context()
        if node.security == "ssl":
            return smtplib.SMTP_SSL(node.host, port, timeout=TIMEOUT, context=trusted)
        server = smtplib.SMTP(node.host, port, timeout=TIMEOUT)
        if node.security == "starttls":
            try:
                server.starttls(context=trusted)
            except BaseException:
                server.close()
                raise
        return server

    def _write(self, messages: Sequence[AlertMessage]) -> EmailMessage:
        domain = self.node.from_.rpartition("@")[2]
        mail = EmailMessage()
        title = write_title(messages)
        mail["Subject"] = title if len(title) <= _LONGEST_SUBJECT else f"{title[:_LONGEST_SUBJECT]}…"
        mail["From"], mail["To"], mail["Date"] = self.node.from_, ", ".join(self.node.to), formatdate()
        mail["Message-ID"] = f"<{identify_group(messages)}@{domain}>"
        # No mail has this id: all mails of an alert are answers to the alert itself, as GitHub's are to an issue.
        alerts = [f"<{one.key}@{domain}>" for one in messages]
        mail["In-Reply-To"], mail["References"] = alerts[0], " ".join(alerts)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(write_text(messages))
        mail.add_alternative(write_html(messages), subtype="html")
        return mail

    def _fail(self, told: str) -> RagevalError:
        secrets = [one.reveal() for one in (self.node.user, self.node.password) if one is not None]
        return RagevalError(f"{self.where}: {self.node.host} {make_visible(Redactor(secrets).redact(told))}")


def describe_failure(error: Exception) -> str:
    """What a server said, or why it could not be reached: the rest of a sentence that begins with its name."""
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return f"answered {error.smtp_code} {' '.join(text.split())[:200]}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"took the mail for nobody: {', '.join(error.recipients)} refused"
    if isinstance(error, smtplib.SMTPNotSupportedError) and "STARTTLS" in str(error):
        return "offers no STARTTLS; write 'security: ssl', or 'security: none' for a server on this host"
    return f"could not be used: {' '.join(str(error).split())[:200] or type(error).__name__}"


PLUGIN = Email
