"""A small SMTP server, which can fail where real ones do."""

import base64
import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import closing
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Mail(NamedTuple):
    sender: str
    recipients: list[str]
    message: EmailMessage
    user: str | None
    is_encrypted: bool


class SmtpServer:
    """Takes mails until it is closed.

    Attributes:
        failures: what goes wrong in the next sessions, one each: "busy" (refuses at once), "dies" (takes a mail and
            hangs up before it says so), "" for nothing.
        refused: recipients that it does not know.
    """

    def __init__(self, *failures: str, certificate: Path | None = None, is_ssl: bool = False) -> None:
        self.failures = list(failures)
        self.refused: set[str] = set()
        self.mails: list[Mail] = []
        self.password = "right"
        self._context = None
        self._is_ssl = is_ssl
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                with (
                    connection,
                    closing(_Session(self, connection, self.failures.pop(0) if self.failures else "")) as one,
                ):
                    one.serve()
            except OSError:
                continue

    def close(self) -> None:
        self._socket.close()

    @property
    def keys(self) -> dict[str, Any]:
        """The keys of a notifier that uses this server."""
        security = "none" if self._context is None else "ssl" if self._is_ssl else "starttls"
        return {"host": "127.0.0.1", "port": self.port, "security": security, "from": "alerts@example.com",
                "to": ["ada@example.com"]}  # fmt: skip


class _Session:
    def __init__(self, server: SmtpServer, connection: socket.socket, failure: str) -> None:
        self.server, self.failure = server, failure
        self.user: str | None = None
        self.sender, self.recipients = "", list[str]()
        self.is_encrypted = server._is_ssl
        self.use(server._context.wrap_socket(connection, True) if server._context and self.is_encrypted else connection)

    def close(self) -> None:
        self.lines.close()
        self.connection.close()

    def use(self, connection: socket.socket) -> None:
        self.connection, self.lines = connection, connection.makefile("rb")

    def say(self, *lines: str) -> None:
        self.connection.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def serve(self) -> None:
        if self.failure == "busy":
            self.say("421 too busy, password is right")
            return
        self.say("220 test")
        while line := self.lines.readline().decode().strip():
            verb, _, rest = line.partition(" ")
            if not self.answer(verb.upper(), rest):
                return

    def answer(self, verb: str, rest: str) -> bool:
        context = self.server._context
        if verb == "EHLO":
            offers = ["AUTH PLAIN", *(["STARTTLS"] if context and not self.is_encrypted else [])]
            self.say("250-test", *(f"250-{one}" for one in offers), "250 8BITMIME")
        elif verb == "STARTTLS":
            assert context is not None
            self.say("220 go")
            self.use(context.wrap_socket(self.connection, True))
            self.is_encrypted = True
        elif verb == "AUTH":
            _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
            self.user = user
            self.say("235 fine" if password == self.server.password else f"535 wrong password {password}")
        elif verb == "MAIL":
            self.sender, self.recipients = rest.partition("<")[2].partition(">")[0], []
            self.say("250 fine")
        elif verb == "RCPT":
            who = rest.partition("<")[2].partition(">")[0]
            if who in self.server.refused:
                self.say("550 unknown")
            else:
                self.recipients.append(who)
                self.say("250 fine")
        elif verb == "DATA":
            return self.take()
        elif verb == "QUIT":
            self.say("221 bye")
            return False
        else:
            self.say("250 fine")
        return True

    def take(self) -> bool:
        self.say("354 go on")
        body = b""
        while (line := self.lines.readline()) not in (b".\r\n", b""):
            body += line[1:] if line.startswith(b".") else line
        message = message_from_bytes(body, policy=policy.default)
        self.server.mails.append(Mail(self.sender, self.recipients, message, self.user, self.is_encrypted))
        if self.failure == "dies":
            return False
        self.say("250 taken")
        return True


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody trusts yet."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    path = folder / "server.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path.with_suffix(".key"), "-out", path],
        check=True, capture_output=True,
    )  # fmt: skip
    return path
