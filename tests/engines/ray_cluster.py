"""A Ray cluster of two nodes on this machine, on which specs are evaluated."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

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

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


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
