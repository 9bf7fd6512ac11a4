""""""

from __future__ import annotations

from base64 import b64decode
from urllib.parse import urlsplit

import pytest

from rageval_spec.endpoints.addresses import (
    authorize,
    check_base_url,
    complete_url,
    find_proxy,
    hide_credentials,
    list_credentials,
)
from rageval_spec.errors import UsageError


@pytest.mark.parametrize(
    ("base", "whole"),
    [
        ("http://Host", "http://host/v1/embeddings"),
        ("http://host/v1/", "http://host/v1/embeddings"),
        ("http://host//api", "http://host/api/v1/embeddings"),
        ("http://host/v1beta/openai", "http://host/v1beta/openai/embeddings"),
        ("http://host/x/embeddings?a=1", "http://host/x/embeddings?a=1"),
    ],
)
def test_a_missing_version_and_ending_are_added(base: str, whole: str) -> None:
    assert complete_url(base, ("embeddings",)) == whole


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8080",
        "ftp://host",
        "http://me:hidden@host",
        "http://host/a b",
        "http://host:hidden/",
        "http://[hidden",
    ],
)
def test_the_message_about_a_wrong_url_does_not_repeat_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"URL") as caught:
        check_base_url(text)
    assert "hidden" not in str(caught.value)


def test_the_secret_parts_of_a_url_are_left_out() -> None:
    assert hide_credentials(urlsplit("https://me:word@host:8/x?key=1#y")) == "https://host:8/x"


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("no_proxies")
def test_the_proxy_of_the_scheme_is_found_and_some_hosts_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_proxy(urlsplit("http://host/v1")) is None
    monkeypatch.setenv("http_proxy", "proxy.invalid:81")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    proxy = find_proxy(urlsplit("http://host/v1"))
    assert proxy is not None
    assert (proxy.hostname, proxy.port) == ("proxy.invalid", 81)
    assert find_proxy(urlsplit("https://host/v1")) is None
    assert find_proxy(urlsplit("http://127.0.0.1/v1")) is None


@pytest.mark.usefixtures("no_proxies")
def test_credentials_are_unquoted_and_sent() -> None:
    proxy = urlsplit("http://me:p%40ss@proxy")
    assert list_credentials(proxy) == ["me", "p@ss"]
    assert b64decode(authorize(proxy)["Proxy-Authorization"].removeprefix("Basic ")) == b"me:p@ss"
    assert authorize(urlsplit("http://proxy")) == {}
    assert list_credentials(urlsplit("http://proxy")) == []


@pytest.mark.usefixtures("no_proxies")
def test_the_message_about_another_kind_of_proxy_hides_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://me:hidden@proxy.invalid:1")
    with pytest.raises(UsageError, match=r"socks5://proxy\.invalid:1") as caught:
        find_proxy(urlsplit("http://host"))
    assert "hidden" not in str(caught.value)
