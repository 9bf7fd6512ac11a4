"""How the APIs of tools are reached and read: URLs and keys from nodes or the environment, and replies page by page."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field, field_validator

from rageval_spec.diagnostics import suggest
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
    """What asks the API of a tool. A subclass says how the tool's pages follow one another."""

    product: ClassVar[str]
    """The tool's name, for messages about replies that are not of it."""
    cursor: ClassVar[str] = "cursor"
    """The parameter that asks for a further page."""
    following: ClassVar[tuple[str, ...]] = ("cursor",)
    """Where a reply may have the cursor of the next page: keys, with dots between them."""
    ends_empty: ClassVar[bool] = True
    """Whether the last page can have a cursor, and is empty."""
    omits_empty: ClassVar[bool] = False
    """Whether replies leave out lists that are empty."""

    def __init__(self, url: str, where: str, headers: Mapping[str, Secret], secrets: Sequence[Secret] = ()) -> None:
        """Ask nothing yet. `where` begins messages."""
        from rageval_spec.endpoints.service import Service

        self.service = Service(url, where, headers=headers, secrets=secrets)
        self.where = where

    def close(self) -> None:
        self.service.close()

    def read(self, content: Any, key: str, place: str, kind: type[Any] = list) -> Any:
        """The value of a key of a reply; `place` is what was asked."""
        from rageval_spec.endpoints.service import ServiceError

        value = content.get(key) if isinstance(content, Mapping) else None
        if value is None and self.omits_empty and kind is list and isinstance(content, Mapping):
            return []
        if not isinstance(value, kind):
            what = f"list {key!r}" if kind is list else repr(key)
            raise ServiceError(f"{self.where}: {place}: the reply has no {what}; is url that of {self.product}?")
        return value

    def pages(self, path: str, asked: Asked, key: str, *, posts: bool = False) -> Iterator[list[Any]]:
        """The lists under a key of the replies, page by page; `asked` are parameters, or with `posts` the body."""

        def fetch(cursor: dict[str, str]) -> tuple[list[Any], Any]:
            if posts:
                content = self.service.post(path, {**dict(asked), **cursor})
            else:
                pairs = asked.items() if isinstance(asked, Mapping) else asked
                content = self.service.get(path, [*pairs, *cursor.items()])
            rows = self.read(content, key, path)
            return rows, next(filter(None, (_find_inside(content, place) for place in self.following)), None)

        where = f"{self.where}: {path}"
        return list_row_pages(fetch, where) if self.ends_empty else list_cursor_pages(fetch, where, self.cursor)

    def list_objects(self, path: str, asked: Asked, key: str, *, posts: bool = False) -> Iterator[dict[str, Any]]:
        """The objects in the lists of all pages."""
        from rageval_spec.endpoints.service import ServiceError

        for page in self.pages(path, asked, key, posts=posts):
            if not all(isinstance(one, dict) for one in page):
                raise ServiceError(f"{self.where}: {path}: {key!r} lists something that is not an object")
            yield from page


Asked = Mapping[str, Any] | Sequence[tuple[str, Any]]


def _find_inside(content: Any, place: str) -> Any:
    for key in place.split("."):
        content = read_object(content).get(key)
    return content


def explain_unknown(where: str, what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error about a name that the tool does not know, with the names that it knows."""
    names = [*known]
    listed = f"the {what}s are {', '.join(names[:_SHOWN])}" if names else f"there are no {what}s"
    return UsageError(f"{where}: there is no {what} {name!r}; {suggest(name, names) or listed}")


_SHOWN = 20


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
