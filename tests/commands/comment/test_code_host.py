from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.commands.comment.api import ApiError
from rageval_spec.commands.comment.code_host import save_comment
from rageval_spec.commands.comment.destination import Host
from tests.commands.comment.conftest import reach
from tests.commands.comment.server import CodeHostServer

MARK = "<!-- rageval-spec: bot -->"
OLD, NEW = f"{MARK}\nold", f"{MARK}\nnew"
HOSTS = pytest.mark.parametrize("host", ["github", "gitlab"])
ME: dict[str, Any] = {"id": 5, "login": "ci[bot]"}
SOMEBODY = {"user": {"login": "eve", "type": "User"}, "author": {"id": 6}}


def bodies(server: CodeHostServer) -> list[str]:
    return [one["body"] for one in server.comments]


@pytest.fixture(autouse=True)
def user(server: CodeHostServer) -> None:
    server.user = ME


@HOSTS
def test_the_first_comment_is_made_and_the_next_call_changes_it(server: CodeHostServer, host: Host) -> None:
    server.add("looks good to me")
    save_comment(reach(server, host), OLD, MARK)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == ["looks good to me", NEW]


@HOSTS
def test_a_comment_on_a_later_page_is_found(server: CodeHostServer, host: Host) -> None:
    for number in range(7):
        server.add(f"comment {number}")
    server.add(OLD)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server)[7:] == [NEW]
    assert sum(one.startswith("GET /repos") or "GET /projects" in one for one in server.asked) == 3


@HOSTS
def test_a_comment_that_somebody_deleted_meanwhile_is_made_anew(server: CodeHostServer, host: Host) -> None:
    server.deleted.add(server.add(OLD))
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD, NEW]


@HOSTS
def test_a_comment_of_another_user_is_never_changed(server: CodeHostServer, host: Host) -> None:
    server.add(OLD, **SOMEBODY)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD, NEW]


@HOSTS
def test_another_mark_and_a_mark_inside_a_text_are_left_alone(server: CodeHostServer, host: Host) -> None:
    others = ["<!-- rageval-spec: other -->\nold", f"quoting {MARK}"]
    for text in others:
        server.add(text)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [*others, NEW]


@HOSTS
def test_a_refusal_is_an_error(server: CodeHostServer, host: Host) -> None:
    server.add(OLD)
    server.refusals = {"PATCH": [(403, {})], "PUT": [(403, {})]}
    with pytest.raises(ApiError, match="403"):
        save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD]


def test_a_token_without_a_user_changes_only_a_bots_comment(server: CodeHostServer) -> None:
    server.user = None
    server.add(OLD, **SOMEBODY)
    server.add(OLD)
    save_comment(reach(server, "github"), NEW, MARK)
    assert bodies(server) == [OLD, NEW]
