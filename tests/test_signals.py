"""Signals end real programs whatever they are waiting for. Without a signal each would wait for minutes.

The time limits in these tests only guard against a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.signals import Interrupted, describe, exit_code, explained, stopping, understand
from tests.tiny import write_collection

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no such signals")

LONG = 600
HANG = 60
WAITING = f"import pathlib, time; pathlib.Path('asked').touch(); time.sleep({LONG})"
STUBBORN = f"""
import pathlib, time
def answer(question):
    pathlib.Path('asked').touch()
    time.sleep({LONG})
"""
SWALLOWING = """
import sys, time
from rageval_spec import registry
from rageval_spec.cli import main
from tests.tiny import Counting

class Stubborn(Counting):
    def retrieve(self, collection, runs):
        open("asked", "w").close()
        while True:
            try:
                time.sleep(0.01)
            except BaseException:
                pass

load, words = registry.load, registry.words
registry.words = lambda section: (*words(section), "stubborn") if section == "systems" else words(section)
registry.load = lambda section, word: Stubborn if word == "stubborn" else load(section, word)
main()
"""


class Silence:
    """A port that accepts connections and never replies; if `deaf`, it does not even accept them."""

    def __init__(self, *, deaf: bool) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.asked = threading.Event()
        self._open: list[socket.socket] = []
        if deaf:
            self._fill()
        else:
            threading.Thread(target=self._accept, daemon=True).start()

    def _fill(self) -> None:
        """Fill the queue of connections that wait to be accepted, so that the next connection hangs."""
        for _ in range(3):
            client = socket.socket()
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(self._listener.getsockname())
            self._open.append(client)
        time.sleep(0.1)
        self._waiting = self._count_waiting()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                if connection.recv(1):
                    self.asked.set()

    def has_more_waiting(self) -> bool:
        """Whether another process is waiting for a connection, as far as the system reports it."""
        if self._count_waiting() is None:
            time.sleep(5)
            return True
        return self._count_waiting() != self._waiting

    def _count_waiting(self) -> int | None:
        table = Path("/proc/net/tcp")
        if not table.exists():
            return None
        lines = [line.split() for line in table.read_text().splitlines()]
        port = f":{self._listener.getsockname()[1]:04X}"
        return sum(remote.endswith(port) and state == "02" for _, _, remote, state, *_ in lines)

    def close(self) -> None:
        for connection in (*self._open, self._listener):
            connection.close()


@pytest.fixture
def silence() -> Iterator[Silence]:
    running = Silence(deaf=False)
    yield running
    running.close()


@pytest.fixture
def deafness() -> Iterator[Silence]:
    running = Silence(deaf=True)
    yield running
    running.close()


def write_spec(folder: Path, **sections: Any) -> Path:
    rows = [{"query_id": f"q{row}", "question": f"What is {row}?", "reference": f"{row}"} for row in range(3)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {"version": 1, "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}}, "metrics": ["exact_match"]}
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump({**spec, **sections}))
    return path


def start(spec: Path, *program: str, **environment: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).parent.parent)
    paths = os.pathsep.join([root, str(Path(root) / "python")])
    return subprocess.Popen(
        [sys.executable, *(program or ("-m", "rageval_spec")), "run", str(spec)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=spec.parent,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        # A shell lets what it starts in the background ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


def end(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    """Send the signal, check that the program ends as it should, and return what it writes to standard error."""
    try:
        process.send_signal(number)
        output, errors = process.communicate(timeout=HANG)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert output == ""
    return errors


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated"), (signal.SIGHUP, "its terminal is gone")],
)
def test_a_function_that_does_not_return(tmp_path: Path, number: int, words: str) -> None:
    (tmp_path / "rag.py").write_text(STUBBORN)
    process = start(write_spec(tmp_path, systems={"app": {"use": "python", "function": "rag:answer"}}))
    wait_until((tmp_path / "asked").exists)
    errors = end(process, number)
    assert words in errors
    assert "asked systems" in errors
    assert errors.endswith("run again to continue from what is stored\n")


def test_a_program_that_never_replies(tmp_path: Path) -> None:
    process = start(
        write_spec(tmp_path, systems={"app": {"use": "command", "command": [sys.executable, "-c", WAITING]}})
    )
    wait_until((tmp_path / "asked").exists)
    assert "interrupted; asked systems 1 question" in end(process)


def test_a_service_that_never_replies(tmp_path: Path, silence: Silence) -> None:
    process = start(write_spec(tmp_path, systems={"app": {"use": "http", "url": silence.url, "timeout": LONG}}))
    wait_until(silence.asked.is_set)
    assert "interrupted; asked systems" in end(process)


def test_a_judge_that_never_replies(tmp_path: Path, silence: Silence) -> None:
    answer = json.dumps({"answer": "It is 1.", "contexts": ["1 is 1."]})
    spec = write_spec(
        tmp_path,
        systems={"app": {"use": "command", "command": f"echo '{answer}'", "per": "query", "shell": True}},
        models={"chat": {"use": "chat", "base_url": silence.url, "model": "tiny", "timeout": LONG}},
        judges={"judge": {"use": "claims", "model": "chat"}},
        metrics=[{"use": "faithfulness", "judge": "judge"}],
    )
    process = start(spec)
    wait_until(silence.asked.is_set)
    assert "run again to continue from what is stored" in end(process)


def test_an_embedding_endpoint_that_does_not_take_connections(tmp_path: Path, deafness: Silence) -> None:
    write_collection(tmp_path)
    spec = write_spec(
        tmp_path,
        datasets={"fruit": {"use": "beir", "path": "data"}},
        systems={"dense": {"use": "dense", "model": "far"}},
        models={"far": {"use": "http", "base_url": deafness.url, "model": "tiny", "timeout": LONG}},
        metrics=["rr"],
    )
    process = start(spec)
    wait_until(deafness.has_more_waiting)
    assert "interrupted" in end(process)


def test_an_embedding_is_stored_as_it_comes(tmp_path: Path, silence: Silence) -> None:
    write_collection(tmp_path)
    spec = write_spec(
        tmp_path,
        datasets={"fruit": {"use": "beir", "path": "data"}},
        systems={"dense": {"use": "dense", "model": "far"}},
        models={"far": {"use": "http", "base_url": silence.url, "model": "tiny", "timeout": LONG}},
        metrics=["rr"],
    )
    process = start(spec)
    wait_until(silence.asked.is_set)
    assert end(process).endswith("interrupted; run again to continue from what is stored\n")


def test_a_download_that_stalls(tmp_path: Path, silence: Silence) -> None:
    write_collection(tmp_path)
    spec = write_spec(
        tmp_path,
        datasets={"fruit": {"use": "beir", "path": "data"}},
        systems={"dense": {"use": "dense", "model": "hub"}},
        models={"hub": {"use": "onnx", "model": "nobody/nothing"}},
        metrics=["rr"],
    )
    process = start(spec, HF_ENDPOINT=silence.url, HF_HOME=str(tmp_path / "hub"))
    wait_until(silence.asked.is_set)
    assert "interrupted" in end(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_code_that_catches_every_exception(tmp_path: Path, number: int) -> None:
    write_collection(tmp_path)
    spec = write_spec(
        tmp_path,
        datasets={"fruit": {"use": "beir", "path": "data"}},
        systems={"app": {"use": "stubborn"}},
        metrics=["rr"],
    )
    process = start(spec, "-c", SWALLOWING)
    wait_until((tmp_path / "asked").exists)
    assert end(process, number).startswith("rageval-spec: ")


def test_replies_before_the_signal_are_stored_and_the_next_evaluation_asks_for_the_rest(tmp_path: Path) -> None:
    (tmp_path / "rag.py").write_text(
        "import pathlib, time\n"
        "def answer(question):\n"
        "    with open('asked', 'a') as log: log.write(question + '\\n')\n"
        f"    if '1' in question and not pathlib.Path('fast').exists(): time.sleep({LONG})\n"
        "    return question[8]\n"
    )
    spec = write_spec(tmp_path, systems={"app": {"use": "python", "function": "rag:answer"}})
    process = start(spec)
    wait_until(lambda: (tmp_path / "asked").exists() and len((tmp_path / "asked").read_text().splitlines()) == 3)
    time.sleep(1)  # for the others to be stored
    end(process)
    (tmp_path / "fast").touch()
    done = start(spec)
    _, errors = done.communicate(timeout=HANG)
    assert done.returncode == 0, errors
    assert sorted((tmp_path / "asked").read_text().splitlines()) == [f"What is {row}?" for row in (0, 1, 1, 2)]


def test_an_explanation_is_part_of_the_interrupt() -> None:
    def interrupt() -> None:
        with explained(lambda: "made 3 calls"):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        interrupt()
    assert describe(caught.value) == "interrupted; made 3 calls"
    assert exit_code(caught.value.number) == 130


def test_the_interrupt_behind_another_exception_is_found() -> None:
    replaced = RuntimeError("aborted")
    replaced.__cause__ = Interrupted(signal.SIGTERM)
    assert understand(replaced).number == signal.SIGTERM
    assert understand(RuntimeError("aborted")).number == signal.SIGINT


STOPPED = """
import time
from rageval_spec.signals import stopping, watch
watch("program")
stops = []
with stopping(lambda: stops.append(1)):
    open("asked", "w").close()
    while not stops:
        time.sleep(0.01)
time.sleep(2)  # longer than the grace of a signal that ends the program
print("written", flush=True)
open("again", "w").close()
time.sleep(600)
"""


def test_a_signal_can_end_a_wait_and_the_next_one_ends_the_program(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", STOPPED], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        for name in ("asked", "again"):
            until = time.monotonic() + HANG
            while not (tmp_path / name).exists() and time.monotonic() < until:
                time.sleep(0.02)
            program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=HANG)
    finally:
        program.kill()
    assert out == "written\n" and program.returncode in (-signal.SIGINT, exit_code(signal.SIGINT), 1), err


def test_outside_the_main_thread_signals_are_as_they_were() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def run() -> None:
        with stopping(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before] == [signal.getsignal(signal.SIGINT)]
