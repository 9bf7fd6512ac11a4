""""""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from rageval_spec.errors import DataError
from rageval_spec.plugin import InputFile, digest_content
from rageval_spec.store import disk
from rageval_spec.store.disk import digest_file, enable_write_ahead, find_cache, write_atomically
from rageval_spec.store.store import FolderStore, Store, open_store


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_an_atomic_write_sweeps_only_leftovers_of_its_own_file(tmp_path: Path) -> None:
    left, other = tmp_path / ".report.json.0123.part", tmp_path / ".another.json.0123.part"
    for path in (left, other):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 4000,) * 2)
    write_atomically(tmp_path / "report.json", b"whole")
    assert files_in(tmp_path) == [other, tmp_path / "report.json"]


def test_write_atomically_replaces_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"

    def break_off(path: Path, content: bytes) -> None:
        path.write_bytes(content[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(disk, "write_flushed", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"third")
    assert path.read_bytes() == b"second"
    assert files_in(tmp_path) == [path]


HOLDING = """
import sys, time
from pathlib import Path
from rageval_spec.store.disk import hold

with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there")
def test_a_folder_is_swept_once_no_process_holds_it_and_never_before(tmp_path: Path) -> None:
    held, young = tmp_path / "held", tmp_path / "young"
    for folder in (held, young):
        folder.mkdir()
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(held)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        os.utime(held, (time.time() - 10 * disk.ABANDONED_AFTER,) * 2)
        disk.sweep(tmp_path.iterdir())
        assert {*tmp_path.iterdir()} == {held, young}
        process.kill()
    disk.sweep(tmp_path.iterdir())
    assert [*tmp_path.iterdir()] == [young]
    with disk.hold(young):
        disk.sweep(tmp_path.iterdir())  # also not by the process that holds it
        assert young.is_dir()
    disk.sweep(tmp_path.iterdir())
    assert [*tmp_path.iterdir()] == []


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path / "store" if request.param == "folder" else None)


def input_file(path: Path) -> InputFile:
    return InputFile(path, ("path",))


def test_a_fingerprint_is_the_sha256_of_the_content(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, appendix B.1
    assert store.fingerprint(input_file(path)) == expected


def settle(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock until the file no longer counts as one that is being written."""
    now = time.time() + 60
    monkeypatch.setattr("rageval_spec.store.disk.time.time", lambda: now)


def test_a_file_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"q1 Q0 d1 1 0.5 x\n")
    settle(path, monkeypatch)
    first = FolderStore(tmp_path / "store").fingerprint(input_file(path))
    monkeypatch.setattr(disk, "digest_file", lambda path: pytest.fail("read again"))
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


def test_a_broken_record_gives_no_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_digest_of_a_folder_covers_names_and_contents(store: Store, tmp_path: Path) -> None:
    def fingerprint(name: str, **files: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_text(content)
        return store.fingerprint(InputFile(folder, ("path",), kind="folder"))

    first = fingerprint("one", a="1", b="2")
    assert fingerprint("two", b="2", a="1") == first
    assert len({first, fingerprint("three", a="2", b="1"), fingerprint("four", a="1", c="2")}) == 3


def test_a_missing_file_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt: cannot be read"):
        store.fingerprint(input_file(tmp_path / "gone.txt"))


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)


def test_it_waits_for_another_writer(tmp_path: Path) -> None:
    other, connection = connect(tmp_path / "a.db"), connect(tmp_path / "a.db")
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    Timer(0.1, other.execute, ["COMMIT"]).start()
    enable_write_ahead(connection, patience=30)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()
    connection.close()


def test_it_gives_up_in_the_end(tmp_path: Path) -> None:
    other, connection = connect(tmp_path / "a.db"), connect(tmp_path / "a.db")
    other.execute("CREATE TABLE t (x)")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        enable_write_ahead(connection, patience=0.05)
    other.close()
    connection.close()


def test_a_files_digest_is_the_sha256_of_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"x" * 300_000)
    second.write_bytes(first.read_bytes())
    expected = hashlib.sha256(b"x" * 300_000).hexdigest()
    assert digest_content(InputFile(first, ("path",))) == digest_content(InputFile(second, ("other",))) == expected


def test_a_missing_file_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        digest_content(InputFile(tmp_path / "absent", ("path",)))


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGEVAL_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert find_cache() == Path.home() / ".cache" / "rageval-spec"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert find_cache() == Path("/x/rageval-spec")
    monkeypatch.setenv("RAGEVAL_CACHE", "/r")
    assert find_cache() == Path("/r")
