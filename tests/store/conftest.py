from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.servers import run_server


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[str, Path]]:
    """The URL and the folder of a PostgreSQL server."""
    with run_server() as started:
        yield started


@pytest.fixture
def database(server: tuple[str, Path]) -> str:
    """The URL of a database without tables of ours."""
    import psycopg

    with psycopg.connect(server[0], autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS rageval_tables, rageval_manifests, rageval_replies")
    return server[0]
