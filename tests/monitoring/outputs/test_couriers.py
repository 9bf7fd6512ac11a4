"""Couriers work beside one another and beside the loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from rageval_spec.history.database import HistoryError
from rageval_spec.monitoring.ledger import Ledger
from rageval_spec.monitoring.outputs import couriers
from rageval_spec.monitoring.outputs.couriers import Courier, Delivery
from tests.monitoring.seen_traces import open_ledger


def make_delivery(folder: Path, complaints: list[tuple[str, str | None]], **named: Courier) -> Delivery:
    @contextmanager
    def open_own() -> Iterator[Ledger]:
        ledger = open_ledger(folder)
        yield ledger
        ledger.connection.close()

    return Delivery(named, open_own, lambda: 0.0, lambda *told: complaints.append(told))


def test_a_receiver_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    reached, told = Event(), []

    def hang(_: Ledger, __: float) -> bool:
        told.append(reached.wait(10))
        return False

    def quick(_: Ledger, __: float) -> bool:
        reached.set()
        return False

    make_delivery(tmp_path, [], hangs=hang, quick=quick).run_once()
    assert told == [True]


def test_they_go_on_beside_the_loop_until_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couriers, "PAUSE", 0.001)
    rounds, many = [], Event()

    def work(ledger: Ledger, _: float) -> bool:
        rounds.append(ledger.count_traces())
        if len(rounds) == 5:
            many.set()
        return False

    with make_delivery(tmp_path, [], one=work).going_on():
        assert many.wait(10)
    count = len(rounds)
    assert not Event().wait(0.01)
    assert len(rounds) == count


def test_once_sends_all_that_is_due(tmp_path: Path) -> None:
    left = [3]

    def work(_: Ledger, __: float) -> bool:
        left[0] -= 1
        return left[0] > 0

    make_delivery(tmp_path, [], one=work).run_once()
    assert left == [0]


def test_a_database_that_cannot_be_used_is_told_and_does_not_end_the_others(tmp_path: Path) -> None:
    complaints: list[tuple[str, str | None]] = []
    done = Event()

    def fail(_: Ledger, __: float) -> bool:
        raise HistoryError("the history cannot be used")

    def work(_: Ledger, __: float) -> bool:
        done.set()
        return False

    make_delivery(tmp_path, complaints, fails=fail, works=work).run_once()
    assert done.is_set()
    assert complaints == [("fails", "the history cannot be used")]
