"""An evaluation that was killed, interrupted or stopped by a limit is continued, if the application did not change."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from rageval_spec.errors import PASSED
from rageval_spec.runner import Options, RunOutcome, run
from rageval_spec.store.replies import FileAnswers
from rageval_spec.systems.shared import kept_answers
from tests.asked_app import AskedApp
from tests.command_line import invoke, start
from tests.systems.asking import Call, Service

APP = """
import pathlib, time
import steps
FOLDER = pathlib.Path(__file__).parent
def answer(question):
    with open(FOLDER / 'asked.log', 'a') as log:
        log.write(question + '\\n')
    while question == 'Is it 3?' and (FOLDER / 'slow').exists():
        time.sleep(0.01)
    return (FOLDER / 'says.log').read_text()
"""
QUESTIONS = [f"Is it {row}?" for row in range(6)]


class App(AskedApp):
    """An application with a module of its own, perhaps in a repository, and a spec that asks it six questions."""

    def __init__(self, folder: Path, *, repository: bool = False) -> None:
        super().__init__(folder, "continued_app", APP, len(QUESTIONS))
        self.write("steps.py", "WORDS = 1\n")
        self.write_spec()
        if repository:
            self.git("init", "-q")
            self.commit("continued_app.py", "steps.py", "rows.jsonl", "spec.yaml")

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, *names: str) -> None:
        self.git("add", *names)
        self.git("commit", "-q", "--allow-empty", "-m", "a change")

    def stop_after_three(self) -> None:
        """Evaluate until a limit is reached."""
        self.run(limits={"max_calls": 3})
        assert self.asked == QUESTIONS[:3]


def taken(outcome: RunOutcome) -> int:
    return sum(one.answers for one in outcome.evaluation.provenance.taken_over)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_only_the_rest_is_asked(ending: signal.Signals, tmp_path: Path) -> None:
    app = App(tmp_path)
    app.write("slow", "")
    with start("run", app.write_spec(), "-q", "-o", tmp_path / "out") as process:
        while "Is it 3?\n" not in (tmp_path / "asked.log").read_text() if (tmp_path / "asked.log").exists() else True:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(ending)
    assert app.asked == QUESTIONS[:4]
    (tmp_path / "slow").unlink()
    outcome = app.run()
    assert (app.asked, taken(outcome), outcome.exit_code) == (QUESTIONS[3:], 3, PASSED)
    app.run()
    assert app.asked == QUESTIONS


def test_a_service_that_turns_wrong_is_not_saved_by_one_question_that_always_fails(tmp_path: Path) -> None:
    says = ["yes"]

    def answer(call: Call) -> tuple[int, Any]:
        return (500, {}) if "7" in call.json["question"] else (200, {"answer": says[0]})

    rows = [{"query_id": f"q{row}", "question": f"Is it {row}?", "reference": "yes"} for row in range(10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with closing(Service(answer)) as service:
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": {"use": "http", "url": service.url, "retries": 0}},
            "metrics": ["exact_match"],
            "gates": [{"metric": "exact_match", "min": 0.5, "min_scored": 0.9}],
        }
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
        command = ("run", tmp_path / "spec.yaml", "-o", tmp_path / "out")
        assert invoke(*command).exit_code == 0
        says[0] = "no"
        again = invoke(*command)
        assert (again.exit_code, len(service.calls)) == (1, 20)
        assert "0.000" in again.stdout and "taken over" not in again.stdout
        says[0] = "yes"
        retried = invoke(*command, "--retry-failed")
        assert (retried.exit_code, len(service.calls)) == (1, 21)
        assert "app: 9 of 10 answers are taken over from the last evaluation (--retry-failed)" in retried.stdout


def change_module(app: App) -> None:
    app.write("steps.py", "WORDS = 2\n")


def change_own_file(app: App) -> None:
    app.write("continued_app.py", APP + "# more\n")


def change_version(app: App) -> None:
    app.block = {**app.block, "version": "2"}


def change_commit(app: App) -> None:
    app.commit()


def change_tracked_file(app: App) -> None:
    app.write("README.md", "1")


def add_module(app: App) -> None:
    app.write("more.py", "")


def change_prompt(app: App) -> None:
    app.write("prompt.txt", "Answer in verse.")


@pytest.mark.parametrize(
    "change",
    [change_module, change_own_file, change_version, change_commit, change_tracked_file, add_module, change_prompt],
)
def test_after_a_change_of_the_application_all_is_asked(change: Callable[[App], None], tmp_path: Path) -> None:
    app = App(tmp_path, repository=True)
    app.write("README.md", "0")
    app.commit("README.md")
    app.write("prompt.txt", "Answer briefly.")
    app.stop_after_three()
    change(app)
    outcome = app.run()
    assert (app.asked, taken(outcome)) == (QUESTIONS, 0)


@pytest.mark.parametrize("change", [change_module, change_own_file, change_version])
def test_without_git_the_files_and_the_block_are_known(change: Callable[[App], None], tmp_path: Path) -> None:
    app = App(tmp_path)
    app.stop_after_three()
    change(app)
    assert (taken(app.run()), app.asked) == (0, QUESTIONS)


def leave(app: App) -> None:
    """Change nothing."""


def write_log(app: App) -> None:
    app.write("app.log", "something")


def add_question(app: App) -> None:
    with (app.folder / "rows.jsonl").open("a") as rows:
        rows.write(json.dumps({"query_id": "q6", "question": "Is it 0?", "reference": "yes"}) + "\n")


def change_pace(app: App) -> None:
    app.block = {**app.block, "concurrency": 2, "timeout": 30}


def write_results_elsewhere(app: App) -> None:
    run(app.write_spec(limits={"max_calls": 0}), Options(output=app.folder / "other"))


@pytest.mark.parametrize("change", [leave, write_log, add_question, change_pace, write_results_elsewhere])
@pytest.mark.parametrize("is_dirty", [False, True])
def test_what_is_no_change_of_the_application_costs_nothing(
    change: Callable[[App], None], is_dirty: bool, tmp_path: Path
) -> None:
    app = App(tmp_path, repository=True)
    if is_dirty:
        app.write("steps.py", "WORDS = 3\n")
    app.stop_after_three()
    change(app)
    outcome = app.run(metrics=["exact_match", "token_f1"], gates=[{"metric": "token_f1", "min": 0.1}])
    assert (app.asked, taken(outcome)) == (QUESTIONS[3:], 3)


@pytest.mark.parametrize(("resume", "asked"), [("1h", QUESTIONS), ("3h", QUESTIONS[3:]), ("never", QUESTIONS)])
def test_the_spec_says_how_old_it_may_be(
    resume: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(tmp_path)
    monkeypatch.setattr(kept_answers, "_tell_time", lambda: "2026-03-01T10:00:00+00:00")
    app.stop_after_three()
    monkeypatch.setattr(kept_answers, "_tell_time", lambda: "2026-03-01T12:00:00+00:00")
    app.run(resume=resume)
    assert app.asked == asked


def test_fresh_starts_anew_and_the_command_says_why_all_is_asked(tmp_path: Path) -> None:
    app = App(tmp_path)
    app.stop_after_three()
    result = invoke("run", app.write_spec(), "-o", tmp_path / "out", "--fresh")
    assert app.asked == QUESTIONS
    assert "app on rows: asks all questions; the unfinished evaluation is not continued: --fresh" in result.stderr


def test_options_that_contradict_one_another_are_refused(tmp_path: Path) -> None:
    result = invoke("run", App(tmp_path).write_spec(), "--fresh", "--retry-failed")
    assert result.exit_code == 2 and "leave one of them out" in result.stderr


@pytest.mark.parametrize("command", ["run", "plan"])
def test_the_earlier_name_of_retry_failed_works_with_a_warning(command: str, tmp_path: Path) -> None:
    result = invoke(command, App(tmp_path).write_spec(), "--retry-errors")
    assert result.exit_code == 0
    assert "warning: --retry-errors is now --retry-failed; the next release knows only the new name" in result.stderr


def test_two_systems_are_continued_although_one_had_all_its_answers(tmp_path: Path) -> None:
    app = App(tmp_path)
    systems = {"app": app.block, "other": {**app.block, "version": "2"}}
    app.run(systems=systems, limits={"max_calls": 8})
    assert app.asked == sorted([*QUESTIONS, *QUESTIONS[:2]])
    outcome = app.run(systems=systems)
    assert (app.asked, taken(outcome)) == (QUESTIONS[2:], 8)


def test_an_evaluation_that_stopped_because_its_gates_were_decided_is_finished(tmp_path: Path) -> None:
    app = App(tmp_path)
    rows = [{"query_id": f"q{row}", "question": f"Is it {row}?", "reference": "yes"} for row in range(40)]
    app.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    sections: dict[str, Any] = {
        "stopping": {"first": 5, "batch": 5, "confidence": 0.6},
        "gates": [{"metric": "exact_match", "min": 0.1}],
    }
    outcome = app.run(**sections)
    count = len(app.asked)
    assert count < 40 and (taken(outcome), outcome.is_finished) == (0, True)
    assert (taken(app.run(**sections)), len(app.asked)) == (0, count)


def test_a_number_of_two_commits_says_so_in_its_line(tmp_path: Path) -> None:
    app = App(tmp_path, repository=True)
    app.block = {**app.block, "reuse": "always", "version": "v7"}
    app.run({"limit": 2})
    assert app.asked == QUESTIONS[:2]
    first = app.git("rev-parse", "HEAD")[:10]
    app.commit("spec.yaml")
    second = app.git("rev-parse", "HEAD")[:10]
    spec = app.write_spec(reports=["terminal", "markdown"], gates=[{"metric": "exact_match", "min": 0.5}])
    result = invoke("run", spec, "-o", tmp_path / "out")
    assert app.asked == QUESTIONS[2:]
    mixed = f"the answers are of 2 versions of the code: {first} and {second}"
    lines = result.stdout.splitlines()
    assert any("exact_match" in line and "1.000 (2 versions)" in line for line in lines)
    assert mixed in " ".join(result.stdout.split())
    assert "1.000 (2 versions)" in (tmp_path / "out" / "report.md").read_text()
    content = json.loads((tmp_path / "out" / "results.json").read_text())
    assert content["aggregates"][0]["versions"] == [first, second]
    assert content["taken_over"][0]["commits"] == {first: 2, second: 4}
    assert content["gates"][0]["reason"].endswith(f"; {mixed}")


def test_a_number_of_two_prompts_that_git_does_not_track_says_so_in_its_line(tmp_path: Path) -> None:
    app = App(tmp_path, repository=True)
    app.block = {**app.block, "reuse": "always", "version": "v7"}
    app.write("prompt.txt", "Answer briefly.")
    app.run({"limit": 2})
    app.write("prompt.txt", "Answer in verse.")
    result = invoke("run", app.write_spec(reports=["terminal"]), "-o", tmp_path / "out")
    assert app.asked == QUESTIONS
    assert any("exact_match" in line and "1.000 (2 versions)" in line for line in result.stdout.splitlines())


class Remote:
    """A service with documents, and a spec that asks it ten questions."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.folder, self.keys = folder, keys
        self.service = Service(lambda call: (200, {"text": "yes", "hits": [{"id": "d1"}, {"id": "d2"}]}))
        rows = [
            {"query_id": f"q{row}", "question": f"Is it {row}?", "reference": "yes", "relevant": ["d1"]}
            for row in range(10)
        ]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, *options: str, sections: Mapping[str, Any] | None = None, **keys: Any) -> Result:
        block = {"use": "http", "url": self.service.url, "retries": 0, "concurrency": 1, **self.keys, **keys}
        spec = {
            "version": 1,
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"app": block},
            "metrics": ["exact_match"],
            **(sections or {}),
        }
        (self.folder / "spec.yaml").write_text(yaml.safe_dump(spec))
        return invoke("run", self.folder / "spec.yaml", "-o", self.folder / "out", *options)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    made = Remote(tmp_path)
    yield made
    made.service.close()


def test_a_path_that_is_corrected_while_an_evaluation_is_stopped_asks_nothing_twice(remote: Remote) -> None:
    remote.run(answer="$.txt", sections={"limits": {"max_calls": 4}})
    assert len(remote.service.calls) == 4
    result = remote.run(answer="$.text")
    assert (result.exit_code, len(remote.service.calls)) == (0, 10)
    assert "app: 4 of 10 answers are taken over from an unfinished evaluation" in result.stdout


def test_a_path_that_is_corrected_after_an_outcome_asks_nothing_if_only_what_failed_is_retried(remote: Remote) -> None:
    wrong = remote.run(answer="$.txt")
    assert (wrong.exit_code, len(remote.service.calls)) == (4, 10)
    assert "correct the spec or the system first, then run with --retry-failed to ask only what failed" in wrong.stderr
    right = remote.run("--retry-failed", answer="$.text")
    assert (right.exit_code, len(remote.service.calls)) == (0, 10)
    assert "app: 10 of 10 answers are taken over from the last evaluation (--retry-failed)" in right.stdout


def test_a_retriever_is_continued_too(remote: Remote) -> None:
    found: dict[str, Any] = {"retrieves": "$.hits[*].id", "sections": {"metrics": ["rr"], "limits": {"max_calls": 4}}}
    remote.run(**found)
    result = remote.run(**{**found, "sections": {"metrics": ["rr"]}})
    assert (result.exit_code, len(remote.service.calls)) == (0, 10)
    assert "app: 4 of 10 answers are taken over from an unfinished evaluation" in result.stdout


def test_a_judge_that_fails_leaves_a_finished_evaluation(remote: Remote) -> None:
    sections = {
        "models": {"chat": {"use": "chat", "base_url": "http://127.0.0.1:9", "model": "m", "retries": 0}},
        "judges": {"judge": {"use": "grade", "model": "chat"}},
        "metrics": ["exact_match", {"use": "conciseness", "judge": "judge"}],
    }
    assert remote.run(answer="$.text", sections=sections).exit_code == 3
    assert remote.run("--retry-failed", answer="$.text", sections=sections).exit_code == 3
    assert len(remote.service.calls) == 10
    remote.run(answer="$.text", sections=sections)
    assert len(remote.service.calls) == 20


def test_a_retry_of_two_commits_says_so(tmp_path: Path) -> None:
    app = App(tmp_path, repository=True)
    app.block = {"use": "http", "url": "", "retries": 0, "concurrency": 1}
    failing = [True]

    def answer(call: Call) -> tuple[int, Any]:
        return (500, {}) if failing[0] and "5" in call.json["question"] else (200, {"answer": "yes"})

    with closing(Service(answer)) as service:
        app.block["url"] = service.url
        app.run()
        failing[0] = False
        app.commit()
        result = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "out", "--retry-failed")
        assert len(service.calls) == 7
    [one] = json.loads((tmp_path / "out" / "results.json").read_text())["taken_over"]
    assert sorted(one["commits"].values()) == [1, 5]
    assert result.exit_code == 0


def test_a_store_without_the_answers_of_systems_keeps_the_replies_of_models(remote: Remote) -> None:
    store = remote.folder / ".rageval" / "store"
    remote.run(answer="$.text", sections={"limits": {"max_calls": 4}})
    FileAnswers(store / "answers", lambda: None).keep("a" * 64, {b"question": b"reply"})
    told = invoke("store", "info", "--store", store).stdout
    assert "answers of systems: 4," in told and "replies and vectors of models: 1," in told
    assert "removed 2 entries" in invoke("store", "prune", "--answers", "--store", store).stdout
    assert "answers of systems" not in invoke("store", "info", "--store", store).stdout
    remote.run(answer="$.text")
    assert len(remote.service.calls) == 14
    assert FileAnswers(store / "answers", lambda: None).has_any("a" * 64)
