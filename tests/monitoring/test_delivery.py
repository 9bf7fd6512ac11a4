"""Messages of alerts are delivered at least once, and never twice for one state: after failures, kills and restarts."""

import functools
import itertools
import json
import operator
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.alerts import AlertMessage, AlertSeverity
from rageval_spec.errors import RagevalError
from rageval_spec.history.database import open_history
from rageval_spec.monitoring.alerts import CLAIM, AlertBook, Look, Verdict
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.outputs.couriers import NotifierCourier
from rageval_spec.plugin import Context, Notifier, NotifierNode
from tests.endpoints.api_server import ApiServer, Asked
from tests.models.endpoint import Answer
from tests.monitoring.seen_traces import BEGAN, open_ledger


class Recording(Notifier[NotifierNode]):
    """Keeps what it is sent; `fail` raises for what it does not take."""

    def __init__(self, fail: Callable[[Sequence[AlertMessage]], object] = lambda _: None) -> None:
        super().__init__(NotifierNode(use="recording"), Context("recording"))
        self.got: list[list[str]] = []
        self.fail = fail

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self.fail(messages)
        self.got.append([f"{one.name} {one.state}" for one in messages])


class Single(Recording):
    groups = False


def refuse(*names: str) -> Callable[[Sequence[AlertMessage]], None]:
    """Takes no group with one of these alerts."""

    def fail(messages: Sequence[AlertMessage]) -> None:
        if {one.name for one in messages} & set(names):
            raise RagevalError("the hook answered 400")

    return fail


@pytest.fixture
def book(tmp_path: Path) -> AlertBook:
    return AlertBook(open_ledger(tmp_path).connection, "bot")


def record(book: AlertBook, at: float, severity: AlertSeverity = "critical", **verdicts: Verdict) -> None:
    looks = [Look(name, name, verdict, severity, "it fell") for name, verdict in verdicts.items()]
    book.record(looks, ["recording"], BEGAN + at)


def deliver(book: AlertBook, notifier: Recording, at: float) -> int:
    return book.deliver({"recording": notifier}, BEGAN + at)


def test_alerts_of_one_look_are_one_message_for_people_and_several_for_machines(book: AlertBook) -> None:
    people, machine = Recording(), Single()
    looks = [Look(name, name, "holds", "critical") for name in "ab"]
    book.record(looks, ["people", "machine"], BEGAN)
    book.record([Look("c", "c", "holds", "critical")], ["people", "machine"], BEGAN + 1)
    assert book.deliver({"people": people, "machine": machine}, BEGAN + 2) == 6
    assert people.got == [["a firing", "b firing"], ["c firing"]]
    assert sorted(machine.got) == [["a firing"], ["b firing"], ["c firing"]]


def test_an_end_waits_until_the_beginning_was_told(book: AlertBook) -> None:
    down = [True]
    notifier = Recording(lambda messages: refuse("a")(messages) if down[0] else None)
    record(book, 0, a="holds")
    deliver(book, notifier, 0)
    record(book, 1, a="clear")
    assert deliver(book, notifier, 2) == 0
    down[0] = False
    assert deliver(book, notifier, 3) == 0, "the beginning waits for its next try, and the end for the beginning"
    for at in (10, 11):
        deliver(book, notifier, at)
    assert notifier.got == [["a firing"], ["a resolved"]]


def test_a_message_that_is_never_taken_does_not_hold_up_the_others(book: AlertBook) -> None:
    notifier = Recording(refuse("bad"))
    record(book, 0, bad="holds")
    deliver(book, notifier, 0)
    record(book, 300, good="holds", bad="holds")
    deliver(book, notifier, 300)
    assert notifier.got == [["good firing"]]
    (row,) = book.list_undelivered()
    assert (row.tries, row.sent, row.reason) == (2, None, "the hook answered 400")


def test_waits_grow_up_to_a_quarter_of_an_hour(book: AlertBook) -> None:
    tries = []
    notifier = Recording(refuse("a"))
    record(book, 0, a="holds")
    for at in range(0, 7200, 5):
        (before,) = book.list_undelivered()
        deliver(book, notifier, at)
        if book.list_undelivered()[0].tries > before.tries:
            tries.append(at)
    assert tries[:8] == [0, 10, 30, 70, 150, 310, 630, 1270]
    assert {later - earlier for earlier, later in itertools.pairwise(tries[7:])} == {900}


def test_a_receiver_that_takes_nothing_for_months_is_still_tried(book: AlertBook) -> None:
    record(book, 0, a="holds")
    book.connection.execute("UPDATE rageval_messages SET tries = 5000")
    assert deliver(book, Recording(refuse("a")), 1) == 0
    assert deliver(book, Recording(), 1 + 899) == 0
    assert deliver(book, Recording(), 1 + 901) == 1


def test_a_fault_of_a_plugin_ends_nothing_and_shows_no_secret(book: AlertBook) -> None:
    def fail(_: object) -> None:
        raise ConnectionError("https://hooks.example/s3cr3t")

    notes: list[Any] = []
    record(book, 0, a="holds")
    book.deliver({"recording": Recording(fail)}, BEGAN, lambda *told: notes.append(told))
    assert notes == [("recording", "it broke off with ConnectionError")]


def test_what_one_process_sends_no_other_sends_meanwhile(tmp_path: Path, book: AlertBook) -> None:
    other, second = AlertBook(open_ledger(tmp_path, "b").connection, "bot"), Recording()
    first = Recording(lambda _: deliver(other, second, 1))
    record(book, 0, a="holds")
    deliver(book, first, 0)
    deliver(other, second, 5000)
    assert (first.got, second.got) == ([["a firing"]], [])


def test_what_a_killed_process_was_sending_is_sent_by_another(tmp_path: Path, book: AlertBook) -> None:
    class KilledError(BaseException):
        pass

    def die(_: object) -> None:
        raise KilledError

    record(book, 0, a="holds")
    with pytest.raises(KilledError):
        deliver(book, Recording(die), 0)
    alive, notifier = AlertBook(open_ledger(tmp_path, "b").connection, "bot"), Recording()
    assert deliver(alive, notifier, CLAIM) == 0
    assert deliver(alive, notifier, CLAIM + notifier.patience) == 1
    assert deliver(alive, notifier, 5000) == 0
    assert notifier.got == [["a firing"]]


def test_an_alert_that_outlasts_its_silence_is_told(book: AlertBook) -> None:
    notifier = Recording()
    book.silence("a*", BEGAN + 100)
    for at in (0, 50, 100, 150):
        record(book, at, a="holds")
        deliver(book, notifier, at)
    assert notifier.got == [["a firing"]]
    record(book, 200, a="clear")
    deliver(book, notifier, 200)
    assert notifier.got[1:] == [["a resolved"]]


def test_a_notifier_that_is_added_is_told_of_what_fires(book: AlertBook) -> None:
    new = Recording()
    for names in (["old"], ["old", "new"], ["old", "new"]):
        book.record([Look("a", "a", "holds", "critical")], names, BEGAN)
        book.deliver({"new": new}, BEGAN)
    assert new.got == [["a firing"]]


def test_an_alert_that_was_removed_from_the_spec_is_over(book: AlertBook) -> None:
    notifier = Recording()
    record(book, 0, a="holds", b="holds")
    looks = [Look("b", "b", "holds", "critical")]
    book.record([*looks, *book.list_removed(looks)], ["recording"], BEGAN + 1)
    deliver(book, notifier, 2)
    assert sorted(functools.reduce(operator.iadd, notifier.got, [])) == ["a firing", "b firing"]
    deliver(book, notifier, 3)
    assert notifier.got[-1] == ["a resolved"]


def test_half_a_surrogate_pair_does_not_keep_a_message_from_being_sent(book: AlertBook) -> None:
    notifier = Recording()
    book.record([Look("a", "broken \ud800", "holds", "critical")], ["recording"], BEGAN)
    deliver(book, notifier, 0)
    assert notifier.got == [["broken ? firing"]]


def test_all_of_it_holds_in_both_databases(ledger: Ledger) -> None:
    book, notifier = AlertBook(ledger.connection, "bot"), Recording(refuse("bad"))
    book.silence("quiet", BEGAN + 100)
    record(book, 0, a="holds", quiet="holds")
    record(book, 1, bad="holds")
    for at in (1, 2, 20):
        deliver(book, notifier, at)
    record(book, 200, a="clear", quiet="holds", bad="holds")
    for at in (200, 201):
        deliver(book, notifier, at)
    assert sorted(notifier.got) == [["a firing"], ["a resolved"], ["quiet firing"]]
    assert [row.tries for row in book.list_undelivered()] == [3]
    assert [one.alert for one in book.list_removed([])] == ["bad", "quiet"]
    assert book.refresh("recording", notifier) is None


class Reminded(Recording):
    refresh_every = 60.0

    def refresh(self, messages: Sequence[AlertMessage]) -> None:
        self.fail(messages)
        self.got.append([f"{one.name} again" for one in messages])


def test_a_notifier_that_forgets_is_reminded_each_minute_and_its_last_error_is_known(tmp_path: Path) -> None:
    ledger, down, told = open_ledger(tmp_path), [False], list[str | None]()
    notifier = Reminded(lambda messages: refuse("a")(messages) if down[0] else None)
    courier = NotifierCourier(notifier, told.append)
    record(AlertBook(ledger.connection, "bot"), 0, a="holds")
    for at in range(0, 121, 10):
        courier.deliver(ledger, BEGAN + at)
    assert notifier.got == [["a firing"], ["a again"], ["a again"], ["a again"]]
    down[0] = True
    courier.deliver(ledger, BEGAN + 180)
    assert told[-1] == "the hook answered 400"
    down[0] = False
    courier.deliver(ledger, BEGAN + 240)
    assert told[-1] is None


KILLED = """
import os, signal, sys, time
from rageval_spec.history.database import open_history
from rageval_spec.monitoring.alerts import AlertBook, Look
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.outputs.couriers import NotifierCourier
ledger = Ledger(open_history(sys.argv[1]).connection, "bot", "killed")
book = AlertBook(ledger.connection, "bot")
book.record([Look("a", "a", "holds", "critical", "it fell")], ["recording"], 1_764_000_000.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_between_the_change_and_the_delivery_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "history.db")])
    assert done.returncode == -9
    notifier, book = Recording(), AlertBook(open_ledger(tmp_path).connection, "bot")
    record(book, 0, a="holds")
    for at in (0, 1, 2):
        deliver(book, notifier, at)
    assert notifier.got == [["a firing"]]


SPEC = """
version: 1
name: bot
systems: {live: {use: file, path: traces.jsonl, follow: true}}
metrics: [{use: faithfulness, judge: fast}]
judges: {fast: {use: overlap}}
monitor:
  every: 1s
  settle: 1s
  alerts: [coverage]
  notify: [{use: webhook, url: URL}]
"""


def run_monitor(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rageval_spec", "monitor", "run", "spec.yaml", *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_monitor_that_is_killed_while_it_sends_sends_the_same_message_again(tmp_path: Path) -> None:
    """The receiver takes a message, and the monitor is killed before it hears that."""
    came, goes_on = threading.Event(), threading.Event()

    def reply(asked: Asked) -> Answer:
        came.set()
        goes_on.wait(20)
        return Answer(b"taken")

    server = ApiServer(reply)
    (tmp_path / "spec.yaml").write_text(textwrap.dedent(SPEC.replace("URL", server.url)))
    rows = [{"query_id": f"t{i}", "question": "Who wrote it?", "answer": "Ada."} for i in range(5)]  # without contexts
    (tmp_path / "traces.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monitor = run_monitor(tmp_path)
    try:
        assert came.wait(30), "the alert of coverage was not sent"
    finally:
        monitor.kill()
        monitor.wait()
    goes_on.set()
    history = open_history(tmp_path / ".rageval" / "history.db")
    history.connection.execute("UPDATE rageval_messages SET retry_at = 0")  # as if the claim had ended
    for _ in range(2):
        assert run_monitor(tmp_path, "--once").wait() == 0
    server.close()
    alerts = [(one.headers["idempotency-key"], one.content["alerts"][0]["name"]) for one in server.asked]
    assert len(alerts) == 2
    assert alerts[0] == alerts[1]
    assert alerts[0][1] == "coverage of faithfulness"
