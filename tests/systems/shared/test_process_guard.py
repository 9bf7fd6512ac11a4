from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups")

HANG = 60
PARENT = """
import subprocess, sys, time
from rageval_spec.systems.shared.process_guard import Guard
guard = Guard()
guard.prepare()
for name in ("guarded", "removed"):
    command = f"sleep 600 & echo $$ $! > {name}.new; mv {name}.new {name}; wait"
    group = subprocess.Popen(["sh", "-c", command], start_new_session=True, stdin=subprocess.DEVNULL).pid
    guard.add(group)
guard.remove(group)
print("ready", flush=True)
time.sleep(600)
"""


def runs(pid: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return False  # it has ended, but its exit status was not collected
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(path: Path) -> list[int]:
    until = time.monotonic() + HANG
    while not path.exists():
        assert time.monotonic() < until, "it was never started"
        time.sleep(0.01)
    return [int(pid) for pid in path.read_text().split()]


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[dict[str, list[int]]]:
    """The processes of two groups whose parent was killed; only the first is guarded."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=tmp_path
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        started = {name: wait_for(tmp_path / name) for name in ("guarded", "removed")}
        parent.send_signal(signal.SIGKILL)
    yield started
    for pid in (pid for group in started.values() for pid in group):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def test_programs_of_a_killed_parent_are_killed_with_their_children(pids: dict[str, list[int]]) -> None:
    until = time.monotonic() + HANG
    while any(map(runs, pids["guarded"])):
        assert time.monotonic() < until, "it outlives its parent"
        time.sleep(0.01)
    assert all(map(runs, pids["removed"]))
