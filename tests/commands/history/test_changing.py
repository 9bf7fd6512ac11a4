"""What import makes of results folders."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rageval_spec.commands.history.changing import import_records
from rageval_spec.data.record import Record
from rageval_spec.errors import DataError
from rageval_spec.history.folder import save_evaluation, write_record
from tests.history.records import make_marked_evaluation, opened


def test_a_label_keeps_its_time_and_its_commit(tmp_path: Path) -> None:
    time = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    write_record(Record("a" * 32, time, f"{'b' * 40}-dirty", "main", make_marked_evaluation()), tmp_path)
    with opened(tmp_path / "new") as history:
        import_records(history, [tmp_path / "results.json"])
        [entry] = history.entries()
    assert (entry.id, entry.time, entry.labels) == ("a" * 32, time, ("main",))
    assert (entry.commit, entry.is_dirty, entry.branch) == ("b" * 40, True, None)


def test_a_label_that_was_set_later_stays_where_it_is(tmp_path: Path) -> None:
    with opened(tmp_path / "new") as history:
        folder = save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
        import_records(history, [folder])
        newer = history.find("main")
        old = Record("a" * 32, datetime(2025, 1, 1, tzinfo=UTC), None, "main", make_marked_evaluation())
        write_record(old, tmp_path)
        import_records(history, [tmp_path])
        assert history.find("main") == newer and len(history.entries()) == 2


def test_one_bad_path_imports_nothing(tmp_path: Path) -> None:
    folder = save_evaluation(make_marked_evaluation(), "main", tmp_path / "labels")
    bad = tmp_path / "record-1.pending.json"
    bad.write_text("{")
    with opened(tmp_path / "new") as history:
        with pytest.raises(DataError, match="not a record"):
            import_records(history, [folder, bad])
        assert history.entries() == []
