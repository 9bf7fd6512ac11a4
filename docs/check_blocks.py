"""Executes every fenced block of the documentation, or finds the reason why a block is not executed.

    python docs/check_blocks.py                      # every page
    python docs/check_blocks.py docs/gates.md        # some pages
    python docs/check_blocks.py --update [PAGE ...]  # write what commands print into the pages

A page is walked from an empty folder, its blocks in order. A block with `title="spec.yaml"` becomes that file, which a
command of the page must use, or a file that one uses. The
commands of `console` and `sh` run in the folder; what a `console` block shows below a command is compared with what it
prints, with times, sizes, versions and paths made alike; a line `...` stands for any lines. Python is linted and run by
pytest-examples. A YAML block is a spec, or a part of one, and is validated. JSON, JSON lines, CSV, TOML and INI are
parsed, SQL is run by DuckDB.

A comment above the fence says what a block needs:

    <!-- not run: needs a chat model -->             the reason why it is not executed; its commands are parsed anyway
    <!-- checked by: tests/docs/test_ci.py -->       a test of its own, which has the page's name; `::NAME` names one
    <!-- given: ranking -->                          starts in a new folder, with the function of block_settings.py
    <!-- output of: rageval-spec show q11 -->        the block is a part of what this command prints
    <!-- part of: monitor -->                        the key of the spec that this YAML is below
    <!-- alternatives -->                            each line of this YAML is a part of a spec of its own; each command
                                                     starts in a new folder
    <!-- exit code: 2 -->                            how one command of the block ends; `$ echo $?` shows it to readers
    <!-- stopped after: 1 -->                        Ctrl-C ends the last command, so many seconds after its first line

and a comment anywhere in a page, what all of it needs:

    <!-- port: 8000 -->                              a number that stands for a free port
    <!-- width: 100 -->                              of the terminal; 80 columns otherwise
    <!-- environment: uv -->                         commands are processes in a virtual environment of the page's own
"""

from __future__ import annotations

import argparse
import ast
import configparser
import contextlib
import csv
import io
import json
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import threading
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

import block_settings
import click
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
WIDTH = 80
"""Of the terminal on which commands print."""
PATIENCE = 60
"""Seconds that a command may take, and a program in the background until it prints its first line."""
PROGRAM = "rageval-spec"
OPTIONAL = frozenset(("promtool",))
"""Programs without which a block is not executed."""
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*(\w*)(.*)$")
_NOTE = re.compile(r"^\s*<!-- ([a-z ]+?)(?:: (.*))? -->$")
_NOTES = frozenset(
    ("not run", "checked by", "given", "output of", "part of", "alternatives", "exit code", "stopped after")
)
_SHELL = re.compile(r"[|;&<>`$*]")
_FIGURE = re.compile(r"\b(\d[\d,.]*) ?(ms|s|min|h|seconds?|minutes?|[kKMG]i?B|bytes)(?![\w/])")
_ALIKE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?"), "TIME"),
    (_FIGURE, "FIGURE"),
    (re.compile(r"\b\d[\d,.]*/s\b"), "RATE"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\b"), "HASH"),
)
_PRINTED = {
    "TIME": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?",
    "FIGURE": r"(\d[\d,.]* ?(?:ms|s|min|h|seconds?|minutes?|[kKMG]i?B|bytes))(?![\w/])",
    "RATE": r"\d[\d,.]*/s\b",
    "HASH": r"[0-9a-f]{8,64}\b",
}
"""What a command may print where a page shows something of a kind."""
_UNITS = {"ms": 1e-3, "s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600}
_UNITS |= {
    "byte": 1,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2**10,
    "kiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_BYTES = frozenset(unit for unit in _UNITS if unit.endswith(("B", "byte")))
_FARTHEST = 500
"""By how much a figure may differ from the one that a page shows: not as much as one unit from the next."""


_LOAD = """
import json, sys
from rageval_spec import SpecError
from rageval_spec.spec import loads
text, environment = json.load(sys.stdin)
try:
    loads(text, path="the block", environment=environment, check_files=False)
except SpecError as error:
    sys.exit(str(error))
"""
"""Loads a spec in another process."""
_MADE: dict[str, tuple[Path, dict[str, Any]]] = {}
"""Settings that this process has made: their folders, of which blocks get copies, and their names."""


class FaultError(Exception):
    """What is wrong with a block, and what to write instead."""


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its opening fence's line, from 1, and its lines without the page's indentation."""

    page: Path
    line: int
    indent: str
    language: str
    title: str | None
    lines: tuple[str, ...]
    notes: Mapping[str, str]

    @property
    def place(self) -> str:
        """Its page, from the root of the repository, and the line of its fence."""
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}"

    @property
    def text(self) -> str:
        """The block's text, which ends with a line break unless it is empty."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass
class Walked:
    """What became of a page's blocks: a word for each, the reasons, the faults, and the lines to write instead."""

    page: Path
    done: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    rewritten: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """By first line and the line after the last, from 1."""


def read_blocks(page: Path, text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown page, each with the comments directly above it."""
    lines = text.splitlines()
    notes: dict[str, str] = {}
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            note = _NOTE.match(lines[number])
            if note and note[1] in _NOTES:
                notes[note[1]] = note[2] or ""
            elif lines[number].strip() and not note:
                notes = {}
            number += 1
            continue
        indent, fence, language, rest = opening.groups()
        ends = (end for end in range(number + 1, len(lines)) if lines[end].strip() == fence)
        end = next(ends, len(lines))
        language = language if end < len(lines) else "a fence that nothing closes"
        title = re.search(r'title="([^"]+)"', rest)
        body = tuple(line.removeprefix(indent) for line in lines[number + 1 : end])
        yield Block(page, number + 1, indent, language, title[1] if title else None, body, notes)
        notes, number = {}, end + 1


def make_alike(line: str) -> str:
    """A line of output without this version, and what the width of a table makes of it."""
    from rageval_spec import __version__

    line = line.replace(__version__, "VERSION").rstrip()
    return re.sub(r"(?<=\S) +", " ", re.sub(r"─{2,}", "──", line))


def matches(shown: Sequence[str], printed: Sequence[str], *, anywhere: bool = False) -> bool:
    """Whether the lines shown are those printed; a line `...` is any lines. `anywhere`: a part is enough."""
    around = ["..."] if anywhere else []
    figures: list[str] = []
    patterns = [
        r"(?:.*\n)*?" if line.strip() == "..." else f"{_make_pattern(make_alike(line), figures)}\\n"
        for line in (*around, *shown, *around)
    ]
    found = re.fullmatch("".join(patterns), "".join(f"{make_alike(line)}\n" for line in printed))
    return found is not None and all(_is_near(*pair) for pair in zip(figures, found.groups(), strict=True))


def _make_pattern(line: str, figures: list[str]) -> str:
    """What a line that is shown stands for, with a group for each of its figures, which are added to `figures`."""
    spans = sorted((one.span(), kind) for pattern, kind in _ALIKE for one in pattern.finditer(line))
    made, at = "", 0
    for (start, end), kind in spans:
        if start < at:  # a part of what came before
            continue
        made += re.escape(line[at:start]) + _PRINTED[kind]
        figures += [line[start:end]] * (kind == "FIGURE")
        at = end
    return made + re.escape(line[at:])


def _is_near(shown: str, printed: str) -> bool:
    """Whether two figures are of one kind, durations or sizes, and of about one magnitude."""
    values = []
    for text in (shown, printed):
        number, unit = _FIGURE.fullmatch(text).groups()  # type: ignore[union-attr]
        unit = unit if unit in _UNITS else unit.removesuffix("s")
        values.append((unit in _BYTES, max(float(number.replace(",", "").rstrip(".")) * _UNITS[unit], 1e-3)))
    (kind, one), (other_kind, other) = values
    return kind == other_kind and max(one, other) < _FARTHEST * min(one, other)


def shorten(shown: Sequence[str], printed: Sequence[str]) -> list[str]:
    """What a page shows instead: all lines, or as many as before around the first and the last `...`."""
    printed = [line.rstrip() for line in printed]
    dots = [number for number, line in enumerate(shown) if line.strip() == "..."]
    if not dots or len(shown) - 1 - dots[-1] + dots[0] >= len(printed):
        return printed
    return [*printed[: dots[0]], "...", *printed[len(printed) - (len(shown) - 1 - dots[-1]) :]]


def find_likest(shown: Sequence[str], printed: Sequence[str]) -> Sequence[str]:
    """As many lines of what was printed as are shown: those that are likest."""
    last = max(0, len(printed) - len(shown))
    parts = [printed[at : at + len(shown)] for at in range(last + 1)]
    return max(parts, key=lambda part: SequenceMatcher(None, "\n".join(part), "\n".join(shown)).ratio())


def read_commands(block: Block) -> list[tuple[str, int, int]]:
    """The commands of a block, each with the range of its output's lines in the block; a backslash continues one."""
    prompt = "$ " if block.language == "console" else ""
    found: list[tuple[str, int, int]] = []
    is_open = False
    for number, line in enumerate(block.lines):
        if is_open:
            found[-1] = (f"{found[-1][0][:-1]}{line}", number + 1, number + 1)
        elif line.startswith(prompt) and line.strip() and line[0] != "#":
            found.append((line.removeprefix(prompt), number + 1, number + 1))
        elif found and prompt:
            found[-1] = (*found[-1][:2], number + 1)
        is_open = line.endswith("\\") and (is_open or line.startswith(prompt))
    return found


def split_into_calls(command: str) -> list[list[str]]:
    """The words of each program that a command line calls; what it redirects to counts as a program."""
    tokens = shlex.shlex(command, posix=True, punctuation_chars="|;&<>")
    tokens.whitespace_split = True
    calls: list[list[str]] = [[]]
    for word in tokens:
        if set(word) <= set("|;&<>"):
            calls.append([])
        else:
            calls[-1].append(word)
    return calls


def parse_command(command: str) -> None:
    """Parse the options of each call of the program in a command, without running it."""
    from rageval_spec import RagevalError
    from rageval_spec.cli import cli

    for words in split_into_calls(command):
        if not words or words[0] != PROGRAM or len(words) == 1:
            continue
        group: click.Group = cli
        context = click.Context(cli, info_name=PROGRAM)
        arguments = words[1:]
        try:
            while arguments and not arguments[0].startswith("-"):
                name, one, arguments = group.resolve_command(context, arguments)
                assert one is not None
                if not isinstance(one, click.Group):
                    one.make_context(name, [*arguments], parent=context)
                    break
                context, group = click.Context(one, parent=context, info_name=name), one
        except click.exceptions.Exit:
            continue  # --help
        except (click.ClickException, RagevalError) as error:
            if "does not exist" in str(error):  # a file of the reader's
                continue
            raise FaultError(f"'{shlex.join(words)}' is wrong: {error}") from None


class Walk:
    """Walks through one page in a folder of its own."""

    def __init__(self, page: Path, folder: Path, *, update: bool) -> None:
        """`folder` is empty; `update` collects what to write instead of faults of output."""
        self.page, self.folder, self.update = page, folder, update
        self.walked = Walked(page)
        self.names: dict[str, Any] = {}
        self.environment = {**os.environ, **_make_surroundings(folder)}
        self.code = 0
        self.used: list[str] = []
        """What commands and Python have run, in which the names of files are looked for."""
        self.files: list[tuple[Block, str]] = []
        """Blocks that are files, and what became of each."""
        self.background: list[subprocess.Popen[str]] = []
        self.text = page.read_text(encoding="utf-8")
        self.here = folder / "page"
        self.here.mkdir()
        self.in_process = True
        port = re.search(r"<!-- port: (\d+) -->", self.text)
        self.port = (port[1], find_port()) if port else None
        if self.port:
            self.text = self.text.replace(*self.port)
        width = re.search(r"<!-- width: (\d+) -->", self.text)
        self.environment["COLUMNS"] = width[1] if width else str(WIDTH)
        if "<!-- environment: uv -->" in self.text:
            self.in_process = False
            make_environment(folder / "environment", self.environment)

    def check_all(self) -> Walked:
        """Check every block; ends what runs in the background."""
        before = Path.cwd()
        try:
            self.walked.faults += find_unseen(self.page, self.text)
            for block in read_blocks(self.page, self.text):
                os.chdir(self.here)
                try:
                    self.check(block)
                except FaultError as fault:
                    self.walked.faults.append(f"{block.place}: {fault}")
                except (Exception, SystemExit):
                    told = textwrap.indent(traceback.format_exc(), "    ")
                    self.walked.faults.append(f"{block.place}: it failed:\n{told}")
            self.walked.faults += [f"{block.place}: {told}" for block, told in self.find_unused()]
        finally:
            os.chdir(before)
            for process in self.background:
                process.kill()
                process.wait()
        return self.walked

    def check(self, block: Block) -> None:
        """Execute a block, or take its reason."""
        for note in (note for note, value in block.notes.items() if not value.strip() and note != "alternatives"):
            raise FaultError(f"the comment '{note}' is empty; write what it is: <!-- {note}: ... -->")
        if "given" in block.notes:
            self.start_over(block.notes["given"])
        if block.title:
            path = self.here / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.language in ("console", "sh"):
            for command, _, _ in read_commands(block):
                parse_command(command)
        if "not run" in block.notes:
            self.walked.reasons[block.notes["not run"]] += 1
            done = "not run"
        elif "checked by" in block.notes:
            done = check_own_test(block)
        elif "output of" in block.notes:
            done = self.compare_output(block)
        elif block.language in CHECKS:
            done = CHECKS[block.language](self, block)
        elif block.title:
            done = "files of commands"
        else:
            raise FaultError(
                f"nothing executes a block of {block.language or 'no language'}; write <!-- not run: REASON --> above "
                "it, or <!-- output of: COMMAND --> if it shows what a command prints"
            )
        self.walked.done[done] += 1
        if block.title and done not in ("not run", "tests of their own"):
            self.files.append((block, done))

    def find_unused(self) -> Iterator[tuple[Block, str]]:
        """The files that nothing on the page uses, and what to do. What a used file names is used."""
        texts, left = [*self.used], [*self.files]
        while used := [one for one in left if any(_names(text, one[0].title or "") for text in texts)]:
            texts += [block.text for block, _ in used]
            left = [one for one in left if one not in used]
        for block, done in left:
            if done == "files of commands":
                told = f"no command uses {block.title}; run one that does, or write <!-- not run: REASON --> above it"
                yield block, told

    def start_over(self, name: str) -> None:
        """Go on in a new folder, with the files and the names of a setting."""
        if name not in block_settings.SETTINGS:
            raise FaultError(f"no setting is called '{name}'; they are {', '.join(block_settings.SETTINGS)}")
        if name not in _MADE:
            made = Path(tempfile.mkdtemp(dir=self.folder.parent))
            _MADE[name] = made, block_settings.SETTINGS[name](made)
        made, names = _MADE[name]
        self.here = Path(tempfile.mkdtemp(dir=self.folder)) / "page"
        shutil.copytree(made, self.here)
        os.chdir(self.here)
        self.names = dict(names)

    def run_commands(self, block: Block) -> str:
        """Run the commands of a block, and compare what they print with what is shown."""
        commands = read_commands(block)
        if not commands:
            raise FaultError("no line begins with '$ '; if it shows only output, write <!-- output of: COMMAND -->")
        above = takewhile(lambda line: not line.startswith("$ "), block.lines if block.language == "console" else ())
        if stray := next((line for line in above if line.strip()), None):
            raise FaultError(f"no command prints '{stray}', which stands above the first '$ '")
        expected = {0, int(block.notes.get("exit code", 0))}
        ended = set()
        for number, (command, start, end) in enumerate(commands):
            if number and "alternatives" in block.notes:
                self.start_over(block.notes["given"])
            patience = block.notes.get("stopped after") if number + 1 == len(commands) else None
            printed = self.run_until(command, float(patience)) if patience else self.run(command)
            asked = number + 1 < len(commands) and commands[number + 1][0] == "echo $?"
            shown = block.lines[start:end]
            if self.code == 127 and shlex.split(command)[0] in OPTIONAL:
                self.walked.reasons[f"{shlex.split(command)[0]} is not installed"] += 1
                return "not run"
            ended.add(self.code)
            if command == "echo $?" and not shown:
                raise FaultError("'$ echo $?' shows no exit code; write what it prints below it")
            if self.code not in expected and not asked:
                raise FaultError(
                    f"'{command}' ended with exit code {self.code}; show it by a line '$ echo $?', or write "
                    f"<!-- exit code: {self.code} -->. It printed:\n{textwrap.indent(printed, '    ')}"
                )
            if shown and not matches(shown, printed.splitlines()):
                self.differ(block, start, end, command, printed)
        if not expected <= {0, *ended}:
            raise FaultError(f"no command ended with exit code {block.notes['exit code']}; mend or remove the comment")
        return "commands"

    def compare_output(self, block: Block) -> str:
        """Run the command of a comment; the block is a part of what it prints."""
        command = block.notes["output of"]
        parse_command(command)
        printed = self.run(command)
        if self.code != int(block.notes.get("exit code", 0)):
            raise FaultError(f"'{command}' ended with exit code {self.code}; write <!-- exit code: {self.code} -->")
        if not matches(block.lines, printed.splitlines(), anywhere=True):
            if self.update and "..." not in block.lines:
                printed = "\n".join(find_likest(block.lines, printed.splitlines()))
            self.differ(block, 0, len(block.lines), command, printed)
        return "commands"

    def differ(self, block: Block, start: int, end: int, command: str, printed: str) -> None:
        """Take the output to write, or tell how it differs from what is shown."""
        if self.port:
            printed = printed.replace(self.port[1], self.port[0])
        is_part = "output of" in block.notes
        if not self.update or (is_part and "..." in block.lines):
            said = "has no such part" if is_part else "is something else (--update writes it)"
            raise FaultError(f"what '{command}' prints {said}:\n{textwrap.indent(printed, '    ')}")
        lines = shorten(block.lines[start:end], printed.splitlines())
        first = block.line + 1 + start
        self.walked.rewritten[first, first + end - start] = [f"{block.indent}{line}".rstrip() for line in lines]

    def run(self, command: str) -> str:
        """What a command prints, its errors included; its exit code is `code`."""
        self.used.append(command)
        if command == "echo $?":
            told, self.code = f"{self.code}\n", 0
            return told
        words = shlex.split(command, comments=True)
        if words[0] in ("kill", "cd", "export"):
            self.code = 0
            if words[0] == "kill":  # kill %1
                self.background[int(words[1][1:]) - 1].kill()
                self.background[int(words[1][1:]) - 1].wait()
            elif words[0] == "cd":
                self.here = (self.here / words[1]).resolve()
                os.chdir(self.here)
            else:
                self.environment.update((name, value) for name, _, value in (one.partition("=") for one in words[1:]))
            return ""
        plain = words[0] == PROGRAM and not _SHELL.search(re.sub(r"'[^']*'|\s#.*", "", command))
        if command.rstrip().endswith("&"):
            printed = self.run_in_background(command.rstrip().removesuffix("&"))
        elif plain and self.in_process:
            printed = self.call(words[1:])
        else:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.here,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
            )
            self.code, printed = done.returncode, done.stdout
        return printed.replace(f"{self.here.resolve()}{os.sep}", "").replace(str(self.here.resolve()), ".")

    def call(self, arguments: list[str]) -> str:
        """Call the program inside this process."""
        from rageval_spec.cli import cli

        before = dict(os.environ)
        try:
            os.environ.update(self.environment)
            result = CliRunner().invoke(cli, arguments, prog_name=PROGRAM)
        finally:
            os.environ.clear()
            os.environ.update(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.code = result.exit_code
        return str(result.output)

    def run_until(self, command: str, seconds: float) -> str:
        """What a program prints until Ctrl-C, some seconds after its first line; an exit code of 130 counts as 0."""
        self.used.append(command)
        process, first = self.start(command)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
        self.code = 0 if process.returncode == 130 else process.returncode
        return first + rest

    def run_in_background(self, command: str) -> str:
        """Start a program that goes on until the page ends; what it prints first."""
        process, first = self.start(command)
        assert process.stdout is not None
        threading.Thread(target=process.stdout.read, daemon=True).start()
        self.code = 0
        return first

    def start(self, command: str) -> tuple[subprocess.Popen[str], str]:
        """A program, which is killed when the page ends, and its first line."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.here,
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.background.append(process)
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        first = process.stdout.readline()
        timer.cancel()
        return process, first

    def run_python(self, block: Block) -> str:
        """Lint a block, and run it unless it is a file, which commands run. Lines `#> ` show what it prints."""
        from pytest_examples.config import ExamplesConfig
        from pytest_examples.find_examples import CodeExample
        from pytest_examples.lint import FormatError, ruff_check
        from pytest_examples.run_code import run_code

        config = ExamplesConfig(
            line_length=100, ruff_ignore=["F821", "F401", "E402", "B018", "SIM115"], target_version="py311"
        )
        example = CodeExample.create(block.text, path=self.page, prefix="python")
        try:
            ruff_check(example, config, extra_ruff_args=("--isolated", "--select=E,F,W,B,C4,UP,SIM,RET,PERF"))
        except FormatError as error:
            raise FaultError(str(error)) from None
        if block.title:
            return "files of commands"
        self.used.append(block.text)
        path = self.folder / f"block_{block.line}.py"
        path.write_text(block.text, encoding="utf-8")
        main = sys.modules["__main__"]
        sys.path.insert(0, str(self.here))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                printed, names = run_code(
                    example=example,
                    python_file=path,
                    loader=None,
                    config=config,
                    enable_print_mock="#> " in block.text,
                    print_callback=None,
                    include_print=None,
                    module_globals=dict(self.names),
                    call=None,
                )
            if "#> " in block.text:
                printed.check_print_statements(example)
        except Exception as error:  # with a traceback of pytest-examples, which the traceback module cannot read
            raise FaultError(f"{type(error).__name__}: {error}") from None
        finally:
            sys.modules["__main__"] = main
            sys.path.remove(str(self.here))
        self.names.update(names)
        return "Python"

    def validate(self, block: Block) -> str:
        """Load a block as a spec; what a part of a spec lacks comes from `block_settings.REST`."""
        from rageval_spec import SpecError
        from rageval_spec.spec import loads

        if block.title and block.title.startswith(".github/workflows/"):
            return lint_workflow(block)
        if block.title and not re.search(r"^(version|metrics):", block.text, re.MULTILINE):
            yaml.safe_load(block.text)
            return "files of commands"
        texts = block.lines if "alternatives" in block.notes else (block.text,)
        for text in texts:
            whole = complete(text, block.notes.get("part of"))
            found = re.findall(r"\$\{(?:secret:)?(\w+)", whole)
            environment = {name: block_settings.ENVIRONMENT.get(name, "http://localhost:1/x") for name in found}
            try:
                if self.in_process:
                    loads(whole, path=block.title or "the block", environment=environment, check_files=False)
                else:
                    self.load_in_process(whole, environment)
            except SpecError as error:
                raise FaultError(f"it is no valid part of a spec:\n{textwrap.indent(str(error), '    ')}") from None
        return "specs"

    def load_in_process(self, text: str, environment: dict[str, str]) -> None:
        """Load a spec where the packages of the page are installed."""
        given = json.dumps([text, environment])
        call = ["python", "-c", _LOAD]
        done = subprocess.run(call, input=given, env=self.environment, cwd=self.here, capture_output=True, text=True)
        if done.returncode:
            raise FaultError(f"it is no valid part of a spec:\n{textwrap.indent(done.stderr, '    ')}")

    def query(self, block: Block) -> str:
        """Run a block of SQL."""
        import duckdb

        duckdb.connect().execute(block.text).fetchall()
        return "SQL"


def complete(text: str, key: str | None) -> str:
    """A whole spec around a part of one, which is a text of YAML below a key, or at the top. Its lines come first."""
    if key:
        indented = textwrap.indent(textwrap.dedent(text), "  ")
        text = f"{key}:\n{indented}"
    has = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    if not has:
        raise FaultError("it is no mapping; write <!-- part of: KEY --> above it, with the key that it is below")
    if "version" in has:
        return text
    rest = block_settings.REST_OF_MONITOR if "monitor" in has else block_settings.REST
    unused = set() if re.search(r"\b(fast|strict)\b", text) else {"judges"}
    if unused and not re.search(r"model: (gpt|nli)\b", text):
        unused.add("models")
    return "\n".join([text, *(lines for section, lines in rest.items() if section not in has | unused)])


def lint_workflow(block: Block) -> str:
    """Check a workflow of GitHub."""
    lint = [f"{Path(sys.executable).parent}/actionlint", "-shellcheck=", "-pyflakes=", "-"]
    done = subprocess.run(lint, input=block.text, capture_output=True, text=True)
    if done.returncode:
        raise FaultError(f"actionlint says:\n{textwrap.indent(done.stdout + done.stderr, '    ')}")
    return "workflows"


def check_own_test(block: Block) -> str:
    """Whether the test that a block names exists, and reads the block's page."""
    named, _, function = block.notes["checked by"].partition("::")
    test = ROOT / named
    tree = ast.parse(test.read_text(encoding="utf-8")) if test.is_file() else ast.Module([], [])
    nodes = [*ast.walk(tree)]
    names = [one.name for one in nodes if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")]
    texts = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    documented = {
        ast.get_docstring(one, clean=False) for one in nodes if isinstance(one, (ast.Module, ast.FunctionDef))
    }
    stems = (
        block.page.stem,
        block.page.name,
        block.page.relative_to(ROOT).as_posix() if block.page.is_relative_to(ROOT) else "",
    )
    if not names or (function and function not in names):
        raise FaultError(f"{named} does not exist, or has no test {function}".rstrip())
    if not any(text not in documented and (text in stems or text.endswith(f"/{stems[1]}")) for text in texts):
        raise FaultError(f"{named} does not read {block.page.name}")
    return "tests of their own"


def find_unseen(page: Path, text: str) -> list[str]:
    """Faults for blocks of code that `read_blocks` does not find, so that nothing would execute them."""
    from markdown_it import MarkdownIt

    seen = {block.line for block in read_blocks(page, text)}
    faults = []
    for token in MarkdownIt().parse(text):
        line = token.map[0] + 1 if token.map else 0
        parts = [token, *(token.children or ())]
        if token.type == "fence" and line not in seen:
            told = "this block is not seen; write its fence outside of a quotation, indented by spaces"
        elif token.type == "code_block":
            told = "this block is only indented; write a fence around it"
        elif any("<pre" in one.content.lower() for one in parts if one.type in ("html_block", "html_inline")):
            told = "write a fence in place of <pre>"
        else:
            continue
        faults.append(f"{Block(page, line, '', '', None, (), {}).place}: {told}")
    return faults


def _names(text: str, title: str) -> bool:
    """Whether a text names a file by its name, its module, or a folder or a pattern that it is in."""
    path = PurePosixPath(title)
    names = [path.name, *(one.as_posix() for one in path.parents if one.name and not one.name.startswith("."))]
    names += [path.stem] if path.suffix == ".py" else []
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in names) or any(
        path.match(word) for word in text.split() if "*" in word and set(word) - set("*./")
    )


def parse_with(parse: Callable[[str], object]) -> Callable[[Walk, Block], str]:
    """A check that parses a block."""

    def check(_: Walk, block: Block) -> str:
        try:
            parse(block.text)
        except ValueError as error:
            raise FaultError(f"it is not {block.language}: {error}") from None
        return "files of commands" if block.title else "data parsed"

    return check


def _parse_csv(text: str) -> None:
    rows = list(csv.reader(io.StringIO(text)))
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError(f"its rows do not all have {len(rows[0])} columns")


def _parse_json_lines(text: str) -> None:
    for line in text.splitlines():
        json.loads(line)


CHECKS: Mapping[str, Callable[[Walk, Block], str]] = {
    "console": Walk.run_commands,
    "sh": Walk.run_commands,
    "python": Walk.run_python,
    "yaml": Walk.validate,
    "sql": Walk.query,
    "json": parse_with(json.loads),
    "jsonl": parse_with(_parse_json_lines),
    "csv": parse_with(_parse_csv),
    "toml": parse_with(tomllib.loads),
    "ini": parse_with(lambda text: configparser.RawConfigParser(strict=False).read_string(text)),
}


def find_port() -> str:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def _make_surroundings(folder: Path) -> dict[str, str]:
    """The variables with which commands run, and programs by their usual names."""
    programs = folder / "bin"
    programs.mkdir()
    refusal = "echo '<!-- not run: installs from an index -->'; exit 1; "
    for name, call in ((PROGRAM, "-m rageval_spec "), ("python", ""), ("pip", refusal), ("uvx", refusal)):
        start = call if call == refusal else f'exec "{sys.executable}" {call}"$@"'
        (programs / name).write_text(f"#!/bin/sh\n{start}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "NO_COLOR": "1",
        "HF_HUB_OFFLINE": "1",
        "UV_OFFLINE": "1",
        "HF_HOME": str(folder / "hub"),
    }


def make_environment(folder: Path, environment: dict[str, str]) -> None:
    """Make a virtual environment in which packages of this one can be imported, and use it."""
    from rageval_spec import __version__

    subprocess.run(["uv", "venv", "--quiet", "--offline", "--python", sys.executable, folder], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "this_repository.pth").write_text(f"{ROOT / 'python'}\n{sysconfig.get_path('purelib')}\n")
    installed = site / f"rageval_spec-{__version__}.dist-info"  # so that uv need not look for it in an index
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.4\nName: rageval-spec\nVersion: {__version__}\n")
    program = folder / "bin" / PROGRAM
    program.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m rageval_spec "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment.pop("PYTHONPATH", None)
    environment.update(
        VIRTUAL_ENV=str(folder),
        PATH=f"{folder / 'bin'}{os.pathsep}{environment['PATH']}",
    )


def list_pages() -> list[Path]:
    """Every page whose blocks are checked."""
    patterns = ("*.md", "docs/**/*.md", "benches/*.md", "python/**/*.md", "packaging/**/*.md", "tests/**/README.md")
    return [page for pattern in patterns for page in sorted(ROOT.glob(pattern))]


def walk(page: Path, update: bool, scratch: Path) -> Walked:
    """Check a page in a new folder of `scratch`, and rewrite it if its outputs are updated."""
    walked = Walk(page, Path(tempfile.mkdtemp(dir=scratch)), update=update).check_all()
    if walked.rewritten:
        lines = page.read_text(encoding="utf-8").splitlines()
        for (first, end), written in sorted(walked.rewritten.items(), reverse=True):
            lines[first - 1 : end - 1] = written
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return walked


def main(arguments: Sequence[str] | None = None) -> int:
    """Check pages, tell every fault, and count what was done; exit code 1 if there is a fault."""
    parser = argparse.ArgumentParser(description="Execute the fenced blocks of the documentation.")
    parser.add_argument("pages", nargs="*", type=Path, help="default: all pages")
    parser.add_argument("--update", action="store_true", help="write what commands print into the pages")
    options = parser.parse_args(arguments)
    pages = [page.resolve() for page in options.pages] or list_pages()
    began = time.monotonic()
    workers = min(2, len(pages), os.cpu_count() or 1)
    with (
        tempfile.TemporaryDirectory(prefix="blocks-", ignore_cleanup_errors=True) as scratch,
        ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool,
    ):
        results = list(pool.map(partial(walk, update=options.update, scratch=Path(scratch).resolve()), pages))
    done = sum((one.done for one in results), Counter[str]())
    reasons = sum((one.reasons for one in results), Counter[str]())
    faults = [fault for one in results for fault in one.faults]
    blocks = done.total() + len(faults)
    pages_with = sum(1 for one in results if one.done or one.faults)
    print(f"{blocks} blocks of {pages_with} pages in {time.monotonic() - began:.0f} s")
    for word, count in sorted(done.items(), key=lambda one: (one[0] == "not run", -one[1])):
        print(f"{count:5} {word}")
    for reason, count in reasons.most_common():
        print(f"{count:9} {reason}")
    for one in results:
        if one.rewritten:
            print(f"{one.page.relative_to(ROOT)}: wrote what {len(one.rewritten)} commands print")
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print(f"{len(faults)} faults", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
