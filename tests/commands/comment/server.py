"""A local server that behaves like the APIs of GitHub and GitLab, as far as comments go."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_0123456789abcdefSECRET"
PAGE = 3
"""Comments on a page, whatever a request asks for."""

Headers = Mapping[str, str]


@dataclass
class CodeHostServer:
    """The comments of pull request 7 of `owner/app` (GitHub) and of merge request 7 of the project 42 (GitLab).

    Attributes:
        comments: as the list shows them.
        user: what `/user` answers; None for a token without a user.
        refusals: statuses and headers that the next requests get, by method.
        asked: the method and the path of each request.
        deleted: numbers that are listed, but gone when they are changed.
    """

    comments: list[dict[str, Any]] = field(default_factory=list)
    user: dict[str, Any] | None = None
    refusals: dict[str, list[tuple[int, Headers]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    url: str = ""

    def add(self, body: str, **more: Any) -> int:
        """A comment of a bot, unless `more` says otherwise."""
        number = 100 + len(self.comments)
        author = {"user": {"login": "ci[bot]", "type": "Bot"}, "author": {"id": 5}, "system": False}
        self.comments.append({"id": number, "body": body, **author, **more})
        return number

    def answer(self, method: str, target: str, body: Any, headers: Headers) -> tuple[int, Any, Headers]:
        """The status, the JSON and the headers of a reply."""
        url = urlsplit(target)
        self.asked.append(f"{method} {url.path}")
        if waiting := self.refusals.get(method):
            status, more = waiting.pop(0)
            return status, {"message": f"refused {headers.get('authorization', '')}"}, more
        if TOKEN not in (headers.get("private-token", ""), headers.get("authorization", "").removeprefix("Bearer ")):
            return 401, {"message": "Bad credentials"}, {}
        if url.path == "/user":
            return (
                (403, {"message": "Resource not accessible by integration"}, {})
                if self.user is None
                else (200, self.user, {})
            )
        lists = ("/repos/owner/app/issues/7/comments", "/projects/42/merge_requests/7/notes")
        if url.path in lists:
            return self._list(url.query) if method == "GET" else self._create(body)
        one = re.fullmatch(r"(?:/repos/owner/app/issues/comments|/projects/42/merge_requests/7/notes)/(\d+)", url.path)
        wanted = "PATCH" if url.path.startswith("/repos") else "PUT"
        if one is None or method != wanted:
            return 404, {"message": "Not Found"}, {}
        return self._update(int(one[1]), body)

    def _list(self, query: str) -> tuple[int, Any, Headers]:
        page = int(parse_qs(query)["page"][0])
        rows = self.comments[(page - 1) * PAGE : page * PAGE]
        link = f'<{self.url}/elsewhere?page={page + 1}>; rel="next"'
        return 200, rows, {"Link": link} if page * PAGE < len(self.comments) else {}

    def _create(self, body: Any) -> tuple[int, Any, Headers]:
        number = self.add(body["body"])
        return 201, {"id": number, "html_url": f"https://code.example/7#{number}"}, {}

    def _update(self, number: int, body: Any) -> tuple[int, Any, Headers]:
        found = next((one for one in self.comments if one["id"] == number), None)
        if found is None or number in self.deleted:
            return 404, {"message": "Not Found"}, {}
        found["body"] = body["body"]
        return 200, {"id": number, "html_url": f"https://code.example/7#{number}"}, {}


@contextmanager
def serve() -> Iterator[CodeHostServer]:
    """A server until the end of the block."""
    state = CodeHostServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content, more = state.answer(self.command, self.path, body, headers)
            text = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**more, "Content-Type": "application/json", "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = handle_one  # noqa: N815 - names of http.server

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
