"""Checks and completes the URLs of endpoints, and finds the proxies for them.

People write URLs with or without a version and a path. Proxies are those that the environment names for a URL.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import AfterValidator

from rageval_spec.errors import UsageError
from rageval_spec.libraries import compile_later

_VERSION = compile_later(r"v\d+\w*")


def check_base_url(text: str, example: str = "http://localhost:8080") -> str:
    """Return the text; raise `ValueError` if it is no URL, contains credentials or has characters that no URL has.

    `example` is what the message suggests.
    """
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        # The reason would show a part of the text, which can be a part of a password.
        raise ValueError("this is not a URL: its host or its port cannot be read") from None
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not text.isprintable():
        raise ValueError(f"write a URL such as {example}")
    if "@" in url.netloc:
        raise ValueError("this URL has credentials, which results would show; use api_key or headers instead")
    if not text.isascii() or " " in text:
        raise ValueError("a URL cannot have spaces or characters beyond ASCII: percent-encode them")
    return text


def _check_model_url(text: str) -> str:
    return check_base_url(text, "http://localhost:8080 or https://api.openai.com/v1")


BaseUrl = Annotated[str, AfterValidator(_check_model_url)]


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
    return path.rstrip("/") + further if further else path


def hide_credentials(url: SplitResult) -> str:
    """The URL without the parts that can be secret: user, password, query and fragment."""
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


def find_proxy(url: SplitResult) -> SplitResult | None:
    """The proxy for a URL, as urllib finds it; None if there is none. Only an `http://` proxy can be used."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.netloc):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"the environment names a proxy that is not http://: {hide_credentials(parts)}")
    return parts


def authorize(proxy: SplitResult) -> dict[str, str]:
    credentials = ":".join(list_credentials(proxy)).encode()
    return {"Proxy-Authorization": f"Basic {b64encode(credentials).decode('ascii')}"} if credentials else {}


def list_credentials(proxy: SplitResult) -> list[str]:
    return [] if proxy.username is None else [unquote(proxy.username), unquote(proxy.password or "")]
