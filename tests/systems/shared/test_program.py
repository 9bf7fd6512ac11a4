"""A program is started, read and ended, whatever it does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from rageval_spec.systems.command import Program, is_path
from rageval_spec.systems.shared.question_templates import AskError

HANG = 60


def start(folder: Path, source: str) -> Program:
    return Program([sys.executable, "-c", source], folder, shell=False)


def ask(program: Program, text: str, *, ends: bool = False) -> bytes:
    return program.ask(text.encode() + b"\n", time.monotonic() + HANG, HANG, ends=ends)


def test_a_program_answers_line_by_line(tmp_path: Path) -> None:
    program = start(tmp_path, "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)")
    assert [ask(program, text) for text in ("a", "b")] == [b"A\n", b"B\n"]
    assert program.runs
    assert program.take_unasked() is None
    assert list(program.end()) == []
    assert not program.runs


def test_a_line_without_an_end_is_an_error(tmp_path: Path) -> None:
    program = start(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 2**20)")
    with pytest.raises(AskError, match="wrote a line of more than 16 MiB; an answer must be one line of JSON"):
        ask(program, "a")
    program.kill()


def test_unread_output_waits_in_the_program(tmp_path: Path) -> None:
    source = """
import sys
for number in range(10**9):
    sys.stdout.write('x' * 2**20 + '\\n')
    sys.stdout.flush()
    open('written', 'w').write(str(number))
"""
    program = start(tmp_path, source)
    ask(program, "a")
    seen, now = "", "0"
    until = time.monotonic() + HANG
    while seen != now and time.monotonic() < until:  # until it is stopped
        time.sleep(0.5)
        seen, now = now, (tmp_path / "written").read_text()
    assert seen == now
    assert int(now) < 100
    program.kill()


def test_an_error_line_without_an_end_is_cut(tmp_path: Path) -> None:
    program = start(tmp_path, "import sys\nsys.stderr.write('x' * 2**24 + ' the end')\nsys.exit(3)")
    with pytest.raises(AskError, match=r"ended with exit code 3 before it answered: x.* the end$") as caught:
        ask(program, "a")
    program.kill()
    assert len(str(caught.value)) < 600


def test_a_program_is_a_path_or_is_looked_up() -> None:
    assert [is_path(word) for word in ("./rag", "bin/rag", "/bin/rag", "rag")] == [True, True, True, False]
