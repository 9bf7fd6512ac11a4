"""`monitor alerts`, `monitor silence` and `monitor test-notify`: what a user sees of alerts."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.errors import BROKEN, PASSED, SPEC_WRONG
from rageval_spec.history.database import open_history
from rageval_spec.monitoring.alerts import AlertBook, Look
from rageval_spec.monitoring.assembly import open_notifiers
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.spec import load
from tests.command_line import invoke
from tests.endpoints.api_server import ApiServer
from tests.models.endpoint import Answer

SPEC = """
version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: fast}]
judges: {fast: {use: overlap}}
monitor:
  alerts: [{metric: faithfulness, warning: 0.8}]
  notify:
    - {use: webhook, url: "GOOD"}
    - {use: slack, url: "BAD/services/s3cr3ts3cr3t"}
"""


@pytest.fixture
def servers() -> Iterator[tuple[ApiServer, ApiServer]]:
    good, bad = ApiServer(), ApiServer(lambda _: Answer(b"no_service", 404))
    yield good, bad
    good.close()
    bad.close()


@pytest.fixture
def spec(tmp_path: Path, servers: tuple[ApiServer, ApiServer]) -> Path:
    good, bad = servers
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("GOOD", good.url).replace("BAD", bad.url))
    return path


@pytest.fixture
def book(spec: Path) -> AlertBook:
    connection = open_history(spec.parent / ".rageval" / "history.db").connection
    return AlertBook(Ledger(connection, "bot", "a").connection, "bot")


def fire(spec: Path, book: AlertBook, name: str = "faithfulness below 0.800") -> None:
    """Let an alert fire, and tell the notifiers of the spec."""
    now = time.time()
    book.record([Look("a", name, "holds", "critical", "faithfulness is \x1b[1m0.6")], ["webhook", "slack"], now - 3600)
    with open_notifiers(load(spec)) as notifiers:
        book.deliver(notifiers, now)


def test_it_shows_what_fires_and_who_was_told(spec: Path, book: AlertBook) -> None:
    fire(spec, book)
    found = invoke("monitor", "alerts", spec)
    assert found.exit_code == PASSED
    first, summary, slack, webhook = found.stdout.splitlines()
    assert first.startswith("faithfulness below 0.800: critical, fires since ")
    assert first.endswith("(60 min)")
    assert summary == r"  faithfulness is \x1b[1m0.6"
    assert slack.startswith("  slack: critical: not told yet, after 1 try: http://127.0.0.1:")
    assert "no_service" in slack
    assert "; again at " in slack
    assert "s3cr3t" not in slack
    assert webhook.startswith("  webhook: critical: told ")


def test_it_is_there_for_programs(spec: Path, book: AlertBook) -> None:
    fire(spec, book)
    (alert,) = json.loads(invoke("monitor", "alerts", spec, "--format", "json").stdout)["alerts"]
    assert (alert["state"], alert["severity"]) == ("firing", "critical")
    assert [(one["notifier"], one["told"] is None, one["tries"]) for one in alert["notifiers"]] == [
        ("slack", True, 1),
        ("webhook", False, 1),
    ]


def test_nothing_fires(spec: Path) -> None:
    assert invoke("monitor", "alerts", spec).stdout == "No alert fires.\n"


def test_what_is_pending_and_what_is_over_but_not_told_is_shown(spec: Path, book: AlertBook) -> None:
    fire(spec, book)
    now = time.time()
    waits = Look("b", "latency above 5.000", "holds", "warning", "it is slow", for_seconds=600)
    book.record([Look("a", "faithfulness below 0.800", "clear"), waits], ["webhook", "slack"], now)
    shown = invoke("monitor", "alerts", spec).stdout
    assert "latency above 5.000: warning, pending since" in shown
    assert "faithfulness below 0.800: resolved " in shown
    assert "  slack: its end: not told yet\n" in shown
    assert "No alert fires." in shown


def test_a_notifier_that_is_gone_is_named(spec: Path, book: AlertBook) -> None:
    fire(spec, book)
    spec.write_text("\n".join(line for line in spec.read_text().splitlines() if "slack" not in line))
    assert "slack: critical: not told, because the spec has no such notifier any more" in invoke(
        "monitor", "alerts", spec
    ).stdout  # fmt: skip


def test_silences_are_shown_and_can_be_ended(spec: Path, book: AlertBook) -> None:
    fire(spec, book)
    shown = invoke("monitor", "silence", spec, "faith*", "--for", "2h", "--reason", "new \x1bindex").stdout
    assert shown.startswith("Silenced until ")
    assert "  faithfulness below 0.800\n" in shown
    ((pattern, until, reason),) = book.list_silences(time.time())
    assert (pattern, reason) == ("faith*", "new \x1bindex")
    assert 7100 < until - time.time() < 7300
    assert r": faith*: new \x1bindex" in invoke("monitor", "alerts", spec).stdout
    assert invoke("monitor", "silence", spec, "faith*", "--for", "0s").stdout == "faith* is silenced no longer\n"
    assert book.list_silences(time.time()) == []


def test_an_alert_that_nobody_heard_of_says_so(spec: Path, book: AlertBook) -> None:
    book.silence("*", time.time() + 100)
    fire(spec, book)
    assert "nobody was told: a silence covers it\n" in invoke("monitor", "alerts", spec).stdout
    book.silence("*", 0)
    assert (
        "nobody was told: its 'notify:' is empty, or its silence has just ended\n"
        in invoke("monitor", "alerts", spec).stdout
    )
    spec.write_text(re.sub(r"(?m)^  notify:.*\n(    .*\n)*", "", spec.read_text()))
    assert "nobody was told: the spec has no notifier\n" in invoke("monitor", "alerts", spec).stdout


def test_a_wrong_length_says_what_to_write(spec: Path) -> None:
    found = invoke("monitor", "silence", spec, "a", "--for", "soon")
    assert found.exit_code == SPEC_WRONG
    assert "--for soon is not a duration; write 2h, 30m or 1d" in found.stderr


def test_a_test_says_what_came_of_each_notifier(spec: Path, servers: tuple[ApiServer, ApiServer]) -> None:
    found = invoke("monitor", "test-notify", spec)
    assert found.exit_code == BROKEN
    webhook, slack = found.stdout.splitlines()
    assert webhook == "webhook: took a test alert and its end"
    assert slack.startswith("slack: failed: http://127.0.0.1:")
    assert "no_service" in slack
    assert "s3cr3t" not in found.output
    alerts = [one.content["alerts"][0] for one in servers[0].asked]
    assert [one["state"] for one in alerts] == ["firing", "resolved"]
    assert {one["key"] for one in alerts} == {alerts[0]["key"]}
    assert alerts[0]["summary"] == "This is a test. Nothing is wrong, and there is nothing to do."


def test_a_spec_without_notifiers_says_what_to_write(spec: Path) -> None:
    text = spec.read_text()
    spec.write_text(text[: text.index("  notify:")])
    found = invoke("monitor", "test-notify", spec)
    assert found.exit_code == SPEC_WRONG
    assert "add one: notify: [{use: webhook, url: '${secret:HOOK}'}]" in found.stderr
