from __future__ import annotations

from dataclasses import replace

from rageval_spec.commands.comment.gitlab import GitLab
from tests.commands.comment.conftest import go_to
from tests.commands.comment.server import CodeHostServer


def test_a_note_is_made_and_changed(server: CodeHostServer) -> None:
    host = GitLab(go_to(server, "gitlab"))
    host.create("text")
    host.update(100, "other")
    notes = "/projects/42/merge_requests/7/notes"
    assert server.asked == [f"POST {notes}", f"PUT {notes}/100"]
    assert server.comments[0]["body"] == "other"


def test_what_gitlab_wrote_itself_is_no_comment(server: CodeHostServer) -> None:
    host = GitLab(go_to(server, "gitlab"))
    assert host.read_comment({"id": 1, "system": True, "body": "added 1 commit"}) is None
    server.add("added 1 commit", system=True)
    assert [*host.list_comments()] == []


def test_the_path_of_a_project_is_one_part_of_the_url(server: CodeHostServer) -> None:
    host = GitLab(replace(go_to(server, "gitlab"), repository="group/app"))
    assert host.name_comment(3) == "/projects/group%2Fapp/merge_requests/7/notes/3"
