"""The evaluation code of BEIR and MTEB, with our drop-in in the place of pytrec_eval.

Both packages depend on torch, so they are optional; these tests run only if they are installed.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from rageval_spec import evaluate
from rageval_spec.compat import pytrec_eval as drop_in

CUTOFFS = [1, 3, 5, 10, 100]


def import_or_skip(module: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module(module)
        except ImportError as error:
            return pytest.skip(f"needs {module.partition('.')[0]}, which is not installed: {error}")


@pytest.fixture
def collection() -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Data with ties, documents that are queries, and queries for which no relevant document was retrieved."""
    generator = np.random.default_rng(11)
    ids = [f"d{number}" for number in range(400)]
    qrels, run = {}, {}
    for query in [f"d{number}" for number in range(60)]:
        judged = generator.permutation(ids)[:30].tolist()
        qrels[query] = {**dict(zip(judged, generator.integers(0, 3, 30).tolist(), strict=True)), "only": 1}
        retrieved = generator.permutation(ids)[:120].tolist()
        run[query] = dict(zip(retrieved, (generator.integers(0, 400, 120) / 8).tolist(), strict=True))
    return qrels, run


def test_beir_gives_the_same_numbers(collection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = import_or_skip("beir.retrieval.evaluation")
    beir = evaluation.EvaluateRetrieval
    qrels, run = collection
    for ignore_identical_ids in (False, True):
        copies = [{query: dict(docs) for query, docs in run.items()} for _ in range(2)]
        expected = beir.evaluate(qrels, copies[0], CUTOFFS, ignore_identical_ids)
        with monkeypatch.context() as patch:
            patch.setattr(evaluation, "pytrec_eval", drop_in)
            assert beir.evaluate(qrels, copies[1], CUTOFFS, ignore_identical_ids) == expected


@pytest.mark.parametrize(
    ("metric", "theirs", "ours"),
    [("mrr", "MRR", "rr"), ("recall_cap", "R_cap", "capped_recall"), ("accuracy", "Accuracy", "success")],
)
def test_beirs_own_metrics_are_measures_here(collection: Any, metric: str, theirs: str, ours: str) -> None:
    """For these, BEIR orders ties as the run does, keeps self-retrieval, and rounds to five digits."""
    beir = import_or_skip("beir.retrieval.evaluation").EvaluateRetrieval
    qrels, run = collection
    expected = beir.evaluate_custom(qrels, run, CUTOFFS, metric)
    results = evaluate(qrels, run, [f"{ours}@{k}" for k in CUTOFFS], profile="input", missing="zero")
    assert {f"{theirs}@{k}": round(results[f"{ours}@{k}"], 5) for k in CUTOFFS} == expected


def test_the_profile_beir_gives_beirs_numbers(collection: Any) -> None:
    beir = import_or_skip("beir.retrieval.evaluation").EvaluateRetrieval
    qrels, run = collection
    tables = beir.evaluate(qrels, {query: dict(docs) for query, docs in run.items()}, CUTOFFS)
    expected = {name: value for table in tables for name, value in table.items()}
    results = evaluate(qrels, run, expected, profile="beir")
    assert {name: round(mean, 5) for name, mean in results.means.items()} == expected


def test_mteb_gives_the_same_numbers(collection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = import_or_skip("mteb._evaluators.retrieval_metrics")
    qrels, run = collection
    expected = metrics.calculate_retrieval_scores(run, qrels, CUTOFFS)
    monkeypatch.setattr(metrics, "pytrec_eval", drop_in)
    assert metrics.calculate_retrieval_scores(run, qrels, CUTOFFS) == expected
