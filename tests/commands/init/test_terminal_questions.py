"""`init` alone on a terminal asks, and writes what its answers say; anywhere else it does not ask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command_line import invoke
from tests.commands.init.files import ROWS, write_rows
from tests.terminal import Terminal, open_terminal

RUN = "q1 Q0 d1 1 0.9 t\nq2 Q0 d3 1 0.9 t\nq2 Q0 d2 2 0.8 t\n"


DIALOGUE = (Path(__file__).parents[3] / "docs" / "init.md").read_text(encoding="utf-8")


def list_words(text: str) -> list[str]:
    return text.replace("python -m rageval_spec", "rageval-spec").split()


def answer(terminal: Terminal, *pairs: tuple[str, str]) -> None:
    """Wait for each question, and type its answer."""
    for question, typed in pairs:
        terminal.wait_for(question)
        terminal.type(typed)


def list_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_return_key_accepts_what_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n", encoding="utf-8")
    for name in ("bm25", "no"):  # YAML 1.1 reads `no` as false
        (tmp_path / f"{name}.run").write_text(RUN, encoding="utf-8")
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(terminal, ("Number [1]:", "\n"), ("Folder for the spec [.]:", "\n"))
        assert terminal.finish() == 0, terminal.screen
    assert "1  the judgements in qrels.tsv and the rankings in bm25.run, no.run" in terminal.screen
    assert "init --from trec qrels.tsv ." in terminal.screen
    result = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "rr           0.750" in result.stdout


def test_a_golden_set_and_a_service(tmp_path: Path) -> None:
    write_rows(tmp_path / "my questions.jsonl", ROWS)
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(
            terminal,
            ("Number [1]:", "9\n"),
            ("write a number from 1 to", "1\n"),
            ("Number [1]:", "1\n"),
            ("Its URL [http://localhost:8000/ask]:", "localhost:1/ask\n"),
            ("Error: localhost:1/ask: write a URL such as", "http://localhost:1/ask\n"),
            ("Folder for the spec [.]:", "my questions.jsonl\n"),
            ("is a file; name a folder", "first spec\n"),
        )
        assert terminal.finish() == 0, terminal.screen
    assert "init 'my questions.jsonl' --url http://localhost:1/ask 'first spec'" in terminal.screen
    assert "url: http://localhost:1/ask" in (tmp_path / "first spec" / "spec.yaml").read_text(encoding="utf-8")


def test_sample_data_where_there_is_nothing(tmp_path: Path) -> None:
    with open_terminal("init", folder=tmp_path, columns=40) as terminal:
        answer(terminal, ("Number [5]:", "\n"), ("Folder for the spec [example]:", "\n"))
        assert terminal.finish() == 0, terminal.screen
    assert invoke("validate", tmp_path / "example" / "spec.yaml").exit_code == 0


def test_a_file_that_is_not_there_is_asked_for_again(tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [{**row, "answer": "yes"} for row in ROWS])
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(
            terminal,
            ("Number [5]:", "2\n"),
            ("The file:", "b.jsonl\n"),
            ("there is no b.jsonl", ".\n"),
            (". is a folder", "a.jsonl\n"),
            ("Folder for the spec [.]:", "\n"),
        )
        assert terminal.finish() == 0, terminal.screen
    assert (tmp_path / "spec.yaml").is_file()


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "end of input"])
def test_whoever_leaves_finds_nothing_written(tmp_path: Path, key: str) -> None:
    write_rows(tmp_path / "golden.jsonl", ROWS)
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(terminal, ("Number [1]:", "\n"), ("Number [1]:", "3\n"), ("Folder for the spec [.]:", key))
        assert terminal.finish() == 130
    assert terminal.screen.splitlines()[-1].endswith("interrupted")
    assert list_files(tmp_path) == {"golden.jsonl"}


def test_the_command_without_questions_is_shown_only_where_it_succeeds(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text("[1]\n", encoding="utf-8")
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(terminal, ("Number [1]:", "\n"), ("Number [1]:", "3\n"), ("Folder for the spec [.]:", "\n"))
        assert terminal.finish() == 2
    assert "golden.jsonl:1" in terminal.screen
    assert "without questions" not in terminal.screen
    assert list_files(tmp_path) == {"golden.jsonl"}


def test_arguments_and_pipes_are_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_terminal("init", "example", folder=tmp_path) as terminal:
        assert terminal.finish() == 0, terminal.screen
    assert "?" not in terminal.screen
    (tmp_path / "piped").mkdir()
    monkeypatch.chdir(tmp_path / "piped")
    assert invoke("init").exit_code == 0
    assert "spec.yaml" in os.listdir()  # noqa: PTH208


def test_the_dialogue_of_the_documentation(tmp_path: Path) -> None:
    shown = DIALOGUE.partition("```text\n")[2].partition("```")[0]
    (tmp_path / "golden.csv").write_text("question,reference\nWho?,Ada\n", encoding="utf-8")
    with open_terminal("init", folder=tmp_path) as terminal:
        answer(
            terminal,
            ("Number [1]:", "1\n"),
            ("Number [1]:", "1\n"),
            ("Its URL [http://localhost:8000/ask]:", "\n"),
            ("Folder for the spec [.]:", "\n"),
        )
        assert terminal.finish() == 0, terminal.screen
    assert list_words(terminal.screen) == list_words(shown)
