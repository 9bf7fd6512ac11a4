"""The whole loop over simulated days: traces in a growing file, judged, a drop found, told at a webhook, resolved."""

import http.server
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.monitoring.alerts import AlertBook
from rageval_spec.monitoring.assembly import open_monitor
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.service import MonitorLoop
from rageval_spec.spec import load
from tests.monitoring.seen_traces import BEGAN

HOUR = 3600.0
SPEC = """
version: 1
name: live-bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: overlap}, latency@p95, error_rate]
monitor:
  every: 1h
  settle: 60s
  baseline: {window: 3d}
  ab: {by: variant, metric: faithfulness}
  alerts:
    - {metric: faithfulness, warning: 0.8, critical: 0.6, window: hour}
    - {metric: faithfulness, drift: {low: 5%, medium: 10%, high: 15%}}
    - {metric: latency@p95, drift: {high: 50%}}
    - {metric: error_rate, drift: {low: 2pp, medium: 5pp, high: 10pp}}
    - coverage
  notify: [{use: webhook, url: "${secret:HOOK}"}]
"""
GOOD = "Ada Lovelace wrote the first program."


class Hook(http.server.BaseHTTPRequestHandler):
    got: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.got.extend(json.loads(self.rfile.read(int(self.headers["content-length"])))["alerts"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    class OwnHook(Hook):
        got: list[dict[str, Any]] = []  # noqa: RUF012 - its own for each test

    with http.server.HTTPServer(("127.0.0.1", 0), OwnHook) as server:
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:{server.server_port}/hook")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield OwnHook.got
        server.shutdown()


class Production:
    """A system in production, and the clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.count = folder, BEGAN, 0
        self.random = random.Random(1)
        (folder / "spec.yaml").write_text(SPEC)

    def serve(self, good: float, count: int = 20, **others: Any) -> None:
        """An hour of traffic."""
        with (self.folder / "traces.jsonl").open("a") as file:
            for at in range(count):
                self.count += 1
                answer = GOOD if self.random.random() < good else "Bob Marley baked seven cakes in Paris."
                started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now + at * HOUR / count))
                row = {"id": f"t{self.count}", "question": "Who wrote the first program?", "answer": answer,
                       "contexts": [GOOD], "seconds": 1 + self.random.random(), "started": started,
                       "variant": self.random.choice("ab")}  # fmt: skip
                file.write(json.dumps(row | others) + "\n")
        self.now += HOUR

    def run(self, loop: MonitorLoop, hours: int, good: float, **others: Any) -> None:
        for _ in range(hours):
            self.serve(good, **others)
            loop.run_once()


def test_a_drop_is_found_told_and_resolved(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    production = Production(tmp_path)
    with open_monitor(load(tmp_path / "spec.yaml"), clock=lambda: production.now) as loop:
        production.run(loop, 40, 0.95)
        assert told == []
        production.run(loop, 8, 0.4)
        assert {(one["name"], one["state"]) for one in told} == {
            ("faithfulness changed", "firing"),
            ("faithfulness below 0.800 (hour)", "firing"),
        }
        change = next(one for one in told if one["name"] == "faithfulness changed")
        assert change["severity"] == "high"
        assert len(change["worst"]) == 3
        assert change["worst"][0]["answer"] == "Bob Marley baked seven cakes in Paris."
        assert "What moved: " in change["summary"]
        assert "Not checked: the meaning of questions" in change["summary"]
        told.clear()
    with open_monitor(load(tmp_path / "spec.yaml"), clock=lambda: production.now) as again:  # a new process goes on
        production.run(again, 14, 0.97)
        assert {(one["name"], one["state"]) for one in told} == {
            ("faithfulness changed", "resolved"),
            ("faithfulness below 0.800 (hour)", "resolved"),
        }
        assert again.progress.complaints == {}
        for one in again.judge.series.values():
            assert sum(again.ledger.count(one.id).values()) == again.ledger.count_traces() == production.count


@pytest.mark.parametrize("is_alone", [True, False])
def test_one_run_shows_detectors_what_it_judged_unless_another_process_writes(tmp_path: Path, is_alone: bool) -> None:
    production = Production(tmp_path)
    (tmp_path / "spec.yaml").write_text(SPEC.partition("  notify:")[0])
    production.serve(1.0, 60)

    def tick() -> float:
        production.now += 0.001
        return production.now

    with open_monitor(load(tmp_path / "spec.yaml"), clock=tick) as loop:
        if not is_alone:
            Ledger(loop.ledger.connection, loop.ledger.monitor, "another").lead("send", production.now, 300)
        loop.poll()
        production.now += 120
        loop.run_once()
        rows = loop.ledger.connection.execute("SELECT COUNT(*) FROM rageval_detectors")
        assert rows == [(3 if is_alone else 0,)]
        waits = dict(AlertBook(loop.ledger.connection, "live-bot").list_waiting())
        told = "faithfulness has 60 judged traces for its baseline, which count at the next look"
        assert waits.get("faithfulness changed") == (None if is_alone else told)


def test_quiet_days_raise_no_alarm(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    production = Production(tmp_path)
    with open_monitor(load(tmp_path / "spec.yaml"), clock=lambda: production.now) as loop:
        production.run(loop, 96, 0.95)
    assert told == []
