"""Sending what a target has of an evaluation: each value once, also after a failure.

What was sent is remembered, and what a kill cut off is not.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from types import ModuleType
from uuid import UUID

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.contracts import Parcel
from rageval_spec.exchange.shared.delivery import FOLDER, SentLedger, make_hex, make_uuid
from tests.command_line import invoke
from tests.exchange.evaluating import evaluate


def test_each_value_goes_to_its_trace_once(toy: ModuleType, tmp_path: Path) -> None:
    results = evaluate(tmp_path)
    done = invoke("export", "toy", results)
    assert done.exit_code == 0, done.output
    assert done.stdout == "sent 10 scores to the toy\n"
    assert len(toy.ToyTarget.stored) == 10 and toy.ToyTarget.stored["t3/latency@p50"] == 0.25
    assert invoke("export", "toy", results).stdout == "sent nothing to the toy; 10 values had been sent before\n"
    assert invoke("export", "toy", results, "--again").stdout == "sent 10 scores to the toy\n"


def test_after_a_failure_only_the_rest_is_sent(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = evaluate(tmp_path)
    monkeypatch.setattr(toy.ToyTarget, "fails_after", 4)
    done = invoke("export", "toy", results)
    assert (done.exit_code, "the toy is broken" in done.stderr) == (3, True)
    monkeypatch.setattr(toy.ToyTarget, "fails_after", 10**6)
    ledger = next((results / "exports").iterdir())
    ledger.write_bytes(ledger.read_bytes()[:-5])  # as a kill in mid write leaves it
    assert invoke("export", "toy", results).stdout == "sent 7 scores to the toy; 3 values had been sent before\n"
    assert len(toy.ToyTarget.stored) == 10
    assert [len(json.loads(line)) for line in ledger.read_text().splitlines() if line.endswith("]")] == [2] * 10


FIRST, SECOND = Parcel("a", {"value": 1}, "a"), Parcel("b", {"value": 2}, "b")


def test_another_body_or_destination_was_not_sent(tmp_path: Path) -> None:
    with closing(SentLedger(tmp_path, "toy", "here")) as ledger:
        ledger.add([FIRST])
    with closing(SentLedger(tmp_path, "toy", "here")) as ledger:
        assert ledger.has(FIRST) and not ledger.has(SECOND)
        assert not ledger.has(Parcel("a", {"value": 3}, "a"))
    with closing(SentLedger(tmp_path, "toy", "there")) as ledger:
        assert not ledger.has(FIRST)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path, cut: int) -> None:
    with closing(SentLedger(tmp_path, "toy", "here")) as ledger:
        ledger.add([FIRST, SECOND])
    (path,) = (tmp_path / FOLDER).iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    with closing(SentLedger(tmp_path, "toy", "here")) as ledger:
        assert ledger.has(FIRST)
        assert ledger.has(SECOND) == (cut == 1)
        ledger.add([SECOND])
    with closing(SentLedger(tmp_path, "toy", "here")) as ledger:
        assert ledger.has(FIRST) and ledger.has(SECOND)


def test_without_a_folder_nothing_is_written() -> None:
    with closing(SentLedger(None, "toy", "here")) as ledger:
        ledger.add([FIRST])
        assert ledger.has(FIRST)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file in its place")
    with (
        closing(SentLedger(tmp_path, "toy", "here")) as ledger,
        pytest.raises(RagevalError, match=r"exports.*cannot be written"),
    ):
        ledger.add([FIRST])


def test_ids_depend_on_every_part_and_on_nothing_else() -> None:
    assert make_hex("a", "b") == make_hex("a", "b") != make_hex("ab", "") != make_hex("", "ab")
    assert len(make_hex("a", digits=16)) == 16


def test_uuids_are_of_a_version_for_own_schemes() -> None:
    made = UUID(make_uuid("a", "b"))
    assert (made.version, made.variant) == (8, "specified in RFC 4122")
    assert make_uuid("a", "b") != make_uuid("a", "c")
