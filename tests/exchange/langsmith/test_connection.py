from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.langsmith.connection import CLOUD, LangSmithConnection, connect, find_url, split_url


def test_the_url_comes_from_the_node_then_from_the_environment() -> None:
    both = {"LANGSMITH_ENDPOINT": "http://new/", "LANGCHAIN_ENDPOINT": "http://old"}
    assert find_url(LangSmithConnection(url="http://own/"), both) == "http://own"
    assert find_url(LangSmithConnection(), both) == "http://new"
    assert find_url(LangSmithConnection(), {}) == CLOUD


@pytest.mark.parametrize(
    ("url", "host", "older"),
    [
        (CLOUD, CLOUD, ""),
        ("https://own.example/api/v1", "https://own.example", "/api/v1"),
        ("https://own.example/api", "https://own.example", "/api"),
    ],
)
def test_the_newer_paths_begin_at_the_host(url: str, host: str, older: str) -> None:
    assert split_url(url) == (host, older)


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGSMITH_API_KEY")
    monkeypatch.delenv("LANGCHAIN_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable LANGSMITH_API_KEY"):
        connect(LangSmithConnection(), "langsmith")
    monkeypatch.setenv("LANGCHAIN_API_KEY", "lsv2_old")
    connect(LangSmithConnection(), "langsmith").service.close()
