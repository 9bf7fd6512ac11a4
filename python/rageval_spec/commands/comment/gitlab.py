"""Comments on merge requests of GitLab, which calls them notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from rageval_spec.commands.comment.api import Api
from rageval_spec.commands.comment.code_host import CodeHost, Comment
from rageval_spec.commands.comment.destination import Destination


class GitLab(CodeHost):
    """The notes of a merge request."""

    update_method: ClassVar[str] = "PUT"
    order: ClassVar[str] = "&sort=asc&order_by=created_at"

    def __init__(self, destination: Destination) -> None:
        """Ask nothing yet."""
        project = quote(destination.repository, safe="")
        notes = f"/projects/{project}/merge_requests/{destination.number}/notes"
        super().__init__(Api(destination.api, {"private-token": destination.token}), notes)

    def name_comment(self, number: int) -> str:
        """The path of one note."""
        return f"{self._comments}/{number}"

    def read_comment(self, content: Mapping[str, Any]) -> Comment | None:
        """A note; None for one that GitLab wrote, such as "added 1 commit"."""
        if content.get("system"):
            return None
        return Comment(content["id"], content.get("author") or {}, content.get("body") or "")

    def is_own(self, author: Mapping[str, Any], user: Mapping[str, Any] | None) -> bool:
        """Whether the user wrote it. Every token that may write notes has a user, if only a bot of the project."""
        return user is not None and author.get("id") == user.get("id")
