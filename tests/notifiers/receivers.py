"""Servers that take alerts, and alerts to send, for the tests of notifiers."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from rageval_spec import registry
from rageval_spec.data.alerts import AlertMessage, WorstAnswer
from rageval_spec.data.outcomes import Interval
from rageval_spec.plugin import Context, Notifier

FIRING = AlertMessage(
    "k1", "bot", "faithfulness below 0.7", "firing", "critical", "it fell to 0.5", 1_764_000_000.0,
    metric="faithfulness", value=0.5, interval=Interval(0.4, 0.6), bound=0.7, samples=60, window="hour",
    moved={"model": "version 2 answers since 12:00"}, page="https://watch.example/bot.html",
    worst=(WorstAnswer("t1", "Who?", "<!channel> & <http://evil.example|click>\x1b[31m", 0.0, "not in the contexts"),),
)  # fmt: skip
RESOLVED = replace(FIRING, state="resolved", ended=1_764_003_600.0, worst=())


@dataclass
class Received:
    """What a server got, and what it answers: the statuses one after the other, then 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def receive(*statuses: int, reply: bytes = b"ok") -> Iterator[Received]:
    got = Received(statuses=list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
            status = got.statuses.pop(0) if got.statuses else 200
            self.send_response(status)
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    got.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()


class _Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as a client without encryption uses."""

    def handle(self) -> None:
        self._say("220 test")
        while line := self.rfile.readline().decode("ascii", "replace").strip():
            word = line.split()[0].upper()
            if word == "DATA":
                self._say("354 go on")
                lines = []
                while (data := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(data)
                self.server.mails.append(b"".join(lines))  # type: ignore[attr-defined]
            if word == "RCPT" and "refused@" in line:
                self._say("550 no such mailbox")
                continue
            self._say("221 bye" if word == "QUIT" else "250 ok")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def receive_mail() -> Iterator[tuple[int, list[bytes]]]:
    """A mail server: its port, and the mails that it got."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox) as server:
        server.mails = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], server.mails  # type: ignore[attr-defined]
        server.shutdown()


@contextmanager
def open_notifier(word: str, keys: dict[str, Any], folder: Path = Path()) -> Iterator[Notifier[Any]]:
    plugin = registry.load("notifiers", word)
    node = plugin.node_type.model_validate({"use": word, **keys})
    made: Notifier[Any] = plugin(node, Context(word, folder))
    try:
        yield made
    finally:
        made.close()


def send(word: str, keys: dict[str, Any], *groups: Sequence[AlertMessage], folder: Path = Path()) -> None:
    with open_notifier(word, keys, folder) as notifier:
        for group in groups:
            notifier.send(group)
