"""A history in a file: several processes at once, killed at any moment, on a disk that fills up."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rageval_spec.history.database import HistoryError
from rageval_spec.history.opening import open_history
from tests.history.records import make_id, make_record, opened

_WRITER = """
import sys
from pathlib import Path
from rageval_spec.history.opening import open_history
from tests.history.records import make_record
path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, first + count):
    with open_history(path) as history:
        history.add([make_record(number)])
    print(number, flush=True)
"""
_ROOT = Path(__file__).parents[2]


def start_writer(path: Path, first: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), str(first), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    writers = [start_writer(path, 100 * index, 10) for index in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    with open_history(path) as history:
        expected = {make_id(100 * index + number) for index in range(4) for number in range(10)}
        assert {entry.id for entry in history.entries()} == expected


def test_killed_processes_leave_whole_records_and_all_that_they_finished(tmp_path: Path) -> None:
    path, dice, told = tmp_path / "history.db", random.Random(7), set()
    for attempt in range(8):
        with start_writer(path, 1000 * attempt, 1000) as writer:
            assert writer.stdout is not None
            told.add(int(writer.stdout.readline()))
            time.sleep(dice.uniform(0, 0.05))
            writer.kill()
            told.update(int(line) for line in writer.stdout.read().split("\n")[:-1])
    with open_history(path) as history:
        found = {entry.id for entry in history.entries()}
        assert found >= {make_id(number) for number in told}
        for record_id in found:
            assert {one[0] for one in history.connection.execute(
                "SELECT part FROM rageval_contents WHERE record_id = ?", (record_id,)
            )} == {"results.json", "values.parquet", "fingerprints.json"}  # fmt: skip
        counts = history.connection.execute("SELECT record_id, COUNT(*) FROM rageval_aggregates GROUP BY record_id")
        assert {record_id for record_id, count in counts if count == 15} == found
        assert history.connection.execute("PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1)) as history:
        [(pages,)] = history.connection.execute("PRAGMA page_count")
        history.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(HistoryError, match="full"):
            history.add([make_record(2), make_record(3)])
        assert [entry.id for entry in history.entries()] == [make_id(1)]


def test_a_file_that_is_not_a_database_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_text("this is text, and long enough to be looked at as the header of a database file")
    with pytest.raises(HistoryError, match=r"history\.db cannot be used: file is not a database"):
        open_history(path)


def test_git_ignores_the_file_but_not_the_labels_beside_it(tmp_path: Path) -> None:
    with open_history(tmp_path / ".rageval" / "history.db"):
        pass
    assert (tmp_path / ".rageval" / ".gitignore").read_text() == "history.db*\n"
    with suppress(OSError):
        (tmp_path / ".rageval" / "history.db").unlink()
    (tmp_path / ".rageval" / ".gitignore").write_text("mine\n")
    with open_history(tmp_path / ".rageval" / "history.db"):
        pass
    assert (tmp_path / ".rageval" / ".gitignore").read_text() == "mine\n"


def test_text_that_utf_8_cannot_hold_is_written_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, make_record(1)) as history:
        history.set_label(make_id(1), "bad\ud800 ä")
        assert list(history.labels()) == ["bad? ä"]
