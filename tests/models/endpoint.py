"""A scripted embeddings endpoint in a thread."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXTS = ["a cat", "a longer dog", "the whole zoo"]


def vector_of(text: str) -> list[float]:
    """The vector that the endpoint's model gives a text."""
    return [float(len(text)), float(text.count("a")), 1.0]


def embeddings(texts: Sequence[str]) -> dict[str, Any]:
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": i, "embedding": vector_of(text)} for i, text in enumerate(texts)],
    }


class Answer:
    """A server's reply to a call: JSON or bytes, with a status and headers."""

    def __init__(self, content: Any, status: int = 200, **headers: str) -> None:
        self.content = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def write(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(self.status)
        for name, value in {"Content-Length": str(len(self.content)), **self.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(self.content)


class Hangup(Answer):
    """Sends the beginning of a reply and ends the connection."""

    def __init__(self, sent: int = 0) -> None:
        super().__init__(embeddings(TEXTS))
        self.sent = sent

    def write(self, handler: BaseHTTPRequestHandler) -> None:
        if self.sent:
            whole, self.content = self.content, self.content[: self.sent]
            self.headers["Content-Length"] = str(len(whole))
            super().write(handler)
        handler.close_connection = True


class Trickle(Answer):
    """Sends a byte now and then, so that no single wait is long."""

    def write(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        try:
            for _ in range(200):
                handler.wfile.write(b" ")
                time.sleep(0.02)
        except OSError:
            pass
        handler.close_connection = True


Script = Callable[[int, list[str]], Answer]


class Server:
    """An endpoint in a thread. `script` gives the answer to call number n (from 0) with these texts."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.connections = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                server.connections += 1

            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    number = len(server.calls)
                    server.calls.append(content)
                    server.headers.append(dict(self.headers.items()))
                    server.paths.append(self.path)
                server.answer(number, content).write(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        return Handler

    def answer(self, number: int, content: dict[str, Any]) -> Answer:
        return self.script(number, content["input"])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def answer_well(number: int, texts: list[str]) -> Answer:
    return Answer(embeddings(texts))
