"""What changed in the meaning of a metric is named."""

from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.data.evaluation import UsedCalibration
from rageval_spec.history.definitions import list_changes, read_definitions
from tests.history.recorded import DESCRIBED, JUDGES, METRICS, MODELS, PROMPTS, evaluate


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
