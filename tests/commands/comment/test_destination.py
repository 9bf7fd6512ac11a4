from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.comment.destination import NoDestinationError, Wanted, find_destination
from rageval_spec.errors import UsageError

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
    found = find_destination(Wanted(), github(tmp_path, pull("owner/app")))
    assert (found.host, found.api, found.repository, found.number) == (
        "github",
        "https://api.github.com",
        "owner/app",
        7,
    )
    assert found.token.reveal() == "ghs_1234567890"
    assert "1234567890" not in repr(found)


def test_a_gitlab_job_needs_no_option() -> None:
    found = find_destination(Wanted(), GITLAB)
    assert (found.host, found.api, found.repository, found.number) == ("gitlab", "https://git.example/api/v4", "42", 7)


@pytest.mark.parametrize("head", ["eve/app", None])
def test_a_fork_on_github_gets_no_comment(tmp_path: Path, head: str | None) -> None:
    with pytest.raises(NoDestinationError, match="fork"):
        find_destination(Wanted(), github(tmp_path, pull(head)))


def test_a_fork_on_gitlab_gets_no_comment() -> None:
    with pytest.raises(NoDestinationError, match="fork"):
        find_destination(Wanted(), {**GITLAB, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "99"})


def test_a_push_has_nothing_to_comment_on(tmp_path: Path) -> None:
    with pytest.raises(NoDestinationError, match="does not belong to a pull request"):
        find_destination(Wanted(), github(tmp_path, {"ref": "refs/heads/main"}))
    with pytest.raises(NoDestinationError, match="does not belong to a merge request"):
        find_destination(Wanted(), {name: text for name, text in GITLAB.items() if name != "CI_MERGE_REQUEST_IID"})


def test_options_win_over_the_environment(tmp_path: Path) -> None:
    environment = github(tmp_path, pull("owner/app"), GITHUB_API_URL="https://ghe.example/api/v3")
    assert find_destination(Wanted(), environment).api == "https://ghe.example/api/v3"
    found = find_destination(Wanted("github", "http://localhost:8080", "other/app", 9), environment)
    assert (found.api, found.repository, found.number) == ("http://localhost:8080", "other/app", 9)


@pytest.mark.parametrize(
    ("wanted", "environment", "told"),
    [
        (Wanted(), {}, "--host github or --host gitlab"),
        (Wanted("github"), {"GITHUB_TOKEN": "x"}, "--number"),
        (Wanted("github", number=7), {"GITHUB_TOKEN": "x"}, "--repository (owner/name), or set GITHUB_REPOSITORY"),
        (Wanted("github", repository="a/b", number=7), {}, "set GITHUB_TOKEN"),
        (Wanted("gitlab", repository="42", number=7), {"GITLAB_TOKEN": " "}, "set GITLAB_TOKEN"),
        (Wanted("gitlab", "ftp://x", "42", 7), {"GITLAB_TOKEN": "x"}, "--api"),
        (Wanted("gitlab"), {**GITLAB, "CI_MERGE_REQUEST_IID": "x7"}, "CI_MERGE_REQUEST_IID"),
    ],
)
def test_a_missing_or_wrong_part_is_named(wanted: Wanted, environment: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_destination(wanted, environment)
    assert told in str(caught.value)


def test_an_event_that_is_not_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"event\.json is not an event of GitHub"):
        find_destination(Wanted(), github(tmp_path, {"pull_request": {"number": "x"}}))
