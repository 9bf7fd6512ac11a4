"""What was sent is remembered, and what a kill cut off is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import RagevalError
from rageval_spec.exchange.shared.ledger import FOLDER, Ledger
from rageval_spec.exchange.shared.target import Parcel

FIRST, SECOND = Parcel("a", {"value": 1}, "a"), Parcel("b", {"value": 2}, "b")


def test_another_body_or_destination_was_not_sent(tmp_path: Path) -> None:
    with Ledger(tmp_path, "toy", "here") as ledger:
        ledger.add([FIRST])
    with Ledger(tmp_path, "toy", "here") as ledger:
        assert ledger.has(FIRST) and not ledger.has(SECOND)
        assert not ledger.has(Parcel("a", {"value": 3}, "a"))
    with Ledger(tmp_path, "toy", "there") as ledger:
        assert not ledger.has(FIRST)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path, cut: int) -> None:
    with Ledger(tmp_path, "toy", "here") as ledger:
        ledger.add([FIRST, SECOND])
    (path,) = (tmp_path / FOLDER).iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    with Ledger(tmp_path, "toy", "here") as ledger:
        assert ledger.has(FIRST)
        assert ledger.has(SECOND) == (cut == 1)
        ledger.add([SECOND])
    with Ledger(tmp_path, "toy", "here") as ledger:
        assert ledger.has(FIRST) and ledger.has(SECOND)


def test_without_a_folder_nothing_is_written() -> None:
    with Ledger(None, "toy", "here") as ledger:
        ledger.add([FIRST])
        assert ledger.has(FIRST)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file in its place")
    with Ledger(tmp_path, "toy", "here") as ledger, pytest.raises(RagevalError, match=r"exports.*cannot be written"):
        ledger.add([FIRST])
