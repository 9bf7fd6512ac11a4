"""What import makes of results folders."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from rageval_spec.commands.history.changing import import_records
from rageval_spec.commands.history.exporting import export_records
from rageval_spec.data.record import Record
from rageval_spec.errors import DataError, UsageError
from rageval_spec.history.database import Chosen
from rageval_spec.history.folder import save_evaluation, write_record
from rageval_spec.history.recording import load_stored
from rageval_spec.runner import Options, run
from tests.history.records import make_id, make_marked_evaluation, make_record, opened
from tests.sample_evaluation import make_hostile_evaluation
from tests.tiny import write_spec


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


def test_an_imported_folder_is_the_evaluation_with_the_bounds_of_its_gates(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=[{"metric": "rr", "min": 0.1, "target": 0.2}])
    evaluation = run(path, Options(output=tmp_path / "out")).evaluation
    with opened(tmp_path / ".rageval") as history:
        meaning = history.entries()[0].meaning
    with opened(tmp_path / "new") as history:
        import_records(history, [tmp_path / "out"])
        [entry] = history.entries()
        found = load_stored(history, entry.id).evaluation
        assert export_records(history, Chosen(), "jsonl").count(b"\n") == 1
    assert entry.meaning == meaning
    assert_frame_equal(found.values, evaluation.values.drop("details", strict=False))
    assert found.fingerprints == evaluation.fingerprints
    assert replace(found, values=None) == replace(evaluation, values=None)  # type: ignore[arg-type]
    assert (entry.gates[0]["min"], entry.gates[0]["target"], entry.outcome) == (0.1, 0.2, "pass")


def test_a_history_is_imported_whole_into_another_one(tmp_path: Path) -> None:
    records = [make_record(1, None, "main"), make_record(2, make_hostile_evaluation()), make_record(3)]
    with opened(tmp_path / "old", *records) as old, opened(tmp_path / "new", make_record(3)) as new:
        assert import_records(new, [tmp_path / "old" / "history.db"]) == "imported 2 records; 1 was there already\n"
        assert new.entries() == old.entries()
        assert [*new.copy()] == [*old.copy()]
        assert export_records(new, Chosen(), "csv") == export_records(old, Chosen(), "csv")
        assert load_stored(new, make_id(1)).label == "main"


def test_a_file_that_is_no_history_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("id,time\n")
    with opened(tmp_path / "old", make_record(1)), opened(tmp_path / "new") as new:
        with pytest.raises(UsageError, match=r"runs\.csv is neither a results folder, .* nor a history"):
            import_records(new, [tmp_path / "old" / "history.db", tmp_path / "runs.csv"])
        assert new.entries() == []
