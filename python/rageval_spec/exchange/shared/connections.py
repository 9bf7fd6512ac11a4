"""How the APIs of tools are reached and read: URLs and keys from nodes or the environment, and replies page by page."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from rageval_spec.errors import UsageError
from rageval_spec.plugin.secrets import Secret

ABSENT = frozenset({404, 405, 501})
"""Statuses of a path that an older server does not have."""


def check_url(url: str | None) -> str | None:
    """The URL without a slash at its end.

    Raises:
        ValueError: it is not a URL, or has credentials.
    """
    from rageval_spec.endpoints.addresses import check_base_url

    return None if url is None else check_base_url(url).rstrip("/")


def choose_url(given: str | None, variables: Sequence[str], usual: str) -> str:
    """The URL of a node, of the first variable of the environment that has one, or the usual one.

    Raises:
        UsageError: the URL of the environment cannot be used; the message begins with the variable.
    """
    known = ((name, text) for name in variables if (text := os.environ.get(name, "").strip()))
    name, text = ("", given) if given else next(known, ("", usual))
    try:
        return str(check_url(text))
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def describe_url(what: str, variables: Sequence[str], usual: str) -> Any:
    """The field of a node with a URL; `what` has it."""
    named = "".join(f"`${name}`, else " for name in variables)
    return Field(default=None, description=f"The URL of {what}. Default: {named}{usual}.")


def describe_key(what: str, *variables: str) -> Any:
    """The field of a node with a key."""
    named = ", else ".join(f"`${name}`" for name in variables)
    return Field(default=None, description=f"The {what}: `${{secret:VAR}}`. Default: {named}.")


class Connection(BaseModel):
    """The keys of a node that say how the API of a tool is reached."""

    url_variables: ClassVar[tuple[str, ...]]
    usual_url: ClassVar[str]
    url: str | None = None
    _check_url = field_validator("url")(check_url)

    def find_url(self) -> str:
        """The URL of the node, of the environment, or the usual one."""
        return choose_url(self.url, self.url_variables, self.usual_url)


class ToolApi:
    """What asks the API of a tool."""

    def __init__(self, url: str, where: str, headers: Mapping[str, Secret], secrets: Sequence[Secret] = ()) -> None:
        """Ask nothing yet. `where` begins messages."""
        from rageval_spec.endpoints.service import Service

        self.service = Service(url, where, headers=headers, secrets=secrets)
        self.where = where

    def close(self) -> None:
        self.service.close()


def find_key(given: Secret | None, *variables: str) -> Secret | None:
    """The key of a node, or of the first variable of the environment that has one."""
    if given is not None and given.reveal():
        return given
    known = (Secret(key, f"${{{name}}}") for name in variables if (key := os.environ.get(name, "").strip()))
    return next(known, None)


def require_key(given: Secret | None, where: str, *variables: str, what: str = "API key") -> Secret:
    """The key of a node or of the environment; an error that names the variable if there is none."""
    if (key := find_key(given, *variables)) is None:
        raise UsageError(f"{where}: there is no {what}; set the environment variable {variables[0]}")
    return key


def bear(key: Secret) -> dict[str, Secret]:
    """The header with a key that opens an API by itself."""
    return {"Authorization": Secret(f"Bearer {key.reveal().strip()}")}


def pair(user: str, password: str) -> dict[str, Secret]:
    """The header with a user and a password."""
    return {"Authorization": Secret(f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}")}


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
