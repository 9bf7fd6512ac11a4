"""`command`: a program that reads questions and writes answers as JSON lines."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import IO, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from rageval_spec.diagnostics import make_visible
from rageval_spec.errors import RagevalError
from rageval_spec.plugin import Context, InputFile
from rageval_spec.recorded.answers_and_steps import AnswerRow, UnusableReplyError
from rageval_spec.systems.shared.answering_system import RetrievingNode, TemplateSystem, check_path, check_template
from rageval_spec.systems.shared.process_guard import GUARD
from rageval_spec.systems.shared.question_templates import ASKING, AskError, Variables, fill_in, list_variables
from rageval_spec.user_functions import find_beside, list_imports

_LINES_KEPT, _SHOWN_OF_ERRORS = 20, 300
_LONGEST_LINE = 16 * 2**20
"""The most bytes in an answer."""
_LONGEST_ERROR = 2**16
_LINES_AHEAD = 16
"""Lines to read ahead. A program that writes more is blocked until they are used, as with any pipe."""
_PATIENCE = 5.0
"""Seconds that a program has to exit on its own after its input is closed."""
_LONGEST_PATIENCE = 30.0
_MOMENT = 0.2
"""Seconds to wait for operations that are instant unless a pipe is blocked."""
_GRACE = 1.0
"""Seconds to wait for the exit code of a program that has closed its output."""


class Program:
    """A running program in its own process group, with one thread to read each of its output streams.

    Attributes:
        unnamed: what it got for queries whose answers do not name their query.
    """

    def __init__(self, command: str | list[str], folder: Path, *, shell: bool) -> None:
        """Start the program in a folder."""
        program = command
        if isinstance(command, list) and is_path(command[0]):
            # Relative to the spec's folder, not to the working directory of this process.
            program = [str((folder / command[0]).absolute()), *command[1:]]
        GUARD.prepare()
        self._popen = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            shell=shell,
            start_new_session=True,
        )
        GUARD.add(self._popen.pid)
        self.unnamed: list[Variables] = []
        self._has_answered = self._has_ended = False
        self._slowest = 0.0
        self._is_dropped = Event()
        self._lines: Queue[bytes | None] = Queue(_LINES_AHEAD)
        self._errors: deque[bytes] = deque(maxlen=_LINES_KEPT)
        self._threads = [
            Thread(target=_read_lines, args=arguments, daemon=True)
            for arguments in (
                (self._popen.stdout, self._put_line, _LONGEST_LINE),
                (self._popen.stderr, self._put_error, _LONGEST_ERROR),
            )
        ]
        for thread in self._threads:
            thread.start()

    @property
    def runs(self) -> bool:
        return self._popen.poll() is None and not self._has_ended

    def take_unasked(self) -> bytes | None:
        """A line that the program has written since its last answer; None if there is none."""
        with suppress(Empty):
            while (line := self._lines.get_nowait()) is not None:
                if line.strip():
                    return line
            self._has_ended = True
        return None

    def ask(self, line: bytes, deadline: float, timeout: float, *, ends: bool) -> bytes:
        """Send a line and return the program's first line that is not blank; `AskError` if there is none."""
        start = time.monotonic()
        writer = Thread(target=self._write, args=(line, ends), daemon=True)
        writer.start()  # in a thread: a program that does not read must not block the timeout
        while True:
            try:
                reply = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                message = f"the program gave no answer within {timeout:g} s and was ended"
                if not ends and not self._has_answered:
                    message += (
                        "; it must flush its output after each line; if it reads all questions first, write "
                        "'per: query'"
                    )
                raise AskError(message + self._tail()) from None
            if reply is None:
                raise AskError(self._describe_end())
            if len(reply) >= _LONGEST_LINE:
                raise AskError(
                    f"the program wrote a line of more than {_LONGEST_LINE // 2**20} MiB; an answer must be one line "
                    "of JSON, ended by a line break"
                )
            if reply.strip():
                self._has_answered = True
                self._slowest = max(self._slowest, time.monotonic() - start)
                return reply

    def end(self) -> Sequence[bytes]:
        """Let the program exit on its own, or kill it if it does not. Returns the lines that it still wrote.

        A program that lags behind may still write answers, so it gets time according to its slowest answer.
        """
        self._close_input()
        patience = min(max(_PATIENCE, 2 * self._slowest), _LONGEST_PATIENCE)
        lines = list(self._drain(time.monotonic() + patience))
        self.kill()
        return lines

    def _drain(self, deadline: float) -> Iterator[bytes]:
        while time.monotonic() < deadline and not self._has_ended:
            has_exited = self._popen.poll() is not None
            try:
                line = self._lines.get(timeout=_MOMENT)
            except Empty:
                if has_exited:  # only its child processes still hold the output
                    return
                continue
            if line is None:
                self._has_ended = True
            elif line.strip():
                yield line
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(0.0, deadline - time.monotonic()))

    def kill(self) -> None:
        """Kill the program at once, with all processes that it started."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._popen.pid, signal.SIGKILL)
            else:
                self._popen.kill()
        self._popen.wait()
        self._is_dropped.set()
        GUARD.remove(self._popen.pid)
        # A process that it started in a separate session may still hold the pipes. Do not wait for it.
        self._close_input()

    def _close_input(self) -> None:
        """Close the input in a thread, because a thread that is still writing may hold the stream."""
        closer = Thread(target=self._close, daemon=True)
        closer.start()
        closer.join(_MOMENT)

    def _close(self) -> None:
        with suppress(OSError, ValueError):
            assert self._popen.stdin is not None, "it is a pipe"
            self._popen.stdin.close()

    def _write(self, line: bytes, ends: bool) -> None:
        with suppress(OSError, ValueError):  # the end of the program is noticed on its output
            assert self._popen.stdin is not None, "it is a pipe"
            self._popen.stdin.write(line)
            self._popen.stdin.flush()
            if ends:
                self._popen.stdin.close()

    def _put_line(self, line: bytes | None) -> None:
        while not self._is_dropped.is_set():
            with suppress(Full):
                self._lines.put(line, timeout=_MOMENT)
                return
        with suppress(Empty):
            while True:
                self._lines.get_nowait()
        self._lines.put(None)  # wakes a reader that would otherwise wait for ever

    def _put_error(self, line: bytes | None) -> None:
        if line is not None and line.strip():
            self._errors.append(line)

    def _describe_end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(_GRACE)
        code = self._popen.poll()
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        hint = "; if it answers only one question, write 'per: query'" if self._has_answered else ""
        return f"the program {how} before it answered{hint}{self._tail()}"

    def _tail(self) -> str:
        """The end of the program's error stream, ready to append to a message."""
        if self._popen.poll() is not None:
            self._threads[1].join(_GRACE)
        text = " | ".join(line.decode("utf-8", "replace").strip() for line in list(self._errors))
        return f": {make_visible(text)[-_SHOWN_OF_ERRORS:]}" if text else ""


def _read_lines(stream: IO[bytes] | None, put: Callable[[bytes | None], None], longest: int) -> None:
    """Pass on each line, then close the stream, which no other thread can do while it is being read."""
    with suppress(OSError, ValueError):
        while stream is not None and (line := stream.readline(longest)):
            put(line)
    put(None)
    with suppress(OSError):
        if stream is not None:
            stream.close()


def is_path(word: str) -> bool:
    """Whether a program is given as a path, such as `./rag`, instead of being looked up on the PATH."""
    return len(Path(word).parts) > 1 or "/" in word or os.sep in word


_SCRIPTS = frozenset({".py", ".sh", ".bash", ".js", ".mjs", ".ts", ".rb", ".pl", ".r", ".jar", ".php", ".lua"})
_PUNCTUATION = frozenset("();<>|&")
"""Characters that end a word in a shell."""
_PARTS = ("retrieves", "scores", "contexts")
_SHOWN = 300


class CommandNode(RetrievingNode):
    """A program that answers questions or retrieves. It reads and writes one line of JSON per question."""

    command: Annotated[tuple[str, ...], Field(min_length=1)] | Annotated[str, Field(min_length=1)] = Field(
        description=(
            "The program and its arguments: a list, or one text with quotes as in a shell. It runs in the folder of "
            "the spec."
        ),
    )
    per: Literal["run", "query"] = Field(
        default="run",
        description=(
            "run: start the program once; it answers line by line, so it must flush its output after each line. "
            "query: start it for each question; its input ends after the line."
        ),
    )
    shell: bool = Field(default=False, description="Whether to run the command in a shell. It must then be one text.")
    input: Any = Field(
        default={"question": "{{ question }}"},
        description=(
            "The line of a question, as JSON, in which `{{ question }}`, `{{ query_id }}`, `{{ contexts }}` (the "
            "dataset's reference contexts), `{{ messages }}` (the conversation up to the question), `{{ history }}` "
            "(the turns before it) and every other column of the questions, such as `{{ category }}`, are "
            "filled in."
        ),
    )
    concurrency: int = Field(
        default=1, ge=1, le=256, description="How many processes run at once, each with one question."
    )
    timeout: float = Field(
        default=60,
        gt=0,
        le=86400,
        description="How many seconds an answer can take, including the start of the program.",
    )

    contexts: str | None = Field(
        default=None,
        description="With `retrieves`, the path of the documents' texts: `$.hits[*].text`. Without it, contexts are "
        "read from `contexts` and similar names.",
    )

    _check_paths = field_validator(*_PARTS)(check_path)

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: tuple[str, ...] | str) -> tuple[str, ...] | str:
        words = [command] if isinstance(command, str) else command
        if not words or not words[0].strip() or any("\0" in word for word in words):
            raise ValueError("write the program to run, such as [python, rag.py]")
        if isinstance(command, str):
            try:
                shlex.split(command)
            except ValueError as error:
                raise ValueError(f"its quotes do not match: {error}") from None
        return command

    @model_validator(mode="after")
    def _check_contexts(self) -> CommandNode:
        if self.contexts is not None and self.retrieves is None:
            raise ValueError("'contexts' belong to the ids of 'retrieves'; add it, such as 'retrieves: $.hits[*].id'")
        return self

    @field_validator("shell")
    @classmethod
    def _check_shell(cls, shell: bool, info: Any) -> bool:
        if shell and not isinstance(info.data.get("command", ""), str):
            raise ValueError("a shell needs the command as one text; write it as one text, or remove 'shell'")
        return shell

    @field_validator("input")
    @classmethod
    def _check_input(cls, template: Any) -> Any:
        if not list_variables(template) & ASKING:
            raise ValueError("it does not contain '{{ question }}', so the program would not know the question; add it")
        return check_template(template)

    @property
    def templates(self) -> dict[str, Any]:
        return {"input": self.input}


class CommandSystem(TemplateSystem[CommandNode]):
    """Runs a program.

    If the program fails, takes too long or writes something else, it is ended with its children, and the next question
    gets a new process. The error says how the program ended, and what it last wrote to its error stream. Stored answers
    depend on the content of files named in the command. An evaluation that was interrupted is continued only if neither
    the modules that its Python scripts import nor the commit changed either; other files that the program reads are
    seen if git tracks them.

    The first line after a question is its answer. If a program writes more answers than it was asked questions, any
    answer could belong to another question. When this is noticed, at the latest when the program ends, all its answers
    become errors and are no longer stored, except those that name the `query_id` they answer.
    """

    known_as = ("shell", "exec", "script", "subprocess", "program")
    parts = _PARTS
    later_keys = TemplateSystem.later_keys | frozenset(_PARTS)

    def __init__(self, node: CommandNode, context: Context) -> None:
        """Prepare to run the program; it starts with the first question."""
        super().__init__(node, context)
        self._idle: list[Program] = []
        self._running: set[Program] = set()
        self._lock = Lock()
        self._closed = False
        self._taken_back: list[tuple[Variables, str]] = []

    def inputs(self) -> Sequence[InputFile]:
        """The files among the words of the command: scripts, even missing ones, and any other existing file.

        For a shell command: the existing files that its output is not redirected to.
        """
        if self.node.shell:
            found = (self.context.find_file(word) for word in _read_words(str(self.node.command)))
            return [InputFile(path, ("command",)) for path in dict.fromkeys(found) if path is not None]
        files = []
        for index, word in enumerate(self._words):
            is_script = Path(word).suffix.lower() in _SCRIPTS and not word.startswith("-")
            is_program = index == 0 and is_path(word) and not Path(word).is_absolute()
            path = self.context.resolve(word) if is_script or is_program else self.context.find_file(word)
            if path is not None and (is_script or is_program or index > 0):
                key = ("command",) if isinstance(self.node.command, str) else ("command", index)
                files.append(InputFile(path, key))
        return files

    def list_code(self) -> Iterable[Path]:
        """The modules that `-m` names or that Python scripts import, and files in options such as `--prompt=a.txt`."""
        folder = self.context.resolve(".")
        words = [*(_read_words(str(self.node.command)) if self.node.shell else self._words)]
        modules = [find_beside(folder, name) for before, name in pairwise(words) if before == "-m"]
        options = [self.context.find_file(value) for word in words if (value := word.partition("=")[2])]
        named = [path for path in (*modules, *options) if path is not None and path.is_file()]
        scripts = [path for path in (*named, *(file.path for file in self.inputs())) if path.suffix == ".py"]
        return sorted({*named, *(path for script in scripts for path in list_imports(script, folder))})

    def check(self) -> str | None:
        """Check that the program exists, unless a shell looks it up. Files beside the spec are checked as inputs."""
        if self.node.shell:
            return None
        word = self._words[0]
        path = self.context.resolve(word)
        if not is_path(word):
            if shutil.which(word) is not None:
                return None
            hint = f"; write ./{word} for the one next to the spec" if path.is_file() else ""
            return f"command: there is no program {word!r} on the PATH{hint}"
        if path.is_file():
            return None if os.access(path, os.X_OK) else f"command: {word!r} is not executable; run chmod +x on it"
        return f"command: there is no program {word!r}" if Path(word).is_absolute() else None

    def answer(self, collection: Any) -> Any:
        self._closed = False
        return super().answer(collection)

    def ask(self, told: Variables) -> AnswerRow:
        line = json.dumps(fill_in(self.node.input, told)).encode("ascii") + b"\n"
        deadline = time.monotonic() + self.node.timeout
        process = self._take()
        try:
            reply = process.ask(line, deadline, self.node.timeout, ends=self.node.per == "query")
            content = _parse(reply)
            row = self._read(content, reply)
            if not self._is_named(content, told, process, reply):
                process.unnamed.append(told)
        except BaseException:
            self._drop(process)
            raise
        if self.node.per == "query":
            self._drop(process)
        else:
            with self._lock:
                self._idle.append(process)
        return row

    def close(self, *, at_once: bool = False) -> None:
        """End all processes: idle ones by closing their input, the others at once."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = self._running.difference(idle)
            self._running.clear()
        for process in (*busy, *idle) if at_once else busy:
            process.kill()
        for process in () if at_once else idle:
            self._end(process)

    def take_back(self) -> Sequence[tuple[Variables, str]]:
        with self._lock:
            found, self._taken_back = self._taken_back, []
        return found

    @property
    def _words(self) -> list[str]:
        command = self.node.command
        return shlex.split(command) if isinstance(command, str) else list(command)

    def _take(self) -> Program:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        if process is not None:
            unasked = process.take_unasked()
            if unasked is None and process.runs:
                return process
            if unasked is not None:
                self._doubt(process, unasked)
                self._drop(process)
                raise AskError(
                    f"the program wrote a second line for an earlier answer, and may write one: {_show(unasked)}"
                )
            self._end(process)
            self._drop(process)
        process = self._start()
        with self._lock:
            if not self._closed:
                self._running.add(process)
                return process
        process.kill()
        raise AskError("was not asked for anything more")

    def _start(self) -> Program:
        command: str | list[str] = str(self.node.command) if self.node.shell else self._words
        folder = self.context.resolve(".")
        try:
            return Program(command, folder, shell=self.node.shell)
        except OSError as error:
            word = command if isinstance(command, str) else command[0]
            reason = "there is no such program" if isinstance(error, FileNotFoundError) else error.strerror or error
            raise RagevalError(f"systems.{self.context.name}.command: cannot start {word!r}: {reason}") from error

    def _is_named(self, content: Any, told: Variables, process: Program, reply: bytes) -> bool:
        """Whether an answer names its query; raises `AskError` if it is another query's."""
        named = content.get("query_id") if isinstance(content, dict) else None
        if named is None or "query_id" not in told:
            return False
        if str(named) == str(told["query_id"]):
            return True
        self._doubt(process, reply)
        raise AskError(f"the program answered another query than {told['query_id']!r}: {_show(reply)}")

    def _end(self, process: Program) -> None:
        for line in process.end():
            self._doubt(process, line)

    def _doubt(self, process: Program, line: bytes) -> None:
        """Take back the answers of a program that wrote an extra answer. Lines that are not answers are ignored."""
        try:
            self._read(_parse(line), line)
        except AskError:
            return
        reason = (
            "the program wrote more answers than it was asked questions, so this one may belong to another question; "
            f"it must write one line per answer: {_show(line)}"
        )
        with self._lock:
            self._taken_back += [(told, reason) for told in process.unnamed]
            process.unnamed = []

    def _read(self, content: Any, line: bytes) -> AnswerRow:
        try:
            return self._layout.read(content)
        except (UnusableReplyError, RecursionError) as error:
            what = "an answer" if self.writes_answers else "a retrieval"
            raise AskError(f"the program's line is not {what}: {error}: {_show(line)}") from error

    def _drop(self, process: Program) -> None:
        with self._lock:
            self._running.discard(process)
        process.kill()


def _read_words(command: str) -> Iterator[str]:
    """The words of a shell command, without the targets of redirected output."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = list(lexer)
    return (word for before, word in pairwise(["", *words]) if not (set(before) <= _PUNCTUATION and ">" in before))


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise AskError(f"the program wrote a line that is not JSON: {_show(line)}") from error


def _show(line: bytes) -> str:
    return make_visible(line[: 4 * _SHOWN].decode("utf-8", "replace").strip())[:_SHOWN]


PLUGIN = CommandSystem
