"""Evaluations that recorded their spec, for tests of what changed between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from rageval_spec.data.datasets import Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Evaluation
from tests.sample_evaluation import alter, make_evaluation

METRICS: Mapping[str, Mapping[str, Any]] = {
    "ndcg@10": {"use": "ndcg", "cutoff": 10},
    "token_f1": {"use": "token_f1"},
    "latency": {"use": "latency"},
    "faithfulness": {"use": "faithfulness", "judge": "strict"},
    "context_recall": {"use": "context_recall", "judge": "fast"},
}
JUDGES: dict[str, dict[str, Any]] = {
    "strict": {"use": "claims", "model": "gpt"},
    "fast": {"use": "cascade", "steps": ["words", "strict"]},
    "words": {"use": "overlap"},
}
MODELS: dict[str, dict[str, Any]] = {"gpt": {"use": "chat", "base_url": "http://localhost:1/v1", "model": "gpt-4o"}}
DESCRIBED: dict[str, dict[str, str]] = {
    "gpt": {"use": "chat", "model": "gpt-4o", "url": "http://localhost:1/v1/chat/completions"}
}
PROMPTS: dict[str, str] = {"strict.verify": "aa", "strict.split": "bb"}
PRINTS = {f"q{number}": Fingerprint("1", "2", "3") for number in range(4)}


def evaluate(
    metrics: Mapping[str, Mapping[str, Any]] = METRICS,
    *,
    judges: Mapping[str, Any] = JUDGES,
    models: Mapping[str, Any] = MODELS,
    described: Mapping[str, Any] = DESCRIBED,
    ranking: Mapping[str, Any] | None = None,
    prints: Mapping[str, Fingerprint] = PRINTS,
    query_ids: Sequence[str] = (*PRINTS,),
    **changes: Any,
) -> Evaluation:
    """An evaluation of these metrics with everything recorded that gives their numbers a meaning."""
    spec = {"metrics": [*metrics.values()], "judges": judges, "models": models, "ranking": ranking or {}}
    settled: dict[str, Any] = {
        "metrics": tuple(metrics),
        "spec": spec,
        "models": described,
        "prompts": PROMPTS,
        "implementations": dict.fromkeys(metrics, "v1"),
        "digests": {"golden": {"corpus": "c1", "nuggets": "n1"}},
        "values": pl.DataFrame({"dataset": "golden", "query_id": query_ids}),
        "load_fingerprints": lambda: Fingerprints({"golden": prints}),
    }
    return alter(make_evaluation(), **(settled | changes))
