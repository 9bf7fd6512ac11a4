""""""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.comment.code_hosts import (
    ApiError,
    GitHub,
    GitLab,
    Host,
    NoDestinationError,
    find_destination,
    save_comment,
)
from rageval_spec.errors import UsageError
from rageval_spec.plugin.secrets import Secret
from tests.commands.comment.conftest import go_to, reach
from tests.commands.comment.server import TOKEN, CodeHostServer

MARK = "<!-- rageval-spec: bot -->"
OLD, NEW = f"{MARK}\nold", f"{MARK}\nnew"
HOSTS = pytest.mark.parametrize("host", ["github", "gitlab"])
ME: dict[str, Any] = {"id": 5, "login": "ci[bot]"}
SOMEBODY = {"user": {"login": "eve", "type": "User"}, "author": {"id": 6}}


def bodies(server: CodeHostServer) -> list[str]:
    return [one["body"] for one in server.comments]


@pytest.fixture
def user(server: CodeHostServer) -> None:
    server.user = ME


@pytest.mark.usefixtures("user")
@HOSTS
def test_the_first_comment_is_made_and_the_next_call_changes_it(server: CodeHostServer, host: Host) -> None:
    server.add("looks good to me")
    save_comment(reach(server, host), OLD, MARK)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == ["looks good to me", NEW]


@pytest.mark.usefixtures("user")
@HOSTS
def test_a_comment_on_a_later_page_is_found(server: CodeHostServer, host: Host) -> None:
    for number in range(7):
        server.add(f"comment {number}")
    server.add(OLD)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server)[7:] == [NEW]
    assert sum(one.startswith("GET /repos") or "GET /projects" in one for one in server.asked) == 3


@pytest.mark.usefixtures("user")
@HOSTS
def test_a_comment_that_somebody_deleted_meanwhile_is_made_anew(server: CodeHostServer, host: Host) -> None:
    server.deleted.add(server.add(OLD))
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD, NEW]


@pytest.mark.usefixtures("user")
@HOSTS
def test_a_comment_of_another_user_is_never_changed(server: CodeHostServer, host: Host) -> None:
    server.add(OLD, **SOMEBODY)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD, NEW]


@pytest.mark.usefixtures("user")
@HOSTS
def test_another_mark_and_a_mark_inside_a_text_are_left_alone(server: CodeHostServer, host: Host) -> None:
    others = ["<!-- rageval-spec: other -->\nold", f"quoting {MARK}"]
    for text in others:
        server.add(text)
    save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [*others, NEW]


@pytest.mark.usefixtures("user")
@HOSTS
def test_a_refusal_is_an_error(server: CodeHostServer, host: Host) -> None:
    server.add(OLD)
    server.refusals = {"PATCH": [(403, {})], "PUT": [(403, {})]}
    with pytest.raises(ApiError, match="403"):
        save_comment(reach(server, host), NEW, MARK)
    assert bodies(server) == [OLD]


@pytest.mark.usefixtures("user")
def test_a_token_without_a_user_changes_only_a_bots_comment(server: CodeHostServer) -> None:
    server.user = None
    server.add(OLD, **SOMEBODY)
    server.add(OLD)
    save_comment(reach(server, "github"), NEW, MARK)
    assert bodies(server) == [OLD, NEW]


PATH = "/repos/owner/app/issues/7/comments"


def ask(server: CodeHostServer, token: str = TOKEN) -> ApiError:
    host = GitHub(replace(go_to(server, "github"), token=Secret(token, "${secret:TOKEN}")))
    with pytest.raises(ApiError) as caught:
        host.request("GET", PATH, query="page=1")
    return caught.value


@pytest.mark.parametrize(
    ("status", "headers", "told", "is_temporary"),
    [
        (401, {}, "the token is wrong or has expired", False),
        (403, {}, "the token may not do this", False),
        (404, {}, "there is no such pull request", False),
        (422, {}, "answered 422", False),
        (429, {"Retry-After": "2"}, "too many requests", True),
        (403, {"Retry-After": "2"}, "too many requests", True),
        (502, {}, "answered 502", True),
    ],
)
def test_a_refusal_says_what_is_wrong_and_shows_no_token(
    server: CodeHostServer, status: int, headers: dict[str, str], told: str, is_temporary: bool
) -> None:
    server.refusals = {"GET": [(status, headers)]}
    error = ask(server)
    assert told in str(error)
    assert PATH in str(error)
    assert (error.status, error.is_temporary) == (status, is_temporary)
    assert TOKEN[:12] not in str(error)
    assert "***" in str(error)


def test_github_says_when_it_counts_anew(server: CodeHostServer) -> None:
    reset = str(int(time.time()) + 60)
    server.refusals = {"GET": [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})]}
    error = ask(server)
    assert error.is_temporary
    assert error.wait is not None
    assert 30 < error.wait <= 60


def test_a_wait_of_an_hour_is_too_long(server: CodeHostServer) -> None:
    reset = str(int(time.time()) + 3600)
    server.refusals = {"GET": [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})]}
    error = ask(server)
    assert not error.is_temporary
    assert "too long" in str(error)


def test_a_wrong_token_is_refused(server: CodeHostServer) -> None:
    assert ask(server, "another-token-0815").status == 401


def test_a_server_that_is_not_there_is_worth_another_try() -> None:
    error = ask(CodeHostServer(url="http://127.0.0.1:9"))
    assert error.status is None
    assert error.is_temporary


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


GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://git.example/api/v4/",
    "CI_PROJECT_ID": "42",
    "CI_MERGE_REQUEST_IID": "7",
    "CI_MERGE_REQUEST_PROJECT_ID": "42",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "42",
    "GITLAB_TOKEN": "glpat-1234567890",
}


def github(folder: Path, event: Any, **more: str) -> dict[str, str]:
    path = folder / "event.json"
    path.write_text(json.dumps(event))
    job = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "owner/app", "GITHUB_TOKEN": "ghs_1234567890"}
    return {**job, "GITHUB_EVENT_PATH": str(path), **more}


def pull(head: str | None) -> dict[str, Any]:
    repository = None if head is None else {"full_name": head}
    return {"pull_request": {"number": 7, "head": {"repo": repository}, "base": {"repo": {"full_name": "owner/app"}}}}


def test_a_github_job_needs_no_option(tmp_path: Path) -> None:
    found = find_destination(github(tmp_path, pull("owner/app")))
    assert (found.host, found.api, found.repository, found.number) == (
        "github",
        "https://api.github.com",
        "owner/app",
        7,
    )
    assert found.token.reveal() == "ghs_1234567890"
    assert "1234567890" not in repr(found)


def test_a_gitlab_job_needs_no_option() -> None:
    found = find_destination(GITLAB)
    assert (found.host, found.api, found.repository, found.number) == ("gitlab", "https://git.example/api/v4", "42", 7)


@pytest.mark.parametrize("head", ["eve/app", None])
def test_a_fork_on_github_gets_no_comment(tmp_path: Path, head: str | None) -> None:
    with pytest.raises(NoDestinationError, match="fork"):
        find_destination(github(tmp_path, pull(head)))


def test_a_fork_on_gitlab_gets_no_comment() -> None:
    with pytest.raises(NoDestinationError, match="fork"):
        find_destination({**GITLAB, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "99"})


def test_a_push_has_nothing_to_comment_on(tmp_path: Path) -> None:
    with pytest.raises(NoDestinationError, match="does not belong to a pull request"):
        find_destination(github(tmp_path, {"ref": "refs/heads/main"}))
    with pytest.raises(NoDestinationError, match="does not belong to a merge request"):
        find_destination({name: text for name, text in GITLAB.items() if name != "CI_MERGE_REQUEST_IID"})


def test_options_win_over_the_environment(tmp_path: Path) -> None:
    environment = github(tmp_path, pull("owner/app"), GITHUB_API_URL="https://ghe.example/api/v3")
    assert find_destination(environment).api == "https://ghe.example/api/v3"
    found = find_destination(environment, host="github", api="http://localhost:8080", repository="other/app", number=9)
    assert (found.api, found.repository, found.number) == ("http://localhost:8080", "other/app", 9)


@pytest.mark.parametrize(
    ("wanted", "environment", "told"),
    [
        ({}, {}, "--host github or --host gitlab"),
        ({"host": "github"}, {"GITHUB_TOKEN": "x"}, "--number"),
        (
            {"host": "github", "number": 7},
            {"GITHUB_TOKEN": "x"},
            "--repository (owner/name), or set GITHUB_REPOSITORY",
        ),
        ({"host": "github", "repository": "a/b", "number": 7}, {}, "set GITHUB_TOKEN"),
        ({"host": "gitlab", "repository": "42", "number": 7}, {"GITLAB_TOKEN": " "}, "set GITLAB_TOKEN"),
        ({"host": "gitlab", "api": "ftp://x", "repository": "42", "number": 7}, {"GITLAB_TOKEN": "x"}, "--api"),
        ({"host": "gitlab"}, {**GITLAB, "CI_MERGE_REQUEST_IID": "x7"}, "CI_MERGE_REQUEST_IID"),
    ],
)
def test_a_missing_or_wrong_part_is_named(wanted: dict[str, Any], environment: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_destination(environment, **wanted)
    assert told in str(caught.value)


def test_an_event_that_is_not_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"event\.json is not an event of GitHub"):
        find_destination(github(tmp_path, {"pull_request": {"number": "x"}}))
