from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exchange.langfuse.server import LangfuseServer, set_keys


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of the local server, in the environment."""
    set_keys(monkeypatch)


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    running = LangfuseServer()
    yield running
    running.close()
