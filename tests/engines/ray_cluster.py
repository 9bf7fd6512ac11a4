"""A Ray cluster of two nodes on this machine, on which specs are evaluated."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Ray reads this when it is first imported. Under `uv run pytest`, it would build the environment again for each worker.
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")

QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 300,
    "health_check_failure_threshold": 2,
}
"""How soon a dead node is noticed: 15 seconds by default."""
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_memory_monitor_refresh_ms": "0",
}
STORE = 100 * 2**20


class TwoNodes:
    """A head node and another node, with one CPU each."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the path of a socket must be short
        os.environ.update(SETTINGS, RAY_TMPDIR=self.folder)
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "_system_config": QUICK}
        Path(self.folder, "ray").mkdir()
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address
        self.second: Any = None
        self.add_node()

    def connect(self) -> None:
        import ray

        ray.init(address=self.address, log_to_driver=False)

    def add_node(self) -> None:
        self.second = self._cluster.add_node(num_cpus=1, object_store_memory=STORE)
        self._cluster.wait_for_nodes()

    def remove_node(self) -> None:
        """End the second node as a power failure would."""
        self._cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    @contextmanager
    def serve_clients(self) -> Iterator[str]:
        """The address of a Ray Client server, as `ray start --head` starts one, in a process group of its own."""
        pytest.importorskip("grpc", reason="Ray Client needs grpcio: pip install 'ray[client]'")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "ray.util.client.server", "--address", self.address, "--host", "127.0.0.1",
                   "--port", str(port), "--mode", "proxy"]  # fmt: skip
        # The server starts a program for each client while its threads use gRPC.
        own = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"}
        with subprocess.Popen(
            command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as server:
            try:
                until = time.monotonic() + 30
                while server.poll() is None and not _is_open(port):
                    if time.monotonic() > until:
                        pytest.skip(f"Ray Client's server does not open port {port} in 30 seconds")
                    time.sleep(0.1)
                if server.poll() is not None:
                    pytest.skip(f"Ray Client's server cannot open port {port}: it ended with {server.returncode}")
                yield f"ray://127.0.0.1:{port}"
            finally:
                os.killpg(server.pid, signal.SIGKILL)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def list_workers() -> list[int]:
    """The processes of this machine that compute tasks of the engine now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::_compute"):
                found.append(int(entry.name))
    return found
