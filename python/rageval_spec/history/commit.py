"""Finds the commit at which an evaluation was made, its branch, and the CI run that made it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

_PATIENCE = 10.0
"""Seconds to wait for git, which can be slow in a large repository; after that, no commit is recorded."""
_DETACHED = "(detached)"
_UNBORN = "(initial)"

_SYSTEMS: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "GITHUB_ACTIONS": (
        "github",
        {
            "run": ("GITHUB_RUN_ID",),
            "attempt": ("GITHUB_RUN_ATTEMPT",),
            "commit": ("GITHUB_SHA",),
            "branch": ("GITHUB_HEAD_REF", "GITHUB_REF_NAME"),
        },
    ),
    "GITLAB_CI": (
        "gitlab",
        {
            "run": ("CI_PIPELINE_ID",),
            "job": ("CI_JOB_ID",),
            "url": ("CI_JOB_URL",),
            "request": ("CI_MERGE_REQUEST_IID",),
            "commit": ("CI_COMMIT_SHA",),
            "branch": ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH", "CI_COMMIT_REF_NAME"),
        },
    ),
    "JENKINS_URL": (
        "jenkins",
        {
            "run": ("BUILD_NUMBER",),
            "job": ("JOB_NAME",),
            "url": ("BUILD_URL",),
            "request": ("CHANGE_ID",),
            "commit": ("GIT_COMMIT",),
            "branch": ("CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"),
        },
    ),
    "CIRCLECI": (
        "circleci",
        {
            "run": ("CIRCLE_BUILD_NUM",),
            "url": ("CIRCLE_BUILD_URL",),
            "request": ("CIRCLE_PULL_REQUEST",),
            "commit": ("CIRCLE_SHA1",),
            "branch": ("CIRCLE_BRANCH",),
        },
    ),
    "BUILDKITE": (
        "buildkite",
        {
            "run": ("BUILDKITE_BUILD_NUMBER",),
            "url": ("BUILDKITE_BUILD_URL",),
            "commit": ("BUILDKITE_COMMIT",),
            "branch": ("BUILDKITE_BRANCH",),
        },
    ),
    "TF_BUILD": (
        "azure",
        {
            "run": ("BUILD_BUILDID",),
            "commit": ("BUILD_SOURCEVERSION",),
            "branch": ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCHNAME"),
        },
    ),
}
"""The CI systems by the variable that gives each away: its name, and the variables that tell of the run."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """What is checked out.

    Attributes:
        commit: the hash of the commit; None outside a repository, and before its first commit.
        branch: the branch; None if a commit is checked out without one, as CI systems do.
        is_dirty: whether tracked files differ from the commit; None if that is not known.
    """

    commit: str | None = None
    branch: str | None = None
    is_dirty: bool | None = None


def find_commit(path: Path) -> str | None:
    """The hash of the commit that is checked out at `path`, followed by `-dirty` if tracked files were changed.

    None outside a repository, before the repository's first commit, and if git is not installed.
    """
    found = find_checkout(path)
    return f"{found.commit}-dirty" if found.commit and found.is_dirty else found.commit


def find_checkout(path: Path) -> Checkout:
    """The commit and the branch that are checked out at `path`, or at the nearest folder above it that exists.

    Without a repository, or without git, all attributes are None.
    """
    import subprocess

    folder = next((place for place in (path, *path.parents) if place.is_dir()), Path())
    command = ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return Checkout()
    return _read_status(done.stdout.decode("utf-8", "replace")) if done.returncode == 0 else Checkout()


def _read_status(text: str) -> Checkout:
    lines = text.splitlines()
    heads = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch.") and line.count(" ") >= 2)
    commit, branch = heads.get("branch.oid"), heads.get("branch.head")
    if commit in (None, _UNBORN):
        return Checkout()
    return Checkout(commit, None if branch == _DETACHED else branch, any(not line.startswith("#") for line in lines))


def start_finding_checkout(path: Path) -> Callable[[], Checkout]:
    """Ask git in the background. The result is a function that waits for the answer and returns it."""
    found: list[Checkout] = []
    thread = Thread(target=lambda: found.append(find_checkout(path)), daemon=True)
    thread.start()

    def wait() -> Checkout:
        thread.join(_PATIENCE)
        return found[0] if found else Checkout()

    return wait


def find_ci_run(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the CI system tells of its run: "system", and "run", "job", "url", "request", "commit", "branch" if known.

    Empty outside CI. `request` is the number or address of a pull request.
    """
    variables = os.environ if environment is None else environment
    found = next((of for mark, of in _SYSTEMS.items() if variables.get(mark)), None)
    if found is None:
        return {"system": "other"} if variables.get("CI") not in (None, "", "false", "0") else {}
    system, wanted = found
    run = {"system": system}
    for key, names in wanted.items():
        value = next((variables[name] for name in names if variables.get(name)), None)
        if value is not None:
            run[key] = value
    return run | _derive_github(variables) if system == "github" else run


def _derive_github(variables: Mapping[str, str]) -> dict[str, str]:
    """The address of the run and the number of the pull request, which GitHub gives only in parts."""
    derived = {}
    server, repository, run = (variables.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if server and repository and run:
        derived["url"] = f"{server}/{repository}/actions/runs/{run}"
    reference = variables.get("GITHUB_REF", "").split("/")
    if reference[:2] == ["refs", "pull"] and len(reference) > 2:
        derived["request"] = reference[2]
    return derived
