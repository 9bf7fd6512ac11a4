"""The whole loop with real parts: OpenTelemetry's SDK, a monitor of its own process, Alertmanager and Phoenix.

An application gets worse, people are paged, it is mended, the alert ends, and an answer of the bad hour becomes a
labelled question of the golden set.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from rageval_spec.errors import PASSED
from tests.command_line import invoke, start
from tests.exchange.otel.rotel import free_port
from tests.exchange.peer_server import run_server
from tests.exchange.peers import run_peer
from tests.exchange.phoenix.test_real_phoenix import REQUIREMENT
from tests.notifiers.test_alertmanager import RealAlertmanager

PATIENCE = 60.0
SPEC = """
version: 1
name: support
systems: {{live: {{use: otel, listen: "127.0.0.1:{receiver}"}}}}
metrics: [{{use: faithfulness, judge: overlap}}]
monitor:
  every: 1s
  settle: 1s
  serve: 127.0.0.1:{metrics}
  windows: [{{name: last, queries: 20}}]
  alerts: [{{metric: faithfulness, warning: 0.8, window: last}}, coverage]
  notify: [{{use: alertmanager, url: "{alertmanager}"}}]
  send: [{{use: phoenix, url: "{phoenix}"}}]
"""
GOLDEN = """
version: 1
name: golden
datasets: {golden: {use: jsonl, path: golden.jsonl}}
systems: {production: {use: file, path: golden.jsonl}}
metrics: [{use: faithfulness, judge: overlap}]
slices: [why]
"""
APPLICATION = """
import json, sys
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
urls, first, count, answer = map(json.loads, sys.argv[1:])
provider = TracerProvider(resource=Resource.create({"openinference.project.name": "support"}))
for url in urls:
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url + "/v1/traces")))
tracer = provider.get_tracer("application")
ids = []
for i in range(first, first + count):
    asked = {"openinference.span.kind": "CHAIN", "input.value": f"When was order {i} sent?"}
    with tracer.start_as_current_span("answer", attributes=asked) as root:
        found = {"openinference.span.kind": "RETRIEVER", "input.value": f"order {i}",
                 "retrieval.documents.0.document.content": f"Order {i} was sent on Monday from Leipzig."}
        tracer.start_span("retrieve", attributes=found).end()
        root.set_attribute("output.value", answer.format(i))
        ids.append(format(root.get_span_context().span_id, "016x"))
provider.shutdown()
print(json.dumps(ids))
"""
GOOD, BAD = "Order {} was sent on Monday from Leipzig.", "Refunds take fourteen working days by bank transfer."


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[RealAlertmanager]:
    with closing(RealAlertmanager(tmp_path)) as manager:
        yield manager


@pytest.fixture
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_SQL_DATABASE_URL": "sqlite:///:memory:",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with run_server("phoenix", REQUIREMENT, ["arize-phoenix", "serve"], f"{url}/healthz", folder, settings):
        yield url


class Production:
    """An application that sends its traces to Phoenix and to a monitor, which runs until the block ends."""

    def __init__(self, folder: Path, phoenix: str, alertmanager: RealAlertmanager) -> None:
        receiver, metrics = free_port(), free_port()
        self.spec = folder / "spec.yaml"
        self.spec.write_text(
            SPEC.format(receiver=receiver, metrics=metrics, alertmanager=alertmanager.url, phoenix=phoenix)
        )
        self.phoenix, self.alertmanager = phoenix, alertmanager
        self._urls, self._metrics, self._sent = [phoenix, f"http://127.0.0.1:{receiver}"], metrics, 0
        self._monitor = start("monitor", "run", self.spec)
        self.wait_for("the monitor is ready", lambda: fetch(f"http://127.0.0.1:{metrics}/ready") is not None)

    def answer(self, count: int, answer: str) -> list[str]:
        """The ids of the root spans of so many questions, each answered in this way."""
        ids: list[str] = run_peer("phoenix", REQUIREMENT, APPLICATION, self._urls, self._sent, count, answer)
        self._sent += count
        return ids

    def count(self, state: str) -> float:
        page = (fetch(f"http://127.0.0.1:{self._metrics}/metrics") or b"").decode()
        rows = [line for line in page.splitlines() if line.startswith("rageval_traces{") and f'state="{state}"' in line]
        return sum(float(line.rpartition(" ")[2]) for line in rows)

    def list_scores(self, span_id: str) -> list[dict[str, Any]]:
        found = fetch(f"{self.phoenix}/v1/projects/support/span_annotations?span_ids={quote(span_id)}")
        rows: list[dict[str, Any]] = json.loads(found or b'{"data": []}')["data"]
        return [one for one in rows if one["name"] == "faithfulness"]

    def wait_for(self, what: str, is_true: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not is_true():
            assert self._monitor.poll() is None, self._monitor.communicate()
            assert time.monotonic() < until, f"{what}: not after {PATIENCE:g} seconds"
            time.sleep(0.2)

    def close(self) -> str:
        """Stop the monitor gracefully; what it wrote."""
        self._monitor.send_signal(signal.SIGTERM)
        try:
            out, error = self._monitor.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._monitor.kill()
            raise
        assert self._monitor.returncode == PASSED, error
        return out + error


def fetch(url: str) -> bytes | None:
    """What is at a URL; None if nobody answers, or not with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return bytes(reply.read())
    except OSError:
        return None


def test_a_drop_is_found_told_mended_and_becomes_a_labelled_question(
    tmp_path: Path, phoenix: str, alertmanager: RealAlertmanager
) -> None:
    with closing(Production(tmp_path, phoenix, alertmanager)) as production:
        production.answer(30, GOOD)
        production.wait_for("30 answers are judged", lambda: production.count("judged") == 30)
        assert alertmanager.alerts() == []

        bad = production.answer(30, BAD)
        production.wait_for("the alert fires", lambda: bool(alertmanager.alerts()))
        (alert,) = alertmanager.alerts()
        assert alert["labels"]["metric"] == "faithfulness" and "Refunds" in alert["annotations"]["worst_answers"]
        production.wait_for("Phoenix has the scores", lambda: all(production.list_scores(one) for one in bad))
        assert {row["result"]["score"] for one in bad for row in production.list_scores(one)} == {0.0}

        production.answer(60, GOOD)
        production.wait_for("the alert is resolved", lambda: alertmanager.alerts() == [])
        assert production.count("judged") == 120 and production.count("waiting") == 0
    label_collected(tmp_path, production.spec)


def label_collected(folder: Path, spec: Path) -> None:
    """An answer of the bad hour is collected and labelled, and the golden set has what a person said of it."""
    done = invoke("monitor", "collect", spec, "-o", folder / "golden.jsonl", "--limit", "10")
    assert done.exit_code == PASSED, done.output
    rows = [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]
    assert len(rows) == 10 and {(row["why"], row["answer"]) for row in rows} == {("failing", BAD)}
    golden, results, form, labels = (folder / name for name in ("golden.yaml", "results", "review.csv", "labels.csv"))
    golden.write_text(GOLDEN)
    run("run", golden, "-o", results)
    run("review", "select", results, "-o", form)
    fill_in(form)
    run("review", "import", form, "-o", labels, "--results", results)
    labelled = GOLDEN.replace("judge: overlap", "judge: overlap, labels: people")
    golden.write_text(f"{labelled}labels: {{people: {{use: csv, path: labels.csv}}}}\n")
    run("run", golden, "-o", results)
    (aggregate,) = json.loads((results / "results.json").read_text())["aggregates"]
    assert aggregate["correction"]["labels"] == 10


def run(*arguments: str | Path) -> None:
    done = invoke(*arguments)
    assert done.exit_code == PASSED, done.output


def fill_in(form: Path) -> None:
    """Answer each row of a form with no, as a person would."""
    with form.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    with form.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "faithfulness [yes/no]": "no", "annotator": "ann"} for row in rows)
