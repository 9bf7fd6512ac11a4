"""Starts a PostgreSQL server of its own for tests, from Debian's binaries."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _find_binaries() -> Path:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'rageval-spec[postgres]'")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("no PostgreSQL server under /usr/lib/postgresql: apt-get install postgresql")
    return found[-1].parent


@contextmanager
def run_server(settings: str = "") -> Iterator[tuple[str, Path]]:
    """A server in a new folder, as its address and its data folder. It listens on a socket only.

    The server refuses to run as root; then it runs as the user postgres. The folder has a short path, because that of
    a socket may not have more than 107 bytes.
    """
    binaries = _find_binaries()
    folder = Path(tempfile.mkdtemp(prefix="rageval-pg-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    try:
        _call(binaries / "initdb", "-D", folder / "data", "-U", "rag", "-A", "trust", "-E", "UTF8", "--no-sync")
        start_server(folder, settings)
        yield f"postgresql://rag@/postgres?host={folder}", folder
    finally:
        stop_server(folder)
        shutil.rmtree(folder, ignore_errors=True)


def start_server(folder: Path, settings: str = "") -> None:
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB {settings}"
    _call(_find_binaries() / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", options, "start")


def stop_server(folder: Path) -> None:
    """Stop the server at once, as if the machine lost its power."""
    if (folder / "data" / "postmaster.pid").exists():
        _call(_find_binaries() / "pg_ctl", "-D", folder / "data", "-w", "-m", "immediate", "stop")


def _call(*command: str | Path) -> None:
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"] if os.getuid() == 0 else []
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    subprocess.run([*user, *map(str, command)], check=True, cwd="/", env=environment, stdout=subprocess.DEVNULL)
