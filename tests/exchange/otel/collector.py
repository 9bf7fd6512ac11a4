"""A collector of our own that keeps what it is sent, as the package opentelemetry-proto reads it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

HOW = "needs the package opentelemetry-proto: uv pip install opentelemetry-proto"


@dataclass
class Collector:
    """What came: the paths, and the parsed requests by signal; `answers` are statuses and bodies to give first."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)

    def spans(self) -> list[Any]:
        found = (one for request in self.requests for one in getattr(request, "resource_spans", ()))
        return [span for one in found for scope in one.scope_spans for span in scope.spans]

    def records(self) -> list[Any]:
        found = (one for request in self.requests for one in getattr(request, "resource_logs", ()))
        return [record for one in found for scope in one.scope_logs for record in scope.log_records]

    def metrics(self) -> dict[str, list[Any]]:
        found = (one for request in self.requests for one in getattr(request, "resource_metrics", ()))
        metrics = (metric for one in found for scope in one.scope_metrics for metric in scope.metrics)
        return {metric.name: list(metric.gauge.data_points) for metric in metrics}


def attributes(found: Any) -> dict[str, Any]:
    """The attributes of a parsed span, event, record or point."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in found.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens while this context lasts."""
    kinds: dict[str, Any] = {}
    for signal, name in (("trace", "Trace"), ("logs", "Logs"), ("metrics", "Metrics")):
        module: Any = pytest.importorskip(f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2", reason=HOW)
        kinds[f"/v1/{signal}s".replace("ss", "s")] = getattr(module, f"Export{name}ServiceRequest")
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                content = gzip.decompress(content)
            collector.paths.append(self.path)
            collector.headers.append(dict(self.headers))
            status, body = collector.answers.pop(0) if collector.answers else (200, b"")
            if status == 200:
                collector.requests.append(kinds[self.path].FromString(content))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
