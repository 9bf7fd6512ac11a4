"""Samples of ragas, in and out."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate_file
from tests.exchange.peers import run_peer

ROWS: list[dict[str, Any]] = [
    {
        "user_input": "Where is it?",
        "response": "In the shed.",
        "retrieved_contexts": ["It is in the shed.", "a|b"],
        "retrieved_context_ids": ["d1", "d2"],
        "reference": "In the shed.",
        "reference_context_ids": ["d1"],
        "persona_name": "gardener",
    },
    {
        "user_input": "When?",
        "response": "Now.",
        "retrieved_contexts": [],
        "reference": "At noon.",
        "persona_name": None,
    },
]


def write_rows(folder: Path) -> Path:
    path = folder / "samples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


def test_samples_become_questions_and_answers(tmp_path: Path) -> None:
    done = invoke("import", "ragas", write_rows(tmp_path), "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    assert "wrote 2 questions with 2 answers" in done.stdout
    first, second = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first == {
        "id": "1",
        "question": "Where is it?",
        "answer": "In the shed.",
        "contexts": [{"id": "d1", "text": "It is in the shed."}, {"id": "d2", "text": "a|b"}],
        "reference": "In the shed.",
        "relevant": ["d1"],
        "metadata": {"persona_name": "gardener"},
        "trace": {"tool": "ragas", "trace_id": "1"},
    }
    assert (second["id"], second["contexts"], "metadata" in second) == ("2", [], False)


def test_what_was_imported_can_be_evaluated_and_exported_again(tmp_path: Path) -> None:
    invoke("import", "ragas", write_rows(tmp_path), "-o", tmp_path / "out.jsonl")
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: out.jsonl}}\n"
        "systems: {bot: {use: file, path: out.jsonl}}\nmetrics: [exact_match, recall@5]\n"
    )
    done = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert done.exit_code == 0, done.output
    done = invoke("export", "ragas", tmp_path / "results", "-o", tmp_path / "back.jsonl")
    assert done.exit_code == 0, done.output
    first, second = map(json.loads, (tmp_path / "back.jsonl").read_text().splitlines())
    kept = (
        "user_input",
        "response",
        "retrieved_contexts",
        "retrieved_context_ids",
        "reference",
        "reference_context_ids",
    )
    assert {key: first[key] for key in kept} == {key: ROWS[0][key] for key in kept}
    assert (first["exact_match"], second["exact_match"], first["recall@5"], second["recall@5"]) == (1.0, 0.0, 1.0, None)


CONVERSATION = [
    {"content": "Hello", "type": "human"},
    {"content": "Hi", "type": "ai"},
    {"content": "Where is it?", "type": "human"},
    {"content": "Looking.", "type": "ai", "tool_calls": [{"name": "lookup_place", "args": {"q": "it"}}]},
    {"content": "shed", "type": "tool"},
    {"content": "In the shed.", "type": "ai"},
]


@pytest.mark.parametrize("name", ["turns.jsonl", "turns.csv"])
def test_a_conversation_has_a_question_an_answer_and_steps(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["user_input", "reference"], [str(CONVERSATION), "Shed."]])
    else:
        path.write_text(json.dumps({"user_input": CONVERSATION, "reference": "Shed."}))
    done = invoke("import", "ragas", path, "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (row["question"], row["answer"]) == ("Where is it?", "In the shed.")
    assert [turn["role"] for turn in row["messages"]] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    (step,) = row["steps"]
    assert (step["name"], step["input"], step["output"]) == ("lookup_place", '{"q": "it"}', "shed")
    assert "metadata" not in row


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    done = invoke("import", "ragas", tmp_path, "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 2
    assert "this is a folder; name a file in it" in done.stderr


def test_a_row_without_a_question_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"user_input": "Why?"}\n{"response": "So."}\n')
    done = invoke("import", "ragas", tmp_path / "bad.jsonl", "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 3
    assert "bad.jsonl:2: the row has no question ('user_input' or 'question'); it has 'response'" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


PEER = """
import json, sys
from ragas import EvaluationDataset
folder = json.loads(sys.argv[1])
data = EvaluationDataset.from_jsonl(f"{folder}/back.jsonl")
data.to_csv(f"{folder}/theirs.csv")
data.to_jsonl(f"{folder}/theirs.jsonl")
print(json.dumps([sample.model_dump() for sample in data.samples]))
"""


def test_ragas_reads_what_is_exported_and_writes_what_is_imported(tmp_path: Path) -> None:
    write_rows(tmp_path)
    invoke("import", "ragas", tmp_path / "samples.jsonl", "-o", tmp_path / "out.jsonl")
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    invoke("export", "ragas", results, "-o", tmp_path / "back.jsonl")
    first, _ = run_peer("ragas", "ragas==0.4.3", PEER, str(tmp_path))
    kept = [name for name in ROWS[0] if name != "persona_name"]
    assert {name: first[name] for name in kept} == {name: ROWS[0][name] for name in kept}
    for name in ("theirs.csv", "theirs.jsonl"):
        done = invoke("import", "ragas", tmp_path / name, "-o", tmp_path / "again.jsonl", "--force")
        assert done.exit_code == 0, done.output
        row = json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0])
        assert row["contexts"] == [{"id": "d1", "text": "It is in the shed."}, {"id": "d2", "text": "a|b"}], name
