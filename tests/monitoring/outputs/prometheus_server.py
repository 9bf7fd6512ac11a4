"""A real Prometheus that scrapes a real monitor, for tests."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.seen_traces import make_trace

HOSTILE = 'quo"te\\ {{ x }} <b>'
"""The name of a metric in the spec."""


def find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt-get install prometheus")
    return found


def write_monitor(folder: Path, serve: str | None = None) -> Path:
    """A spec that watches traces of the last hour; one in ten failed."""
    now = datetime.now(UTC)
    with (folder / "traces.jsonl").open("w", encoding="utf-8") as stream:
        for number in range(300):
            started = (now - timedelta(seconds=12 * number)).isoformat()
            answer = None if number % 10 == 0 else "Ada wrote it." if number % 3 else "Zeus forged the last dragon."
            trace = make_trace(f"t{number}", answer, seconds=number / 100, metadata={"variant": "ab"[number % 2]})
            stream.write(json.dumps(replace(trace, started=started).to_row()) + "\n")
    content = {
        "version": 1,
        "name": "bot {{ 1 }}",
        "systems": {"live": {"use": "file", "path": "traces.jsonl", "follow": True}},
        "metrics": [{"use": "faithfulness", "judge": "overlap", "as": HOSTILE}, "latency", "error_rate"],
        "monitor": {
            "every": "1s",
            "settle": "1s",
            "serve": serve,
            "send": [{"use": "phoenix", "url": f"http://127.0.0.1:{find_port()}"}],
            "ab": {"by": "variant", "metric": HOSTILE},
            "windows": [{"name": "last", "queries": 500}],
            "alerts": [
                {"metric": HOSTILE, "warning": 0.95, "critical": 0.9, "window": "15m", "for": "10m"},
                {"metric": "error_rate", "warning": 0.01, "window": "last", "name": "errors {{ in }} production"},
                {"metric": "latency", "drift": {"low": "5%", "high": 0.5}},
                "coverage",
            ],
        },
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def running(*command: str | Path) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def wait_for(found: Callable[[], Any], what: str) -> Any:
    for _ in range(300):
        try:
            if result := found():
                return result
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError(what)


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as reply:
        content: bytes = reply.read()
    return content


class Prometheus:
    """What Prometheus knows of the monitor of `spec`, whose numbers are at `target`."""

    def __init__(self, url: str, target: str, spec: Path) -> None:
        self.url, self.target, self.spec = url, target, spec

    def ask(self, path: str, **parameters: str) -> Any:
        return json.loads(fetch(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    @property
    def last_error(self) -> str | None:
        """Why the last scrape failed; "" if it did not, and None if there was none."""
        targets = self.ask("targets")["activeTargets"]
        return targets[0]["lastError"] if targets and targets[0]["health"] != "unknown" else None


@contextmanager
def scraping(folder: Path, rules: Callable[[Path], None]) -> Iterator[Prometheus]:
    """Prometheus and a monitor whose numbers it has; `rules` writes files of rules for a spec beside it."""
    program, port, own = find_program("prometheus"), find_port(), find_port()
    spec = write_monitor(folder, f"127.0.0.1:{port}")
    rules(spec)
    job = {"job_name": "monitor", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    content = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": [job],
               "rule_files": ["rageval-rules.yml"]}  # fmt: skip
    (folder / "prometheus.yml").write_text(yaml.safe_dump(content))
    settings = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder / "tsdb",
                "web.listen-address": f"127.0.0.1:{own}"}  # fmt: skip
    monitor: list[str | Path] = [sys.executable, "-m", "rageval_spec", "monitor", "run", spec, "-q"]
    with running(*monitor), running(program, *(f"--{name}={value}" for name, value in settings.items())):
        server = Prometheus(f"http://127.0.0.1:{own}", f"http://127.0.0.1:{port}", spec)
        wait_for(lambda: fetch(f"{server.target}/metrics"), "the monitor shows its numbers")
        wait_for(lambda: server.last_error is not None and server.query("rageval_window_high"), "it is scraped")
        yield server
