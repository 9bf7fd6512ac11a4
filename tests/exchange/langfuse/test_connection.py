from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.langfuse.connection import CLOUD, LangfuseConnection, connect, find_url
from rageval_spec.plugin.secret import Secret


def test_the_url_comes_from_the_node_then_from_the_environment() -> None:
    both = {"LANGFUSE_BASE_URL": "http://new:3000/", "LANGFUSE_HOST": "http://old:3000"}
    assert find_url(LangfuseConnection(url="http://own:3000/"), both) == "http://own:3000"
    assert find_url(LangfuseConnection(), both) == "http://new:3000"
    assert find_url(LangfuseConnection(), {"LANGFUSE_HOST": "http://old:3000"}) == "http://old:3000"
    assert find_url(LangfuseConnection(), {}) == CLOUD


def test_a_key_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    with pytest.raises(
        UsageError, match="export: there is no secret key; set the environment variable LANGFUSE_SECRET_KEY"
    ):
        connect(LangfuseConnection(), "export")
    connect(LangfuseConnection(secret_key=Secret("sk-lf-given", "${secret:KEY}")), "export").close()


@pytest.mark.parametrize("url", ["localhost:3000", "http://me:secret-word@langfuse"])
def test_a_url_that_cannot_be_used_is_an_error_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="langfuse: url: ") as caught:
        connect(LangfuseConnection(url=url), "langfuse")
    assert "secret-word" not in str(caught.value)
