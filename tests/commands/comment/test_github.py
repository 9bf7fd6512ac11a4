from __future__ import annotations

from rageval_spec.commands.comment.github import GitHub
from tests.commands.comment.conftest import go_to
from tests.commands.comment.server import CodeHostServer


def test_the_address_of_the_comment_is_returned(server: CodeHostServer) -> None:
    host = GitHub(go_to(server, "github"))
    assert host.create("text") == "https://code.example/7#100"
    assert host.update(100, "other") == "https://code.example/7#100"
    assert server.asked == ["POST /repos/owner/app/issues/7/comments", "PATCH /repos/owner/app/issues/comments/100"]


def test_a_comment_of_a_deleted_account_is_nobodys(server: CodeHostServer) -> None:
    host = GitHub(go_to(server, "github"))
    comment = host.read_comment({"id": 1, "user": None, "body": None})
    assert comment is not None
    assert comment.text == ""
    assert not host.is_own(comment.author, None)
    assert not host.is_own(comment.author, {"login": "me"})
