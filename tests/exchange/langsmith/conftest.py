from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exchange.langsmith.server import LangSmithServer, set_keys


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the local server, in the environment."""
    set_keys(monkeypatch)


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    running = LangSmithServer()
    yield running
    running.close()
