"""Spans to and from a real Phoenix."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.otel.source import OtelFiles, OtelFilesNode
from rageval_spec.plugin import Context
from tests.exchange.otel.rotel import free_port
from tests.exchange.otel.sdk import send_rag
from tests.exchange.otel.test_target import AGGREGATES, send
from tests.exchange.peers import PEERS
from tests.exchange.traced_evaluation import evaluate

PATIENCE = 120


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Phoenix without any project."""
    program = Path(os.environ.get(PEERS, "")) / "phoenix" / "bin" / "arize-phoenix"
    if PEERS not in os.environ or not program.is_file():
        make = "uv venv $PEERS/phoenix && uv pip install --python $PEERS/phoenix/bin/python arize-phoenix"
        pytest.skip(f"needs Phoenix in an environment of its own: {make}; then set {PEERS} to the folder $PEERS")
    port, grpc = free_port(), free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path_factory.mktemp("phoenix")),
        "PHOENIX_SQL_DATABASE_URL": "sqlite:///:memory:", "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc), "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }  # fmt: skip
    server = subprocess.Popen(
        [program, "serve"], env=os.environ | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            assert server.poll() is None, "Phoenix ended"
            with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=1):
                break
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return json.load(reply)


def _await_spans(url: str, ids: list[str], count: int) -> list[Any]:
    """The spans of these traces once there are so many; they appear a moment after they were sent."""
    found: list[Any] = []
    until = time.monotonic() + 30
    while len(found) < count and time.monotonic() < until:
        time.sleep(0.1)
        with suppress(OSError):
            page = _get(url)["data"]
            found = [span for span in page if span.get("trace_id", span.get("context", {}).get("trace_id")) in ids]
    return found


@pytest.mark.parametrize("form", ["spans", "spans/otlpv1"])
def test_values_stand_in_the_traces_that_the_sdk_sent(phoenix: str, tmp_path: Path, form: str) -> None:
    ids = send_rag(f"{phoenix}/v1/traces")
    page = _await_spans(f"{phoenix}/v1/projects/default/{form}?limit=1000", ids, 9)
    (tmp_path / "page.json").write_text(json.dumps({"data": page, "next_cursor": None}))
    traces = list(OtelFiles(OtelFilesNode(path=str(tmp_path / "page.json")), Context("otel", Path())).read())
    assert {(trace.question, trace.answer) for trace in traces} == {
        (f"What is {number}?", f"It is {number}.") for number in range(3)
    }
    assert all(len(trace.documents or ()) == 1 and trace.input_tokens == 20 for trace in traces)

    for _ in range(2):  # the second time with the same ids
        assert send(evaluate(traces), phoenix, signals=("traces",)).startswith("sent 3 spans")
    time.sleep(1)
    spans = _await_spans(f"{phoenix}/v1/projects/default/spans?limit=1000&span_kind=EVALUATOR", ids, 3)
    assert len(spans) == 3
    names = [event["attributes"]["gen_ai.evaluation.name"] for span in spans for event in span["events"]]
    assert sorted(names) == ["faithfulness"] * 3 + ["ndcg@10"] * 3


def test_a_phoenix_that_takes_no_metrics_is_an_error(phoenix: str) -> None:
    with pytest.raises(RagevalError, match="leave metrics out of signals"):
        send(evaluate([], aggregates=AGGREGATES), phoenix, signals=("metrics",))
