"""From a spec with answers to values, with judges that do not need a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec.diagnostics import SpecError
from rageval_spec.runner import Options, plan, run
from tests.models.chat_endpoint import ChatServer, completion
from tests.models.endpoint import Answer
from tests.tiny import write_spec

QUESTIONS = [
    {"query_id": "q1", "question": "Who built the tower?", "reference": "Eiffel built the tower.", "answerable": True},
    {"query_id": "q2", "question": "Who painted the tower?", "reference": "Nobody knows.", "answerable": False},
]
TOWER = "Eiffel built the tower."
ANSWERS = [
    {
        "query_id": "q1",
        "answer": "Eiffel built the tower. Napoleon liked cheese.",
        "contexts": ["Eiffel built the tower."],
    },
    {"query_id": "q2", "answer": "I don't know.", "contexts": []},
]


def values(folder: Path, *metrics: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of an evaluation by metric and query, with parsed details."""
    outcome = run(spec(folder, *metrics), Options(output=folder / "out"))
    rows = outcome.evaluation.values.select("metric", "query_id", "value", "status", "reason", "details")
    return {
        (row["metric"], row["query_id"]): {**row, "details": json.loads(row["details"] or "null")}
        for row in rows.with_columns(pl.col("value").round(6)).iter_rows(named=True)
    }


def spec(folder: Path, *metrics: Any) -> Path:
    for name, rows in (("questions", QUESTIONS), ("answers", ANSWERS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_spec(
        folder,
        datasets={"golden": {"use": "jsonl", "path": "questions.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=list(metrics),
        reports=["json"],
    )


def test_values_and_their_details(tmp_path: Path) -> None:
    found = values(
        tmp_path,
        {"use": "faithfulness", "judge": "overlap"},
        {"use": "completeness", "judge": "overlap"},
        {"use": "answerability", "by": "phrases"},
    )
    faithful = found["faithfulness", "q1"]
    assert (faithful["value"], faithful["status"]) == (0.5, "scored")
    claims = [(claim["text"], claim["verdict"], claim["start"]) for claim in faithful["details"]["claims"]]
    assert claims == [
        ("Eiffel built the tower.", "supported", 0),
        ("Napoleon liked cheese.", "not_enough_info", 24),
    ]
    settled = found["faithfulness", "q2"]
    assert (settled["value"], settled["status"]) == (None, "unscorable")
    assert found["faithfulness", "q2"]["reason"]
    assert found["completeness", "q1"]["value"] == 1.0
    refused = [found["answerability(by=phrases)", query]["details"]["refused"] for query in ("q1", "q2")]
    assert refused == [False, True]
    assert [found["answerability(by=phrases)", query]["value"] for query in ("q1", "q2")] == [1.0, 1.0]


def test_samples_that_lack_a_part_have_no_value(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"context_recall\(by=ids\) needs relevant documents, and no question of"):
        values(tmp_path, {"use": "context_recall", "by": "ids"})
    found = values(tmp_path, {"use": "context_recall", "judge": "overlap"})
    assert found["context_recall", "q1"]["value"] == 1.0
    assert (found["context_recall", "q2"]["value"], found["context_recall", "q2"]["status"]) == (0.0, "scored")
    assert found["context_recall", "q2"]["reason"] == "there are no contexts, or only empty ones"


@pytest.mark.parametrize(
    ("metric", "fault"),
    [
        ({"use": "rubric", "judge": "overlap", "criteria": "Is it kind?", "guide": {1: "no"}}, "cannot grade a sample"),
        ({"use": "context_precision"}, "this metric needs a judge; name one with 'judge:'"),
        ({"use": "faithfulness"}, "'judge'"),
        ({"use": "answer_correctness", "judge": "overlap", "weights": [0, 1]}, "the first weight must be above 0"),
        ({"use": "information_integration", "mode": "parts", "by": "exact"}, "write 'by: contains' or 'by: judge'"),
    ],
)
def test_unsuitable_blocks_are_diagnosed(tmp_path: Path, metric: dict[str, Any], fault: str) -> None:
    with pytest.raises(SpecError) as caught:
        run(spec(tmp_path, metric), Options(output=tmp_path / "out"))
    (diagnostic,) = caught.value.diagnostics
    assert fault in diagnostic.message


@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        ({"scale": "1-5"}, "expected a list, found the text '1-5'", "write [1, 5]"),
        ({"scale": "0 .. 2.5"}, "expected a list, found the text '0 .. 2.5'", "write [0, 2.5]"),
        ({"shown": ["answr"]}, "found the text 'answr'", "did you mean 'answer'?"),
        ({"shown": []}, "'shown' must have at least 1 entry, but has none", None),
    ],
)
def test_a_wrong_list_gets_one_diagnostic(tmp_path: Path, keys: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        run(spec(tmp_path, {"use": "rubric", "judge": "overlap", "criteria": "Is it kind?", **keys}), Options())
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message and diagnostic.hint == hint


def test_metrics_that_take_values_of_one_reply_share_its_call(tmp_path: Path) -> None:
    def reply(number: int, body: dict[str, Any]) -> Answer:
        is_first = "Who built" in body["messages"][-1]["content"]
        values = {"faithfulness": 0.5, "relevancy": 2} if is_first else {"faithfulness": 1}
        return Answer(completion(json.dumps({"reason": "so", **values})))

    server = ChatServer(reply)
    template = "{{ question }} {{ answer }}"
    own = {
        "use": "prompt",
        "model": "llm",
        "template": template,
        "values": {"faithfulness": [0, 1], "relevancy": [1, 5]},
    }
    metrics = [{"use": "rubric", "judge": "own", "value": value} for value in ("faithfulness", "relevancy")]
    metrics.append({"use": "faithfulness", "judge": "own", "as": "by_name"})
    path = spec(tmp_path, *metrics)
    sections = {"models": {"llm": {"use": "chat", "base_url": server.url, "model": "tiny"}}, "judges": {"own": own}}
    path.write_text(path.read_text() + yaml.safe_dump(sections))
    (planned,) = json.loads(plan(path).to_json())["to_ask"]["models"]
    outcome = run(path, Options(output=tmp_path / "out"))
    server.close()
    assert planned["calls"] == 2
    assert len(server.calls) == 2 + 2  # the second question is asked three times
    found = {(row["metric"], row["query_id"]): row for row in outcome.evaluation.values.iter_rows(named=True)}
    assert found["faithfulness", "q1"]["value"] == found["by_name", "q1"]["value"] == 0.5
    assert found["relevancy", "q1"]["value"] == 2
    assert found["faithfulness", "q2"]["value"] == 1
    assert found["relevancy", "q2"]["status"] == "error"
    assert "'relevancy' is missing" in found["relevancy", "q2"]["reason"]
