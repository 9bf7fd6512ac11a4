""""""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from rageval_spec.store.inventory import Rules, choose, list_entries, remove
from rageval_spec.store.store import FolderStore
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


def prune(folder: Path, rules: Rules) -> set[str]:
    """The keys of the removed entries."""
    return {entry.key for entry in remove(folder, choose(list_entries(folder), rules))}


def keys(folder: Path) -> set[str]:
    return {entry.key for entry in list_entries(folder)}


def test_older_than_removes_what_was_not_used_for_long(tmp_path: Path) -> None:
    fill_store(tmp_path)
    assert prune(tmp_path, Rules(older_than=5 * DAY)) == {OLD_RUN, OLD_MODEL}
    assert keys(tmp_path) == {RUN, MODEL}
    store = FolderStore(tmp_path)
    assert not store.has(OLD_RUN)
    assert store.load(RUN) is not None
    assert store.answers.find(OLD_MODEL, [b"\0" * 16]) == {}
    assert store.answers.find(MODEL, [b"\0" * 16]) == {b"\0" * 16: b"x" * 1000}
    assert list((tmp_path / "temporary").iterdir()) == []


def test_unneeded_entries_are_removed_whatever_their_age(tmp_path: Path) -> None:
    fill_store(tmp_path)
    assert prune(tmp_path, Rules(needed={OLD_RUN, MODEL})) == {RUN, OLD_MODEL}


def test_a_prefix_of_a_key_is_ignored_when_needed_keys_are_compared(tmp_path: Path) -> None:
    store = fill_store(tmp_path)
    store.answers.keep(f"unfinished:{MODEL}", {b"q": b"a"})
    store.close()
    assert prune(tmp_path, Rules(needed={RUN, OLD_RUN, MODEL})) == {OLD_MODEL}


def test_max_size_removes_the_least_recently_used_first(tmp_path: Path) -> None:
    fill_store(tmp_path)
    entries = list_entries(tmp_path)
    whole = sum(entry.size for entry in entries)
    assert prune(tmp_path, Rules(max_size=whole)) == set()
    oldest = min(entries, key=lambda entry: entry.used)
    assert prune(tmp_path, Rules(max_size=whole - 1)) == {oldest.key}
    assert prune(tmp_path, Rules(max_size=0)) == {OLD_RUN, OLD_MODEL, RUN, MODEL} - {oldest.key}
    assert keys(tmp_path) == set()


def test_removing_replies_shrinks_the_file(tmp_path: Path) -> None:
    store = fill_store(tmp_path)
    store.answers.keep(OLD_MODEL, {number.to_bytes(4, "big") * 4: b"x" * 10_000 for number in range(100)})
    store.close()
    age(tmp_path / "answers" / "used" / OLD_MODEL, 10)
    path = tmp_path / "answers" / "answers.sqlite"
    before = path.stat().st_size
    prune(tmp_path, Rules(older_than=5 * DAY))
    assert path.stat().st_size < before / 10


def test_an_entry_used_after_it_was_listed_stays(tmp_path: Path) -> None:
    store = fill_store(tmp_path)
    chosen = choose(list_entries(tmp_path), Rules(older_than=5 * DAY))
    assert store.load(OLD_RUN) is not None
    assert [entry.key for entry in remove(tmp_path, chosen)] == [OLD_MODEL]
    assert store.has(OLD_RUN)


def test_a_process_with_the_store_open_can_continue(tmp_path: Path) -> None:
    """It no longer finds the old reply, stores a new one under the same key, and finds that one."""
    store = fill_store(tmp_path)
    assert store.answers.find(OLD_MODEL, [b"\0" * 16])
    age(tmp_path / "answers" / "used" / OLD_MODEL, 10)
    assert prune(tmp_path, Rules(older_than=5 * DAY)) == {OLD_RUN, OLD_MODEL}
    assert store.answers.find(OLD_MODEL, [b"\0" * 16]) == {}
    store.answers.keep(OLD_MODEL, {b"\0" * 16: b"again"})
    assert store.answers.find(OLD_MODEL, [b"\0" * 16]) == {b"\0" * 16: b"again"}
    assert store.answers.find(MODEL, [b"\0" * 16]) == {b"\0" * 16: b"x" * 1000}


def test_a_reading_process_does_not_block_pruning(tmp_path: Path) -> None:
    fill_store(tmp_path)
    with closing(sqlite3.connect(tmp_path / "answers" / "answers.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (10,)
        assert prune(tmp_path, Rules(older_than=5 * DAY)) == {OLD_RUN, OLD_MODEL}
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (10,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM answers").fetchone() == (5,)


def test_unfinished_files_are_removed_only_after_an_hour(tmp_path: Path) -> None:
    fill_store(tmp_path)
    for name in ("young", "old"):
        (tmp_path / "temporary" / name).mkdir()
    age(tmp_path / "temporary" / "old", 1)
    assert prune(tmp_path, Rules(max_size=0)) >= {"old"}
    assert [path.name for path in (tmp_path / "temporary").iterdir()] == ["young"]
