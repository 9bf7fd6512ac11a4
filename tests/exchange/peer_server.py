"""Runs real servers from environments of their own, while a block lasts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.exchange.peers import PEERS

_PATIENCE = 120.0


@contextmanager
def run_server(
    name: str, requirement: str, command: Sequence[str], ready: str, folder: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """Start `command`, whose program is in the environment `name`, and wait until `ready` answers 200.

    The test is skipped if there is no such environment.
    """
    bin_folder = Path(os.environ.get(PEERS, "")) / name / "bin"
    if PEERS not in os.environ or not (bin_folder / command[0]).is_file():
        make = f"uv venv $PEERS/{name} && uv pip install --python $PEERS/{name}/bin/python '{requirement}'"
        pytest.skip(f"needs {requirement} in an environment of its own: {make}; then set {PEERS} to the folder $PEERS")
    path = os.pathsep.join([str(bin_folder), os.environ.get("PATH", os.defpath)])
    with (folder / "log").open("wb") as log:
        program = subprocess.Popen(
            [str(bin_folder / command[0]), *command[1:]],
            stdout=log, stderr=log, cwd=folder, env={**os.environ, "PATH": path, **environment}, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_for(ready, program, folder / "log")
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            program.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def _wait_for(url: str, program: subprocess.Popen[bytes], log: Path) -> None:
    opener, end = build_opener(ProxyHandler({})), time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        assert program.poll() is None, log.read_text(errors="replace")[-4000:]
        with suppress(URLError, OSError), opener.open(url, timeout=5) as reply:
            if reply.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"{url} did not answer: {log.read_text(errors='replace')[-4000:]}")
