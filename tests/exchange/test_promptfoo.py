"""Results of promptfoo in, and tests with answers out.

The files are made by hand in the shape that promptfoo documents; promptfoo itself was not there to write them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.command_line import invoke
from tests.exchange.evaluating import evaluate_file

RESULT: dict[str, Any] = {
    "id": "0b1e",
    "testIdx": 0,
    "promptIdx": 1,
    "vars": {"question": "Where is it?", "context": ["It is in the shed."], "topic": "tools"},
    "prompt": {"raw": "Answer: Where is it?", "label": "p"},
    "provider": {"id": "openai:gpt-4o"},
    "response": {"output": "In the shed.", "tokenUsage": {"prompt": 12, "completion": 5, "total": 17}},
    "latencyMs": 250,
    "cost": 0.001,
    "testCase": {"assert": [{"type": "latency", "threshold": 9}, {"type": "icontains", "value": "shed"}]},
    "gradingResult": {
        "componentResults": [
            {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "icontains", "value": "shed"}},
            {"pass": False, "score": 0.25, "reason": "rude", "assertion": {"type": "llm-rubric", "metric": "tone"}},
        ]
    },
}


def read(folder: Path, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    (folder / "results.json").write_text(json.dumps({"version": 3, "results": {"version": 3, "results": results}}))
    done = invoke("import", "promptfoo", folder / "results.json", "-o", folder / "out.jsonl")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def test_an_answer_that_fails_an_assertion_is_still_an_answer(tmp_path: Path) -> None:
    failed = RESULT | {"success": False, "failureReason": 1, "error": "Expected output to contain house"}
    broken = {**RESULT, "id": "2", "success": False, "failureReason": 2, "error": "429", "response": {}}
    first, second = read(tmp_path, [failed, broken])
    assert (first["answer"], "error" in first) == ("In the shed.", False)
    assert (second["error"], "answer" in second) == ("429", False)


def test_an_answer_that_is_json_stays_json(tmp_path: Path) -> None:
    (row,) = read(tmp_path, [RESULT | {"response": {"output": {"place": "shed", "sure": True}}}])
    assert row["answer"] == '{"place": "shed", "sure": true}'


def test_a_result_becomes_a_question_with_its_answer_and_grades(tmp_path: Path) -> None:
    (row,) = read(tmp_path, [RESULT])
    assert row == {
        "id": "0b1e",
        "question": "Where is it?",
        "answer": "In the shed.",
        "contexts": [{"text": "It is in the shed."}],
        "reference": "shed",
        "seconds": 0.25,
        "input_tokens": 12,
        "output_tokens": 5,
        "cost": 0.001,
        "model": "openai:gpt-4o",
        "feedback": [
            {"name": "icontains", "value": 1.0, "label": "pass", "comment": "ok", "source": "program"},
            {"name": "tone", "value": 0.25, "label": "fail", "comment": "rude", "source": "program"},
        ],
        "metadata": {"topic": "tools"},
        "trace": {"tool": "promptfoo", "trace_id": "0b1e", "test": "0", "prompt": "1"},
    }


def test_a_provider_that_failed_gave_no_answer(tmp_path: Path) -> None:
    failed = {key: value for key, value in RESULT.items() if key != "response"} | {"error": "429", "id": "x"}
    (row,) = read(tmp_path, [failed])
    assert (row["error"], "answer" in row) == ("429", False)


def test_answers_become_tests_that_ask_no_provider(tmp_path: Path) -> None:
    read(tmp_path, [RESULT])
    results = evaluate_file(tmp_path, "out.jsonl", "[token_f1]")
    done = invoke("export", "promptfoo", results, "-o", tmp_path / "tests.yaml")
    assert done.exit_code == 0, done.output
    (test,) = yaml.safe_load((tmp_path / "tests.yaml").read_text())["tests"]
    assert test["vars"] == {"question": "Where is it?", "contexts": ["It is in the shed."], "reference": "shed"}
    assert test["providerOutput"] == "In the shed."
    assert test["metadata"]["token_f1"] == 2 / 3


def test_another_file_is_refused_with_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('[{"question": "Why?"}]')
    done = invoke("import", "promptfoo", tmp_path / "results.json")
    assert done.exit_code == 3
    assert "the row has no 'vars'; name the file that promptfoo eval -o results.json wrote" in done.stderr
