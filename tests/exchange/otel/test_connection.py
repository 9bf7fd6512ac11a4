from __future__ import annotations

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.exchange.otel.connection import OtelConnection, connect, find_endpoint, find_headers
from rageval_spec.plugin.secret import Secret


@pytest.mark.parametrize(
    ("given", "environment", "url"),
    [
        (None, {}, "http://localhost:4318"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/"}, "http://c:1"),
        ("http://d:2/v1/traces", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1"}, "http://d:2"),
        ("https://e/otlp/", {}, "https://e/otlp"),
    ],
)
def test_endpoints(given: str | None, environment: dict[str, str], url: str) -> None:
    assert find_endpoint(OtelConnection(endpoint=given), environment) == url


def test_headers_of_the_node_replace_those_of_the_environment() -> None:
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=1,broken"}
    found = find_headers(OtelConnection(), environment)
    assert {name: secret.reveal() for name, secret in found.items()} == {"api-key": "a b", "x": "1"}
    assert "a b" not in repr(found)
    own = {"y": Secret("2")}
    assert find_headers(OtelConnection(headers=own), environment) == own


def test_an_endpoint_that_is_no_url() -> None:
    with pytest.raises(UsageError, match="otel: endpoint:"):
        connect(OtelConnection(endpoint="localhost:4318"), "otel")
