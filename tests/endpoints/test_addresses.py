from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from rageval_spec.endpoints.addresses import check_base_url, complete_url, hide_credentials


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
