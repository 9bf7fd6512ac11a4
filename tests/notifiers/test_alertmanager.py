"""`alertmanager`: against the real one, and what is sent to it."""

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.monitoring.alerts import AlertBook, Look
from tests.exchange.otel.rotel import free_port
from tests.monitoring.seen_traces import open_ledger
from tests.notifiers.alert_messages import BEGAN, HOSTILE, build, make_end, make_message
from tests.notifiers.receivers import refuse_then_take, serving

CONFIGURATION = """
route: {receiver: none, group_wait: 0s}
receivers: [{name: none}]
"""


class RealAlertmanager:
    def __init__(self, folder: Path) -> None:
        program = shutil.which("prometheus-alertmanager")
        if program is None:
            pytest.skip("prometheus-alertmanager is not installed (Debian: prometheus-alertmanager)")
        (folder / "am.yml").write_text(CONFIGURATION)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [program, f"--config.file={folder / 'am.yml'}", f"--storage.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{self.url}/-/ready", timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("Alertmanager did not start")

    def alerts(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=5) as reply:
            found = json.load(reply)
        return sorted(found, key=lambda one: str(one["labels"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealAlertmanager]:
    manager = RealAlertmanager(tmp_path)
    yield manager
    manager.close()


def test_the_real_one_shows_an_alert_until_it_is_resolved(real: RealAlertmanager) -> None:
    notifier = build("alertmanager", url=real.url, labels={"team": "search"})
    notifier.send([make_message(summary=HOSTILE)])
    (alert,) = real.alerts()
    assert alert["labels"] == {
        "alertname": "faithfulness below 0.700", "monitor": "support-bot", "metric": "faithfulness", "system": "live",
        "window": "hour", "severity": "critical", "team": "search",
    }  # fmt: skip
    assert (alert["status"]["state"], alert["generatorURL"]) == ("active", "https://watch.example/bot.html")
    assert alert["startsAt"] == "2025-11-24T16:00:00.000Z"
    assert alert["annotations"]["summary"] == HOSTILE
    assert "Moved: model: its replies are half as long" in alert["annotations"]["description"]
    notifier.send([make_end()])
    assert real.alerts() == []


def test_the_real_one_shows_the_worst_severity_only(real: RealAlertmanager) -> None:
    notifier = build("alertmanager", url=real.url)
    for severity in ("warning", "critical"):
        notifier.send([make_message(severity=severity)])
    assert [one["labels"]["severity"] for one in real.alerts()] == ["critical"]
    notifier.send([make_end(severity="critical")])
    assert real.alerts() == []


def test_the_book_of_alerts_fires_and_resolves_in_the_real_one(real: RealAlertmanager, tmp_path: Path) -> None:
    notifier = build("alertmanager", url=real.url)
    book = AlertBook(open_ledger(tmp_path).connection, "support-bot")
    now = time.time() - 60
    for verdict, at, names in (("holds", 0, ["a", "b"]), ("clear", 1, ["b"]), ("clear", 2, [])):
        looks = [Look(name, f"{name} fell", verdict, "critical", "it fell") for name in "ab"]  # type: ignore[arg-type]
        book.record(looks[: 1 if at == 1 else 2], ["alertmanager"], now + at)
        book.deliver({"alertmanager": notifier}, now + at)
        assert [one["labels"]["alertname"] for one in real.alerts()] == [f"{name} fell" for name in names]


def test_an_alert_comes_back_after_a_restart_that_forgot_it(real: RealAlertmanager, tmp_path: Path) -> None:
    """Alertmanager keeps no alerts on disk: a monitor that told it only once would be silent from then on."""
    book = AlertBook(open_ledger(tmp_path).connection, "support-bot")
    notifier = build("alertmanager", url=real.url)
    book.record([Look("a", "a fell", "holds", "critical", "it fell")], ["alertmanager"], BEGAN)
    assert book.refresh("alertmanager", notifier) is None
    assert real.alerts() == [], "what was not delivered yet is not refreshed"
    book.deliver({"alertmanager": notifier}, BEGAN)
    (tmp_path / "second").mkdir()
    restarted = RealAlertmanager(tmp_path / "second")
    try:
        assert restarted.alerts() == []
        assert book.refresh("alertmanager", build("alertmanager", url=restarted.url)) is None
        assert [one["labels"]["alertname"] for one in restarted.alerts()] == ["a fell"]
    finally:
        restarted.close()


def test_an_alert_lasts_a_day_without_the_monitor() -> None:
    """Longer than Alertmanager's `resolve_timeout`: a monitor that is away has not found that all is well."""
    with serving() as server:
        build("alertmanager", url=f"{server.url}/am/").send([make_message(began=(began := time.time()))])
    (asked,) = server.asked
    (alert,) = [one for one in asked.content if one["labels"]["severity"] == "critical"]
    assert asked.path == "/am/api/v2/alerts"
    ends = time.mktime(time.strptime(alert["endsAt"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert 86_000 < ends - began < 87_000


def test_labels_have_names_that_prometheus_takes_and_none_is_empty() -> None:
    with serving() as server:
        build("alertmanager", url=server.url).send([make_message(labels={"a-b": "1", "2x": "y", "none": ""}, page="x")])
    alert = server.asked[0].content[0]
    assert {"a_b": "1", "_2x": "y"}.items() <= alert["labels"].items()
    assert "none" not in alert["labels"]
    assert "generatorURL" not in alert


def test_what_was_not_taken_is_sent_again_with_the_same_labels() -> None:
    asked = refuse_then_take(lambda url: build("alertmanager", url=url))
    assert len({json.dumps([(a["labels"], a["startsAt"]) for a in one.content]) for one in asked}) == 1
