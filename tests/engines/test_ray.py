"""The engine `ray`, on two nodes of real Ray."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from rageval_spec.engines import ray as engine_module
from rageval_spec.engines.ray import RayEngine, RayNode
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.plugin import Context, Shared
from rageval_spec.runner import Options, RunOutcome, run
from tests.endpoints.api_server import ApiServer, Asked
from tests.engines.ray_cluster import TwoNodes, list_workers
from tests.models.chat_endpoint import ChatServer
from tests.models.endpoint import Answer, Server, embeddings
from tests.pipeline.test_interrupted_judging import Judging, write_rows
from tests.tiny import write_collection, write_spec

pytest.importorskip("ray", reason="Ray is not installed: pip install 'rageval-spec[ray]'")

ROWS = 48


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    """Connected once, so that evaluations in this process share workers; commands connect by themselves."""
    cluster = TwoNodes()
    cluster.connect()
    yield cluster
    cluster.close()


@pytest.fixture
def judge() -> Iterator[ChatServer]:
    server = ChatServer(Judging())
    yield server
    server.close()


class App:
    """A system behind a URL. It counts the answers that it gave to each question; while `gate` is shut, it gives none.

    `most` is the largest number of questions that were under way at the same time.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.given: Counter[str] = Counter()
        self.times: list[float] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = 0
        self.most = 0
        self.open_for = 10**9
        self.seconds = seconds
        self._lock = threading.Lock()
        self._server = ApiServer(self.reply)
        self.url = self._server.url

    def reply(self, asked: Asked) -> Answer:
        question = asked.content["question"]
        with self._lock:
            self.times.append(time.monotonic())
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            if len(self.times) > self.open_for:
                self.gate.clear()
        time.sleep(self.seconds)
        self.gate.wait(60)
        with self._lock:
            self.waiting -= 1
            self.given[question] += 1
        return Answer({"answer": f"It is {question.split()[-1]} It is odd.", "contexts": [f"{question} yes", "no"]})

    def shut_after(self, count: int) -> None:
        self.open_for = count

    def release(self) -> None:
        self.open_for = 10**9
        self.gate.set()

    def close(self) -> None:
        self.release()
        self._server.close()


@pytest.fixture
def app() -> Iterator[App]:
    server = App()
    yield server
    server.close()


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a spec with its files into a folder of this name."""

    def write(name: str, **sections: Any) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        write_rows(folder, ROWS)
        spec = {
            "version": 1,
            "name": "rows",
            "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
            "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
            "metrics": ["token_f1", {"use": "faithfulness", "judge": "overlap"}],
            "reports": ["json"],
            "history": "none",
            **sections,
        }
        path = folder / "spec.yaml"
        path.write_text(yaml.safe_dump(spec))
        return path

    return write


def judged_by(server: ChatServer) -> dict[str, Any]:
    """The sections of a spec whose judge is behind an endpoint."""
    return {
        "models": {"chat": {"use": "chat", "base_url": server.url, "model": "tiny", "retries": 0}},
        "judges": {"judge": {"use": "claims", "model": "chat"}},
        "metrics": [{"use": "faithfulness", "judge": "judge"}, {"use": "context_precision", "judge": "judge"}],
    }


def asks(app: App, **keys: Any) -> dict[str, Any]:
    return {"systems": {"bot": {"use": "http", "url": app.url, "retries": 0, **keys}}}


def evaluate(spec: Path, out: str, engine: Any, **options: Any) -> tuple[RunOutcome, dict[str, bytes]]:
    """Evaluate with an engine and a store of its own; the outcome, and the bytes of the results."""
    settings = {"store": spec.parent / f"store-{out}", **options}
    folder = spec.parent / out
    outcome = run(spec, Options(output=folder, overrides={"engine": engine}, **settings))  # type: ignore[arg-type]
    return outcome, read(folder)


def read(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def on(nodes: TwoNodes) -> dict[str, Any]:
    return {"use": "ray", "address": nodes.address}


def test_files_give_the_bytes_of_the_local_engine(nodes: TwoNodes, write: Write) -> None:
    spec = write("files")
    local = evaluate(spec, "local", "local")[1]
    assert evaluate(spec, "ray", on(nodes))[1] == local
    assert len(local) > 4


def test_a_system_and_a_judge_behind_urls_are_asked_once_and_give_the_same_bytes(
    nodes: TwoNodes, write: Write, app: App, judge: ChatServer
) -> None:
    spec = write("asked", **asks(app), **judged_by(judge))
    local, expected = evaluate(spec, "local", "local")
    calls = len(judge.calls)
    assert (len(app.times), calls > 2 * ROWS) == (ROWS, True)
    judge.chat.seen.clear()  # type: ignore[attr-defined]
    outcome, found = evaluate(spec, "ray", on(nodes))
    assert same(found, expected)
    assert max(app.given.values()) == 2  # once with each engine
    assert (len(judge.calls), max(judge.chat.seen.values())) == (2 * calls, 1)  # type: ignore[attr-defined]
    assert outcome.spent.calls == local.spent.calls == ROWS + calls
    assert outcome.spent.usage.asked_now().keys() == {"chat"}
    assert outcome.is_finished
    evaluate(spec, "ray", on(nodes))
    assert max(app.given.values()) == 3  # a finished evaluation is not continued
    assert len(judge.calls) == 2 * calls


def same(found: dict[str, bytes], expected: dict[str, bytes]) -> bool:
    """Whether results are equal but for times, and the hashes of files that have times."""
    return _drop_all_times(found) == _drop_all_times(expected)


def _drop_all_times(files: dict[str, bytes]) -> dict[str, Any]:
    hashes = ("manifest.json", "statement.json")
    return {name: name if name in hashes else _drop_times(name, content) for name, content in files.items()}


def _drop_times(name: str, content: bytes) -> Any:
    if not name.endswith((".parquet", ".json", ".csv")):
        return content
    import io

    import polars as pl

    if name.endswith(".json"):
        return re.sub(rb'"(seconds|latency|time_per_sample|first|last|asked)": [^,\n}]*', b"", content)
    table = pl.read_parquet(io.BytesIO(content)) if name.endswith(".parquet") else pl.read_csv(content)
    return table.drop("latency", "seconds", "asked", strict=False).to_dicts()


def wait_until(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.02)


def evaluate_while(
    spec: Path, engine: Any, meddle: Callable[[], None], app: App
) -> tuple[RunOutcome, dict[str, bytes]]:
    """Evaluate; meddle when the app holds back answers, and let it go on."""
    app.shut_after(ROWS // 2)
    meddling = threading.Thread(target=meddle)
    meddling.start()
    try:
        return evaluate(spec, "ray", engine)
    finally:
        app.release()
        meddling.join()


def check_payments(app: App, before: Counter[str], at_once: int) -> None:
    """Answers that arrived before something was lost are not asked for again; those under way then can be."""
    assert len(app.given) == ROWS
    assert all(app.given[question] == 1 for question in before)
    assert sum(app.given.values()) <= ROWS + at_once


def test_a_killed_worker_and_a_removed_node_lose_nothing(nodes: TwoNodes, write: Write, app: App) -> None:
    spec = write("killed", **asks(app, concurrency=4))
    expected = evaluate(spec, "local", "local")[1]
    for meddle in (lambda: os.kill(list_workers()[-1], signal.SIGKILL), nodes.remove_node):
        app.given.clear()
        app.times.clear()
        app.open_for = ROWS // 2
        before: Counter[str] = Counter()

        def wait_and_meddle(meddle: Callable[[], None] = meddle, before: Counter[str] = before) -> None:
            wait_until(lambda: app.waiting >= 4)
            before.update(app.given)
            meddle()
            time.sleep(0.5)
            app.release()

        outcome, found = evaluate_while(spec, on(nodes), wait_and_meddle, app)
        assert outcome.exit_code == 0
        assert same(found, expected)
        check_payments(app, before, 4)
        assert before
    nodes.add_node()


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(nodes: TwoNodes) -> Iterator[Start]:
    """Starts the command on a spec. Commands that a failed test leaves behind are killed."""
    started = []

    def start(spec: Path, address: str = nodes.address) -> subprocess.Popen[bytes]:
        engine = json.dumps({"use": "ray", "address": address})
        command = [sys.executable, "-m", "rageval_spec", "run", str(spec), "-q", "-o", str(spec.parent / "ray"),
                   "--store", str(spec.parent / "store"), "--set", f"engine={engine}"]  # fmt: skip
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return started[-1]

    yield start
    for command in started:
        command.kill()
        command.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_killed_or_interrupted_command_continues_where_it_was(
    start: Start, write: Write, app: App, number: int, code: int
) -> None:
    spec = write("ended", **asks(app, concurrency=4))
    expected = evaluate(spec, "local", "local")[1]
    app.given.clear()
    app.times.clear()
    app.shut_after(ROWS // 2)
    command = start(spec)
    wait_until(lambda: app.waiting >= 4 or command.poll() is not None)
    before = Counter(app.given)
    command.send_signal(number)
    _, told = command.communicate(timeout=30)
    assert command.returncode == code, told
    assert (b"interrupted" in told) == (code == 130)
    wait_until(lambda: not list_workers())
    app.release()
    command = start(spec)
    _, told = command.communicate(timeout=60)
    assert command.returncode == 0, told
    assert same_but_taken_over(read(spec.parent / "ray"), expected)
    check_payments(app, before, 4)


def test_ray_client_gives_the_bytes_of_the_local_engine(nodes: TwoNodes, write: Write, app: App, start: Start) -> None:
    spec = write("client", **asks(app))
    expected = evaluate(spec, "local", "local")[1]
    with nodes.serve_clients() as address:
        command = start(spec, address)
        _, told = command.communicate(timeout=60)
    assert command.returncode == 0, told
    assert same(read(spec.parent / "ray"), expected)
    assert {*app.given.values()} == {2}  # once with each engine


class Embedder:
    """An endpoint that embeds texts. While it is not `open`, it answers no request before two workers wait for one."""

    def __init__(self) -> None:
        self.embedded: Counter[str] = Counter()
        self.nodes: set[int] = set()
        self.met = threading.Event()
        self._waiting = 0
        self._lock = threading.Lock()
        self._server = Server(self.reply)
        self.url = self._server.url
        self.close = self._server.close

    def reply(self, number: int, texts: list[str]) -> Answer:
        with self._lock:
            self.embedded.update(texts)
            self._waiting += texts[0].startswith("Passage")
        until = time.monotonic() + 30
        while texts[0].startswith("Passage") and not self.met.is_set() and time.monotonic() < until:
            with suppress(OSError):  # one that has just ended
                self.nodes = {find_parent(worker) for worker in list_workers()}
            if len(self.nodes) == 2 <= self._waiting:
                self.met.set()
            time.sleep(0.05)
        return Answer(embeddings(texts))


def find_parent(process: int) -> int:
    """The process that started one: the node, if it is a worker."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_all_nodes_embed_and_search_a_corpus(nodes: TwoNodes, tmp_path: Path) -> None:
    server = Embedder()
    folder = write_collection(tmp_path)
    rows = [{"_id": f"p{row}", "title": "", "text": f"Passage {'a' * (row % 7)} {row % 30}"} for row in range(60)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dense = {"use": "dense", "model": "vectors", "similarity": "dot", "depth": 20}
    spec = write_spec(
        tmp_path,
        models={"vectors": {"use": "http", "base_url": server.url, "model": "tiny", "retries": 0, "batch": 100}},
        systems={form: {**dense, "vectors": form} for form in ("float32", "binary")},
        history="none",
        reports=["json", "parquet"],
    )
    server.met.set()
    expected = evaluate(spec, "local", "local")[1]
    server.embedded.clear()
    server.met.clear()
    found = evaluate(spec, "ray", on(nodes))[1]
    server.close()
    assert same(found, expected)
    assert len(server.nodes) == 2
    assert {*server.embedded.values()} == {1}  # texts that occur twice, and two systems, cost nothing more
    assert len(server.embedded) == 4 + len({row["text"] for row in rows})


def same_but_taken_over(found: dict[str, bytes], expected: dict[str, bytes]) -> bool:
    tables = [name for name in expected if name.endswith(".parquet")]
    return same({name: found[name] for name in tables}, {name: expected[name] for name in tables})


def test_limits_hold_for_all_nodes_together(nodes: TwoNodes, write: Write, app: App) -> None:
    app.seconds = 0.02
    spec = write("limited", **asks(app, concurrency=3, requests_per_minute=1200))
    evaluate(spec, "ray", on(nodes))
    assert app.most <= 3
    steps = sorted(app.times)
    fastest = min(later - earlier for earlier, later in zip(steps, steps[10:], strict=False))
    assert fastest > 10 * 60 / 1200 * 0.8  # ten calls later, within what the way to the server takes
    app.times.clear()
    spec = write("stopped", **asks(app, concurrency=3), limits={"max_calls": {"systems": 10}})
    outcome, _ = evaluate(spec, "ray", on(nodes))
    assert len(app.times) == 10
    assert not outcome.is_finished
    assert "limits.max_calls: 10 of 10 calls to systems made" in str(outcome.spent.stopped)


HIDDEN = """
mount -t tmpfs none "$1" && cp -r "$2"/. "$1" && cd "$1" && shift 2 && "$@" && cp -r ray "$OUT"
"""
"""Runs a command in a folder that only it and the programs that it starts can see, and copies its results out."""


def test_workers_without_the_commands_disk_get_the_files(nodes: TwoNodes, write: Write, tmp_path: Path) -> None:
    spec = write(
        "own",
        systems={"app": {"use": "python", "function": "app:answer"}, "bot": {"use": "file", "path": "rows.jsonl"}},
        metrics=["token_f1", {"use": "python", "function": "checks:brief", "as": "brief"}],
    )
    token = uuid4().hex  # files that an earlier run fetched are not these
    (spec.parent / "words.py").write_text(f"TOKEN = '{token}'\n\n\ndef say(question):\n    return question[-4:-1]\n")
    (spec.parent / "app.py").write_text("from words import say\n\n\ndef answer(question):\n    return say(question)\n")
    (spec.parent / "checks.py").write_text("def brief(answer):\n    return len(answer) < 20\n")
    expected = evaluate(spec, "local", "local")[1]
    hidden, out = tmp_path / "hidden", tmp_path / "out"
    hidden.mkdir()
    engine = json.dumps(on(nodes))
    command = [sys.executable, "-m", "rageval_spec", "run", "spec.yaml", "-q", "-o", "ray", "--set", f"engine={engine}"]
    alone = ["unshare", "-m", "bash", "-c", HIDDEN, "bash", str(hidden), str(spec.parent), *command]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a mount that others cannot see needs root: unshare -m")
    done = subprocess.run(alone, env={**os.environ, "OUT": str(out)}, capture_output=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    assert [*hidden.iterdir()] == []
    assert same(read(out), expected)
    (fetched,) = [
        path for path in Path(tempfile.gettempdir()).glob("rageval-spec-*/*/words.py") if token in path.read_text()
    ]
    shutil.rmtree(fetched.parent)


def test_under_uv_run_workers_keep_their_environment(nodes: TwoNodes, write: Write) -> None:
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    spec = write("uv")
    command = ["uv", "run", "--no-project", "--", sys.executable, "-m", "rageval_spec", "run", str(spec), "-q",
               "--set", f"engine={json.dumps(on(nodes))}"]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ENABLE_UV_RUN_RUNTIME_ENV"}
    done = subprocess.run(command, env=environment, cwd=spec.parent, capture_output=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    assert b"py_executable" not in done.stderr


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"address": "127.0.0.1:9"}, "nothing answers at 127.0.0.1:9: Connection refused; is the cluster running?"),
        ({"address": "ray://127.0.0.1:9"}, "nothing answers at ray://127.0.0.1:9"),
        ({"address": "no.such.host.invalid:6379"}, "nothing answers at no.such.host.invalid:6379"),
    ],
)
def test_an_address_where_nothing_listens(engine: dict[str, str], message: str) -> None:
    built = RayEngine(RayNode(**engine), Context("ray"))
    with pytest.raises(UsageError, match=r"^engine \(use: ray\): ") as raised:
        built._check_address(engine["address"])
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        (
            "10.0.0.1:6379",
            "Version mismatch: The cluster was started with: Ray: 2.40.0 Python: 3.12.1",
            "has other versions",
        ),
        (
            "auto",
            "Could not find any running Ray instance",
            "this machine belongs to no running Ray cluster; start one",
        ),
        ("10.0.0.1:6379", "Broken\n  pipe", "Ray at 10.0.0.1:6379 cannot be used: Broken pipe"),
    ],
)
def test_why_a_cluster_cannot_be_used(address: str, error: str, message: str) -> None:
    built = RayEngine(RayNode(address=address), Context("ray"))
    assert message in str(built._explain(RuntimeError(error)))


def test_without_ray(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"install it with: pip install 'rageval-spec\[ray\]'"):
        evaluate(write("lacking"), "ray", "ray")


def test_workers_with_another_version(nodes: TwoNodes, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_find_version", lambda: "99.1")
    told = r"have rageval-spec .*, and this is 99.1; .* write 'runtime_env: \{pip: \[rageval-spec==99.1\]\}'"
    with pytest.raises(UsageError, match=told):
        evaluate(write("older"), "ray", on(nodes))


def test_a_part_that_kills_its_workers_is_given_up(
    nodes: TwoNodes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "MOST_LOSSES", 2)
    spec = write("deadly", metrics=["token_f1", {"use": "python", "function": "checks:brief", "as": "brief"}])
    (spec.parent / "checks.py").write_text("import os\n\n\ndef brief(answer):\n    os._exit(7)\n")
    with pytest.raises(RagevalError, match=r"Ray lost the worker of part [12] of 2 2 times"):
        evaluate(spec, "ray", on(nodes))


def sleep() -> None:
    time.sleep(3)


def test_a_wait_for_a_free_cpu_is_told_once(nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(engine_module, "TELL_AFTER", 0.5)
    told: list[str] = []
    engine = RayEngine(RayNode(address=nodes.address), Context("ray"))
    busy = [ray.remote(num_cpus=1)(sleep).remote() for _ in range(2)]
    ray.wait(busy, timeout=1.5)  # both have begun by then
    engine.open(Shared(tell=told.append))
    try:
        waiting = "waiting for a free CPU of the Ray cluster; other programs use all of them"
        assert told == [waiting]
        busy = [ray.remote(num_cpus=1)(sleep).remote() for _ in range(2)]
        ray.wait(busy, timeout=1.5)
        assert [*engine.map(str, [1, 2])] == ["1", "2"]
        assert told == [waiting] * 2
        assert [*engine.map(str, [1, 2])] == ["1", "2"]
        assert len(told) == 2
    finally:
        engine.close()
