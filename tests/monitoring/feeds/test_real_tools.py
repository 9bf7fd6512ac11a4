"""Phoenix and MLflow themselves: a trace is read once it has ended, also one that began long before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.endpoints.service import Service
from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from rageval_spec.exchange.shared.spans.spans import Span
from rageval_spec.monitoring.assembly import open_feed
from rageval_spec.monitoring.feeds.contract import Feed
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.plugin import Context
from rageval_spec.plugin.secrets import Secret
from tests.exchange.mlflow.test_real_mlflow import REQUIREMENT as MLFLOW
from tests.exchange.otel.rotel import free_port
from tests.exchange.peer_server import run_server
from tests.exchange.phoenix.test_real_phoenix import REQUIREMENT as PHOENIX
from tests.monitoring.feeds.polling import judge_due, list_questions, poll
from tests.monitoring.feeds.test_spans import root, step
from tests.monitoring.seen_traces import BEGAN, open_ledger

SETTLE = 60
MINUTE = 60


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "history")


@pytest.fixture(scope="module")
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
    with run_server("phoenix", PHOENIX, ["arize-phoenix", "serve"], f"{url}/healthz", folder, settings):
        yield url


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/m.db", "--artifacts-destination", str(folder / "artifacts")]
    settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with run_server("mlflow", MLFLOW, command, f"{url}/health", folder, settings):
        yield url


def send(url: str, *spans: Span, headers: dict[str, Secret] | None = None, project: str = "") -> None:
    named = [one._replace(resource={"openinference.project.name": project}) for one in spans]
    with Service(url, "test", headers=headers) as service:
        service.send("/v1/traces", encode_spans(named), "application/x-protobuf")


def open_tool(word: str, folder: Path, ledger: Ledger, **block: Any) -> Feed:
    plugin = registry.load("systems", word)
    system = plugin(plugin.node_type(use=word, **block), Context("live", folder))
    return open_feed("spec.yaml", "live", system, SETTLE, ledger)


def watch(feed: Feed, ledger: Ledger, begin: float, minutes: int) -> dict[str, str | None]:
    """What is judged in so many minutes."""
    judged: dict[str, str | None] = {}
    for minute in range(minutes):
        poll(feed, ledger, begin + minute * MINUTE)
        judged |= judge_due(ledger, begin + minute * MINUTE)
    return judged


def finish(span: Span, seconds: float) -> Span:
    return span._replace(end=span.start + int(seconds * 1e9))


def test_phoenix_is_watched(phoenix: str, tmp_path: Path, ledger: Ledger) -> None:
    def give(*spans: Span) -> None:
        before = len(list_spans(phoenix))
        send(phoenix, *spans, project="watched")
        for _ in range(200):  # Phoenix writes spans a moment after it took them
            if len(list_spans(phoenix)) >= before + len(spans):
                return

    give(root(9, began=BEGAN - 10), step(1, began=BEGAN))
    feed = open_tool("phoenix", tmp_path, ledger, url=phoenix, project="watched")
    assert watch(feed, ledger, BEGAN + 20, 3) == {f"{9:032x}": "Ada."}
    assert feed.remarks()[-1] == "1 trace has not ended yet"
    give(finish(root(1, began=BEGAN), 200))
    give(finish(root(2, answer="after 90 minutes", began=BEGAN - 5000), 5400))
    judged = watch(feed, ledger, BEGAN + 210, 40)
    assert judged == {f"{1:032x}": "Ada.", f"{2:032x}": "after 90 minutes"}
    assert ledger.count_traces() == 3


def list_spans(url: str) -> list[Any]:
    try:
        with Service(url, "test") as service:
            return list(service.get("/v1/projects/watched/spans", [("limit", "100")])["data"])
    except Exception:
        return []


def test_mlflow_is_watched(mlflow: str, tmp_path: Path, ledger: Ledger) -> None:
    with Service(mlflow, "test") as service:
        made = service.post("/api/2.0/mlflow/experiments/create", {"name": "watched"})
    headers = {"x-mlflow-experiment-id": Secret(str(made["experiment_id"]))}
    send(mlflow, root(9, began=BEGAN - 10), step(1, began=BEGAN), headers=headers)
    feed = open_tool("mlflow", tmp_path, ledger, url=mlflow, experiment="watched")
    assert watch(feed, ledger, BEGAN + 20, 3) == {f"tr-{9:032x}": "Ada."}
    assert feed.remarks()[-1] == "1 trace has not ended yet"
    send(mlflow, finish(root(1, began=BEGAN), 200), headers=headers)
    send(mlflow, finish(root(2, answer="after 90 minutes", began=BEGAN - 5000), 5400), headers=headers)
    judged = watch(feed, ledger, BEGAN + 210, 40)
    assert judged == {f"tr-{1:032x}": "Ada.", f"tr-{2:032x}": "after 90 minutes"}
    assert sorted(list_questions(ledger)) == [f"tr-{number:032x}" for number in (1, 2, 9)]
