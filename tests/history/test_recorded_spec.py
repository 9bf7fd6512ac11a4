"""The blocks of a recorded spec are read, with the judges and models behind each of them."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.history.recorded_spec import read_recorded_spec
from rageval_spec.plugin import RankingMetric
from tests.history.recorded import METRICS, evaluate


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
    used = recorded.list_used(recorded.metrics["context_recall"].node)
    assert list(used) == [("judges", "fast"), ("judges", "words"), ("judges", "strict"), ("models", "gpt")]
    assert list(recorded.list_used(recorded.metrics["latency"].node)) == []


def test_a_block_that_cannot_be_read_is_absent() -> None:
    metrics = {"latency": {"use": "latency"}, "gone": {"use": "no_such_plugin"}, "odd": {"use": "ndcg", "cutoff": "x"}}
    recorded = read_recorded_spec(evaluate(metrics))
    assert recorded is not None
    assert list(recorded.metrics) == ["latency"]


def test_an_evaluation_of_an_earlier_version_recorded_no_spec() -> None:
    assert read_recorded_spec(evaluate(spec={})) is None
    assert read_recorded_spec(replace(evaluate(), metrics=("only", "two"))) is None
