""""""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import RagevalError, StoreWarning
from rageval_spec.store import store as store_module
from rageval_spec.store.postgres import PostgresStore
from rageval_spec.store.store import FolderStore, MemoryStore, Store, open_store

TABLE = pl.DataFrame(
    {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d\x00 é", "d3"], "score": [1.5, -0.0, float("inf")]}
)
KEY = "ab" * 32


@pytest.fixture(params=["folder", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        opened: Store = PostgresStore(tmp_path / "store", request.getfixturevalue("database"))
    else:
        opened = open_store(tmp_path / "store" if request.param == "folder" else None)
    yield opened
    opened.close()


def test_a_saved_table_is_loaded(store: Store) -> None:
    assert not store.has(KEY)
    assert store.load(KEY) is None
    store.save(KEY, TABLE)
    assert store.has(KEY)
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, TABLE)


def test_an_empty_table_keeps_its_columns(store: Store) -> None:
    store.save(KEY, TABLE.clear())
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, TABLE.clear())


def test_saving_under_an_existing_key_keeps_the_first_table(store: Store) -> None:
    store.save(KEY, TABLE)
    store.save(KEY, TABLE.head(1))
    loaded = store.load(KEY)
    assert loaded is not None
    assert loaded.height == TABLE.height


def test_version_control_ignores_the_store(tmp_path: Path) -> None:
    FolderStore(tmp_path).save(KEY, TABLE)
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_a_record_is_kept_with_its_table(store: Store) -> None:
    assert store.record(KEY) == {}
    store.save(KEY, TABLE, {"seconds": 1.5, "notes": [{"code": "cut"}]})
    store.save(KEY, TABLE, {"seconds": 9})
    assert store.record(KEY) == {"seconds": 1.5, "notes": [{"code": "cut"}]}


def test_a_forgotten_table_can_be_replaced(store: Store) -> None:
    store.forget(KEY)
    store.save(KEY, TABLE, {"seconds": 1})
    store.forget(KEY)
    assert not store.has(KEY)
    store.save(KEY, TABLE.head(1), {"seconds": 2})
    assert store.record(KEY) == {"seconds": 2}


def test_answers_are_kept_in_the_store(store: Store) -> None:
    store.answers.keep("model", {b"q": b"a"})
    store.close()
    assert store.answers.find("model", [b"q"]) == {b"q": b"a"}
    store.close()


def test_memory_store_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MemoryStore().save("key", pl.DataFrame({"number": [1]}))
    assert list(tmp_path.rglob("*")) == []


def test_large_tables_are_several_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "PARTITION_ROWS", 10)
    table = pl.DataFrame({"number": range(35)})
    store = FolderStore(tmp_path)
    store.save(KEY, table)
    assert len(list((tmp_path / "tables" / KEY).glob("*.parquet"))) == 4
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, table)


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("part-00000.parquet", flip_a_byte),
        ("part-00000.parquet", lambda path: path.write_bytes(path.read_bytes()[:-7])),
        ("part-00000.parquet", lambda path: path.write_bytes(b"")),
        ("part-00000.parquet", Path.unlink),
        ("manifest.json", lambda path: path.write_bytes(b"{")),
        ("manifest.json", lambda path: path.write_bytes(b"[]")),
    ],
)
def test_a_damaged_table_is_absent_with_a_warning(tmp_path: Path, name: str, damage: Callable[[Path], object]) -> None:
    store = FolderStore(tmp_path)
    store.save(KEY, TABLE)
    damage(tmp_path / "tables" / KEY / name)
    with pytest.warns(StoreWarning, match="damaged and will be computed again"):
        assert store.load(KEY) is None
    assert not store.has(KEY)
    store.save(KEY, TABLE)
    loaded = store.load(KEY)
    assert loaded is not None
    assert_frame_equal(loaded, TABLE)


def test_nothing_is_written_before_something_is_kept(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    assert store.load(KEY) is None
    assert not (tmp_path / "store").exists()


def test_a_failed_write_leaves_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(path: Path, content: bytes) -> None:
        if path.name == "manifest.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr(store_module, "write_flushed", full_disk)
    store = FolderStore(tmp_path)
    with pytest.raises(RagevalError, match=r"cannot write to .*--no-store"):
        store.save(KEY, TABLE)
    assert not store.has(KEY)


def test_leftovers_of_killed_processes_are_swept_after_an_hour(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    old, new = tmp_path / "temporary" / "old", tmp_path / "temporary" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "part-00000.parquet").write_bytes(b"half")
    os.utime(old, (time.time() - 4000,) * 2)
    store.save(KEY, TABLE)
    assert not old.exists()
    assert new.exists()


def test_threads_may_save_the_same_table(tmp_path: Path) -> None:
    store, together, errors = FolderStore(tmp_path), Barrier(8), []

    def save() -> None:
        together.wait()
        try:
            store.save(KEY, TABLE)
            loaded = store.load(KEY)
            assert loaded is not None
            assert_frame_equal(loaded, TABLE)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list((tmp_path / "temporary").iterdir()) == []


SAVE_FOR_EVER = """
import sys, itertools
from pathlib import Path
import polars as pl
from rageval_spec.store.store import FolderStore
store = FolderStore(Path(sys.argv[1]))
for number in itertools.count():
    store.save(f"{number:064}", pl.DataFrame({"number": [number] * 5000, "text": ["x" * 50] * 5000}))
    print(number, flush=True)
"""


def test_a_kill_at_any_moment_leaves_only_whole_tables(tmp_path: Path) -> None:
    for patience in (0.0, 0.003, 0.011, 0.027):
        command = [sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it works
            time.sleep(patience)
            process.send_signal(signal.SIGKILL)
    keys = [path.name for path in (tmp_path / "tables").iterdir()]
    assert keys
    for key in keys:
        table = FolderStore(tmp_path).load(key)  # a warning is an error here: none is damaged
        assert table is not None
        assert table["number"].unique().to_list() == [int(key)]
        assert table.height == 5000


def test_a_damaged_record_is_treated_as_absent(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.save(KEY, TABLE, {"seconds": 1.5})
    (tmp_path / "tables" / KEY / "manifest.json").write_bytes(b"{")
    assert store.record(KEY) == {}
