"""A history of records: written whole or not at all, each once, and found by label, id and time.

The tables hold every column that records are written with.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rageval_spec.errors import DataError, UsageError
from rageval_spec.history import database, evaluation_records
from rageval_spec.history.database import (
    AGGREGATE_COLUMNS,
    MIGRATIONS,
    RECORD_COLUMNS,
    HistoryError,
    RecordFilter,
    open_history,
)
from rageval_spec.plugin.budget import Cost
from tests.history.records import NOON, make_id, make_record, opened


def test_records_are_listed_newest_first_with_all_that_was_written(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1), make_record(3, None, "main", "v1"), make_record(2)) as history:
        found = history.entries()
    assert [entry.id for entry in found] == [make_id(3), make_id(2), make_id(1)]
    newest = found[0]
    assert newest.time == NOON + timedelta(hours=3)
    assert (newest.name, newest.outcome, newest.labels) == ("support-bot", "fail", ("main", "v1"))
    assert (newest.commit, newest.branch, newest.is_dirty) == ("c" * 40, "main", False)
    assert (newest.ci, newest.cost, newest.seconds) == ({"system": "gitlab", "run": "3"}, 0.25, 12.5)
    assert newest.meaning["data"]["golden"].keys() == {"question", "reference"}


def test_a_record_that_is_sent_twice_is_kept_once(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1), make_record(1)) as history:
        history.add([make_record(1)])
        assert len(history.entries()) == 1
        assert len(list(history.numbers("map"))) == 3


def test_a_record_that_fails_half_way_is_not_there(tmp_path: Path) -> None:
    broken = make_record(2)
    broken = type(broken)(broken.row, [*broken.aggregates[:1], ("too", "short")], broken.contents)
    with opened(tmp_path, make_record(1)) as history:
        with pytest.raises(HistoryError):
            history.add([broken])
        assert [entry.id for entry in history.entries()] == [make_id(1)]
        assert {number.record_id for number in history.numbers()} == {make_id(1)}


def test_the_choice_of_records_concerns_their_numbers_too(tmp_path: Path) -> None:
    records = [make_record(1), make_record(2, branch="other"), make_record(3)]
    with opened(tmp_path, *records) as history:
        assert [entry.id for entry in history.entries(RecordFilter(limit=1))] == [make_id(3)]
        assert [entry.id for entry in history.entries(RecordFilter(branch="other"))] == [make_id(2)]
        assert history.entries(RecordFilter(name="another")) == history.entries(RecordFilter(outcome="pass")) == []
        late = RecordFilter(since=NOON + timedelta(hours=2), branch="main")
        assert {number.record_id for number in history.numbers("map", late)} == {make_id(3)}
        number = next(one for one in history.numbers("ndcg@10", late) if one.system == "bm25")
        assert number.mean == 0.41234 and number.low is not None and number.scored == 40


def test_a_record_is_found_by_label_by_id_and_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1, None, "main"), make_record(0x12345), make_record(0x12346)) as history:
        assert history.find("main") == history.find(make_id(1)) == history.find("0001") == make_id(1)
        assert history.find("12345") == make_id(0x12345)
        with pytest.raises(UsageError, match="several records have an id that begins with '1234'"):
            history.find("1234")
        for absent in ("mian", "0", "000", "zzzz", "%%%%", "____"):
            assert history.look_up(absent) is None
        with pytest.raises(UsageError, match="no record 'mian'; did you mean 'main'"):
            history.find("mian")


def test_a_label_moves_to_the_record_that_got_it_last(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(2, None, "main"), make_record(1, None, "main")) as history:
        assert history.find("main") == make_id(2)  # record 1 is older, although it was sent later
        history.set_label(make_id(1), "main")
        assert history.find("main") == make_id(1)
        assert history.remove_label("main") and not history.remove_label("main")
        assert len(history.entries()) == 2
        with pytest.raises(UsageError, match="empty"):
            history.set_label(make_id(1), " ")


def test_pruning_keeps_labels_and_what_is_newer(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1), make_record(2, None, "main"), make_record(3)) as history:
        before = NOON + timedelta(hours=3)
        assert history.prune(before, is_dry=True) == [make_id(1)]
        assert len(history.entries()) == 3
        assert history.prune(before) == [make_id(1)]
        assert [entry.id for entry in history.entries()] == [make_id(3), make_id(2)]
        assert make_id(1) not in {number.record_id for number in history.numbers()}
        with pytest.raises(DataError, match="has no"):
            history.content(make_id(1), "results.json")


def test_an_older_schema_is_migrated_and_keeps_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, make_record(1)):
        pass
    later = [
        *MIGRATIONS,
        ["ALTER TABLE rageval_records ADD COLUMN weather TEXT", "UPDATE rageval_records SET weather = 'wet'"],
    ]
    monkeypatch.setattr(database, "MIGRATIONS", later)
    with open_history(tmp_path / "history.db") as history:
        assert history.connection.execute("SELECT id, weather FROM rageval_records") == [(make_id(1), "wet")]
        assert history.connection.find_version() == len(later)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, make_record(1)):
        pass
    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, ["DELETE FROM rageval_records", "not SQL"]])
    with pytest.raises(HistoryError):
        open_history(tmp_path / "history.db")
    monkeypatch.undo()
    with open_history(tmp_path / "history.db") as history:
        assert len(history.entries()) == 1


def test_a_history_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        history.connection.execute("UPDATE rageval_schema SET version = 99")
    with pytest.raises(HistoryError, match="a newer version of rageval-spec made this history"):
        open_history(tmp_path / "history.db")


def test_the_migrations_make_the_columns_that_are_written(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        for table, columns in (("rageval_records", RECORD_COLUMNS), ("rageval_aggregates", AGGREGATE_COLUMNS)):
            found = [name for _, name, *_ in history.connection.execute(f"PRAGMA table_info({table})")]
            assert found == list(columns)
        assert history.connection.find_version() == len(MIGRATIONS)


COSTS = [Cost(0.25, "known"), Cost(0.4, "partly known"), Cost(None, "unknown"), None, Cost(0.0, "known")]


def test_a_cost_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    records = [make_record(number, cost=cost) for number, cost in enumerate(COSTS)]
    with opened(tmp_path, *records) as history:
        entries = history.entries()[::-1]
    assert [entry.shown_cost for entry in entries] == ["$0.25", "at least $0.40", "unknown", "", "$0.00"]
    assert [entry.cost for entry in entries] == [0.25, 0.4, None, None, 0.0]


def test_a_history_in_which_unknown_costs_were_zero_says_that_they_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = [name for name in RECORD_COLUMNS if name != "cost_status"]
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", MIGRATIONS[:1])
        before.setattr(database, "RECORD_COLUMNS", earlier)
        with open_history(tmp_path / "history.db") as history:
            history.add([make_record(1, cost=Cost(0.0, "known")), make_record(2), make_record(3, cost=None)])
    with open_history(tmp_path / "history.db") as history:
        assert [entry.shown_cost for entry in history.entries()] == ["", "$0.25", "unknown"]


def test_a_record_that_an_earlier_version_kept_in_a_file_is_read(tmp_path: Path) -> None:
    for number, (cost, shown) in enumerate([(0.0, "unknown"), (0.25, "$0.25"), (None, "")]):
        record = make_record(number)
        row = {name: value for name, value in record.row.items() if name != "cost_status"} | {"cost": cost}
        path = evaluation_records.keep(replace(record, row=row), tmp_path)
        with opened(tmp_path / str(number), evaluation_records.read(path)) as history:
            assert [entry.shown_cost for entry in history.entries()] == [shown]
