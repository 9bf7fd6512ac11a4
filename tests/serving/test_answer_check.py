"""An answer is accepted, held back for a person, or rejected."""

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.pipeline.planning.spec_plugins import build_parts
from rageval_spec.serving.answer_check import AnswerCheck
from rageval_spec.spec import load_dict

CONTEXTS = ["Ada Lovelace wrote the first program in 1843."]
RIGHT = "Ada Lovelace wrote the first program in 1843."
WRONG = "Grace Hopper baked seven cakes in Paris."


def make_check(tmp_path: Path, *metrics: Any, **others: Any) -> AnswerCheck:
    content = {
        "version": 1,
        "systems": {"live": {"use": "file", "path": "traces.jsonl", "follow": True}},
        "metrics": list(metrics) or [{"use": "faithfulness", "judge": "overlap"}],
        "monitor": {},
        **others,
    }
    (tmp_path / "traces.jsonl").write_text('{"id": "t", "question": "q", "answer": "a", "contexts": ["c"]}\n')
    spec = load_dict(content, folder=tmp_path)
    return AnswerCheck.of(spec, build_parts(spec))


GATES = [{"metric": "faithfulness", "min": 0.5, "target": 0.99}]


def test_gates_decide(tmp_path: Path) -> None:
    check = make_check(tmp_path, gates=GATES)
    accepted = check.check("Who wrote it?", CONTEXTS, RIGHT)
    assert (accepted["outcome"], accepted["checks"][0]["value"]) == ("accept", 1.0)
    rejected = check.check("Who wrote it?", CONTEXTS, WRONG)
    assert rejected["outcome"] == "reject"
    assert "is below 0.5" in rejected["reasons"][0]


def test_what_misses_the_target_goes_to_a_person(tmp_path: Path) -> None:
    check = make_check(tmp_path, gates=[{"metric": "faithfulness", "min": 0.0, "target": 0.99}])
    held = check.check("Who wrote it?", CONTEXTS, f"{RIGHT} {WRONG}")
    assert held["outcome"] == "person"
    assert "misses the target 0.99" in held["reasons"][0]


def test_an_answer_that_lacks_its_contexts_goes_to_a_person(tmp_path: Path) -> None:
    held = make_check(tmp_path, gates=GATES).check("Who wrote it?", None, RIGHT)
    assert held["outcome"] == "person"
    assert "no contexts" in held["reasons"][0]


def test_a_refusal_has_nothing_to_judge(tmp_path: Path) -> None:
    assert make_check(tmp_path, gates=GATES).check("Who wrote it?", CONTEXTS, "I don't know.")["outcome"] == "accept"


def test_a_judge_of_stages_decides_and_names_the_stage(tmp_path: Path) -> None:
    judges = {"stages": {"use": "waterfall", "retrieval": None, "relevance": None}}
    check = make_check(tmp_path, {"use": "faithfulness", "judge": "stages"}, judges=judges)
    rejected = check.check("Who wrote the first program?", CONTEXTS, WRONG)
    assert (rejected["outcome"], rejected["checks"][0]["stage"]) == ("reject", "faithfulness")
    held = check.check("How tall is the tower of Pisa?", CONTEXTS, RIGHT)
    assert (held["outcome"], held["checks"][0]["stage"]) == ("person", "answerability")
    assert check.check("Who wrote the first program?", CONTEXTS, RIGHT)["outcome"] == "accept"


def test_a_judge_that_fails_accepts_nothing(tmp_path: Path) -> None:
    models = {"down": {"use": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0, "timeout": 1}}
    judges = {"strict": {"use": "claims", "model": "down"}}
    check = make_check(tmp_path, {"use": "faithfulness", "judge": "strict"}, models=models, judges=judges)
    held = check.check("Who wrote it?", CONTEXTS, RIGHT)
    assert held["outcome"] == "person"
    assert "could not be measured" in held["reasons"][0]


def test_the_worst_outcome_of_all_metrics_counts(tmp_path: Path) -> None:
    metrics = [{"use": "faithfulness", "judge": "overlap"}, {"use": "max_words", "value": 3, "as": "short"}]
    gates = [*GATES, {"metric": "short", "min": 1.0}]
    found = make_check(tmp_path, *metrics, gates=gates).check("Who wrote it?", CONTEXTS, RIGHT)
    assert found["outcome"] == "reject"
    assert [one["outcome"] for one in found["checks"]] == ["accept", "reject"]


def test_metrics_that_need_gold_answers_do_not_check(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metric measures an answer by its question and contexts alone"):
        make_check(tmp_path, "exact_match")
