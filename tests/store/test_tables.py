from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rageval_spec.errors import DataError, RagevalError, StoreWarning
from rageval_spec.plugin import InputFile
from rageval_spec.store import tables as store_module
from rageval_spec.store.tables import FolderStore, MemoryStore, Store, digest_file, open_store, write_atomically

TABLE = pl.DataFrame(
    {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d\x00 é", "d3"], "score": [1.5, -0.0, float("inf")]}
)
KEY = "ab" * 32


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path / "store" if request.param == "folder" else None)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_was_saved_is_loaded(store: Store) -> None:
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


def test_a_table_that_is_there_stays(store: Store) -> None:
    store.save(KEY, TABLE)
    store.save(KEY, TABLE.head(1))
    loaded = store.load(KEY)
    assert loaded is not None
    assert loaded.height == TABLE.height


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
    with pytest.warns(StoreWarning, match="damaged and is computed again"):
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
    with pytest.raises(RagevalError, match=r"cannot write in .*--no-store"):
        store.save(KEY, TABLE)
    assert not store.has(KEY)


def test_version_control_ignores_the_store(tmp_path: Path) -> None:
    FolderStore(tmp_path).save(KEY, TABLE)
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_what_killed_processes_left_is_swept_after_an_hour(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    old, new = tmp_path / "temporary" / "old", tmp_path / "temporary" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "part-00000.parquet").write_bytes(b"half")
    os.utime(old, (time.time() - 4000,) * 2)
    store.save(KEY, TABLE)
    assert not old.exists()
    assert new.exists()


def test_the_same_beside_a_file_that_is_written_atomically(tmp_path: Path) -> None:
    left, other = tmp_path / ".report.json.0123.part", tmp_path / ".another.json.0123.part"
    for path in (left, other):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 4000,) * 2)
    write_atomically(tmp_path / "report.json", b"whole")
    assert files_in(tmp_path) == [other, tmp_path / "report.json"]


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
from rageval_spec.store.tables import FolderStore
store = FolderStore(Path(sys.argv[1]))
for number in itertools.count():
    store.save(f"{number:064}", pl.DataFrame({"number": [number] * 5000, "text": ["x" * 50] * 5000}))
    print(number, flush=True)
"""


def test_a_kill_at_any_moment_leaves_whole_tables_alone(tmp_path: Path) -> None:
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


def input_file(path: Path) -> InputFile:
    return InputFile(path, ("path",))


def test_a_fingerprint_is_the_sha256_of_the_content(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert store.fingerprint(input_file(path)) == expected


def settle(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock go on until nobody takes the file for one that is still being written."""
    now = time.time() + 60
    monkeypatch.setattr("rageval_spec.store.tables.time.time", lambda: now)


def test_a_file_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"q1 Q0 d1 1 0.5 x\n")
    settle(path, monkeypatch)
    first = FolderStore(tmp_path / "store").fingerprint(input_file(path))
    monkeypatch.setattr(store_module, "digest_file", lambda path: pytest.fail("read again"))
    assert FolderStore(tmp_path / "store").fingerprint(input_file(path)) == first


def test_a_changed_file_has_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"old")
    before = path.stat()
    settle(path, monkeypatch)
    store = FolderStore(tmp_path / "store")
    first = store.fingerprint(input_file(path))
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the size and the time of writing are as before
    assert store.fingerprint(input_file(path)) != first


def test_the_fingerprint_of_a_file_just_written_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"old")
    store = FolderStore(tmp_path / "store")
    store.fingerprint(input_file(path))
    assert not (tmp_path / "store").exists()


def test_a_broken_record_is_no_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"content")
    settle(path, monkeypatch)
    store = FolderStore(tmp_path / "store")
    first = store.fingerprint(input_file(path))
    (record,) = files_in(tmp_path / "store" / "fingerprints")
    for broken in (b"", b"[]", b'{"identity": null}'):
        record.write_bytes(broken)
        assert store.fingerprint(input_file(path)) == first


def test_a_store_that_cannot_be_written_still_gives_fingerprints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"content")
    settle(path, monkeypatch)
    (tmp_path / "store").write_text("a file is in the way")
    assert FolderStore(tmp_path / "store").fingerprint(input_file(path)) == digest_file(path)


def test_a_folder_is_known_by_its_names_and_contents(store: Store, tmp_path: Path) -> None:
    def fingerprint(name: str, **files: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_text(content)
        return store.fingerprint(InputFile(folder, ("path",), kind="folder"))

    first = fingerprint("one", a="1", b="2")
    assert fingerprint("two", b="2", a="1") == first
    assert len({first, fingerprint("three", a="2", b="1"), fingerprint("four", a="1", c="2")}) == 3


def test_a_file_that_is_gone_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt: cannot be read"):
        store.fingerprint(input_file(tmp_path / "gone.txt"))


def test_write_atomically_replaces_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"

    def break_off(path: Path, content: bytes) -> None:
        path.write_bytes(content[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(store_module, "write_flushed", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"third")
    assert path.read_bytes() == b"second"
    assert files_in(tmp_path) == [path]


def test_memory_store_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MemoryStore().save(KEY, TABLE)
    assert files_in(tmp_path) == []


def test_a_record_is_kept_with_its_table(store: Store) -> None:
    assert store.record(KEY) == {}
    store.save(KEY, TABLE, {"seconds": 1.5, "notes": [{"code": "cut"}]})
    store.save(KEY, TABLE, {"seconds": 9})
    assert store.record(KEY) == {"seconds": 1.5, "notes": [{"code": "cut"}]}


def test_what_is_forgotten_gives_place(store: Store) -> None:
    store.forget(KEY)
    store.save(KEY, TABLE, {"seconds": 1})
    store.forget(KEY)
    assert not store.has(KEY)
    store.save(KEY, TABLE.head(1), {"seconds": 2})
    assert store.record(KEY) == {"seconds": 2}


def test_a_damaged_record_is_none(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.save(KEY, TABLE, {"seconds": 1.5})
    (tmp_path / "tables" / KEY / "manifest.json").write_bytes(b"{")
    assert store.record(KEY) == {}


def test_answers_are_kept_in_the_store(store: Store) -> None:
    store.answers.keep("model", {b"q": b"a"})
    store.close()
    assert store.answers.find("model", [b"q"]) == {b"q": b"a"}
    store.close()
