"""Small queries as strings: each letter is a document, and `"bxa"` is a ranking, best first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from rageval_spec import kernels, registry
from rageval_spec.plugin import Context, Metric


def plugin(word: str, **keys: Any) -> Metric[Any]:
    """The metric of a YAML block `{use: word, ...}`."""
    cls = registry.load("metrics", word)
    metric: Metric[Any] = cls(cls.node_type.model_validate({"use": word, **keys}), Context(word))
    return metric


def values_of(
    measure: str, judgements: Mapping[str, Mapping[str, int]], rankings: Mapping[str, str], **settings: Any
) -> dict[str, float]:
    """A measure's value for each query."""
    judged = [(query, doc, relevance) for query, of in judgements.items() for doc, relevance in of.items()]
    retrieved = [(query, doc, -float(rank)) for query, docs in rankings.items() for rank, doc in enumerate(docs)]
    qrels = pl.DataFrame(judged, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}, orient="row")
    run = pl.DataFrame(retrieved, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    ranked = kernels.evaluate_ranking(qrels, run, [measure], kernels.RankingOptions(**{"missing": "zero", **settings}))
    return dict(zip(ranked.query_ids, ranked.values[0].tolist(), strict=True))


def value_of(measure: str, judgements: Mapping[str, int], ranking: str, **settings: Any) -> float:
    """A measure's value for one query: `value_of("ndcg@3", {"a": 2, "b": 0}, "xab")`."""
    return values_of(measure, {"q": judgements}, {"q": ranking}, **settings)["q"]


def missing_value(measure: str, judgements: Mapping[str, int]) -> float:
    """A measure's value for a query that is not in the run, with `missing="zero"`."""
    return values_of(measure, {"q": judgements, "other": {"a": 1}}, {"other": "a"})["q"]
