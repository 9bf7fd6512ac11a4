"""Count the calls refused by an endpoint with a limit per minute that it does not announce in any header.

    python benches/pacing.py [--limit 300] [--calls 900] [--window fixed|sliding] [--kinds chat embeddings system]

A server on loopback answers after 50 ms and refuses calls beyond its limit with status 429 and no `Retry-After`. Each
kind makes this many calls, 16 at a time, one kind after the other. The output shows the refused calls, their share, and
the seconds taken beside the least that the limit allows. With the defaults, a kind takes at most five minutes.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LATENCY, CONCURRENCY, MINUTE = 0.05, 16, 60.0


class Limited:
    """A server that answers a limited number of chats, embeddings and questions in each (or any) minute."""

    def __init__(self, limit: int, window: str) -> None:
        """Start the server."""
        self.answered = self.refused = 0
        self._limit, self._is_fixed = limit, window == "fixed"
        self._times: deque[float] = deque()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def take(self) -> bool:
        """Whether a call is within the limit."""
        now = time.monotonic()
        with self._lock:
            while self._times and self._is_over(self._times[0], now):
                self._times.popleft()
            if len(self._times) >= self._limit:
                self.refused += 1
                return False
            self._times.append(now)
            self.answered += 1
            return True

    def _is_over(self, moment: float, now: float) -> bool:
        return int(moment / MINUTE) < int(now / MINUTE) if self._is_fixed else moment <= now - MINUTE

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        limited = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                allowed = limited.take()
                if allowed:
                    time.sleep(LATENCY)
                content = json.dumps(reply_to(asked) if allowed else {"error": "too many requests"}).encode()
                self.send_response(200 if allowed else 429)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        return Handler


def reply_to(asked: dict[str, Any]) -> dict[str, Any]:
    """A reply of the requested kind."""
    if "messages" in asked:
        return {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    if "input" in asked:
        return {"data": [{"index": index, "embedding": [1.0, 2.0]} for index in range(len(asked["input"]))]}
    return {"answer": "because"}


def ask_chat(url: str, calls: int) -> None:
    """Ask a chat model this many questions."""
    from concurrent.futures import ThreadPoolExecutor

    from rageval_spec.data.chat import ChatRequest, Message
    from rageval_spec.models.chat import Chat, ChatNode
    from rageval_spec.plugin import Context

    model = Chat(ChatNode.model_validate({"use": "chat", "base_url": url, "model": "m"}), Context("judge"))
    with ThreadPoolExecutor(2 * CONCURRENCY) as pool:
        list(pool.map(lambda n: model.ask(ChatRequest((Message("user", f"{n}?"),))), range(calls)))


def ask_embeddings(url: str, calls: int) -> None:
    """Send this many texts to an embedding model, one per call."""
    from rageval_spec.models.http import HttpModel, HttpModelNode
    from rageval_spec.plugin import Context

    keys = {"use": "http", "base_url": url, "model": "m", "batch": 1, "concurrency": CONCURRENCY}
    HttpModel(HttpModelNode.model_validate(keys), Context("embedder")).embed([f"text {n}" for n in range(calls)])


def ask_system(url: str, calls: int) -> None:
    """Ask a system behind a URL this many questions."""
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin import Context
    from rageval_spec.systems.http import HttpSystem, HttpSystemNode

    queries = pl.DataFrame({"query_id": [f"q{n}" for n in range(calls)], "text": [f"why {n}?" for n in range(calls)]})
    answers = HttpSystem(HttpSystemNode.model_validate({"use": "http", "url": url}), Context("bot")).answer(
        Collection("questions", load_queries=lambda: queries)
    )
    failed = answers.answers["error"].drop_nulls().len()
    if failed:
        print(f"  {failed} questions failed")


KINDS = {"chat": ask_chat, "embeddings": ask_embeddings, "system": ask_system}


def main() -> None:
    """Measure, and print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--calls", type=int, default=900)
    parser.add_argument("--window", choices=["fixed", "sliding"], default="fixed")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        server = Limited(arguments.limit, arguments.window)
        start = time.monotonic()
        KINDS[kind](server.url, arguments.calls)
        seconds = time.monotonic() - start
        server.close()
        share = server.refused / (server.refused + server.answered)
        print(
            f"{kind:<11} {server.answered} answered, {server.refused} refused ({share:.1%}), {seconds:.0f} s; at least "
            f"{MINUTE * (arguments.calls / arguments.limit - 1):.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
