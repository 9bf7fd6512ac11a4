"""The engine `ray`, on two nodes of real Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, RunOutcome, run
from tests.endpoints.api_server import ApiServer, Asked
from tests.engines.ray_cluster import TwoNodes, list_workers
from tests.models.chat_endpoint import ChatServer
from tests.models.endpoint import Answer
from tests.pipeline.test_interrupted_judging import Judging

pytest.importorskip("ray", reason="Ray is not installed: pip install 'rageval-spec[ray]'")

ROWS = 48


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    cluster = TwoNodes()
    yield cluster
    cluster.close()


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    server = ChatServer(Judging())
    yield server
    server.close()


class App:
    """A system behind a URL. It counts the answers that it gave to each question; while `gate` is shut, it gives none.

    `most` is the largest number of questions that were under way at the same time.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.given: Counter[str] = Counter()
        self.times: list[float] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = 0
        self.most = 0
        self.open_for = 10**9
        self.seconds = seconds
        self._lock = threading.Lock()
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    def reply(self, asked: Asked) -> Answer:
        question = asked.content["question"]
        with self._lock:
            self.times.append(time.monotonic())
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            if len(self.times) > self.open_for:
                self.gate.clear()
        time.sleep(self.seconds)
        self.gate.wait(60)
        with self._lock:
            self.waiting -= 1
            self.given[question] += 1
        return Answer({"answer": f"It is {question.split()[-1]} It is odd.", "contexts": [f"{question} yes", "no"]})

    def shut_after(self, count: int) -> None:
        self.open_for = count

    def release(self) -> None:
        self.open_for = 10**9
        self.gate.set()

    def close(self) -> None:
        self.release()
        self._server.close()


@pytest.fixture
def app() -> Iterator[App]:
    server = App()
    yield server
    server.close()


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a spec with its files into a folder of this name."""

    def write(name: str, **sections: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        rows = [
            {
                "id": f"r{row}",
                "question": f"What is number {row}?",
                "answer": f"It is {row}. It is odd.",
                "contexts": [f"Number {row} is {row}.", f"{row} is a number."],
                "reference": f"It is {row}.",
            }
            for row in range(ROWS)
        ]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        spec = {
            "version": 1,
            "name": "rows",
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
            "metrics": ["token_f1", {"use": "faithfulness", "judge": "overlap"}],
            "reports": ["json"],
            "history": "none",
            **sections,
        }
        path = folder / "spec.yaml"
        path.write_text(yaml.safe_dump(spec))
        return path

    return write


def judged_by(server: ChatServer) -> dict[str, Any]:
    """The sections of a spec whose judge is behind an endpoint."""
    return {
        "models": {"chat": {"use": "chat", "base_url": server.url, "model": "tiny", "retries": 0}},
        "judges": {"judge": {"use": "claims", "model": "chat"}},
        "metrics": [{"use": "faithfulness", "judge": "judge"}, {"use": "context_precision", "judge": "judge"}],
    }


def asks(app: App, **keys: Any) -> dict[str, Any]:
    return {"systems": {"bot": {"use": "http", "url": app.url, "retries": 0, **keys}}}


def evaluate(spec: Path, out: str, engine: Any, **options: Any) -> tuple[RunOutcome, dict[str, bytes]]:
    """Evaluate with an engine and a store of its own; the outcome, and the bytes of the results."""
    settings = {"store": spec.parent / f"store-{out}", **options}
    folder = spec.parent / out
    outcome = run(spec, Options(output=folder, overrides={"engine": engine}, **settings))  # type: ignore[arg-type]
    return outcome, read(folder)


def read(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def on(nodes: TwoNodes) -> dict[str, Any]:
    return {"use": "ray", "address": nodes.address}


def test_files_give_the_bytes_of_the_local_engine(nodes: TwoNodes, write: Write) -> None:
    spec = write("files")
    local = evaluate(spec, "local", "local")[1]
    assert evaluate(spec, "ray", on(nodes))[1] == local
    assert len(local) > 4
