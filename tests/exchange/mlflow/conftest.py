from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exchange.mlflow.server import MlflowServer


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowServer]:
    """A small MLflow at the URL that the environment names."""
    for name in ("http_proxy", "all_proxy", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    server = MlflowServer()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
    yield server
    server.close()
