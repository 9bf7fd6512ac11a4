""""""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.commands import console
from rageval_spec.data.tables import Collection
from tests.command_line import invoke, start
from tests.terminal import open_terminal, remove_colours
from tests.tiny import Counting, Install, Length, write_spec


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_exits_with_3(spec: Path) -> None:
    command = f"{sys.executable} -m rageval_spec validate {spec}"
    for target, reason in ((">/dev/full", "cannot be written: No space left on device"), (">&-", "is closed")):
        ended = subprocess.run(["sh", "-c", f"{command} {target}"], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (3, f"rageval-spec: standard output {reason}\n")


def test_a_reader_that_goes_away_is_not_an_error(spec: Path, tmp_path: Path) -> None:
    for arguments in (["list"], ["schema"], ["run", spec, "-o", tmp_path / "out"], ["plan", spec]):
        with start(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            errors = process.stderr.read()
        assert process.returncode == 0
        assert [line for line in errors.splitlines() if not line.startswith("wrote ")] == []


NOISY = """
import os, subprocess, sys
print('noise of the import')
def answer(question):
    print('noise of print')
    os.write(1, b'noise of the descriptor\\n')
    subprocess.run([sys.executable, '-c', 'print("noise of a program")'], check=True)
    return 'yes'
"""


def test_only_results_reach_standard_output(tmp_path: Path) -> None:
    (tmp_path / "rag.py").write_text(NOISY)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"query_id": "q", "question": "Is it?", "reference": "yes"}))
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: quiet\n"
        "datasets: {rows: {use: jsonl, path: rows.jsonl}}\n"
        "systems: {app: {use: python, function: 'rag:answer'}}\n"
        "metrics: [exact_match]\nreports: [terminal]\n"
    )
    with start("run", tmp_path / "spec.yaml") as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.startswith("Complete: the spec has no gates.\n\nquiet on rows")
    assert "noise" not in output
    assert [f"noise of {what}" in errors for what in ("the import", "print", "the descriptor", "a program")] == [
        True
    ] * 4


RESERVED = """
import os
from rageval_spec.commands.console import reserve_output, write
with reserve_output():
    print('noise')
    os.write(1, b'more noise\\n')
    write('result\\n')
print('after', flush=True)
os.write(1, b'after that\\n')
"""


def test_standard_output_is_restored_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", RESERVED], capture_output=True, text=True, check=True)
    assert done.stdout == "result\nafter\nafter that\n"
    assert sorted(done.stderr.splitlines()) == ["more noise", "noise"]


HIDDEN = "q\u202e\x9b31m"
SHOWN = "q\\u202e\\x9b31m"


def test_control_characters_in_ids_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(f"{HIDDEN} 0 d1 1\n")
    (tmp_path / "run").write_text(f"{HIDDEN} Q0 d1 1 0.5 t\n")
    printed = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr", "-q").stdout
    assert printed == f"{'rr':<22}\t{SHOWN}\t1.0000\n{'rr':<22}\tall\t1.0000\n"
    exact = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr", "-q", "--format", "json").stdout
    assert list(json.loads(exact)["queries"]) == [HIDDEN]


def test_control_characters_in_files_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "run").write_text(f"q1 Q0 d1 1 {HIDDEN} t\n")
    told = invoke("score", tmp_path / "qrels", tmp_path / "run", "rr").stderr
    assert all(character.isprintable() or character == "\n" for character in told)
    told = invoke("score", tmp_path / f"{HIDDEN}\x1b[31m", tmp_path / "run", "rr").stderr
    assert SHOWN + "\\x1b[31m" in told
    assert all(character.isprintable() or character == "\n" for character in told)


def test_line_breaks_in_messages_are_kept(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("version: 1\nmetrcs: [rr]\n")
    assert "\n  metrcs: [rr]\n  ^^^^^^\n" in invoke("validate", tmp_path / "spec.yaml").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "there is no command 'rnu'; did you mean 'run'?"),
        (["run"], "SPEC is missing: write, for example,"),
        (["run", "spec.yaml", "--lmit", "3"], "there is no option '--lmit'; did you mean '--limit'?"),
        (["run", "spec.yaml", "--limit", "0"], "--limit 0: write a whole number from 1 to"),
        (["score", "a", "b", "--ties", "fair"], "--ties fair: write one of"),
    ],
)
def test_a_wrong_command_line_exits_with_2(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("rageval-spec: ")
    assert message in result.stderr
    assert "--help" in result.stderr
    assert result.stdout == ""


def test_examples_in_messages_name_the_program_as_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for called in ("python -m rageval_spec", "uvx rageval-spec"):
        monkeypatch.setattr(console, "name_program", lambda called=called: called)
        told = invoke("run").stderr
        assert f"write, for example, {called} run spec.yaml\n" in told
        assert f"run: {called} list metrics, or: {called} explain WORD" in invoke("metrics").stderr
        assert console.name_calls(f"write {called} run, by rageval-spec") == f"write {called} run, by rageval-spec"


def test_without_a_command_help_is_shown_and_the_exit_code_is_2() -> None:
    result = invoke()
    assert result.exit_code == 2
    assert "Begin:" in result.stderr


def test_an_unexpected_error_is_one_line_and_exits_with_3(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rageval_spec.runner.run", lambda *arguments: 1 / 0)
    result = invoke("run", spec)
    assert result.exit_code == 3
    expected = (
        "rageval-spec: internal error: ZeroDivisionError: division by zero; set RAGEVAL_DEBUG=1 to see the traceback\n"
    )
    assert result.stderr == expected
    debugged = invoke("run", spec, env={"RAGEVAL_DEBUG": "1"})
    assert "Traceback" in debugged.stderr


SLOW_SYSTEM = """
import sys, time
from rageval_spec import registry
from rageval_spec.cli import main
from tests.tiny import Counting

class Slow(Counting):
    def retrieve(self, collection, runs):
        sys.stdout.write("retrieving\\n")  # one write: two threads do not mix within a line
        sys.stdout.flush()
        for _ in range(600):
            time.sleep(0.1)

load, words = registry.load, registry.words
registry.words = lambda section: (*words(section), "slow") if section == "systems" else words(section)
registry.load = lambda section, word: Slow if word == "slow" else load(section, word)
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="has no SIGINT to send")
@pytest.mark.parametrize("systems", [1, 2])
def test_an_interrupt_exits_with_130_at_once(tmp_path: Path, install: Install, systems: int) -> None:

    install("systems", "slow", Counting)
    nodes = {f"slow{number}": {"use": "slow", "answer": f"d{number}"} for number in range(systems)}
    path = write_spec(tmp_path, systems=nodes)
    command = [sys.executable, "-c", SLOW_SYSTEM, "run", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "retrieving\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait(timeout=50)
    assert process.returncode == 130
    assert time.monotonic() - started < 40  # and not the minute that the system takes
    assert errors.replace("retrieving", "").strip() == "rageval-spec: interrupted"


class Leaving(Counting):
    """Ends the program instead of retrieving."""

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """Nothing."""
        sys.exit(0)


class LeavingMetric(Length):
    """Ends the program instead of computing."""

    def compute(self, collection: Collection, run: pl.DataFrame) -> pl.DataFrame:
        """Nothing."""
        sys.exit(0)


@pytest.mark.parametrize(
    ("sections", "function"),
    [
        ({"systems": {"good": {"use": "file", "path": "data/good.run"}, "odd": {"use": "leaving"}}}, "retrieve"),
        ({"metrics": ["rr", "length"]}, "compute"),
    ],
)
def test_a_plugin_that_exits_counts_as_failed_and_the_rest_is_reported(
    tmp_path: Path, install: Install, sections: dict[str, Any], function: str
) -> None:
    install("systems", "leaving", Leaving)
    install("metrics", "length", LeavingMetric)
    result = invoke("run", write_spec(tmp_path, **sections, reports=["terminal"]))
    assert result.exit_code == 3
    told = " ".join(result.stdout.split())
    assert f"'{function}' (test_console.py:" in told
    assert "called sys.exit(0); it must return or raise an exception" in told
    assert "✗ Incomplete: " in result.stdout


def test_sys_exit_elsewhere_is_an_error_too(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*arguments: object) -> None:
        sys.exit()

    monkeypatch.setattr("rageval_spec.runner.run", leave)
    result = invoke("run", spec)
    assert result.exit_code == 3
    assert result.stderr.startswith("rageval-spec: 'leave' (test_console.py:")


class PanicException(BaseException):
    """As pyo3 raises it where Rust code panics."""


NO_MEMORY = "there is not enough memory; free some, or raise the limit that `ulimit -v` shows"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), NO_MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), NO_MEMORY),
        (RuntimeError("can't start new thread"), NO_MEMORY),
        (ImportError("lib.so: failed to map segment from shared object"), NO_MEMORY),
        (PanicException("memory allocation failed: out of memory"), NO_MEMORY),
        (PanicException("index out of bounds"), "internal error: PanicException: index out of bounds"),
        (OSError(errno.ENOSPC, "No space left on device", "out/x"), "'out/x': No space left on device"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
        (
            OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5_000),
            f"'{'x' * 60}…{'x' * 60}': File name too long",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_line(
    spec: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, message: str
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("rageval_spec.runner.run", fail)
    result = invoke("run", spec)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"rageval-spec: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="a folder that is in use cannot be removed")
def test_a_deleted_current_folder_is_told(spec: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'rmdir "$PWD"; "$0" -m rageval_spec audit "$1"'
    ended = subprocess.run(["sh", "-c", command, sys.executable, spec], cwd=gone, capture_output=True, text=True)
    assert ended.stderr == "rageval-spec: the current folder no longer exists; change to another one\n"
    assert ended.returncode == 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs `ulimit -v`")
def test_too_little_room_for_the_libraries_is_told_before_they_fail(spec: Path) -> None:
    command = 'ulimit -v 300000; "$0" -m rageval_spec run "$1"'
    ended = subprocess.run(["sh", "-c", command, sys.executable, spec], capture_output=True, text=True)
    assert ended.stderr.startswith("rageval-spec: warning: `ulimit -v` allows this program 300,000 kB of addresses")
    assert f"\nrageval-spec: {NO_MEMORY}\n" in ended.stderr  # libraries have lines of their own before or after it
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 3


def test_colours_are_for_a_terminal_and_not_for_a_file_beside_it(tmp_path: Path) -> None:
    for output in (None, tmp_path / "redirected.txt"):
        with open_terminal("demo", "--no-open", folder=tmp_path, columns=60, output=output) as terminal:
            assert terminal.finish() == 0, terminal.screen
        if output is None:
            assert "\x1b[1;31m✗ Not ready" in terminal.screen
            assert max(map(len, remove_colours(terminal.screen).partition("Page:")[0].splitlines())) <= 60
        else:
            told = output.read_text(encoding="utf-8")
            assert "✗ Not ready: 2 of 3 gates failed. recall@3 of assistant is 0.875, below the minimum 0.950." in told
            assert "\x1b" not in told
