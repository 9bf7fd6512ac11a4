"""Migrations that are killed: the tables stay as they were, or are wholly at the new version."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.history.database import MIGRATIONS, RECORD_COLUMNS, History, open_history
from tests.history.records import make_id, make_record
from tests.history.servers import run_server

_ROOT = Path(__file__).parents[2]
_MIGRATION = """
import os, signal, sys
from rageval_spec.history import database
from rageval_spec.history.database import open_history

added = [f"weather_{number}" for number in range(int(sys.argv[2]))]
later = [
    [f"ALTER TABLE rageval_records ADD COLUMN {column} TEXT", f"UPDATE rageval_records SET {column} = '1'"]
    for column in added
]
database.MIGRATIONS, left = [*database.MIGRATIONS, *later], [int(sys.argv[3])]

def count(frame, event, argument):
    if f"{os.sep}history{os.sep}" in frame.f_code.co_filename:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

migrate = database.History.migrate

def migrate_and_count(self):
    sys.setprofile(count)
    migrate(self)
    sys.setprofile(None)

database.History.migrate = migrate_and_count
open_history(sys.argv[1]).connection.close()
print(-left[0])
"""


def migrate(place: str | Path, versions: int, kill_at: int = 0) -> int:
    """Migrate to a version that is `versions` later. Returns how many events that had; 0 if it was killed."""
    command = [sys.executable, "-c", _MIGRATION, str(place), str(versions), str(kill_at)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, -signal.SIGKILL)
    return int(done.stdout) if done.returncode == 0 else 0


def kill_and_check(place: str | Path, kills: int) -> None:
    """Kill migrations at random events, and let the last one end."""
    with open_history(place) as history:
        history.add([make_record(1)])
        connection = history.connection
        events, dice = migrate(place, 1), random.Random(5)
        check_whole(history, 1)
        versions, unfinished = 1, 0
        for _ in range(kills):
            before = connection.find_version() - len(MIGRATIONS)
            versions += 1
            assert migrate(place, versions, dice.randint(1, events)) == 0
            after = connection.find_version() - len(MIGRATIONS)
            assert after in (before, versions)
            unfinished += after == before
            check_whole(history, after)
        assert unfinished > kills / 2
        migrate(place, versions)
        check_whole(history, versions)


def check_whole(history: History, versions: int) -> None:
    """Assert that the tables have exactly the columns of this version, and still the record."""
    [row] = history.connection.execute("SELECT * FROM rageval_records")
    assert row == (*row[: len(RECORD_COLUMNS)], *["1"] * versions)
    assert [entry.id for entry in history.entries()] == [make_id(1)]


def test_killed_migrations_leave_a_file_whole(tmp_path: Path) -> None:
    kill_and_check(tmp_path / "history.db", kills=8)


@pytest.fixture
def url() -> Iterator[str]:
    with run_server() as (address, _):
        yield address


def test_killed_migrations_leave_a_server_whole(url: str) -> None:
    kill_and_check(url, kills=5)
