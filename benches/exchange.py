"""Import of many traces: how long it takes, and how much memory.

    python benches/exchange.py [--traces 100000] [--format protobuf|json] [--keep FOLDER]

Writes a file of spans as a collector would: each trace has a question, a retrieval of five documents, a call of a model
and an HTTP request. Then runs `rageval-spec import otel` on it. Exits with 1 if that takes more than 60 s for
100,000 traces (in proportion for more), or more than 500 MB.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.spans import SECOND, Span

MOST_SECONDS, MOST_MEGABYTES, OF = 60.0, 500, 100_000
BEGIN = 1_772_366_400 * SECOND
BATCH = 50
WORDS = [f"word{number}" for number in range(5000)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=OF)
    parser.add_argument("--format", choices=("protobuf", "json"), default="protobuf")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        path = folder / ("spans.otlp" if options.format == "protobuf" else "spans.jsonl")
        write_file(path, options.traces, options.format)
        print(f"{options.traces:,} traces in {path.stat().st_size / 1e6:,.0f} MB of {options.format}")
        seconds, processor, megabytes = measure(path, folder / "traces.jsonl")
    print(f"imported in {seconds:.1f} s ({processor:.1f} s of processor time), {megabytes:,.0f} MB of memory")
    sys.exit(seconds > MOST_SECONDS * max(1.0, options.traces / OF) or megabytes > MOST_MEGABYTES)


def measure(path: Path, output: Path) -> tuple[float, float, float]:
    """Seconds, seconds of the processor, and the most megabytes of memory of an import."""
    begun = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "rageval_spec",
        "import",
        "otel",
        str(path),
        "-o",
        str(output),
        "--force",
        "--quiet",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_file(path: Path, traces: int, form: str) -> None:
    with path.open("wb") as file:
        for first in range(0, traces, BATCH):
            spans = [span for number in range(first, min(first + BATCH, traces)) for span in make_trace(number)]
            if form == "json":
                file.write(json.dumps(to_json(spans)).encode() + b"\n")
            else:
                data = encode_spans(spans)
                file.write(len(data).to_bytes(4, "big") + data)


def make_trace(number: int) -> Iterator[Span]:
    chance = random.Random(number)

    def text(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    trace_id, ids = f"{chance.getrandbits(127) + 1:032x}", [f"{chance.getrandbits(63) + 1:016x}" for _ in range(4)]
    question, answer, begun = text(12), text(60), BEGIN + number * SECOND
    source = {"service.name": "bot", "telemetry.sdk.language": "python"}
    asked = {"openinference.span.kind": "CHAIN", "input.value": question, "output.value": answer, "session.id": "s"}
    yield Span(trace_id, ids[0], None, "ask", begun, begun + 2 * SECOND, asked, resource=source)
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for place in range(5):
        prefix = f"retrieval.documents.{place}.document."
        found |= {f"{prefix}id": f"d{chance.randrange(10**6)}", f"{prefix}content": text(80)}
        found |= {f"{prefix}score": chance.random(), f"{prefix}metadata": '{"lang": "en", "page": 3}'}
    yield Span(trace_id, ids[1], ids[0], "search", begun + 1, begun + SECOND, found, resource=source)
    called = {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 600,
        "llm.token_count.completion": 90, "llm.cost.total": 0.001, "input.value": text(100), "output.value": answer,
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": answer,
    }  # fmt: skip
    yield Span(trace_id, ids[2], ids[0], "chat", begun + 2, begun + SECOND, called, resource=source)
    sent = {"http.request.method": "POST", "http.response.status_code": 200, "server.address": "api.example.com"}
    yield Span(trace_id, ids[3], ids[2], "POST", begun + 3, begun + SECOND, sent, resource=source, kind=3)


def to_json(spans: list[Span]) -> dict[str, Any]:
    written = [
        {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.parent_id or "",
            "name": span.name,
            "startTimeUnixNano": str(span.start),
            "endTimeUnixNano": str(span.end),
            "attributes": attributes_of(span.attributes),
        }
        for span in spans
    ]
    resource_of = {"attributes": attributes_of(spans[0].resource)}
    return {"resourceSpans": [{"resource": resource_of, "scopeSpans": [{"spans": written}]}]}


def attributes_of(found: Any) -> list[dict[str, Any]]:
    keys = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [{"key": key, "value": {keys[type(value)]: value}} for key, value in found.items()]


if __name__ == "__main__":
    main()
