"""How the APIs of tools are reached and read: URLs and keys from nodes or the environment, and replies page by page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import field_validator

from rageval_spec.errors import UsageError
from rageval_spec.plugin.secrets import Secret

if TYPE_CHECKING:
    from rageval_spec.endpoints.service import Service


class ToolApi:
    """What asks the API of a tool."""

    def __init__(self, service: Service, where: str) -> None:
        """Ask nothing yet. `where` begins messages about replies that make no sense."""
        self.service = service
        self.where = where

    def close(self) -> None:
        self.service.close()


ABSENT = frozenset({404, 405, 501})
"""Statuses of a path that an older server does not have."""


def check_url(url: str | None) -> str | None:
    """The URL without a slash at its end.

    Raises:
        ValueError: it is not a URL, or has credentials.
    """
    from rageval_spec.endpoints.addresses import check_base_url

    return None if url is None else check_base_url(url).rstrip("/")


validate_url = field_validator("url")(check_url)
"""Checks the field `url` of a node that has it as a class attribute."""


def require_url(url: str, where: str, key: str = "url") -> str:
    """The URL of a node or of the environment, without a slash at its end; `key` is the setting that names it.

    Raises:
        UsageError: it cannot be used; the message begins with `where` and the key.
    """
    try:
        return str(check_url(url))
    except ValueError as error:
        raise UsageError(f"{where}: {key}: {error}") from None


def choose_url(given: str | None, variables: Sequence[str], default: str) -> str:
    """The URL of a node, of the first variable of the environment that has one, or the default."""
    return (given or next(filter(None, map(os.environ.get, variables)), default)).rstrip("/")


def require_key(given: Secret | None, where: str, *variables: str, what: str = "API key") -> Secret:
    """The key of a node, or of the first variable of the environment that has one."""
    if given is not None and given.reveal():
        return given
    for name in variables:
        if key := os.environ.get(name, "").strip():
            return Secret(key, f"${{{name}}}")
    raise UsageError(f"{where}: there is no {what}; set the environment variable {variables[0]}")


def read_key(content: Any, key: str, kind: type[Any], message: str) -> Any:
    """The value of a key of a reply."""
    from rageval_spec.endpoints.service import ServiceError

    value = content.get(key) if isinstance(content, Mapping) else None
    if not isinstance(value, kind):
        raise ServiceError(message)
    return value


def read_object(found: Any) -> Mapping[str, Any]:
    """The object; {} if it is none."""
    return found if isinstance(found, Mapping) else {}


Fetch = Callable[[dict[str, str]], tuple[list[Any], Any]]
"""Gives a page and the next cursor for the parameter with a cursor; for the first page, for no parameter."""


def list_cursor_pages(fetch: Fetch, where: str, name: str = "cursor") -> Iterator[list[Any]]:
    """The pages that `fetch` gives until the next cursor is no text; `name` is what the API calls the cursor."""

    from rageval_spec.endpoints.service import list_pages

    def ask(cursor: str | None) -> tuple[list[Any], str | None]:
        page, following = fetch({} if cursor is None else {name: cursor})
        return page, following if isinstance(following, str) else None

    return list_pages(ask, where)


def list_row_pages(fetch: Fetch, where: str) -> Iterator[list[Any]]:
    """The pages of an API whose last page is empty, or has no cursor.

    Raises:
        ServiceError: a cursor came twice, or a page came twice under another cursor: the pages would never end.
    """
    from rageval_spec.endpoints.service import ServiceError

    earlier: list[Any] = []
    for page in list_cursor_pages(fetch, where):
        if not page:
            return
        if page == earlier:
            raise ServiceError(f"{where}: gave the same rows twice in a row, so its pages would never end")
        yield page
        earlier = page
