from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from rageval_spec.commands.comment.command import comment
from rageval_spec.errors import RagevalError
from tests.answered_evaluation import bridges, save
from tests.command_line import invoke
from tests.commands.comment.conftest import Sleepless
from tests.commands.comment.server import TOKEN, CodeHostServer
from tests.reports.golden import assert_golden
from tests.tiny import write_spec

WORSE = "q1 Q0 d6 1 0.9 t\nq1 Q0 d1 2 0.8 t\nq2 Q0 d1 1 0.7 t\nq2 Q0 d3 2 0.6 t\nq3 Q0 d4 1 0.5 t\n"
GATE = {"metric": "rr", "system": "good", "baseline": "branch:main", "max_drop": 0.02}


def job(folder: Path, server: CodeHostServer, *, fork: bool = False) -> dict[str, str]:
    """The environment of a job of a pull request on GitHub."""
    head = {"repo": {"full_name": "eve/app" if fork else "owner/app"}}
    event = {"pull_request": {"number": 7, "head": head, "base": {"repo": {"full_name": "owner/app"}}}}
    path = folder / "event.json"
    path.write_text(json.dumps(event))
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "owner/app", "GITHUB_TOKEN": TOKEN}
    return {**variables, "GITHUB_API_URL": server.url, "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": "c0ffee"}


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_from_a_commit_with_a_regression_to_the_comment(
    tmp_path: Path, server: CodeHostServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main branch records the baseline; a commit on a branch makes a system worse, and the next one mends it."""
    monkeypatch.chdir(tmp_path)
    spec = write_spec(tmp_path, gates=[GATE], reports=["json"])
    other = ["--set", "name=other", "--set", "metrics=[recall@5]", "--set", "gates=[]"]
    (tmp_path / ".gitignore").write_text(".rageval\nout\nevent.json\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "the first system")
    assert invoke("run", spec, "-q", "-o", "out", "--set", "gates=[]").exit_code == 0
    assert invoke("run", spec, "-q", "-o", "out", *other).exit_code == 0
    git(tmp_path, "checkout", "-q", "-b", "topic")
    good = (tmp_path / "data" / "good.run").read_text()
    (tmp_path / "data" / "good.run").write_text(WORSE)
    git(tmp_path, "commit", "-qam", "another ranking")
    assert invoke("run", spec, "-q", "-o", "out").exit_code == 1
    posted = invoke("comment", "out", "--baseline", "branch:main", env=job(tmp_path, server))
    assert (posted.exit_code, posted.stdout) == (0, "https://code.example/7#100\n")
    assert posted.stderr == "the comment is up to date\n"
    text = re.sub(r"[0-9a-f]{64}|rageval-spec \d[\w.]*", "...", server.comments[0]["body"])
    assert_golden("comment_of_a_regression.md", text.encode())
    (tmp_path / "data" / "good.run").write_text(good)
    git(tmp_path, "commit", "-qam", "the first ranking")
    assert invoke("run", spec, "-q", "-o", "out").exit_code == 0
    assert invoke("comment", "out", "--baseline", "previous", env=job(tmp_path, server)).exit_code == 0
    assert len(server.comments) == 1
    text = server.comments[0]["body"]
    assert "**Ready**:" in text and "2 fixed questions" in text


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return save(bridges(), tmp_path / "results")


def test_a_fork_gets_a_summary_and_no_comment(tmp_path: Path, results: Path, server: CodeHostServer) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n")
    found = invoke("comment", results, "--summary", summary, env=job(tmp_path, server, fork=True))
    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr == (
        "no comment was made: the pull request comes from a fork, whose jobs must not write comments\n"
    )
    assert server.asked == []
    assert summary.read_text().startswith("# before\n<!-- rageval-spec: support-bot -->\n## ")


def test_a_dry_run_prints_the_text_and_needs_no_token(results: Path, server: CodeHostServer) -> None:
    found = invoke("comment", results, "--dry-run")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("<!-- rageval-spec: support-bot -->\n## ")
    assert server.asked == []


def test_a_job_can_want_only_the_summary(tmp_path: Path, results: Path, server: CodeHostServer) -> None:
    found = invoke("comment", results, "--no-post", "--summary", tmp_path / "summary.md")
    assert (found.exit_code, found.output) == (0, "")
    assert (tmp_path / "summary.md").read_text().startswith("<!-- rageval-spec: ")
    assert server.asked == []


def test_a_token_that_may_not_write_is_an_error_without_the_token(
    tmp_path: Path, results: Path, server: CodeHostServer
) -> None:
    server.refusals = {"POST": [(403, {})]}
    found = invoke("comment", results, env=job(tmp_path, server))
    assert found.exit_code == 3
    assert "answered 403 Forbidden (the token may not do this)" in found.stderr
    assert TOKEN[:12] not in found.output
    assert server.comments == []


def test_an_unknown_pull_request_is_an_error(tmp_path: Path, results: Path, server: CodeHostServer) -> None:
    found = invoke("comment", results, "--number", "8", env=job(tmp_path, server))
    assert found.exit_code == 3
    assert "there is no such pull request, or the token may not see it" in found.stderr


def ask(folder: Path, results: Path, server: CodeHostServer, clock: Sleepless) -> int:
    return comment(str(results), environment=job(folder, server), clock=clock)


@pytest.mark.parametrize("status", [403, 429])
def test_a_rate_limit_is_waited_for(
    tmp_path: Path, results: Path, server: CodeHostServer, clock: Sleepless, status: int
) -> None:
    server.refusals = {"POST": [(status, {"Retry-After": "30"})]}
    assert ask(tmp_path, results, server, clock) == 0
    assert len(server.comments) == 1
    assert 30 <= clock.slept[0] <= 60


def test_a_comment_whose_reply_was_lost_is_not_made_twice(
    tmp_path: Path, results: Path, server: CodeHostServer, clock: Sleepless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server makes the comment and then answers 502, as a proxy in front of it can."""
    create = server._create

    def lose(body: dict[str, str]) -> tuple[int, object, dict[str, str]]:
        create(body)
        monkeypatch.undo()
        return 502, {}, {}

    monkeypatch.setattr(server, "_create", lose)
    assert ask(tmp_path, results, server, clock) == 0
    assert len(server.comments) == 1


def test_a_host_that_always_fails_is_an_error(
    tmp_path: Path, results: Path, server: CodeHostServer, clock: Sleepless
) -> None:
    server.refusals = {"GET": [(502, {})] * 20}
    with pytest.raises(RagevalError, match=r"answered 502 .*, after 5 tries"):
        ask(tmp_path, results, server, clock)


def test_several_comments_have_keys(tmp_path: Path, results: Path, server: CodeHostServer) -> None:
    server.user = None
    for key in ("one", "two", "one"):
        comment(
            str(results), key=key, environment=job(tmp_path, server),
            host="github", api=server.url, repository="owner/app", number=7,
        )  # fmt: skip
    assert [one["body"].splitlines()[0] for one in server.comments] == [
        "<!-- rageval-spec: one -->",
        "<!-- rageval-spec: two -->",
    ]


def test_a_summary_that_cannot_be_written_is_named(tmp_path: Path, results: Path) -> None:
    with pytest.raises(RagevalError, match="the summary could not be written"):
        comment(str(results), summary=tmp_path / "no" / "summary.md", dry_run=True)
