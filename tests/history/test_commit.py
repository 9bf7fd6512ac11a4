from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rageval_spec.history.commit import Checkout, find_checkout, find_ci_run, find_commit, start_finding_checkout


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "spec.yaml").write_text("version: 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_the_commit_is_the_one_that_is_checked_out(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert len(head) == 40
    assert find_commit(repository) == head
    assert find_commit(repository / "not" / "made" / "yet") == head
    git(repository, "tag", "-a", "v1", "-m", "a tag is no commit")
    assert find_commit(repository) == head


def test_changed_files_make_the_commit_dirty(repository: Path) -> None:
    (repository / "spec.yaml").write_text("version: 2\n")
    assert find_commit(repository) == f"{git(repository, 'rev-parse', 'HEAD').strip()}-dirty"


def test_no_commit_outside_a_repository_or_before_its_first_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_commit(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert find_commit(tmp_path) is None


def test_no_commit_without_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert find_commit(repository) is None


def test_the_branch_is_that_which_is_checked_out(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "topic/a b".replace(" ", "-"))
    found = find_checkout(repository)
    assert (found.branch, found.is_dirty) == ("topic/a-b", False)
    assert start_finding_checkout(repository)() == found
    git(repository, "checkout", "-q", "--detach")
    assert find_checkout(repository) == Checkout(found.commit, None, False)


@pytest.mark.parametrize(
    ("environment", "run"),
    [
        ({}, {}),
        ({"CI": "true"}, {"system": "other"}),
        ({"CI": "false"}, {}),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_RUN_ID": "17",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "a/b",
                "GITHUB_REF": "refs/pull/12/merge",
                "GITHUB_HEAD_REF": "topic",
                "GITHUB_REF_NAME": "12/merge",
                "GITHUB_SHA": "abc",
            },
            {
                "system": "github",
                "run": "17",
                "url": "https://github.com/a/b/actions/runs/17",
                "request": "12",
                "branch": "topic",
                "commit": "abc",
            },
        ),
        (
            {"GITLAB_CI": "true", "CI_PIPELINE_ID": "5", "CI_COMMIT_BRANCH": "main", "CI_JOB_URL": "https://x/1"},
            {"system": "gitlab", "run": "5", "branch": "main", "url": "https://x/1"},
        ),
        ({"JENKINS_URL": "https://j", "BUILD_NUMBER": "3"}, {"system": "jenkins", "run": "3"}),
    ],
)
def test_the_ci_run_is_read_from_the_environment(environment: dict[str, str], run: dict[str, str]) -> None:
    assert find_ci_run(environment) == run
