"""A ledger in SQLite and in PostgreSQL, for the tests that hold for both."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from rageval_spec.history.database import open_history
from rageval_spec.monitoring.ledger import Ledger
from tests.history.servers import run_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with run_server() as (address, _):
        yield address


@pytest.fixture(params=["sqlite", "postgres"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Ledger]]:
    """Opens a ledger of the monitor `bot` for an owner; all of a test are in one database."""
    place: str | Path = tmp_path / "history.db"
    if request.param == "postgres":
        import psycopg

        address, name = request.getfixturevalue("server"), f"ledger{next(_NUMBERS)}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        place = address.replace("/postgres?", f"/{name}?")
    opened = []

    def open_for(owner: str) -> Ledger:
        history = open_history(place)
        opened.append(history)
        return Ledger(history.connection, "bot", owner)

    yield open_for
    for history in opened:
        history.connection.close()


@pytest.fixture
def ledger(open_one: Callable[[str], Ledger]) -> Ledger:
    return open_one("a")
