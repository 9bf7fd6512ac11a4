from __future__ import annotations

import time
from pathlib import Path

from rageval_spec.store.inventory import list_entries
from tests.store.stores import DAY, MODEL, OLD_MODEL, OLD_RUN, RUN, age, fill_store


def test_runs_and_replies_with_their_sizes_and_last_use(tmp_path: Path) -> None:
    fill_store(tmp_path)
    runs = [entry for entry in list_entries(tmp_path) if entry.kind == "run"]
    replies = [entry for entry in list_entries(tmp_path) if entry.kind == "replies"]
    assert [(entry.key, entry.title) for entry in runs] == [(RUN, "bm25 on golden"), (OLD_RUN, "old on golden")]
    assert [(entry.key, entry.count, entry.size) for entry in replies] == [
        (MODEL, 5, 5 * 1016),
        (OLD_MODEL, 5, 5 * 1016),
    ]
    for newer, older in (runs, replies):
        assert time.time() - newer.used < DAY < time.time() - older.used
    assert all(entry.size > 500 for entry in runs)


def test_loading_a_run_counts_as_a_use(tmp_path: Path) -> None:
    store = fill_store(tmp_path)
    assert store.load(OLD_RUN) is not None
    assert all(time.time() - entry.used < DAY for entry in list_entries(tmp_path) if entry.kind == "run")


def test_looking_up_replies_counts_as_a_use_and_earlier_versions_use_the_time_of_the_file(
    tmp_path: Path,
) -> None:
    store = fill_store(tmp_path)
    for mark in (tmp_path / "answers" / "used").iterdir():
        mark.unlink()
    age(tmp_path / "answers" / "answers.sqlite", 5)
    used = {entry.key: entry.used for entry in list_entries(tmp_path) if entry.kind == "replies"}
    assert all(4 * DAY < time.time() - moment < 6 * DAY for moment in used.values())
    again = type(store)(tmp_path)
    again.answers.find(MODEL, [b"?"])
    again.close()
    used = {entry.key: entry.used for entry in list_entries(tmp_path) if entry.kind == "replies"}
    assert time.time() - used[MODEL] < DAY


def test_leftovers_are_listed_too(tmp_path: Path) -> None:
    fill_store(tmp_path)
    (tmp_path / "temporary" / "half").mkdir()
    (tmp_path / "temporary" / "half" / "part-00000.parquet").write_bytes(b"12345")
    (tmp_path / "answers" / "answers.sqlite.damaged-1").write_bytes(b"123")
    (tmp_path / "fingerprints").mkdir()
    (tmp_path / "fingerprints" / "one.json").write_bytes(b"{}")
    found = {entry.kind: (entry.key, entry.size) for entry in list_entries(tmp_path)}
    assert found["unfinished"] == ("half", 5)
    assert found["damaged"] == ("answers.sqlite.damaged-1", 3)
    assert found["digests"] == ("", 2)


def test_a_file_of_replies_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "answers.sqlite").write_bytes(b"not a database" * 100)
    (entry,) = list_entries(tmp_path)
    assert (entry.kind, entry.key) == ("damaged", "answers.sqlite")


def test_a_missing_store_has_no_entries(tmp_path: Path) -> None:
    assert list_entries(tmp_path / "none") == []
    assert list(tmp_path.iterdir()) == []
