"""Fuses several runs into one, and sorts a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from rageval_spec import _core
from rageval_spec.kernels.arguments import check_count, check_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

FusionMethod: TypeAlias = Literal["rrf", "weighted"]
Normalization: TypeAlias = Literal["min_max", "z_score", "max", "none"]


def fuse_runs(
    runs: Sequence[pl.DataFrame],
    *,
    method: FusionMethod,
    weights: Sequence[float] | None = None,
    k: float = 60,
    normalization: Normalization = "min_max",
    depth: int,
    threads: int | None = None,
) -> pl.DataFrame:
    """Fuse runs into one: `query_id, doc_id, score`, grouped by query, best first, at most `depth` rows per query.

    Queries come in the order in which they first appear, run after run. Documents are ordered as in trec_eval: scores
    as float32, descending, ties by doc_id descending, bytewise.

    ranx 0.3.21 gives the same sums, with three differences: with "min_max" it makes equal scores 0, so that a run's
    only document counts for nothing; with "z_score" it gives absent documents 0, which is the mean; and it needs every
    query in every run.

    Args:
        runs: tables with the columns `query_id, doc_id, score`, the rows of each query best first. A query can be
            absent from some runs.
        method: "rrf": the sum of `weight / (k + rank)` over the runs that have the document, with ranks from 1 in the
            order of the rows (Cormack, Clarke and Büttcher, SIGIR 2009). "weighted": the sum of
            `weight * normalised score`.
        weights: one per run, finite, not negative, not all 0; None for all 1.
        k: for "rrf": a larger k makes the first ranks more equal; finite, not negative. The paper uses 60.
        normalization: for "weighted", applied to each run and query separately. "min_max":
            (score - lowest) / (highest - lowest). "z_score": (score - mean) / standard deviation of the population.
            "max": score / highest, which must be above 0. "none": the score. A document that a run lacks gets the
            normalised lowest score with "min_max" (0) and "z_score", and 0 with the others; a query that a run lacks
            adds nothing. Equal scores of a query all become 1 with "min_max" and 0 with "z_score".
        depth: the largest number of documents per query, at least 1.
        threads: the number of threads; None for one per core. The result does not depend on it.

    Raises:
        DataError: a score is NaN or infinite, a run has a document twice for a query, or the highest score is not
            above 0 with "max"; the message names run, row, query and document.
        ValueError: there are no runs, a column is missing or null, or a setting is wrong.
    """
    import polars as pl

    if not runs:
        raise ValueError("there are no runs to fuse")
    weights = [1.0] * len(runs) if weights is None else list(weights)
    depth = check_count("depth", depth)
    return pl.DataFrame(_core.fuse_runs(list(runs), method, weights, k, normalization, depth, check_threads(threads)))


def rank_documents(run: pl.DataFrame, depth: int | None = None, *, threads: int | None = None) -> pl.DataFrame:
    """Sort a run (`query_id, doc_id, score`), and cut each query's ranking at `depth` documents (None keeps all).

    Rows can come in any order. Queries keep the order in which they first appear. Documents are ordered as in
    trec_eval: scores as float32, descending, ties by doc_id descending, bytewise. The scores themselves do not change.

    Raises:
        DataError: a score is NaN or infinite, or a query has a document twice; the message names row, query and
            document.
        ValueError: a column is missing or null, or a setting is wrong.
    """
    import polars as pl

    if depth is not None:
        check_count("depth", depth)
    return pl.DataFrame(_core.rank_documents(run, depth, check_threads(threads)))
