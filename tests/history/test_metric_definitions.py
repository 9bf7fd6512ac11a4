"""What changed in the meaning of a metric is named.

Digests tell when numbers stop being comparable, and only then.

The blocks of a recorded spec are read, with the judges and models behind each of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.evaluation import Evaluation, UsedCalibration
from rageval_spec.history.database import open_history
from rageval_spec.history.metric_definitions import (
    find_generators,
    find_kinships,
    list_changes,
    read_definitions,
    read_recorded_spec,
    take_meaning,
)
from rageval_spec.pipeline.results.provenance import describe_spec
from rageval_spec.plugin import RankingMetric
from rageval_spec.runner import Options, run
from rageval_spec.spec import load
from tests.history.recorded import DESCRIBED, JUDGES, METRICS, MODELS, PROMPTS, evaluate
from tests.sample_evaluation import alter, make_evaluation
from tests.tiny import write_spec


def find(metric: str, **now: Any) -> list[tuple[str, str]]:
    """What changed for a metric between `evaluate()` and `evaluate(**now)`."""
    definitions, earlier = read_definitions(evaluate(**now)), read_definitions(evaluate())
    assert definitions is not None
    assert earlier is not None
    return [(one.part, one.told) for one in list_changes(definitions[metric], earlier[metric])]


def test_nothing_changed() -> None:
    assert [find(metric) for metric in METRICS] == [[]] * len(METRICS)


@pytest.mark.parametrize(
    ("metric", "reads"),
    [
        ("ndcg@10", {"qrels"}),
        ("token_f1", {"references"}),
        ("context_recall", {"references"}),
        ("faithfulness", set()),
        ("latency", set()),
    ],
)
def test_what_a_metric_reads(metric: str, reads: set[str]) -> None:
    definitions = read_definitions(evaluate())
    assert definitions is not None
    assert definitions[metric].reads == reads


def test_settings_of_the_metric_are_named_with_their_values() -> None:
    other = {**METRICS, "ndcg@10": {"use": "ndcg", "cutoff": 5}}
    assert find("ndcg@10", metrics=other) == [("metric", "the metric's settings changed: cutoff 10 → 5")]
    assert find("token_f1", metrics=other) == []


def test_how_rankings_are_read_is_part_of_ranking_metrics_only() -> None:
    other = {"ranking": {"ties": "input"}}
    assert find("ndcg@10", **other) == [("metric", "the metric's settings changed: ranking.ties trec_eval → input")]
    assert find("token_f1", **other) == []
    assert find("ndcg@10", ranking={"tie_range": False}) == []


def test_a_key_at_its_default_is_the_same_as_no_key() -> None:
    written = {**METRICS, "ndcg@10": {"use": "ndcg", "cutoff": 10, "gain": "linear"}}
    assert find("ndcg@10", metrics=written) == []


def test_code_and_files_of_a_metric_are_compared_if_both_recorded_them() -> None:
    assert find("token_f1", implementations={"token_f1": "v2"}) == [("metric", "the metric's code or files changed")]
    assert find("token_f1", implementations={}) == []


def test_a_judge_is_compared_through_the_judges_that_ask_it() -> None:
    judges = {**JUDGES, "words": {"use": "overlap", "threshold": 0.5}}
    assert find("context_recall", judges=judges) == [("judge", "the judge changed: words (threshold)")]
    assert find("faithfulness", judges=judges) == []
    split = {**JUDGES, "strict": {**JUDGES["strict"], "split": "sentences"}}
    told = [("judge", "the judge changed: strict (split model → sentences)")]
    assert find("faithfulness", judges=split) == told
    assert find("context_recall", judges=split) == told


def test_another_judge_is_named_and_a_renamed_one_is_none() -> None:
    metrics = {**METRICS, "faithfulness": {"use": "faithfulness", "judge": "words"}}
    assert find("faithfulness", metrics=metrics)[0] == ("judge", "the judge changed: strict → words")
    renamed = {**METRICS, "faithfulness": {"use": "faithfulness", "judge": "tough"}}
    assert find("faithfulness", metrics=renamed, judges={**JUDGES, "tough": JUDGES["strict"]}) == []


def test_prompts_are_named_and_only_those_that_both_have_are_compared() -> None:
    told = [("prompt", "the judge's prompt changed: strict.verify")]
    edited = {**PROMPTS, "strict.verify": "zz", "strict.new": "cc"}
    assert find("faithfulness", prompts=edited) == told
    assert find("context_recall", prompts=edited) == told
    assert find("token_f1", prompts=edited) == []
    both = {"strict.verify": "yy", "strict.split": "zz"}
    assert find("faithfulness", prompts=both) == [
        ("prompt", "the judge's prompts changed: strict.verify and strict.split")
    ]
    files = {**JUDGES, "strict": {**JUDGES["strict"], "prompts": {"verify": "mine.txt"}}}
    assert find("faithfulness", judges=files, prompts=edited) == told


def test_a_model_is_compared_by_what_it_is_and_not_by_where_it_runs() -> None:
    other = {"gpt": {**DESCRIBED["gpt"], "model": "gpt-5"}}
    assert find("faithfulness", described=other) == [("model", "the model changed: gpt (model gpt-4o → gpt-5)")]
    assert find("token_f1", described=other) == []
    moved = {"gpt": {**DESCRIBED["gpt"], "url": "http://elsewhere:2/v1/chat/completions"}}
    assert find("faithfulness", described=moved) == []
    assert find("faithfulness", described={}) == []
    hotter = {"gpt": {**MODELS["gpt"], "temperature": 0.7}}
    assert find("faithfulness", models=hotter) == [("model", "the model changed: gpt (temperature 0.0 → 0.7)")]


def test_without_a_recorded_spec_nothing_is_known() -> None:
    assert read_definitions(evaluate(spec={})) is None


def test_another_calibration_of_the_judge_is_named() -> None:
    used = {"strict": UsedCalibration("d1", "probability", {"faithfulness": 60})}
    assert find("faithfulness", calibrations=used) == [("judge", "the calibration of the judge changed: strict")]
    assert find("token_f1", calibrations=used) == []
    moved = {**JUDGES, "strict": {**JUDGES["strict"], "calibration": "elsewhere.json"}}
    assert find("faithfulness", judges=moved) == []


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
    evaluation = alter(
        make_evaluation(), spec=describe_spec(spec), metrics=tuple(one.name for one in spec.metrics), models=described
    )
    digests = take_meaning(evaluation, spec)["metrics"]
    assert take_meaning(evaluation, None)["metrics"] == digests
    assert [*digests] == ["token_f1", "found", "faithfulness", "rubric"]
    assert take_meaning(alter(evaluation, spec={}), None)["metrics"] == {}


def test_metrics_have_their_names_in_tables_and_their_defaults() -> None:
    recorded = read_recorded_spec(evaluate())
    assert recorded is not None
    assert list(recorded.metrics) == list(METRICS)
    assert isinstance(recorded.metrics["ndcg@10"], RankingMetric)
    assert recorded.metrics["faithfulness"].node.judge == "strict"
    assert recorded.ranking.ties == "trec_eval"


def test_what_is_behind_a_metric_is_found_through_other_blocks() -> None:
    recorded = read_recorded_spec(evaluate())
    assert recorded is not None
    used = recorded.blocks.list_used(recorded.metrics["context_recall"].node)
    assert [(one.section, one.name) for one in used] == [
        ("judges", "fast"),
        ("judges", "words"),
        ("judges", "strict"),
        ("models", "gpt"),
    ]
    assert list(recorded.blocks.list_used(recorded.metrics["latency"].node)) == []


def test_a_block_that_cannot_be_read_is_absent() -> None:
    metrics = {"latency": {"use": "latency"}, "gone": {"use": "no_such_plugin"}, "odd": {"use": "ndcg", "cutoff": "x"}}
    recorded = read_recorded_spec(evaluate(metrics))
    assert recorded is not None
    assert list(recorded.metrics) == ["latency"]


@pytest.mark.parametrize(
    "keys",
    [
        {"value": "choice", "choices": {"good": 1, "bad": 0}},
        {"value": "yes_no"},
        {"value": "number", "scale": [1, 5]},
        {"values": {"faithfulness": [0, 1], "relevancy": [0, 1]}},
    ],
)
def test_a_block_that_was_recorded_with_keys_that_it_did_not_write_is_read(
    keys: dict[str, Any], tmp_path: Path
) -> None:
    """A prompt's `scale`, `value` and `values` exclude one another, and all are recorded."""
    judge = {"use": "prompt", "model": "gpt", "template": "{{ answer }}", **keys}
    spec = load(write_spec(tmp_path, judges={"own": judge}, models=MODELS))
    recorded = read_recorded_spec(evaluate(judges=describe_spec(spec)["judges"]))
    assert recorded is not None
    assert recorded.judges["own"].node == spec.judges["own"]


def test_an_evaluation_of_an_earlier_version_recorded_no_spec() -> None:
    assert read_recorded_spec(evaluate(spec={})) is None
    assert read_recorded_spec(replace(evaluate(), metrics=("only", "two"))) is None


def generated_by(**generators: str) -> Evaluation:
    """The evaluation of `recorded`, whose model `gpt` is called otherwise, with a generator of its systems."""
    evaluation = evaluate()
    spec = dict(evaluation.provenance.spec)
    spec["systems"] = {name: {"use": "file", "path": "x", **generators} for name in evaluation.systems}
    spec["models"] = {"gpt": {"use": "chat", "model": "gpt-4o-2024-08-06"}}
    return alter(evaluation, spec=spec)


def test_a_metric_is_related_to_the_generators_through_its_judge() -> None:
    evaluation = generated_by(generator="openai/gpt-4o")
    systems = evaluation.systems
    assert find_generators(evaluation) == dict.fromkeys(systems, "openai/gpt-4o")
    assert find_kinships(evaluation, "context_recall") == dict.fromkeys(systems, "same")
    assert find_kinships(generated_by(generator="gpt-4o-mini"), "context_recall") == dict.fromkeys(systems, "family")
    assert find_kinships(generated_by(generator="claude-3-opus"), "context_recall") == dict.fromkeys(systems)


def test_a_generator_can_be_a_model_of_the_spec() -> None:
    evaluation = generated_by(generator="gpt")
    assert {*find_generators(evaluation).values()} == {"gpt-4o-2024-08-06"}
    assert {*find_kinships(evaluation, "context_recall").values()} == {"same"}


def test_without_a_generator_or_a_model_nothing_is_known() -> None:
    assert find_kinships(generated_by(), "context_recall") == {}
    assert find_kinships(generated_by(generator="gpt-4o"), "latency") == {}
    assert find_kinships(generated_by(generator="gpt-4o"), "no such metric") == {}
    assert find_generators(alter(generated_by(generator="gpt-4o"), spec={})) == {}
