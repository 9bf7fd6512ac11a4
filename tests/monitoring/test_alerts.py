"""States of alerts, and messages that are sent at least once and never twice for one state."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.alerts import AlertMessage, AlertSeverity
from rageval_spec.data.outcomes import Interval
from rageval_spec.errors import RagevalError
from rageval_spec.monitoring.alerts import AlertBook, Look, Verdict
from rageval_spec.plugin import Context, Notifier, NotifierNode
from tests.monitoring.seen_traces import BEGAN, open_ledger


class Recording(Notifier[NotifierNode]):
    def __init__(self, failures: int = 0) -> None:
        super().__init__(NotifierNode(use="recording"), Context("recording"))
        self.got: list[AlertMessage] = []
        self.failures = failures

    def send(self, messages: Sequence[AlertMessage]) -> None:
        if self.failures:
            self.failures -= 1
            raise RagevalError("the hook answered 503")
        self.got += messages

    def states(self) -> list[tuple[str, str]]:
        return [(one.state, one.severity) for one in self.got]


@pytest.fixture
def book(tmp_path: Path) -> AlertBook:
    return AlertBook(open_ledger(tmp_path).connection, "bot", "https://watch.example/bot.html")


def look(verdict: Verdict, severity: AlertSeverity = "warning", **others: Any) -> Look:
    evidence = {"metric": "faithfulness", "value": 0.5, "interval": Interval(0.4, 0.6), "samples": 60}
    return Look("a1", "faithfulness below 0.7", verdict, severity, "it fell", evidence, **others)


def go(book: AlertBook, notifier: Recording, verdict: Verdict, at: float, **others: Any) -> None:
    book.record([look(verdict, **others)], ["recording"], BEGAN + at)
    book.deliver({"recording": notifier}, BEGAN + at)


def test_an_alert_fires_once_and_is_resolved_once(book: AlertBook) -> None:
    notifier = Recording()
    for at, verdict in enumerate(["clear", "holds", "holds", "undecided", "clear", "clear"]):
        go(book, notifier, verdict, at)  # type: ignore[arg-type]
    assert notifier.states() == [("firing", "warning"), ("resolved", "warning")]
    first, last = notifier.got
    assert first.key == last.key
    assert (first.began, first.ended, last.ended) == (BEGAN + 1, None, BEGAN + 4)
    assert (first.value, first.interval, first.page) == (0.5, Interval(0.4, 0.6), "https://watch.example/bot.html")


def test_no_data_neither_fires_nor_resolves(book: AlertBook) -> None:
    notifier = Recording()
    go(book, notifier, "undecided", 0)
    assert [(row.state, row.began) for row in book.read()] == [("clear", None)]
    assert book.list_waiting() == [("faithfulness below 0.7", "it fell")]
    go(book, notifier, "holds", 1)
    assert book.list_waiting() == []
    go(book, notifier, "undecided", 2)
    assert [row.state for row in book.read()] == ["firing"]


def test_it_is_pending_until_it_held_long_enough(book: AlertBook) -> None:
    notifier = Recording()
    for at in (0, 599):
        go(book, notifier, "holds", at, for_seconds=600)
    assert [row.state for row in book.read()] == ["pending"]
    go(book, notifier, "clear", 599.5, for_seconds=600)
    go(book, notifier, "holds", 700, for_seconds=600)
    assert notifier.got == []
    go(book, notifier, "holds", 1300, for_seconds=600)
    assert notifier.states() == [("firing", "warning")]


def test_a_worse_severity_is_told_and_a_milder_one_is_not(book: AlertBook) -> None:
    notifier = Recording()
    severities: list[AlertSeverity] = ["warning", "critical", "warning"]
    for at, severity in enumerate(severities):
        go(book, notifier, "holds", at, severity=severity)
    assert notifier.states() == [("firing", "warning"), ("firing", "critical")]


def test_after_an_alert_was_resolved_it_cools_down(book: AlertBook) -> None:
    notifier = Recording()
    for at, verdict in ((0, "holds"), (1, "clear"), (2, "holds"), (3601, "holds")):
        go(book, notifier, verdict, at, cooldown=3600)  # type: ignore[arg-type]
    assert [state for state, _ in notifier.states()] == ["firing", "resolved", "firing"]
    assert notifier.got[0].key != notifier.got[2].key


def test_what_was_not_taken_is_sent_again_in_order(book: AlertBook) -> None:
    notifier, complaints = Recording(failures=2), list[str]()
    book.record([look("holds")], ["recording"], BEGAN)
    book.deliver({"recording": notifier}, BEGAN, lambda _, told: complaints.append(told or ""))
    book.record([look("clear")], ["recording"], BEGAN + 1)
    for at in (2, 11, 100, 200):
        book.deliver({"recording": notifier}, BEGAN + at, lambda _, told: complaints.append(told or ""))
    assert [state for state, _ in notifier.states()] == ["firing", "resolved"]
    assert complaints[0] == "the hook answered 503"


def test_what_was_taken_is_not_sent_again_after_a_restart(tmp_path: Path, book: AlertBook) -> None:
    notifier = Recording()
    go(book, notifier, "holds", 0)
    restarted = AlertBook(open_ledger(tmp_path).connection, "bot")
    go(restarted, notifier, "holds", 1)
    assert len(notifier.got) == 1


def test_a_message_that_was_written_before_a_kill_is_sent_after_it(tmp_path: Path, book: AlertBook) -> None:
    book.record([look("holds")], ["recording"], BEGAN)
    notifier = Recording()
    AlertBook(open_ledger(tmp_path).connection, "bot").deliver({"recording": notifier}, BEGAN + 5)
    assert notifier.states() == [("firing", "warning")]


def test_a_silenced_alert_changes_its_state_and_tells_nobody(book: AlertBook) -> None:
    notifier = Recording()
    book.silence("faith*", BEGAN + 100, "deploying")
    go(book, notifier, "holds", 0)
    assert notifier.got == []
    assert [row.state for row in book.read()] == ["firing"]
    go(book, notifier, "clear", 101)
    assert notifier.got == []


def test_only_the_named_notifiers_are_told(book: AlertBook) -> None:
    notifier = Recording()
    go(book, notifier, "holds", 0, notifiers=("pager",))
    assert notifier.got == []
