"""`calibrate --orders`, as a user sees it: a judge that looks at one place is found out, and nothing is paid twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rageval_spec.cli import cli
from rageval_spec.runner import Options, run
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

COUNT = 40


def say(number: int, body: dict[str, Any]) -> Answer:
    """Judges that see only what comes first: of contexts, of options, of examples."""
    said = "\n".join(message["content"] for message in body["messages"])
    asked = body["messages"][-1]["content"]
    if "Which fits" in asked:
        return Answer(completion(json.dumps({"reason": "r", "choice": "A"})))
    if "Own:" in asked:
        first = "complete" if said.index("easy") < said.index("hard") else "wrong"
        return Answer(completion(json.dumps({"choice": first})))
    known = "right" in asked.partition("right")[0] + asked[asked.find("<source") :].partition("</source")[0]
    return Answer(completion("yes" if known else "no"))


@pytest.fixture
def server() -> Any:
    running = ChatServer(say)
    yield running
    running.close()


def build(folder: Path, server: ChatServer, judge: dict[str, Any], **more: Any) -> Path:
    """Answers with the right context first, or a single context."""
    rows = []
    for number in range(COUNT):
        contexts = [f"right {number}", f"wrong {number}"] if number % 4 else [f"right {number}"]
        rows.append(
            {"query_id": f"q{number}", "question": f"Is it {number}?", "answer": "It is.", "contexts": contexts}
        )
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "answers.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl", "holds": "answers"}},
        models={"gpt": {"use": "chat", "base_url": server.url, "model": "m", "price": {"input": 1, "output": 1}}},
        judges={"strict": {"model": "gpt", **judge}},
        metrics=[{"use": "faithfulness", "judge": "strict"}],
        reports=[],
        **more,
    )


def call(spec: Path, *options: str, results: str | None = None) -> Any:
    run(spec, Options(output=spec.parent / "out", no_history=True))
    chosen = [str(spec.parent / "out"), "--spec", str(spec)] if results is None else [results]
    return CliRunner().invoke(cli, ["calibrate", *chosen, "--orders", "100", *options])


def test_a_judge_that_reads_only_the_first_context_is_found_out(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server, {"use": "binary"})
    result = call(spec)
    assert result.exit_code == 0, result.output
    asked = len(server.calls)
    assert asked == COUNT + 30
    said = " ".join(result.output.split())
    assert "faithfulness, judge 'strict': the same answers in the reverse order" in said
    assert "Contexts reversed, 30 answers" in said
    assert "! 30 values change. Of the decisions, 100% [88.4%, 100%] flip: 0 to yes, 30 to no (adjusted p <" in said
    assert "! The reverse order makes the judge 1.000 [0.769, 1.000] more strict" in said
    assert "30 calls" in result.stderr

    again = call(spec)
    assert len(server.calls) == asked
    assert "calls" not in again.stderr


def test_labels_say_which_order_is_better(tmp_path: Path, server: ChatServer) -> None:
    labels = tmp_path / "labels.csv"
    rows = "".join(f"q{number},faithfulness,ann,1\n" for number in range(10))
    labels.write_text("query_id,metric,annotator,value\n" + rows)
    result = call(build(tmp_path, server, {"use": "binary"}), "--labels", str(labels), "--format", "json")
    found = json.loads(result.stdout)
    (effect,) = found["effects"]
    assert (found["judge"], found["metric"], effect["part"]) == ("strict", "faithfulness", "contexts")
    assert effect["answers"] == 7
    assert effect["errors"] == [0.0, 1.0]


def test_options_and_examples_are_reversed(tmp_path: Path, server: ChatServer) -> None:
    examples = tmp_path / "examples.jsonl"
    lines = [{"answer": "easy", "value": "complete"}, {"answer": "hard", "value": "wrong"}]
    examples.write_text("\n".join(map(json.dumps, lines)))
    judge = {
        "use": "prompt", "template": "Own: {{ answer }}", "value": "choice", "reason": False,
        "choices": {"complete": 1, "wrong": 0}, "examples": "examples.jsonl",
    }  # fmt: skip
    result = call(build(tmp_path, server, judge), "--format", "json")
    effects = {one["part"]: one for one in json.loads(result.stdout)["effects"]}
    assert effects["contexts"]["changed"] == effects["choices"]["changed"] == 0
    assert effects["examples"]["to_no"] == 1 or effects["examples"]["to_no"] == COUNT


def test_a_judge_without_an_order_is_said_to_have_none(tmp_path: Path, server: ChatServer) -> None:
    spec = build(tmp_path, server, {"use": "binary"})
    path = spec.parent / "answers.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "contexts": row["contexts"][:1]}) + "\n" for row in rows))
    result = call(spec)
    assert result.exit_code != 0
    assert "has nothing to reverse" in str(result.exception) + result.output


def test_a_spec_is_needed(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["calibrate", str(tmp_path), "--orders", "10"])
    assert "--orders needs the spec with the judge" in str(result.exception) + result.output


def test_the_last_results_of_the_spec_and_its_own_labels_are_used(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"q{number},faithfulness,ann,1\n" for number in range(8))
    (tmp_path / "labels.csv").write_text("query_id,metric,annotator,value\n" + rows)
    spec = build(tmp_path, server, {"use": "binary"}, labels={"people": {"use": "csv", "path": "labels.csv"}})
    run(spec, Options(output=tmp_path / "rageval-results"))
    result = CliRunner().invoke(cli, ["calibrate", str(spec), "--orders", "5", "--format", "json"])
    assert result.exit_code == 0, result.output
    (effect,) = json.loads(result.stdout)["effects"]
    assert effect["answers"] <= 5
    assert effect["errors"] == [0.0, 1.0]


def test_results_of_another_spec_are_refused(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(build(tmp_path, server, {"use": "binary"}), Options(output=tmp_path / "rageval-results"))
    spec = build(tmp_path, server, {"use": "binary"})
    spec.write_text(spec.read_text().replace("name: tiny", "name: other"))
    result = CliRunner().invoke(cli, ["calibrate", str(spec), "--orders", "5"])
    assert "the last results are of 'tiny', not of 'other'; run the spec first" in str(result.exception) + result.output
