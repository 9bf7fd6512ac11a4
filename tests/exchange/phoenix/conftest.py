from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exchange.phoenix.server import PhoenixServer


@pytest.fixture
def phoenix(monkeypatch: pytest.MonkeyPatch) -> Iterator[PhoenixServer]:
    """A small Phoenix at the URL that the environment names."""
    for name in ("http_proxy", "all_proxy", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server = PhoenixServer()
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", server.url)
    yield server
    server.close()
