"""An evaluation that stops when decided pays no call of a judge twice, whether its rounds are interrupted or not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.errors import GATE_FAILED
from tests.models.chat_endpoint import ChatServer, refusal
from tests.models.endpoint import Answer
from tests.pipeline.test_interrupted_judging import Judging, evaluate, kill_after, read, write_spec

ROWS = 200


class Refusing(Judging):
    """As `Judging`, and refuses every seventh request."""

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        answer = super().__call__(number, body)
        text = json.dumps(body, sort_keys=True).encode()
        return refusal("too long") if hashlib.sha256(text).digest()[2] % 7 == 0 else answer


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer(Refusing())
    yield running
    running.close()


def write_stopping(folder: Path, url: str, **sections: Any) -> Path:
    """A spec with 200 questions and a gate on the faithfulness of their answers."""
    path = write_spec(folder, url)
    row = (folder / "rows.jsonl").read_text().splitlines()[0]
    (folder / "rows.jsonl").write_text("".join(row.replace("0", str(number)) + "\n" for number in range(ROWS)))
    spec = yaml.safe_load(path.read_text())
    spec["gates"] = [{"metric": "faithfulness", "min": 0.9, "min_scored": 0.2}]
    spec["metrics"] = spec["metrics"][:1]
    path.write_text(yaml.safe_dump(spec | {"stopping": {"when": "decided", "batch": 10}, "history": "none"} | sections))
    return path


def test_rounds_ask_nothing_twice_not_even_what_failed(tmp_path: Path, server: ChatServer) -> None:
    spec = write_stopping(tmp_path / "rounds", server.url)
    assert evaluate(spec).exit_code == GATE_FAILED
    assert isinstance(server.chat, Refusing)
    assert max(server.chat.seen.values()) == 1
    content = json.loads(read(spec)[0])
    (rows,) = content["stopping"]["datasets"]
    assert rows["asked"] < ROWS
    assert content["aggregates"][0]["scored"] < rows["asked"]  # some judgements failed


@pytest.mark.skipif(os.name == "nt", reason="has no SIGKILL to send")
def test_killed_rounds_give_the_bytes_of_uninterrupted_ones(tmp_path: Path, server: ChatServer) -> None:
    unbroken = write_stopping(tmp_path / "unbroken", server.url)
    evaluate(unbroken)
    all_calls = len(server.calls)
    for calls in (10, all_calls // 2, all_calls - 5):
        assert isinstance(server.chat, Refusing)
        server.chat.seen.clear()
        spec = write_stopping(tmp_path / f"killed-{calls}", server.url)
        kill_after(calls, spec, server)
        assert evaluate(spec).exit_code == GATE_FAILED
        assert read(spec) == read(unbroken)
        assert len(server.chat.seen) == all_calls


def test_a_store_is_not_needed(tmp_path: Path, server: ChatServer) -> None:
    spec = write_stopping(tmp_path / "stored", server.url)
    evaluate(spec)
    calls = len(server.calls)
    without = write_stopping(tmp_path / "without", server.url)
    evaluate(without, "--no-store")
    assert len(server.calls) == 2 * calls
    assert read(without) == read(spec)
