"""What makes a judge err, from a run with a chat model to the sentences that a user reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.runner import Options, run
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

COUNT = 60
PHRASES = ("furthermore, it ought to be noted", "consequently, one would say", "notwithstanding limitations")


def say(number: int, body: dict[str, Any]) -> Answer:
    """Grades what is right with 4 of 5, and likes answers of its own model; its reasons are its own in style."""
    asked = body["messages"][-1]["content"]
    grade = (4 if "right" in asked else 2) + (1 if "furthermore" in asked else 0)
    reason = f"{PHRASES[number % 3]}, {PHRASES[(number + 1) % 3]}."
    return Answer(completion(json.dumps({"reason": reason, "grade": grade})))


@pytest.fixture
def server() -> Any:
    running = ChatServer(say)
    yield running
    running.close()


def build(folder: Path, server: ChatServer) -> tuple[Path, Path]:
    """Two systems that are right equally often; the judge's model wrote the answers of one."""
    draw = random.Random(4)
    labels = ["query_id,system,metric,annotator,value"]
    for system in ("ours", "theirs"):
        rows = []
        for number in range(COUNT):
            is_right = draw.random() < 0.5
            style = f"{PHRASES[0]}, {draw.choice(PHRASES)}" if system == "ours" else "well, so it is"
            said = f"{style} {'right' if is_right else 'wrong'} {'indeed ' * draw.randrange(12)}"
            rows.append({"query_id": f"q{number}", "question": f"Is it {number}?", "answer": said, "contexts": ["It."]})
            labels.append(f"q{number},{system},helpful,ann,{0.75 if is_right else 0.25}")
        (folder / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "labels.csv").write_text("\n".join(labels))
    answers = {"use": "file", "holds": "answers"}
    spec = write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "ours.jsonl"}},
        systems={
            "theirs": {**answers, "path": "theirs.jsonl", "generator": "llama3.1:8b"},
            "ours": {**answers, "path": "ours.jsonl", "generator": "gpt"},
        },
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "gpt-4o"}},
        judges={"strict": {"use": "grade", "model": "gpt"}},
        metrics=[{"use": "rubric", "criteria": "Is it helpful?", "judge": "strict", "as": "helpful"}],
        reports=[],
    )
    run(spec, Options(output=folder / "out", no_history=True))
    return folder / "out", folder / "labels.csv"


def test_self_preference_and_style_are_said_from_an_evaluation_on(tmp_path: Path, server: ChatServer) -> None:
    results, labels = build(tmp_path, server)
    called = [str(results), "--labels", str(labels)]
    result = CliRunner().invoke(cli, ["calibrate", *called, "--details"])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "! Answers of its own model (ours) make the judge 0.2" in said
    assert "more generous than answers of other models that people rate the same (adjusted p < 0.0001)." in said
    # Length and style explain nothing that the model does not.
    assert said.partition("What makes the judge err")[2].count("! ") == 2
    found = json.loads(CliRunner().invoke(cli, ["calibrate", *called, "--format", "json"]).output)
    (calibration,) = found["calibrations"]
    own = next(one for one in calibration["biases"] if one["name"] == "own model")
    assert own["is_significant"]
    assert "style" in {one["name"] for one in calibration["biases"]}
    assert own["said"].startswith("Answers of its own model (ours)")
    assert {one["name"] for one in calibration["properties_left_out"]} >= {"contexts"}
    assert calibration["why_no_biases"] is None


def test_too_few_labels_are_said(tmp_path: Path, server: ChatServer) -> None:
    results, labels = build(tmp_path, server)
    lines = labels.read_text().splitlines()
    labels.write_text("\n".join(line for line in lines if line.startswith(("query_id", *(f"q{n}," for n in range(5))))))
    result = CliRunner().invoke(cli, ["calibrate", str(results), "--labels", str(labels)])
    said = " ".join(result.output.split())
    assert "It cannot be told: 5 labelled questions; 10 are needed for each property." in said
