"""Digests tell when numbers stop being comparable, and only then."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.history.meaning import take_meaning
from rageval_spec.history.opening import open_history
from rageval_spec.pipeline.provenance import describe_spec
from rageval_spec.runner import Options, run
from rageval_spec.spec import load
from tests.sample_evaluation import make_evaluation
from tests.tiny import write_spec


def take(folder: Path, **spec: Any) -> dict[str, Any]:
    run(write_spec(folder, **spec), Options(output=None))
    with open_history(folder / ".rageval" / "history.db") as history:
        return dict(history.entries()[0].meaning)


def test_other_names_gates_and_statistics_change_no_digest(tmp_path: Path) -> None:
    first = take(tmp_path, metrics=["rr", "recall@5"])
    other = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}, "rr"], statistics={"seed": 1})
    assert other["data"] == first["data"]
    assert other["metrics"]["rr"] == first["metrics"]["rr"]
    assert other["metrics"]["found"] == first["metrics"]["recall@5"]


def test_another_cutoff_or_order_of_ties_is_another_definition(tmp_path: Path) -> None:
    first = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}])["metrics"]["found"]
    deeper = take(tmp_path, metrics=[{"use": "recall", "cutoff": 6, "as": "found"}])["metrics"]["found"]
    ties = {"ties": "input"}
    tied = take(tmp_path, metrics=[{"use": "recall", "cutoff": 5, "as": "found"}], ranking=ties)["metrics"]["found"]
    assert len({first["definition"], deeper["definition"], tied["definition"]}) == 3
    assert "judge" not in first


def test_an_edited_judgement_changes_only_the_digest_of_judgements(tmp_path: Path) -> None:
    first = take(tmp_path)["data"]
    dataset = next(iter(first))
    path = next(path for path in tmp_path.rglob("*") if path.is_file() and "qrels" in str(path.relative_to(tmp_path)))
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    second = take(tmp_path)["data"]
    assert second[dataset]["judgements"] != first[dataset]["judgements"]


def test_what_an_evaluation_recorded_gives_the_digests_of_its_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "very-secret")
    rows = [{"query_id": "q1", "question": "What?", "reference": "It."}]
    (tmp_path / "golden.jsonl").write_text(json.dumps(rows[0]) + "\n")
    (tmp_path / "answers.jsonl").write_text(json.dumps({"query_id": "q1", "answer": "It.", "contexts": ["It."]}) + "\n")
    content = {
        "version": 1,
        "datasets": {"golden": {"use": "jsonl", "path": "golden.jsonl"}},
        "systems": {"bot": {"use": "file", "path": "answers.jsonl"}},
        "models": {
            "gpt": {"use": "chat", "base_url": "http://127.0.0.1:1/v1", "model": "m", "api_key": "${secret:KEY}"}
        },
        "judges": {
            "words": {"use": "overlap"},
            "strict": {"use": "claims", "model": "gpt"},
            "fast": {"use": "cascade", "steps": ["words", "strict"]},
        },
        "metrics": [
            "token_f1",
            {"use": "ndcg", "cutoff": 5, "as": "found"},
            {"use": "faithfulness", "judge": "fast"},
            {"use": "rubric", "judge": "strict", "criteria": "Polite?", "scale": [0, 2]},
        ],
    }
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(content))
    spec = load(path)
    described = {"gpt": {"use": "chat", "model": "m", "url": "http://127.0.0.1:1/v1/chat/completions"}}
    evaluation = replace(
        make_evaluation(), spec=describe_spec(spec), metrics=tuple(one.name for one in spec.metrics), models=described
    )
    digests = take_meaning(evaluation, spec)["metrics"]
    assert take_meaning(evaluation, None)["metrics"] == digests
    assert [*digests] == ["token_f1", "found", "faithfulness", "rubric"]
    assert take_meaning(replace(evaluation, spec={}), None)["metrics"] == {}
