"""How the tool is reached."""

from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.mlflow.source import LOCAL, find_headers, find_url


def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert (find_url(None), find_headers(None)) == (LOCAL, {})
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org/")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t-1")
    assert find_url(None) == "https://mlflow.example.org"
    assert find_headers(None)["authorization"].reveal() == "Bearer t-1"
    assert find_url("http://localhost:1") == "http://localhost:1"


def test_a_file_in_the_environment_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")
    with pytest.raises(UsageError, match=r"MLFLOW_TRACKING_URI: write a URL .*start a server with: mlflow server"):
        find_url(None)
