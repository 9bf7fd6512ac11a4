from __future__ import annotations

import pytest

from tests.exchange.langsmith.server import set_keys


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the local server, in the environment."""
    set_keys(monkeypatch)
