"""Records an application: it is asked all questions, and its spans and the rows that they should become are written."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import os
import re
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.exchange.apps.corpus import ALL, DOCUMENTS
from tests.exchange.apps.endpoint import MODEL, Endpoint

FOLDER = Path(__file__).parent.parent / "golden_apps"
_IDS = ("traceId", "spanId", "parentSpanId")
_DROPPED = ("host.", "os.", "process.")


class Recording:
    """One application under way.

    Attributes:
        url: the model's endpoint, as clients of OpenAI take it.
        traces_url: where its exporter sends spans.
        unrecorded: columns of the rows that its instrumentation does not record, and so nobody can read.
    """

    model = MODEL
    key = "sk-none"

    def __init__(self, name: str, packages: Sequence[str], unrecorded: Sequence[str] = ()) -> None:
        self.name, self.packages, self.unrecorded = name, tuple(packages), tuple(unrecorded)
        self.endpoint = Endpoint()
        self.url, self.traces_url = f"{self.endpoint.url}/v1", f"{self.endpoint.url}/v1/traces"
        self.rows: list[dict[str, Any]] = []
        self._provider: Any = None
        os.environ.update(OPENAI_API_KEY=self.key, OPENAI_BASE_URL=self.url, OPENAI_API_BASE=self.url)

    def start_tracing(self, *, is_global: bool = True) -> Any:
        """OpenTelemetry's own provider and exporter, which send to this recording."""
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor

        self._provider = TracerProvider(resource=Resource({"service.name": self.name}))
        self._provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(self.traces_url)))
        if is_global:
            trace.set_tracer_provider(self._provider)
        return self._provider

    def start_traceloop(self) -> None:
        """OpenLLMetry's own setup, with the same exporter."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from traceloop.sdk import Traceloop

        os.environ["TRACELOOP_TELEMETRY"] = "false"
        exporter = OTLPSpanExporter(self.traces_url)
        Traceloop.init(self.name, exporter=exporter, disable_batch=True, telemetry_enabled=False)

    def ask(self, answer: Callable[[str], Any], *, price: Callable[[int, int, int], float] | None = None) -> None:
        """Ask the application all questions, and keep what it should say. A failure is kept as one.

        Args:
            answer: the application; what it returns may be awaitable, then one loop serves all questions.
            price: what an answer costs by its input tokens, its output tokens and the number of calls.
        """
        with asyncio.Runner() as loop:
            self._ask(answer, price, loop)

    def _ask(self, answer: Callable[[str], Any], price: Any, loop: asyncio.Runner) -> None:
        for asked in ALL:
            said: Any = None
            failed = None
            try:
                found = answer(asked.question)
                said = loop.run(_wait(found)) if inspect.isawaitable(found) else found
            except Exception as error:
                failed = type(error).__name__
            assert (asked.answer or None) == said, (asked.question, said, failed)
            spent = self.endpoint.spent.get(asked.question, [None, None, None])
            row = {
                "question": asked.question,
                "answer": said,
                "contexts": [DOCUMENTS[name] for name in asked.found],
                "input_tokens": spent[0],
                "output_tokens": spent[1],
                "failed": failed is not None,
            }
            if price is not None and spent[0] is not None:
                row["cost"] = round(price(*spent), 12)
            self.rows.append({key: value for key, value in row.items() if key not in self.unrecorded})
            time.sleep(0.01)

    def write(self) -> None:
        from google.protobuf.json_format import MessageToDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        if self._provider is not None:
            self._provider.shutdown()
        spans = [one for content in self.endpoint.requests
                 for one in MessageToDict(ExportTraceServiceRequest.FromString(content))["resourceSpans"]]  # fmt: skip
        write_golden(self.name, self.packages, self.rows, {"resourceSpans": _join(spans)}, self.endpoint.url)


async def _wait(said: Any) -> Any:
    return await said


def write_golden(
    name: str, packages: Sequence[str], rows: Sequence[Any], spans: Any, url: str, tool: str = "otel"
) -> None:
    """Write what was sent, without a trace of this machine, and the rows that it should become."""
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(_clean(spans), ensure_ascii=False, separators=(",", ":")).replace(url, "http://localhost:4000")
    (FOLDER / f"{name}.spans.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    versions = {package: version(package) for package in packages}
    expected = {"tool": tool, "packages": versions, "rows": list(rows)}
    (FOLDER / f"{name}.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n")
    print(f"{name}: {len(rows)} rows, {len(text):,} characters of spans")


def _join(found: Sequence[Any]) -> list[Any]:
    """Requests of one span each as one: the spans of a scope stand together."""
    resources: dict[str, tuple[Any, dict[str, Any]]] = {}
    for one in found:
        resource = {"attributes": [
            attribute for attribute in one.get("resource", {}).get("attributes", ())
            if not attribute["key"].startswith(_DROPPED)
        ]}  # fmt: skip
        _, scopes = resources.setdefault(json.dumps(resource, sort_keys=True), (resource, {}))
        for scope in one["scopeSpans"]:
            kept = scopes.setdefault(json.dumps(scope.get("scope")), {"scope": scope.get("scope", {}), "spans": []})
            kept["spans"] += scope["spans"]
    return [{"resource": resource, "scopeSpans": list(scopes.values())} for resource, scopes in resources.values()]


def _clean(found: Any) -> Any:
    """Ids as OTLP's JSON has them, and paths without the folders of this machine."""
    if isinstance(found, list):
        return [_clean(one) for one in found]
    if isinstance(found, dict):
        if found.get("key") == "exception.stacktrace":
            return {**found, "value": {"stringValue": "Traceback (most recent call last): ..."}}
        return {key: b64decode(value).hex() if key in _IDS else _clean(value) for key, value in found.items()}
    if isinstance(found, str):
        for folder in (sys.prefix, sys.base_prefix, str(Path.cwd()), str(Path.home())):
            found = found.replace(folder, "")
        return re.sub(r"0x[0-9a-f]{8,}", "0x7f0000000000", found)
    return found


@contextmanager
def recording(name: str, packages: Sequence[str], unrecorded: Sequence[str] = ()) -> Iterator[Recording]:
    """An application under way; its golden files are written at the end."""
    run = Recording(name, packages, unrecorded)
    yield run
    run.write()
    run.endpoint.close()
