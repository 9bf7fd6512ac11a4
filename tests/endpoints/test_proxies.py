from __future__ import annotations

from base64 import b64decode
from urllib.parse import urlsplit

import pytest

from rageval_spec.endpoints.proxies import authorize, find_proxy, list_credentials
from rageval_spec.errors import UsageError


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_the_proxy_of_the_scheme_is_found_and_some_hosts_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_proxy(urlsplit("http://host/v1")) is None
    monkeypatch.setenv("http_proxy", "proxy.invalid:81")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    proxy = find_proxy(urlsplit("http://host/v1"))
    assert proxy is not None
    assert (proxy.hostname, proxy.port) == ("proxy.invalid", 81)
    assert find_proxy(urlsplit("https://host/v1")) is None
    assert find_proxy(urlsplit("http://127.0.0.1/v1")) is None


def test_credentials_are_unquoted_and_sent() -> None:
    proxy = urlsplit("http://me:p%40ss@proxy")
    assert list_credentials(proxy) == ["me", "p@ss"]
    assert b64decode(authorize(proxy)["Proxy-Authorization"].removeprefix("Basic ")) == b"me:p@ss"
    assert authorize(urlsplit("http://proxy")) == {}
    assert list_credentials(None) == []


def test_the_message_about_another_kind_of_proxy_hides_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://me:hidden@proxy.invalid:1")
    with pytest.raises(UsageError, match=r"socks5://proxy\.invalid:1") as caught:
        find_proxy(urlsplit("http://host"))
    assert "hidden" not in str(caught.value)
