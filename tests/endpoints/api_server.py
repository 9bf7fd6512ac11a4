"""A scripted API in a thread: any method on any path."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.models.endpoint import Answer


class Asked(NamedTuple):
    """A request: its path with the query as sent, its headers with names in lower case, and its body."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def route(self) -> str:
        """The path without the query."""
        return urlsplit(self.path).path

    @property
    def parameters(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class ApiServer:
    """Answers each request by `reply`, and keeps all requests in `asked`."""

    def __init__(self, reply: Callable[[Asked], Answer] = lambda asked: Answer({})) -> None:
        self.reply = reply
        self.asked: list[Asked] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # which waits 40 ms between the head and the body of a reply

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                server.asked.append(asked)
                server.reply(asked).write(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names of `http.server`

            def log_message(self, format: str, *args: Any) -> None:
                """Silent."""

        return Handler

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
