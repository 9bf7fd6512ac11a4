"""`demo`: what it shows, the commands that it prints, and that it leaves nothing but its folder."""

from __future__ import annotations

import os
import re
import shlex
import webbrowser
from pathlib import Path

import pytest

from rageval_spec.commands import console
from rageval_spec.commands.demo import command
from tests.command_line import invoke, start

INPUTS = {"spec.yaml", "assistant.py", "documents.jsonl", "questions.jsonl"}


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    monkeypatch.chdir(work)
    for name in ("HOME", "XDG_CACHE_HOME", "RAGEVAL_CACHE"):
        monkeypatch.setenv(name, str(home))


def list_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def list_next(output: str) -> list[list[str]]:
    """The arguments of the commands to type next."""
    return [shlex.split(line)[1:] for line in re.findall(r"^    (rageval-spec .*)$", output, re.MULTILINE)]


def test_a_red_gate_with_its_question(tmp_path: Path) -> None:
    result = invoke("demo", "--no-open")
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "✗ Not ready: 2 of 3 gates failed." in told
    assert "recall@3 1.000 0.875 ✗" in told
    assert "faithfulness 1.000 1.000 ✓" in told
    assert "question How many days do I have to return an e-bike?" in told
    assert "before You can return an e-bike within 14 days. after You have 30 days from delivery" in told
    assert "why retrieval: the assistant read 'returns', but the answer is in 'e-bikes'" in told
    assert "exits with 1 here" in told
    page = Path("rageval-demo") / "after" / "report.html"
    assert f"Page: {page}" in told
    assert "<title>bike-shop" in page.read_text(encoding="utf-8")
    assert list_names(Path()) == {"rageval-demo"}
    assert list_names(tmp_path / "home") == set()
    assert list_names(Path("rageval-demo")) - {"__pycache__"} == INPUTS | {"before", "after"}


def test_the_commands_that_it_prints_work(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, run, init = list_next(invoke("demo", "my demo", "--no-open").stdout)
    question = invoke(*shown)
    assert question.exit_code == 0
    assert "e-bikes not retrieved" in " ".join(question.stdout.split())
    assert run == ["run", "my demo/spec.yaml"]
    assert invoke(*run).exit_code == 1
    assistant = Path("my demo/assistant.py")
    text = assistant.read_text(encoding="utf-8")
    assistant.write_text(text.replace("DOCUMENTS_READ = 1\n", "DOCUMENTS_READ = 3\n"), encoding="utf-8")
    os.utime(assistant, (0, 0))  # so that its bytecode is not that of the other text, which is as long and as old
    with start(*run) as process:  # a process of its own, as this one has imported the assistant
        process.communicate(timeout=60)
    assert process.returncode == 0
    monkeypatch.chdir("my demo/after")
    assert invoke(*init).exit_code == 0


def test_again_in_its_own_folder() -> None:
    first = invoke("demo", "--no-open")
    Path("rageval-demo/questions.jsonl").unlink()  # as after a kill
    again = invoke("demo", "--no-open")
    assert (again.exit_code, again.stdout) == (0, first.stdout)


def test_what_the_user_changed_is_not_overwritten() -> None:
    invoke("demo", "--no-open")
    spec = Path("rageval-demo/spec.yaml")
    spec.write_text("version: 1\n", encoding="utf-8")
    result = invoke("demo", "--no-open")
    assert result.exit_code == 2
    assert f"you have changed {spec}" in result.stderr
    assert "rageval-spec run rageval-demo/spec.yaml" in result.stderr
    assert "rageval-spec demo rageval-demo-2" in result.stderr
    assert spec.read_text(encoding="utf-8") == "version: 1\n"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_folder_of_someone_else_is_left_alone(kind: str) -> None:
    theirs = Path("rageval-demo")
    if kind == "folder":
        theirs.mkdir()
        (theirs / "thesis.tex").write_text("mine", encoding="utf-8")
    else:
        theirs.write_text("mine", encoding="utf-8")
    result = invoke("demo", "--no-open")
    assert result.exit_code == 2
    assert "rageval-demo already exists, and is not a demo; write it to another folder: " in result.stderr
    assert "demo rageval-demo-2" in result.stderr
    assert not (theirs / "spec.yaml").exists()


def test_the_current_folder_if_it_is_empty() -> None:
    assert invoke("demo", ".", "--no-open").exit_code == 0
    Path("spec.yaml").unlink()
    result = invoke("demo", ".", "--no-open")
    assert result.exit_code == 2
    assert "is not a demo; write it to another folder: rageval-spec demo rageval-demo\n" in result.stderr


def test_a_folder_that_cannot_be_written() -> None:
    Path("taken").write_text("", encoding="utf-8")
    result = invoke("demo", "taken/demo", "--no-open")
    assert result.exit_code == 2
    assert "taken/demo/spec.yaml cannot be written; name a folder that can" in result.stderr


@pytest.mark.parametrize(
    ("terminal", "environment", "is_opened"),
    [
        (True, {"DISPLAY": ":0"}, True),
        (True, {"WAYLAND_DISPLAY": "wayland-0"}, True),
        (True, {}, False),
        (True, {"DISPLAY": ":0", "CI": "true"}, False),
        (False, {"DISPLAY": ":0"}, False),
    ],
)
def test_a_browser_opens_only_where_a_person_can_see_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], is_opened: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(console, "is_terminal", lambda: terminal)
    assert command.has_browser() is is_opened


def test_the_page_is_opened_unless_the_user_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(command, "has_browser", lambda: True)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    invoke("demo", "--no-open")
    assert opened == []
    invoke("demo")
    assert opened == [Path("rageval-demo/after/report.html").resolve().as_uri()]
