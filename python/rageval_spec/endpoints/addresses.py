"""URLs of endpoints, as people write them: with or without a version, with or without the whole path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

_VERSION = re.compile(r"v\d+\w*")


def check_base_url(text: str) -> str:
    """The text, which is a URL that may be shown.

    Raises:
        ValueError: it is not a URL, it holds credentials, or it has characters that no URL may have.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        # The reason would show a part of the text, which may be a part of a password.
        raise ValueError("this is not a URL: its host or its port cannot be read") from None
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not text.isprintable():
        raise ValueError("write a URL such as http://localhost:8080 or https://api.openai.com/v1")
    if "@" in url.netloc:
        raise ValueError("credentials do not belong in a URL, which results show; write api_key or headers")
    if not text.isascii() or " " in text:
        raise ValueError("a URL has neither spaces nor characters beyond ASCII: percent-encode them")
    return text


def complete_url(base_url: str, ending: Sequence[str], version: Sequence[str] = ("v1",)) -> str:
    """Where to post to: `base_url` and the ending, `version` between them unless the path has a version or says more.

    The host is in lower case, and no slash is doubled, so that equal places have equal URLs.
    """
    url = urlsplit(base_url)
    steps = [step for step in url.path.split("/") if step]
    if steps[-len(ending) :] != list(ending):
        steps += ending if any(map(_VERSION.fullmatch, steps)) else [*version, *ending]
    return SplitResult(url.scheme, url.netloc.lower(), "/" + "/".join(steps), url.query, "").geturl()


def hide_credentials(url: SplitResult) -> str:
    """The URL without what may be secret: the user, the password, the query and the fragment."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
