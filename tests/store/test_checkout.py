"""What git tells about the code beside a spec."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rageval_spec.store.checkout import (
    Checkout,
    CodeState,
    find_checkout,
    find_code_state,
    find_commit,
    start_finding_checkout,
)


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


def write(folder: Path, name: str, text: str = "1") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_clean_checkout_has_no_changes(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert find_code_state(repository) == CodeState(head, "")
    assert find_code_state(repository / "evals" / "later").name == head[:10]


def edit(repository: Path) -> None:
    write(repository, "spec.yaml", "version: 3\n")


def stage(repository: Path) -> None:
    edit(repository)
    git(repository, "add", ".")


def delete(repository: Path) -> None:
    (repository / "spec.yaml").unlink()


def add_untracked(repository: Path) -> None:
    write(repository, "new/more.yaml")


def add_prompt(repository: Path) -> None:
    write(repository, "prompts/answer.txt")


def edit_binary(repository: Path) -> None:
    (repository / "spec.yaml").write_bytes(b"\0\1\2")


def make_executable(repository: Path) -> None:
    (repository / "spec.yaml").chmod(0o755)


@pytest.mark.parametrize("change", [edit, stage, delete, add_untracked, add_prompt, edit_binary, make_executable])
def test_every_change_of_code_is_another_state(change: Callable[[Path], None], repository: Path) -> None:
    before = find_code_state(repository)
    change(repository)
    after = find_code_state(repository)
    assert after.commit == before.commit and after.changes not in ("", None)
    assert after.name == f"{str(after.commit)[:10]}-dirty-{str(after.changes)[:6]}"
    assert find_code_state(repository) == after


def test_two_changes_of_one_file_are_two_states(repository: Path) -> None:
    edit(repository)
    first = find_code_state(repository)
    write(repository, "spec.yaml", "version: 4\n")
    assert find_code_state(repository) != first
    write(repository, "a.yaml")
    second = find_code_state(repository)
    write(repository, "a.yaml", "2")
    assert find_code_state(repository) != second


@pytest.mark.parametrize(
    "name",
    [
        *("app.log", "app.log.1", "cache.sqlite3", "asked", "__pycache__/app.cpython-311.pyc", "ignored/rag.yaml"),
        *("ignored/prompt.txt", "out/a/b.yaml", "out/page.html"),
    ],
)
def test_files_that_a_run_leaves_are_no_change(name: str, repository: Path) -> None:
    write(repository, ".gitignore", "ignored/\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "ignore")
    before = find_code_state(repository)
    for result in ("results.json", "values.parquet"):
        write(repository, f"out/{result}")
    write(repository, name)
    assert find_code_state(repository) == before


def test_new_files_of_any_ending_count_beside_the_spec_and_the_application_only(repository: Path) -> None:
    for folder in ("evals", "app", "notes"):
        write(repository, f"{folder}/x.yaml")
    states = [find_code_state(repository / "evals", (), [repository / "app"])]
    for name in ("notes/plan.txt", "evals/prompt.txt", "app/deep/prompt.j2"):
        write(repository, name)
        states.append(find_code_state(repository / "evals", (), [repository / "app"]))
    assert states[0] == states[1]
    assert len(set(states)) == 3


def test_of_large_and_many_new_files_the_size_counts(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.store.checkout._READ_IN_ALL", 6)
    states = []
    for text in ("1234", "1235", "12345"):
        for name in ("a.txt", "b.txt"):
            write(repository, name, text)
            os.utime(repository / name, (0, 0))
        states.append(find_code_state(repository))
    write(repository, "b.txt", "12346")
    os.utime(repository / "b.txt", (0, 0))
    assert len(set(states)) == 3
    assert find_code_state(repository) == states[-1]


def test_what_the_shell_writes_to_a_file_is_no_change(repository: Path) -> None:
    before = find_code_state(repository)
    code = "from rageval_spec.store.checkout import find_code_state; print(find_code_state(Path()).changes)"
    with (repository / "run.txt").open("w") as stream:
        subprocess.run([sys.executable, "-c", f"from pathlib import Path; {code}"], cwd=repository, stdout=stream)
    assert (repository / "run.txt").read_text() == f"{before.changes}\n"
    assert find_code_state(repository) != before


def test_named_files_and_folders_are_left_out(repository: Path) -> None:
    before = find_code_state(repository)
    edit(repository)
    write(repository, "kept/[a]*.yaml")
    left_out = [repository / "spec.yaml", repository / "kept", Path("/elsewhere/x"), repository]
    assert find_code_state(repository, left_out) == before
    write(repository, "kept2.yaml")
    assert find_code_state(repository, left_out) != before


def test_settings_of_git_do_not_change_the_state(repository: Path) -> None:
    edit(repository)
    before = find_code_state(repository)
    for name, value in {"diff.external": "false", "color.ui": "always", "core.quotePath": "false"}.items():
        git(repository, "config", name, value)
    assert find_code_state(repository) == before


def test_outside_a_repository_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert find_code_state(tmp_path) == CodeState()
    assert CodeState().name is None


def test_if_git_fails_the_changes_are_unknown(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rageval_spec.store import checkout

    ask = checkout._ask_git
    monkeypatch.setattr(
        checkout, "_ask_git", lambda folder, *words: None if words[0] == "diff" else ask(folder, *words)
    )
    found = find_code_state(repository)
    assert found.changes is None and str(found.name).endswith("-dirty-unknown")
