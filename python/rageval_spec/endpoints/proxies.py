"""Finds the proxy that the environment names for a URL."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rageval_spec.endpoints.addresses import hide_credentials
from rageval_spec.errors import UsageError


def find_proxy(url: SplitResult) -> SplitResult | None:
    """The proxy for a URL, as urllib finds it; None if there is none.

    Raises:
        UsageError: the proxy is not an `http://` proxy.
    """
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.netloc):
        return None
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"the environment names a proxy that is not http://: {hide_credentials(parts)}")
    return parts


def authorize(proxy: SplitResult) -> dict[str, str]:
    """The header with the proxy's credentials; empty if its URL has none."""
    if proxy.username is None:
        return {}
    return {"Proxy-Authorization": f"Basic {b64encode(':'.join(list_credentials(proxy)).encode()).decode('ascii')}"}


def list_credentials(proxy: SplitResult | None) -> list[str]:
    """The user and the password of a proxy; empty if its URL has none."""
    if proxy is None or proxy.username is None:
        return []
    return [unquote(proxy.username), unquote(proxy.password or "")]
