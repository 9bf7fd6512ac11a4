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
GATES = [{"metric": "faithfulness", "min": 0.5, "target": 0.99}]


def make_check(tmp_path: Path, *metrics: Any, **others: Any) -> AnswerCheck:
    others = {"gates": GATES, **others}
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


def test_gates_decide(tmp_path: Path) -> None:
    check = make_check(tmp_path)
    accepted = check.check("Who wrote it?", CONTEXTS, RIGHT)
    assert (accepted["outcome"], accepted["checks"][0]["value"]) == ("accept", 1.0)
    rejected = check.check("Who wrote it?", CONTEXTS, WRONG)
    assert rejected["outcome"] == "reject"
    assert rejected["reasons"] == ["faithfulness: 0.027 is below the minimum 0.5"]


def test_what_misses_the_target_goes_to_a_person(tmp_path: Path) -> None:
    check = make_check(tmp_path, gates=[{"metric": "faithfulness", "min": 0.0, "target": 0.99}])
    held = check.check("Who wrote it?", CONTEXTS, f"{RIGHT} {WRONG}")
    assert held["outcome"] == "person"
    assert "is below the target 0.99" in held["reasons"][0]


@pytest.mark.parametrize("contexts", [None, []])
def test_an_answer_that_lacks_its_contexts_goes_to_a_person(tmp_path: Path, contexts: list[str] | None) -> None:
    held = make_check(tmp_path).check("Who wrote it?", contexts, RIGHT)
    assert held["outcome"] == "person"
    assert "no contexts" in held["reasons"][0]


def test_a_refusal_has_nothing_to_judge(tmp_path: Path) -> None:
    assert make_check(tmp_path).check("Who wrote it?", CONTEXTS, "I don't know.")["outcome"] == "accept"


def test_a_judge_of_stages_decides_and_names_the_stage(tmp_path: Path) -> None:
    judges = {"stages": {"use": "waterfall", "retrieval": None, "relevance": None}}
    check = make_check(tmp_path, {"use": "faithfulness", "judge": "stages"}, judges=judges, gates=[])
    assert not check.remarks
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


@pytest.mark.parametrize("answer", ["", "  \n"])
def test_an_empty_answer_goes_to_a_person(tmp_path: Path, answer: str) -> None:
    held = make_check(tmp_path).check("Who wrote it?", CONTEXTS, answer)
    assert (held["outcome"], held["reasons"]) == ("person", ["faithfulness: the answer is empty"])


def test_an_answer_without_a_value_goes_to_a_person(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def knows_nothing(answer):\n    return None\n")
    check = make_check(
        tmp_path, {"use": "python", "function": "mine:knows_nothing"}, gates=[{"metric": "knows_nothing", "min": 0.5}]
    )
    held = check.check("Who wrote it?", CONTEXTS, RIGHT)
    assert (held["outcome"], held["checks"][0]["value"]) == ("person", None)
    assert "returned None" in held["reasons"][0]


def test_a_level_of_a_scale_is_a_bound(tmp_path: Path) -> None:
    bands = {"faithfulness": {"poor": 0.0, "good": 0.8}}
    check = make_check(tmp_path, gates=[{"metric": "faithfulness", "at_least": "good"}], bands=bands)
    rejected = check.check("Who wrote it?", CONTEXTS, WRONG)
    assert rejected["reasons"] == ["faithfulness: 0.027 is below the level good, which starts at 0.8"]


def test_the_minimum_of_a_gate_with_a_baseline_is_a_bound(tmp_path: Path) -> None:
    gate = {"metric": "faithfulness", "min": 0.5, "baseline": "main", "max_drop": 0.1}
    assert make_check(tmp_path, gates=[gate]).check("Who wrote it?", CONTEXTS, WRONG)["outcome"] == "reject"


FAITHFUL = {"use": "faithfulness", "judge": "overlap"}


@pytest.mark.parametrize(
    ("metric", "gate", "why"),
    [
        ("latency@p95", {"metric": "latency@p95", "max": 5}, "is about the application, not about the answer"),
        ("cost", {"metric": "cost", "max": 1}, "is about the application, not about the answer"),
        ("error_rate", {"metric": "error_rate", "max": 0.1}, "is about the application, not about the answer"),
        ("exact_match", {"metric": "exact_match", "min": 0.5}, "needs 'reference', which a check does not have"),
        ({"use": "column", "column": "stars"}, {"metric": "stars", "min": 3}, "reads the column 'stars'"),
        (
            {"use": "contains", "column": "must"},
            {"metric": "contains(column=must)", "min": 1},
            "reads the column 'must'",
        ),
    ],
)
def test_what_a_check_can_never_measure_is_said_at_the_start(
    tmp_path: Path, metric: Any, gate: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        make_check(tmp_path, metric, gates=[gate])
    assert why in str(refused.value)
    assert "gates: [{metric: faithfulness, min: 0.5}]" in str(refused.value)
    check = make_check(tmp_path, FAITHFUL, metric, gates=[*GATES, gate])
    assert list(check.metrics) == ["faithfulness"]
    assert why in check.remarks[0]
    assert "its gate holds no answer back" in check.remarks[0]


def test_a_spec_that_can_reject_nothing_is_refused(tmp_path: Path) -> None:
    of_slice = {"metric": "faithfulness", "min": 0.5, "slice": "language=de"}
    of_change = {"metric": "faithfulness", "max_drop": 0.1, "baseline": "main"}
    for some in ([], [of_slice, of_change]):
        with pytest.raises(UsageError, match="no answer can be held back") as refused:
            make_check(tmp_path, gates=some, slices=["language"])
        assert "gates: [{metric: faithfulness, min: 0.5}]" in str(refused.value)


def test_a_waterfall_without_bounds_needs_a_gate(tmp_path: Path) -> None:
    stage = {"reject": None, "person": None}
    judges = {
        "open": {
            "use": "waterfall", "retrieval": None, "answerability": None, "relevance": None, "faithfulness": stage
        }
    }  # fmt: skip
    with pytest.raises(UsageError, match="no answer can be held back"):
        make_check(tmp_path, {"use": "faithfulness", "judge": "open"}, judges=judges, gates=[])


def test_a_metric_without_a_gate_is_named_at_the_start(tmp_path: Path) -> None:
    check = make_check(tmp_path, FAITHFUL, {"use": "max_words", "value": 3, "as": "short"})
    assert [one.partition(";")[0] for one in check.remarks] == ["short has no gate, so it holds no answer back"]


def test_a_metric_that_its_judge_cannot_measure_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot"):
        make_check(
            tmp_path, {"use": "rubric", "judge": "overlap", "name": "tone", "criteria": "Is it polite?"}, gates=[]
        )
