"""The whole procedure of TREC's RAG track, with a scripted chat endpoint: nuggets, judging, leaderboard, comparison.

The answers of three systems are in the layouts of RAG 2024, RAG 2025 and RAGTIME, as `specs/trec_rag.yaml` reads them.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.reading.leaderboards import read_leaderboard
from tests.command_line import invoke
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer

SPECS = Path(__file__).parents[2] / "specs"
PRICE = {"input": 1.0, "output": 4.0}
LABELS = {True: "support", False: "not_support"}
VERDICTS = {True: "supported", False: "not_enough_info"}
COPIED = ("trec_rag.yaml", "data/harbour")


class Assessor:
    """Makes every sentence of a passage a nugget, and finds a text in another if most of its words are there.

    It counts tokens as the plan does, four characters each, of what it gets and of what it says.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.usage: list[tuple[int, int]] = []

    def __call__(self, number: int, body: dict[str, Any]) -> Answer:
        asked = body["messages"][-1]["content"]
        self.asked[asked] += 1
        said = json.dumps(self.reply(asked))
        tokens = (-(-sum(len(one["content"]) for one in body["messages"]) // 4), -(-len(said) // 4))
        self.usage.append(tokens)
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        return Answer({**completion(said), "usage": usage})

    def reply(self, asked: str) -> dict[str, Any]:
        if passages := _list_texts(asked, "passage"):
            sentences = [one for text in passages for one in re.split(r"(?<=[.])\s+", text)]
            facts = [*_list_texts(asked, "fact"), *(" ".join(one.split()[:12]) for one in sentences if one)]
            return {"facts": [*dict.fromkeys(facts)][:30]}
        if "okay" in asked:
            told = enumerate(_list_texts(asked, "fact"), 1)
            return {"labels": [{"fact": at, "importance": "okay" if len(text) < 30 else "vital"} for at, text in told]}
        if facts := _list_texts(asked, "fact"):
            text = _list_texts(asked, "text")[0]
            return {
                "assignments": [{"fact": at, "label": LABELS[_holds(text, one)]} for at, one in enumerate(facts, 1)]
            }
        source, claims = "\n".join(_list_texts(asked, "source")), _list_texts(asked, "claim")
        blank = {"source": 0, "evidence": "", "reason": "so it says"}
        verdicts = [
            {"claim": at, **blank, "verdict": VERDICTS[_holds(source, one)]} for at, one in enumerate(claims, 1)
        ]
        return {"verdicts": verdicts}


def _list_texts(asked: str, tag: str) -> list[str]:
    return [json.loads(text) for text in re.findall(rf'^<{tag}[^>]*>\s*(".*")\s*</{tag}>$', asked, re.MULTILINE)]


def _holds(text: str, part: str) -> bool:
    words, there = ({*re.findall(r"\w+", one.lower())} for one in (part, text))
    return len(words & there) >= 0.8 * len(words)


@pytest.fixture
def assessor() -> Assessor:
    return Assessor()


@pytest.fixture
def server(assessor: Assessor) -> Iterator[ChatServer]:
    with closing(ChatServer(assessor)) as running:
        yield running


def prepare(folder: Path, server: ChatServer) -> Path:
    """A copy of the example whose nuggets are yet to be made, with prices."""
    shutil.copytree(SPECS / "data" / "harbour", folder / "data" / "harbour")
    (folder / "data" / "harbour" / "nuggets.jsonl").unlink()
    text = (SPECS / "trec_rag.yaml").read_text().replace("${JUDGE_URL:-http://localhost:11434}", server.url)
    text = text.replace("${JUDGE_MODEL:-llama3.1:8b}", "tiny").replace("{use: chat,", f"{{use: chat, price: {PRICE},")
    (folder / "trec_rag.yaml").write_text(text)
    return folder / "trec_rag.yaml"


def make_nuggets(spec: Path, *more: str) -> list[str]:
    return ["generate", "nuggets", str(spec), "-o", str(spec.parent / "data" / "harbour" / "nuggets.jsonl"), *more]


def evaluate(spec: Path) -> list[str]:
    return ["run", str(spec), "--quiet", "--no-history", "-o", str(spec.parent / "out")]


def read(spec: Path) -> dict[str, bytes]:
    named = ("results.json", "values.parquet", "findings.parquet", "leaderboard.txt")
    nuggets = (spec.parent / "data" / "harbour" / "nuggets.jsonl").read_bytes()
    return {"nuggets": nuggets} | {name: (spec.parent / "out" / name).read_bytes() for name in named}


def kill_after(calls: int, command: list[str], assessor: Assessor) -> None:
    """Start a command, and kill it when the endpoint has received this many requests."""
    before = len(assessor.usage)
    with subprocess.Popen([sys.executable, "-m", "rageval_spec", *command], stdout=subprocess.DEVNULL) as process:
        while len(assessor.usage) - before < calls and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)


def bill(assessor: Assessor) -> dict[str, float]:
    """What was asked since the last bill, and what it cost in US dollars."""
    sent, said = (sum(one[way] for one in assessor.usage) for way in (0, 1))
    found = {"calls": len(assessor.usage), "input_tokens": sent, "output_tokens": said}
    assessor.usage.clear()
    return {**found, "cost": (sent * PRICE["input"] + said * PRICE["output"]) / 1e6}


def test_runs_become_a_leaderboard_that_agrees_with_people(
    tmp_path: Path, server: ChatServer, assessor: Assessor
) -> None:
    spec = prepare(tmp_path, server)
    planned = json.loads(invoke(*make_nuggets(spec, "--dry-run", "--format", "json")).stdout)["to_ask"]["models"][0]
    assert not assessor.usage
    made = invoke(*make_nuggets(spec))
    assert made.exit_code == 0, made.output
    paid = bill(assessor)
    assert all(planned[part] >= amount for part, amount in paid.items())

    planned = json.loads(invoke("plan", str(spec), "--format", "json").stdout)["to_ask"]["models"][0]
    assert not assessor.usage
    done = invoke(*evaluate(spec))
    assert done.exit_code == 0, done.output
    paid = bill(assessor)
    assert planned["calls"] == paid["calls"] == 30  # 12 answers, and 18 passages that a statement cites first
    assert all(planned[part] >= amount for part, amount in paid.items())
    assert planned["input_tokens"] <= 1.02 * paid["input_tokens"]

    board = read_leaderboard(tmp_path / "out" / "leaderboard.txt")
    assert board.measures == ["nuggets", "nuggets_all", "support"]
    assert [*board.rank("nuggets")] == ["brief", "full", "loose"]
    assert {*board.values["support"]["full"]} == {"h1", "h2", "h3", "h4"}
    people = SPECS / "data" / "harbour" / "people.tsv"
    compared = invoke(
        "calibrate", "--leaderboards", str(people), str(tmp_path / "out" / "leaderboard.txt"), "--format", "json"
    )
    assert compared.exit_code == 0, compared.output
    (told,) = json.loads(compared.stdout)
    agreements = {one["judged"]: one for one in told["agreements"]}
    assert [system for system, *_ in agreements["nuggets"]["systems"]] == ["full", "brief", "loose"]
    assert {one["name"]: one["value"] for one in agreements["nuggets"]["correlations"]}["tau"] == 1.0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_killed_at_any_point_it_gives_the_same_bytes(tmp_path: Path, server: ChatServer, assessor: Assessor) -> None:
    unbroken = prepare(tmp_path / "unbroken", server)
    assert invoke(*make_nuggets(unbroken)).exit_code == 0
    nugget_calls = len(assessor.usage)
    assert invoke(*evaluate(unbroken)).exit_code == 0
    expected = {**assessor.asked}
    for calls in (1, nugget_calls // 2, nugget_calls + 1, nugget_calls + 14, nugget_calls + 29):
        spec = prepare(tmp_path / f"killed-{calls}", server)
        assessor.asked.clear()
        if calls < nugget_calls:
            kill_after(calls, make_nuggets(spec), assessor)
        assert invoke(*make_nuggets(spec, "--force")).exit_code == 0
        if calls > nugget_calls:
            kill_after(calls - nugget_calls, evaluate(spec), assessor)
        assert invoke(*evaluate(spec)).exit_code == 0
        assert read(spec) == read(unbroken), calls
        assert assessor.asked.keys() == expected.keys()
        assert max(assessor.asked.values()) <= 2  # what was under way when it was killed
