"""Runs the vendors' own SDKs, which live in environments of their own, because their pins must not reach ours."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PEERS = "RAGEVAL_PEERS"
"""The variable with the folder of environments, each named as its SDK."""


def run_peer(name: str, requirement: str, script: str, *given: Any, seconds: float = 120) -> Any:
    """The JSON on the last line that a script writes in the environment `name`; it gets `given` as JSON arguments.

    The test is skipped if there is no such environment. A script that takes longer than `seconds` fails the test.
    """
    folder = os.environ.get(PEERS)
    python = Path(folder or "") / name / "bin" / "python"
    if folder is None or not python.is_file():
        make = f"uv venv $PEERS/{name} && uv pip install --python $PEERS/{name}/bin/python '{requirement}'"
        pytest.skip(f"needs {requirement} in an environment of its own: {make}; then set {PEERS} to the folder $PEERS")
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    done = subprocess.run(
        [python, "-c", script, *map(json.dumps, given)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
