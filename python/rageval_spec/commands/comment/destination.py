"""Finds the pull request to comment on, from the options and from what a CI job's environment says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rageval_spec.endpoints.addresses import check_base_url
from rageval_spec.errors import UsageError
from rageval_spec.plugin.secret import Secret

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
    """A pull request (a merge request on GitLab) and the token that may comment on it.

    Attributes:
        api: the base URL of the API.
        repository: `owner/name`, or GitLab's number or path of a project.
        number: the number of the pull request.
    """

    host: Host
    api: str
    repository: str
    number: int
    token: Secret


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says of the destination; None for what the environment should say."""

    host: Host | None = None
    api: str | None = None
    repository: str | None = None
    number: int | None = None


class NoDestinationError(Exception):
    """There is nothing to comment on, which is not a mistake; the message says why."""


def find_destination(wanted: Wanted, environment: Mapping[str, str]) -> Destination:
    """The pull request of the options, or else of the CI job.

    Raises:
        NoDestinationError: the job does not belong to a pull request, or to one from a fork, whose jobs must not write.
        UsageError: an option or a variable is missing or wrong; the message names it.
    """
    host = wanted.host or _find_host(environment)
    if wanted.number is None:
        number = _read_event(environment) if host == "github" else _read_merge_request(environment)
    else:
        number = wanted.number
    variable, form = _REPOSITORIES[host]
    repository = wanted.repository or environment.get(variable)
    if not repository:
        raise UsageError(f"which repository? Write --repository ({form}), or set {variable}")
    return Destination(
        host, _find_api(host, wanted.api, environment), repository, number, _find_token(host, environment)
    )


def _find_host(environment: Mapping[str, str]) -> Host:
    if environment.get("GITHUB_ACTIONS") == "true" or "GITHUB_REPOSITORY" in environment:
        return "github"
    if "GITLAB_CI" in environment:
        return "gitlab"
    raise UsageError("which code host? Write --host github or --host gitlab; this is neither's CI job")


def _find_api(host: Host, wanted: str | None, environment: Mapping[str, str]) -> str:
    variable, default = _APIS[host]
    try:
        return check_base_url(wanted or environment.get(variable) or default).rstrip("/")
    except ValueError as error:
        raise UsageError(f"{'--api' if wanted else variable}: {error}") from None


def _find_token(host: Host, environment: Mapping[str, str]) -> Secret:
    names = _TOKENS[host]
    for name in names:
        if token := environment.get(name, "").strip():
            return Secret(token, f"${{secret:{name}}}")
    raise UsageError(f"set {names[0]} to a token that may write comments; it is read from the environment only")


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
        number, head, base = (
            int(request["number"]),
            _name_repository(request["head"]),
            _name_repository(request["base"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"GITHUB_EVENT_PATH: {path} is not an event of GitHub: {error}") from None
    if head != base:
        raise NoDestinationError("the pull request comes from a fork, whose jobs must not write comments")
    return number


def _name_repository(side: Mapping[str, Any]) -> str | None:
    """The full name of a pull request's repository; None for a fork that was deleted."""
    repository = side.get("repo")
    return None if repository is None else str(repository["full_name"])


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
