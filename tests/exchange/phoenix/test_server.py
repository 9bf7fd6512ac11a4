from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.phoenix.server import LOCAL, Address
from rageval_spec.plugin.secret import Secret


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_settings_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Address.of(None, None) == Address(LOCAL, None)
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "https://phoenix.example.org/v1/traces")
    monkeypatch.setenv("PHOENIX_API_KEY", "px-1")
    found = Address.of(None, None)
    assert (found.url, found.api_key and found.api_key.reveal()) == ("https://phoenix.example.org", "px-1")
    found = Address.of("http://localhost:1", Secret("px-2"))
    assert (found.url, found.api_key and found.api_key.reveal()) == ("http://localhost:1", "px-2")


def test_a_wrong_url_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://user:pw@host")
    with pytest.raises(UsageError, match="PHOENIX_COLLECTOR_ENDPOINT: this URL has credentials"):
        Address.of(None, None)
