"""Comments on pull requests of GitHub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from rageval_spec.commands.comment.api import Api
from rageval_spec.commands.comment.code_host import CodeHost, Comment
from rageval_spec.commands.comment.destination import Destination
from rageval_spec.plugin.secret import Secret

_FORM = "application/vnd.github+json"
_VERSION = "2022-11-28"


class GitHub(CodeHost):
    """The comments of a pull request, which GitHub keeps as those of an issue."""

    update_method: ClassVar[str] = "PATCH"

    def __init__(self, destination: Destination) -> None:
        """Ask nothing yet."""
        token = destination.token
        headers = {
            "authorization": Secret(f"Bearer {token.reveal()}", f"Bearer {token}"),
            "accept": Secret(_FORM, _FORM),
            "x-github-api-version": Secret(_VERSION, _VERSION),
        }
        self._issues = f"/repos/{quote(destination.repository)}/issues"
        super().__init__(Api(destination.api, headers), f"{self._issues}/{destination.number}/comments")

    def name_comment(self, number: int) -> str:
        """The path of one comment, which does not have the number of the pull request."""
        return f"{self._issues}/comments/{number}"

    def read_comment(self, content: Mapping[str, Any]) -> Comment | None:
        """A comment; the author of a deleted account is empty."""
        return Comment(content["id"], content.get("user") or {}, content.get("body") or "")

    def is_own(self, author: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
        """Whether the user wrote it; the token of a job or an app has no user, and its comments are a bot's."""
        return author.get("type") == "Bot" if user is None else author.get("login") == user.get("login")
