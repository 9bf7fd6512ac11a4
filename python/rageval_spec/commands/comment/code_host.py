"""The contract of a code host, and how one comment is kept up to date on any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from rageval_spec.commands.comment.api import PER_PAGE, Api, ApiError

_MOST_PAGES = 100
_HAS_NO_USER = frozenset({401, 403, 404})
_GONE = frozenset({404, 410})


class Comment(NamedTuple):
    """A comment: its number, its author as the host describes one, and its text."""

    number: int
    author: Mapping[str, Any]
    text: str


class CodeHost(ABC):
    """The comments of one pull request."""

    update_method: ClassVar[str]
    order: ClassVar[str] = ""
    """What to add to the query of a list so that it begins with the oldest comment."""

    def __init__(self, api: Api, comments: str) -> None:
        """Ask nothing yet; `comments` is the path of the list of comments."""
        self._api = api
        self._comments = comments

    @abstractmethod
    def name_comment(self, number: int) -> str:
        """The path of one comment."""

    @abstractmethod
    def read_comment(self, content: Mapping[str, Any]) -> Comment | None:
        """A comment of a list; None for an entry that the host itself wrote."""

    @abstractmethod
    def is_own(self, author: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
        """Whether the token's user wrote a comment; `user` is None if the token belongs to no user."""

    def list_comments(self) -> Iterator[Comment]:
        """All comments, page by page, oldest first."""
        for page in range(1, _MOST_PAGES + 1):
            found = self._api.request("GET", self._comments, query=f"per_page={PER_PAGE}&page={page}{self.order}")
            yield from filter(None, map(self.read_comment, found.content))
            if not found.has_next:
                return

    def find_user(self) -> Mapping[str, Any] | None:
        """The user of the token; None if it belongs to no user, as that of a GitHub job."""
        try:
            user: Mapping[str, Any] = self._api.request("GET", "/user").content
        except ApiError as error:
            if error.status in _HAS_NO_USER:
                return None
            raise
        return user

    def update(self, number: int, text: str) -> str:
        """Change a comment, and return its address on the web; "" if the host does not say it."""
        return self._send(self.update_method, self.name_comment(number), text)

    def create(self, text: str) -> str:
        """Make a comment, and return its address on the web; "" if the host does not say it."""
        return self._send("POST", self._comments, text)

    def _send(self, method: str, path: str, text: str) -> str:
        return str(self._api.request(method, path, {"body": text}).content.get("html_url") or "")


def save_comment(host: CodeHost, text: str, marker: str) -> str:
    """Change the comment that begins with `marker`, or make one, and return its address on the web.

    A comment of another user is never changed, whatever it begins with. The function can be called again after any
    failure: a comment that was made meanwhile is found and changed, and one that somebody deleted is made anew.

    Raises:
        ApiError: a request failed.
    """
    marked = [comment for comment in host.list_comments() if comment.text.startswith(marker)]
    user = host.find_user() if marked else None
    for comment in marked:
        if host.is_own(comment.author, user):
            try:
                return host.update(comment.number, text)
            except ApiError as error:
                if error.status not in _GONE:
                    raise
    return host.create(text)
