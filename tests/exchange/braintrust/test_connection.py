from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.braintrust.connection import CLOUD, BraintrustConnection, connect, find_url


def test_the_url_comes_from_the_node_then_from_the_environment() -> None:
    own = {"BRAINTRUST_API_URL": "http://own/"}
    assert find_url(BraintrustConnection(url="http://node/"), own) == "http://node"
    assert find_url(BraintrustConnection(), own) == "http://own"
    assert find_url(BraintrustConnection(), {}) == CLOUD


def test_without_a_key_the_message_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAINTRUST_API_KEY")
    with pytest.raises(UsageError, match="set the environment variable BRAINTRUST_API_KEY"):
        connect(BraintrustConnection(), "braintrust")
