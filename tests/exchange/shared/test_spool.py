from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.exchange.shared.spool import Spool


def test_groups_leave_newest_first_and_rows_by_time() -> None:
    with Spool() as spool:
        spool.add(
            [("a", "2", "2026-01-02", {"n": 2}), ("b", "1", "2026-01-03", {"n": 3}), ("a", "1", "2026-01-01", {"n": 1})]
        )
        assert len(spool) == 2
        assert list(spool.groups()) == [[{"n": 3}], [{"n": 1}, {"n": 2}]]


def test_the_last_row_with_a_key_counts() -> None:
    with Spool() as spool:
        spool.add([("a", "1", "", {"n": 1}), ("a", "1", "", {"n": 2}), ("b", "1", "", {"n": 3})])
        assert sorted(spool.groups(), key=str) == [[{"n": 2}], [{"n": 3}]]


def test_odd_texts_are_kept() -> None:
    with Spool() as spool:
        spool.add([("\ud800\0'", "\0", "", {"text": "\ud800 \0"})])
        assert list(spool.groups()) == [[{"text": "\ud800 \0"}]]


def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Spool() as spool:
        spool.add([("a", "1", "", {"n": 1})])
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
