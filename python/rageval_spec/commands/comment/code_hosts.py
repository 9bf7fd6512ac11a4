"""Keeps one comment up to date on a pull request of GitHub or a merge request of GitLab.

`CodeHost` is the contract of a code host. GitLab calls comments notes. The pull request is found from the options and
from what a CI job's environment says.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from rageval_spec.dataclass import dataclass
from rageval_spec.endpoints.addresses import check_base_url
from rageval_spec.endpoints.endpoint import Endpoint, shorten
from rageval_spec.endpoints.tries import MOST_PATIENCE, WORTH_ANOTHER_TRY, Reply, TryError, TryFailure, read_retry_after
from rageval_spec.errors import UsageError
from rageval_spec.plugin.secrets import Secret

_MOST_PAGES = 100
_HAS_NO_USER = frozenset({401, 403, 404})
_GONE = frozenset({404, 410})


class Comment(NamedTuple):
    """A comment: its number, its author as the host describes one, and its text."""

    number: int
    author: Mapping[str, Any]
    text: str


class CodeHost(ABC):
    """The comments of one pull request.

    Requests have a token; redirects are not followed, because they would send it to another host.
    """

    update_method: ClassVar[str]
    order: ClassVar[str] = ""
    """What to add to the query of a list so that it begins with the oldest comment."""

    def __init__(self, api: str, headers: Mapping[str, Secret], comments: str = "") -> None:
        self._api, self._headers, self._comments = api, headers, comments

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, query: str = "") -> Page:
        """The reply to one request.

        Raises:
            ApiError: the reply is not 200 or 201, is not JSON, or did not come.
        """
        endpoint = Endpoint(f"{self._api}{path}", WHERE, headers=self._headers, timeout=TIMEOUT)
        content = None if body is None else json.dumps(body).encode("ascii")
        try:
            with endpoint.exchange(content, method=method, query=query) as reply:
                return _read(reply)
        except TryFailure as failure:
            status = None if failure.reply is None else failure.reply.status
            told = endpoint.explain(failure, 1)
            raise ApiError(told, status, is_temporary=failure.is_temporary, wait=failure.wait) from failure
        finally:
            endpoint.close()

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
            found = self.request("GET", self._comments, query=f"per_page={PER_PAGE}&page={page}{self.order}")
            yield from filter(None, map(self.read_comment, found.content))
            if not found.has_next:
                return

    def find_user(self) -> Mapping[str, Any] | None:
        """The user of the token; None if it belongs to no user, as that of a GitHub job."""
        try:
            user: Mapping[str, Any] = self.request("GET", "/user").content
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
        return str(self.request(method, path, {"body": text}).content.get("html_url") or "")


def save_comment(host: CodeHost, text: str, marker: str) -> str:
    """Change the comment that begins with `marker`, or make one, and return its address on the web.

    A comment of another user is never changed, whatever it begins with. The function can be called again after any
    failure: a comment that was made meanwhile is found and changed, and one that somebody deleted is made anew.
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


WHERE = "comment"
TIMEOUT = 30.0
PER_PAGE = 100
_HINTS = {
    401: "the token is wrong or has expired",
    403: "the token may not do this",
    404: "there is no such pull request, or the token may not see it",
}


class ApiError(TryError):
    """A request that failed. Its text has the URL and no secret; without a reply, the status is None."""

    def __init__(self, message: str, status: int | None, *, is_temporary: bool, wait: float | None) -> None:
        super().__init__(message, is_temporary=is_temporary, wait=wait)
        self.status = status


class Page(NamedTuple):
    """The JSON of a reply, and whether a list goes on with another page."""

    content: Any
    has_next: bool


def _read(reply: Reply) -> Page:
    if reply.status not in (200, 201):
        raise _judge(reply)
    try:
        return Page(json.loads(reply.content), 'rel="next"' in reply.headers.get("Link", ""))
    except (ValueError, RecursionError):
        raise TryFailure("answered with something that is not JSON", shorten(reply)) from None


def _judge(reply: Reply) -> TryFailure:
    """The failure that a status stands for; GitHub also refuses too many requests with 403."""
    status = f"answered {reply.status} {reply.reason}".rstrip()
    wait = read_retry_after(reply.headers)
    if wait is None and reply.headers.get("x-ratelimit-remaining") == "0":
        with suppress(ValueError):  # the moment at which GitHub counts anew
            wait = max(0.0, float(reply.headers.get("x-ratelimit-reset", "")) - time.time())
    is_limited = reply.status == 429 or (reply.status == 403 and wait is not None)
    if wait is not None and wait > MOST_PATIENCE:
        return TryFailure(f"{status} and asks to wait {wait:.0f} s, which is too long", shorten(reply))
    is_temporary = is_limited or reply.status in WORTH_ANOTHER_TRY or reply.status >= 500
    hint = "too many requests" if is_limited else _HINTS.get(reply.status)
    return TryFailure(f"{status} ({hint})" if hint else status, shorten(reply), is_temporary=is_temporary, wait=wait)


_FORM = "application/vnd.github+json"
_VERSION = "2022-11-28"


class GitHub(CodeHost):
    """The comments of a pull request, which GitHub keeps as those of an issue."""

    update_method: ClassVar[str] = "PATCH"

    def __init__(self, destination: Destination) -> None:
        token = destination.token
        headers = {
            "authorization": Secret(f"Bearer {token.reveal()}", f"Bearer {token}"),
            "accept": Secret(_FORM, _FORM),
            "x-github-api-version": Secret(_VERSION, _VERSION),
        }
        self._issues = f"/repos/{quote(destination.repository)}/issues"
        super().__init__(destination.api, headers, f"{self._issues}/{destination.number}/comments")

    def name_comment(self, number: int) -> str:
        return f"{self._issues}/comments/{number}"

    def read_comment(self, content: Mapping[str, Any]) -> Comment | None:
        """A comment; the author of a deleted account is empty."""
        return Comment(content["id"], content.get("user") or {}, content.get("body") or "")

    def is_own(self, author: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
        """Whether the user wrote it; the token of a job or an app has no user, and its comments are a bot's."""
        return author.get("type") == "Bot" if user is None else author.get("login") == user.get("login")


class GitLab(CodeHost):
    """The notes of a merge request."""

    update_method: ClassVar[str] = "PUT"
    order: ClassVar[str] = "&sort=asc&order_by=created_at"

    def __init__(self, destination: Destination) -> None:
        project = quote(destination.repository, safe="")
        notes = f"/projects/{project}/merge_requests/{destination.number}/notes"
        super().__init__(destination.api, {"private-token": destination.token}, notes)

    def name_comment(self, number: int) -> str:
        return f"{self._comments}/{number}"

    def read_comment(self, content: Mapping[str, Any]) -> Comment | None:
        """A note; None for one that GitLab wrote, such as "added 1 commit"."""
        if content.get("system"):
            return None
        return Comment(content["id"], content.get("author") or {}, content.get("body") or "")

    def is_own(self, author: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
        """Whether the user wrote it. Every token that may write notes has a user, if only a bot of the project."""
        return user is not None and author.get("id") == user.get("id")


Host: TypeAlias = Literal["github", "gitlab"]
_TOKENS: Mapping[Host, tuple[str, ...]] = {"github": ("GITHUB_TOKEN", "GH_TOKEN"), "gitlab": ("GITLAB_TOKEN",)}
_APIS: Mapping[Host, tuple[str, str]] = {
    "github": ("GITHUB_API_URL", "https://api.github.com"),
    "gitlab": ("CI_API_V4_URL", "https://gitlab.com/api/v4"),
}
_REPOSITORIES: Mapping[Host, tuple[str, str]] = {
    "github": ("GITHUB_REPOSITORY", "owner/name"),
    "gitlab": ("CI_PROJECT_ID", "the project's number or path"),
}


@dataclass(frozen=True, slots=True)
class Destination:
    """A pull request (a merge request on GitLab) in a repository, and the token that may comment on it."""

    host: Host
    api: str
    repository: str
    number: int
    token: Secret


class NoDestinationError(Exception):
    """There is nothing to comment on, which is not a mistake; the message says why."""


def find_destination(
    environment: Mapping[str, str],
    *,
    host: Host | None = None,
    api: str | None = None,
    repository: str | None = None,
    number: int | None = None,
) -> Destination:
    """The pull request of the options, or else of the CI job.

    Raises:
        NoDestinationError: the job does not belong to a pull request, or to one from a fork, whose jobs must not write.
        UsageError: an option or a variable is missing or wrong; the message names it.
    """
    if host is None:
        if environment.get("GITHUB_ACTIONS") == "true" or "GITHUB_REPOSITORY" in environment:
            host = "github"
        elif "GITLAB_CI" in environment:
            host = "gitlab"
        else:
            raise UsageError("which code host? Write --host github or --host gitlab; this is neither's CI job")
    if number is None:
        number = _read_event(environment) if host == "github" else _read_merge_request(environment)
    variable, form = _REPOSITORIES[host]
    repository = repository or environment.get(variable)
    if not repository:
        raise UsageError(f"which repository? Write --repository ({form}), or set {variable}")
    variable, default = _APIS[host]
    try:
        address = check_base_url(api or environment.get(variable) or default).rstrip("/")
    except ValueError as error:
        raise UsageError(f"{'--api' if api else variable}: {error}") from None
    for name in _TOKENS[host]:
        if token := environment.get(name, "").strip():
            return Destination(host, address, repository, number, Secret(token, f"${{secret:{name}}}"))
    raise UsageError(f"set {_TOKENS[host][0]} to a token that may write comments; it is read from the environment only")


def _read_event(environment: Mapping[str, str]) -> int:
    """The number in the event that started a GitHub job."""
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        raise UsageError("which pull request? Write --number, or set GITHUB_EVENT_PATH")
    try:
        event = json.loads(Path(path).read_bytes())
        request = event.get("pull_request") if isinstance(event, dict) else None
        if request is None:
            raise NoDestinationError("this job does not belong to a pull request")
        number = int(request["number"])
        sides = [request[name].get("repo") for name in ("head", "base")]  # a fork that was deleted has no repository
        head, base = (None if one is None else str(one["full_name"]) for one in sides)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH: {path} is not an event of GitHub: {error}") from None
    if head != base:
        raise NoDestinationError("the pull request comes from a fork, whose jobs must not write comments")
    return number


def _read_merge_request(environment: Mapping[str, str]) -> int:
    number = environment.get("CI_MERGE_REQUEST_IID")
    if not number:
        raise NoDestinationError("this job does not belong to a merge request")
    source, target = (environment.get(f"CI_MERGE_REQUEST_{side}ID") for side in ("SOURCE_PROJECT_", "PROJECT_"))
    if source != target:
        raise NoDestinationError("the merge request comes from a fork, whose jobs must not write comments")
    if not number.isdecimal():
        raise UsageError(f"CI_MERGE_REQUEST_IID: {number!r} is not a number")
    return int(number)
