from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.plugin import InputFile
from rageval_spec.store import file_digests
from rageval_spec.store.file_digests import digest_file
from rageval_spec.store.folder import FolderStore, Store, open_store


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path / "store" if request.param == "folder" else None)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


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
    monkeypatch.setattr("rageval_spec.store.file_digests.time.time", lambda: now)


def test_a_file_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.txt"
    path.write_bytes(b"q1 Q0 d1 1 0.5 x\n")
    settle(path, monkeypatch)
    first = FolderStore(tmp_path / "store").fingerprint(input_file(path))
    monkeypatch.setattr(file_digests, "digest_file", lambda path: pytest.fail("read again"))
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
