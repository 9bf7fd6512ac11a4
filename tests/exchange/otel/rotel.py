"""Rotel, a real collector: `rotel_forwarding(url)` runs one that forwards what it receives."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.exchange.peers import PEERS

_PATIENCE = 20.0


def find_rotel() -> str:
    """The collector's program. The test is skipped if there is none."""
    found = shutil.which("rotel-agent")
    folder = os.environ.get(PEERS)
    inside = sorted(Path(folder, "rotel").rglob("rotel/rotel-agent")) if folder else []
    if found or inside:
        return found or str(inside[0])
    pytest.skip(
        f"needs the collector rotel: uv venv $PEERS/rotel && uv pip install --python $PEERS/rotel/bin/python rotel; "
        f"then set {PEERS} to the folder $PEERS"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def rotel_forwarding(url: str) -> Iterator[str]:
    """The URL of a collector that forwards everything to `url` (without `/v1/...`) while this context lasts."""
    http, grpc = free_port(), free_port()
    listen = ("--otlp-http-endpoint", f"127.0.0.1:{http}", "--otlp-grpc-endpoint", f"127.0.0.1:{grpc}")
    forward = ("--otlp-exporter-endpoint", url, "--otlp-exporter-protocol", "http", "--batch-timeout", "200ms")
    program = subprocess.Popen(
        [find_rotel(), "start", *listen, "--exporter", "otlp", *forward],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(_libraries())},
    )  # fmt: skip
    try:
        _await(http, program)
        yield f"http://127.0.0.1:{http}"
    finally:
        program.terminate()
        with suppress(subprocess.TimeoutExpired):
            program.wait(_PATIENCE)
        program.kill()


def _libraries() -> list[str]:
    """Where the collector finds the library of Python that it is linked with."""
    import sysconfig

    return [str(sysconfig.get_config_var("LIBDIR") or ""), os.environ.get("LD_LIBRARY_PATH", "")]


def _await(port: int, program: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        assert program.poll() is None, "the collector ended"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.02)
    raise AssertionError("the collector did not start")
