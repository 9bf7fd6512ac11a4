"""Alerts in Prometheus' Alertmanager, the real one."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.notifiers.receivers import FIRING, receive, send


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("prometheus-alertmanager")
    if program is None:
        pytest.skip("Alertmanager is not installed: apt-get install prometheus-alertmanager")
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "am.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = {"config.file": folder / "am.yml", "storage.path": folder, "web.listen-address": f"127.0.0.1:{port}"}
    command = [program, *(f"--{name}={value}" for name, value in settings.items()), "--cluster.listen-address="]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{url}/-/ready", timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield url
    process.kill()
    process.wait()


def list_active(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts?active=true", timeout=5) as reply:
        found: list[dict[str, Any]] = json.load(reply)
    return found


def test_an_alert_is_active_until_it_is_resolved(alertmanager: str) -> None:
    keys = {"url": alertmanager, "labels": {"team": "search"}}
    mild = replace(FIRING, severity="warning", began=time.time() - 60)
    send("alertmanager", keys, [mild])
    (found,) = list_active(alertmanager)
    assert found["labels"] == {"alertname": "faithfulness below 0.7", "monitor": "bot", "severity": "warning",
                               "metric": "faithfulness", "team": "search"}  # fmt: skip
    assert found["annotations"]["value"] == "0.500 [0.400, 0.600]"
    assert found["generatorURL"] == "https://watch.example/bot.html"

    send("alertmanager", keys, [replace(mild, severity="critical")])
    assert [one["labels"]["severity"] for one in list_active(alertmanager)] == ["critical"]

    send("alertmanager", keys, [replace(mild, severity="critical", state="resolved", ended=time.time())])
    time.sleep(0.05)
    assert list_active(alertmanager) == []


def test_a_url_with_a_path_is_kept() -> None:
    with receive() as got:
        send("alertmanager", {"url": f"{got.url}/am"}, [FIRING])
    assert got.requests[0][0] == "/am/api/v2/alerts"
