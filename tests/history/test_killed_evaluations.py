"""Evaluations that are killed while they record: each record is there whole and once, or waits in a file.

Two evaluations write to one history at once. Each also sends a record that an earlier evaluation could not send.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rageval_spec.history import evaluation_records
from rageval_spec.history.database import History, open_history
from rageval_spec.history.evaluation_records import FINGERPRINTS, RESULTS, VALUES
from tests.history.records import make_id, make_record
from tests.history.servers import run_server
from tests.tiny import write_spec

_ROOT = Path(__file__).parents[2]
_EVALUATION = """
import os, signal, sys
from pathlib import Path
from rageval_spec.history.evaluation_records import Recorder
from rageval_spec.runner import Options, run

record, places, left = Recorder.record, (f"{os.sep}history{os.sep}", "contextlib"), [int(sys.argv[3])]
counted = {}

def count(frame, event, argument):
    # Each call of the history's code, and each call from it, begins and ends with an event.
    name = frame.f_code.co_filename
    if name not in counted:
        counted[name] = any(place in name for place in places)
    if counted[name]:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def record_and_count(self, *arguments):
    print(self.id, flush=True)
    sys.setprofile(count)
    try:
        return record(self, *arguments)
    finally:
        sys.setprofile(None)

Recorder.record = record_and_count
outcome = run(Path(sys.argv[1]), Options(output=Path(sys.argv[2]), no_store=True))
print(outcome.unrecorded or "recorded", -left[0], sep=chr(10))
"""
_NEVER = 0


class Lane:
    """Evaluations that follow one another, all with the same results folder.

    Attributes:
        begun: the ids of the evaluations that began to record.
        recorded: the ids of those that said they were recorded.
        sent: the ids of the records that waited in the results folder.
    """

    def __init__(self, spec: Path, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        self.begun: set[str] = set()
        self.recorded: set[str] = set()
        self.sent: set[str] = set()

    def start(self, kill_at: int, waiting: int | None = None) -> subprocess.Popen[str]:
        """Start an evaluation that is killed at an event of its recording, beside a record that waits."""
        if waiting is not None:
            evaluation_records.keep(make_record(waiting), self.folder)
            self.sent.add(make_id(waiting))
        command = [sys.executable, "-c", _EVALUATION, str(self.spec), str(self.folder), str(kill_at)]
        # Compiled modules are kept for the evaluations that follow, also where the environment forbids it elsewhere.
        forbidden = "PYTHONDONTWRITEBYTECODE" in os.environ
        kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self.spec.parent / "compiled")}
        environment = os.environ | (kept if forbidden else {})
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=environment)

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for an evaluation, and return how many events its recording had; 0 if it was killed."""
        lines = process.communicate()[0].splitlines()
        self.begun.update(lines[:1])
        if process.returncode == -signal.SIGKILL:
            return 0
        assert process.returncode == 0 and lines[1] == "recorded"
        self.recorded.add(lines[0])
        return int(lines[2])


def kill_and_check(tmp_path: Path, spec: Path, place: str | Path, kills: int) -> None:
    """Kill `kills` evaluations of two lanes while they record, then let one of each end."""
    lanes = [Lane(spec, tmp_path / name) for name in ("one", "two")]
    dice = random.Random(11)
    events = lanes[0].end(lanes[0].start(_NEVER, waiting=1))
    assert events > 100
    waiting, killed = 2, 0
    while killed < kills:
        started = []
        for lane in lanes:
            started.append((lane, lane.start(dice.randint(1, events), waiting)))
            waiting += 1
        killed += sum(lane.end(process) == 0 for lane, process in started)
    for lane in lanes:
        lane.end(lane.start(_NEVER))
        assert not list(lane.folder.glob("*.pending.json"))
    with open_history(place, create=False) as history:
        check_whole(history)
        found = [entry.id for entry in history.entries()]
    assert len(found) == len(set(found))
    begun, recorded, sent = (
        set().union(*(getattr(lane, of) for lane in lanes)) for of in ("begun", "recorded", "sent")
    )
    assert recorded | sent <= set(found) <= begun | sent


def check_whole(history: History) -> None:
    """Assert that every record has all its aggregates and files, and that there are none without a record."""
    records = {entry.id for entry in history.entries()}
    counts = history.connection.execute("SELECT record_id, COUNT(*) FROM rageval_aggregates GROUP BY record_id")
    made = {make_id(number) for number in range(1000)}
    assert {record_id for record_id, count in counts if count == (15 if record_id in made else 4)} == records
    rows = history.connection.execute("SELECT record_id, part FROM rageval_contents")
    assert sorted(rows) == sorted(
        (record_id, part) for record_id in records for part in (RESULTS, VALUES, FINGERPRINTS)
    )


def test_killed_evaluations_leave_whole_records_in_a_file(tmp_path: Path) -> None:
    kill_and_check(tmp_path, write_spec(tmp_path), tmp_path / ".rageval" / "history.db", kills=12)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with run_server("-c max_connections=8") as (address, _):
        monkeypatch.setitem(os.environ, "HISTORY_URL", address)
        yield address


def test_killed_evaluations_leave_whole_records_on_a_server(tmp_path: Path, url: str) -> None:
    spec = write_spec(tmp_path, history={"use": "postgres", "url": "${secret:HISTORY_URL}"})
    kill_and_check(tmp_path, spec, url, kills=6)
