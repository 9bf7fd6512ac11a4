"""A kill in the middle of judging loses only the calls in flight, and changes no byte of the results."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.command_line import invoke
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

ROWS, CONCURRENCY = 24, 4


def fill(schema: dict[str, Any], seed: str) -> Any:
    """A value that fits the schema and depends on the seed."""
    number = hashlib.sha256(seed.encode()).digest()[0]
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    kind = schema["type"]
    if kind == "object":
        return {key: fill(inner, f"{seed}/{key}") for key, inner in schema["properties"].items()}
    if kind == "array":
        return [fill(schema["items"], f"{seed}/{place}") for place in range(schema.get("minItems") or 2)]
    if kind == "string":
        return f"words {number}"
    if kind == "boolean":
        return number % 2 == 0
    low = int(schema.get("minimum", 0))
    return low + number % (int(schema.get("maximum", low + 3)) - low + 1)


class Judging:
    """Replies that fit the schema; every ninth question always gets JSON that is cut off."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        question = json.dumps(body, sort_keys=True)
        self.seen[question] += 1
        time.sleep(0.01)
        schema = body["response_format"]["json_schema"]["schema"]
        text = json.dumps(fill(schema, question))
        broken = hashlib.sha256(question.encode()).digest()[1] % 9 == 0
        return Answer(completion(text[: len(text) // 2] if broken else text))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(Judging())
    yield running
    running.close()


def write_rows(folder: Path, count: int) -> None:
    """`rows.jsonl`: questions with answers, contexts and references."""
    rows = [
        {
            "id": f"r{row}",
            "question": f"What is number {row}?",
            "answer": f"It is {row}. It is odd.",
            "contexts": [f"Number {row} is {row}.", f"{row} is a number."],
            "reference": f"It is {row}.",
        }
        for row in range(count)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_spec(folder: Path, url: str) -> Path:
    """A spec with questions, answers and two judged metrics that share claims and contexts."""
    folder.mkdir()
    write_rows(folder, ROWS)
    spec = {
        "version": 1,
        "datasets": {"rows": {"use": "jsonl", "path": "rows.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "rows.jsonl"}},
        "models": {"chat": {"use": "chat", "base_url": url, "model": "tiny", "retries": 0}},
        "judges": {"judge": {"use": "claims", "model": "chat"}},
        "metrics": [
            {"use": "faithfulness", "judge": "judge"},
            {"use": "context_precision", "judge": "judge"},
            {"use": "context_recall", "judge": "judge"},
        ],
        "limits": {"concurrency": CONCURRENCY},
        "reports": ["json", "parquet"],
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    return path


def command(spec: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "rageval_spec", "run", str(spec), "-q", "-o", str(spec.parent / "out"), *more]


def evaluate(spec: Path, *more: str) -> Result:
    """The same command inside this process, where nothing is killed."""
    return invoke(*command(spec, *more)[3:])


def read(spec: Path) -> list[bytes]:
    return [(spec.parent / "out" / name).read_bytes() for name in ("results.json", "values.parquet")]


def kill_after(calls: int, spec: Path, server: ChatServer) -> None:
    """Start an evaluation, and kill it when the endpoint has received this many requests."""
    before = len(server.calls)
    with subprocess.Popen(command(spec)) as process:
        while len(server.calls) - before < calls and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)


def test_killed_evaluations_give_the_bytes_of_an_uninterrupted_one(tmp_path: Path, server: ChatServer) -> None:
    unbroken = write_spec(tmp_path / "unbroken", server.url)
    assert evaluate(unbroken).exit_code == 0
    all_calls = len(server.calls)
    assert all_calls > 3 * ROWS
    for calls in (1, 20, all_calls // 2, all_calls - 5):
        assert isinstance(server.chat, Judging)
        server.chat.seen.clear()
        spec = write_spec(tmp_path / f"killed-{calls}", server.url)
        kill_after(calls, spec, server)
        assert not (spec.parent / "out").exists()
        assert evaluate(spec).exit_code == 0
        assert read(spec) == read(unbroken)
        twice = [question for question, count in server.chat.seen.items() if count > 1]
        assert max(server.chat.seen.values()) <= 2
        assert len(twice) <= CONCURRENCY
        assert len(server.chat.seen) == all_calls


def test_a_second_run_makes_no_calls_and_retry_failed_only_the_failed_ones(tmp_path: Path, server: ChatServer) -> None:
    spec = write_spec(tmp_path / "again", server.url)
    evaluate(spec)
    first = read(spec)
    asked = len(server.calls)
    evaluate(spec)
    assert len(server.calls) == asked
    assert read(spec) == first
    evaluate(spec, "--retry-failed")
    assert read(spec) == first
    failed = json.loads(first[0])["notes"]
    assert (len(server.calls) > asked) == bool(failed)


def test_a_limit_of_calls_stops_cleanly_and_continuing_pays_nothing_twice(tmp_path: Path, server: ChatServer) -> None:
    spec = write_spec(tmp_path / "limited", server.url)
    stopped = evaluate(spec, "--set", "limits.max_calls=30")
    assert stopped.exit_code == 3
    assert "limits.max_calls: 30 of 30 calls to models made" in stopped.stderr
    assert len(server.calls) == 30
    assert evaluate(spec).exit_code == 0
    assert isinstance(server.chat, Judging)
    assert max(server.chat.seen.values()) == 1


@pytest.mark.skipif(os.name == "nt", reason="has no SIGINT to send")
@pytest.mark.parametrize(
    ("more", "rest"),
    [((), "run again to continue from what is stored"), (("--no-store",), r"nothing is stored \(--no-store\)")],
)
def test_an_interrupt_says_what_was_spent(tmp_path: Path, server: ChatServer, more: tuple[str, ...], rest: str) -> None:
    spec = write_spec(tmp_path / "interrupted", server.url)
    price = "models.chat.price={input: 1000, output: 1000}"
    with subprocess.Popen(command(spec, *more, "--set", price), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while len(server.calls) < 10 and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
    assert process.returncode == 130
    assert re.search(rf"^rageval-spec: interrupted; made \d+ calls,.* about \S+ USD.*; {rest}$", errors, re.MULTILINE)


def test_unreadable_replies_are_reported_with_how_to_retry_them_and_the_cost(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(number: int, body: dict[str, Any]) -> Answer:
        schema = body["response_format"]["json_schema"]["schema"]
        is_odd = any("number 3?" in message["content"] for message in body["messages"])
        return Answer(completion("Well." if is_odd else json.dumps(fill(schema, "1"))))

    server.chat = talk
    spec = write_spec(tmp_path / "unread", server.url)

    monkeypatch.chdir(spec.parent)

    def run(*words: str) -> str:
        return invoke(*words, spec).output

    first = run("run")
    assert "made " in first
    hint = re.search(r"run again with --retry-failed to retry (\d+) questions? whose replies could not be read", first)
    assert hint is not None
    assert hint.group() in run("run")
    assert "no calls" in run("plan")
    planned = run("plan", "--retry-failed")
    assert "to ask (judges in steps may ask less; unreadable replies are retried" in planned
    again = re.search(r"chat +(\d+) calls?, about", planned)
    assert again is not None
    assert int(again[1]) >= int(hint[1]) > 0  # calls that depend on future replies are estimated
    assert "run again" not in run("run", "--retry-failed")
    assert "run again" not in run("run", "--no-store")
