"""Checks and completes the URLs of endpoints, which people write with or without a version and a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

_VERSION = re.compile(r"v\d+\w*")


def check_base_url(text: str) -> str:
    """Return the text if it is a URL that can be shown.

    Raises:
        ValueError: the text is not a URL, contains credentials, or has characters that are not allowed in a URL.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        # The reason would show a part of the text, which can be a part of a password.
        raise ValueError("this is not a URL: its host or its port cannot be read") from None
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not text.isprintable():
        raise ValueError("write a URL such as http://localhost:8080 or https://api.openai.com/v1")
    if "@" in url.netloc:
        raise ValueError("this URL has credentials, which results would show; use api_key or headers instead")
    if not text.isascii() or " " in text:
        raise ValueError("a URL cannot have spaces or characters beyond ASCII: percent-encode them")
    return text


def complete_url(base_url: str, ending: Sequence[str], version: Sequence[str] = ("v1",)) -> str:
    """The URL to post to: `base_url`, `version` and `ending`, without the parts that `base_url` has already.

    The host is in lower case and slashes are not doubled, so that equal endpoints have equal URLs.
    """
    url = urlsplit(base_url)
    steps = [step for step in url.path.split("/") if step]
    if steps[-len(ending) :] != list(ending):
        steps += ending if any(map(_VERSION.fullmatch, steps)) else [*version, *ending]
    return SplitResult(url.scheme, url.netloc.lower(), "/" + "/".join(steps), url.query, "").geturl()


def join_path(path: str, further: str) -> str:
    """A URL's path with `further` appended, which begins with a slash or is empty."""
    return path.rstrip("/") + further if further else path


def hide_credentials(url: SplitResult) -> str:
    """The URL without the parts that can be secret: user, password, query and fragment."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
