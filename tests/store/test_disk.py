from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rageval_spec.store import disk
from rageval_spec.store.disk import write_atomically


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
