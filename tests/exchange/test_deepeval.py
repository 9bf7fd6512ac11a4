"""Goldens, test cases and test runs of DeepEval, in and out. The files have the shape that DeepEval 4.3.1 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate_file
from tests.exchange.peers import run_peer

GOLDEN = {
    "input": "Where is it?",
    "actual_output": "In the shed.",
    "expected_output": "Shed.",
    "retrieval_context": ["r1", "r2"],
    "context": ["c1", "c2"],
    "name": None,
    "additional_metadata": {"kind": "easy"},
}
CASE = {
    "name": "n1",
    "input": "Where is it?",
    "actualOutput": "Shed.",
    "expectedOutput": "Shed.",
    "retrievalContext": ["r1|x", "r2"],
    "toolsCalled": [{"name": "search", "inputParameters": {"q": "it"}, "output": "found"}],
    "metricsData": [{"name": "Exact Match", "score": 1.0, "success": True, "reason": "They match."}],
}


def read(folder: Path, name: str, content: str) -> list[dict[str, Any]]:
    (folder / name).write_text(content)
    done = invoke("import", "deepeval", folder / name, "-o", folder / "out.jsonl", "--force")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def test_contexts_are_split_where_deepeval_joins_them(tmp_path: Path) -> None:
    joined = GOLDEN | {"retrieval_context": "r1|r2", "context": "c1|c2"}
    names = [name for name in joined if name != "additional_metadata"]
    table = ",".join(names) + "\n" + ",".join(str(joined[name] or "") for name in names) + "\n"
    for name, content in (
        ("g.json", json.dumps([GOLDEN])),
        ("g.jsonl", json.dumps(joined) + "\n"),
        ("g.csv", table),
    ):
        (row,) = read(tmp_path, name, content)
        assert row["contexts"] == [{"text": "r1"}, {"text": "r2"}], name
        assert (row["reference_contexts"], row["reference"], row["answer"]) == (["c1", "c2"], "Shed.", "In the shed.")


def test_a_bar_inside_a_list_is_text(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "run.json", json.dumps({"testCases": [CASE], "metricsScores": []}))
    assert row["contexts"] == [{"text": "r1|x"}, {"text": "r2"}]


def test_a_test_run_keeps_its_metrics_and_tools(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "run.json", json.dumps({"testCases": [CASE]}))
    assert row["id"] == "n1"
    assert row["feedback"] == [{"name": "Exact Match", "value": 1.0, "comment": "They match.", "source": "program"}]
    assert row["steps"] == [{"kind": "tool", "name": "search", "input": '{"q": "it"}', "output": "found"}]


TURNS = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "In the shed."}]


def test_conversational_goldens_have_a_question_and_an_answer(tmp_path: Path) -> None:
    golden = {"scenario": "Somebody seeks a tool", "turns": TURNS, "expected_outcome": "Shed.", "context": ["c1"]}
    joined = golden | {"turns": json.dumps(TURNS), "context": "c1"}
    for name, content in (("g.json", json.dumps([golden])), ("g.jsonl", json.dumps(joined))):
        (row,) = read(tmp_path, name, content)
        assert (row["question"], row["answer"], row["reference"]) == ("Where is it?", "In the shed.", "Shed."), name
        assert (row["messages"], row["reference_contexts"]) == (TURNS, ["c1"])
        assert row["metadata"] == {"scenario": "Somebody seeks a tool"}


def test_tools_tokens_and_times_come_back_as_they_went(tmp_path: Path) -> None:
    calls = [{"name": "search", "input_parameters": {"q": "it"}, "output": "found"}, {"name": "stop"}]
    used = {"token_cost": 0.25, "completion_time": 1.5, "input_token_count": 30, "output_token_count": 4}
    read(tmp_path, "g.json", json.dumps([GOLDEN | used | {"tools_called": calls}]))
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    done = invoke("export", "deepeval", results, "-o", tmp_path / "cases.json")
    assert done.exit_code == 0, done.output
    (case,) = json.loads((tmp_path / "cases.json").read_text())
    assert {key: case[key] for key in used} == used
    assert case["tools_called"] == calls


def test_an_empty_field_of_a_table_is_no_answer(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "g.csv", "input,actual_output,retrieval_context\nWhen?,,\n")
    assert set(row) == {"id", "question", "trace"}


def test_metadata_of_goldens_is_kept(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "g.json", json.dumps([GOLDEN | {"comments": "x"}]))
    assert row["metadata"] == {"kind": "easy", "comments": "x"}


def test_answers_become_test_cases(tmp_path: Path) -> None:
    read(tmp_path, "g.json", json.dumps([GOLDEN, {"input": "When?", "actual_output": "Now."}]))
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    done = invoke("export", "deepeval", results, "-o", tmp_path / "cases.json")
    assert done.exit_code == 0, done.output
    first, second = json.loads((tmp_path / "cases.json").read_text())
    kept = ("input", "actual_output", "expected_output", "retrieval_context", "context")
    assert {key: first[key] for key in kept} == {key: GOLDEN[key] for key in kept}
    assert first["custom_column_key_values"] == {"dataset": "golden", "system": "bot", "exact_match": "0.0"}
    assert second["custom_column_key_values"]["exact_match"] == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"input": "Why?"}, {"actual_output": "So."}]', "the row has no question"),
        ('[{"input": "Why?", "retrieval_context": 5}]', "'contexts' must be a list"),
        ('[{"input": "Why?"', "g.json"),
        ("<html>no</html>", "g.json"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "g.json").write_text(content)
    done = invoke("import", "deepeval", tmp_path / "g.json", "-o", tmp_path / "out.jsonl")
    assert (done.exit_code, (tmp_path / "out.jsonl").exists()) == (3, False)
    assert message in done.stderr


PEER = """
import json, sys
from deepeval.dataset import EvaluationDataset, Golden
folder = json.loads(sys.argv[1])
golden = Golden(input="Where?", actual_output="Shed.", context=["c1", "c2"], retrieval_context=["r1", "r2"])
for kind in ("json", "csv", "jsonl"):
    EvaluationDataset(goldens=[golden]).save_as(file_type=kind, directory=folder, file_name="theirs")
dataset = EvaluationDataset()
names = ("input", "actual_output", "expected_output", "context", "retrieval_context")
dataset.add_test_cases_from_json_file(f"{folder}/cases.json", *names, tools_called_key_name="tools_called")
cases = [[one.input, one.actual_output, one.context, one.retrieval_context] for one in dataset.test_cases]
print(json.dumps(cases))
"""


def test_deepeval_reads_what_is_exported_and_writes_what_is_imported(tmp_path: Path) -> None:
    read(tmp_path, "g.json", json.dumps([GOLDEN]))
    results = evaluate_file(tmp_path, "out.jsonl", "[exact_match]")
    invoke("export", "deepeval", results, "-o", tmp_path / "cases.json")
    (case,) = run_peer("deepeval", "deepeval==4.3.1", PEER, str(tmp_path))
    assert case == [GOLDEN["input"], GOLDEN["actual_output"], GOLDEN["context"], GOLDEN["retrieval_context"]]
    for kind in ("json", "csv", "jsonl"):
        (row,) = read(tmp_path, f"theirs.{kind}", (tmp_path / f"theirs.{kind}").read_text())
        assert (row["contexts"], row["reference_contexts"]) == ([{"text": "r1"}, {"text": "r2"}], ["c1", "c2"]), kind
