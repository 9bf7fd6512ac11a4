"""Several runs fused into one, and a run brought into order."""

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
    """Fuse runs into one: `query_id, doc_id, score`, grouped by query, best first, at most `depth` rows a query.

    Each run has these columns and a query's rows best first; a query may be absent from some runs. Queries come in the
    order in which they first appear, run after run. Documents are ordered as trec_eval orders them: scores as
    float32, descending, ties by doc_id descending bytewise.

    Args:
        method: "rrf": the sum over the runs that have the document of `weight / (k + rank)`, ranks from 1 in the order
            of the rows (Cormack, Clarke and Büttcher, SIGIR 2009). "weighted": the sum of
            `weight * normalised score`.
        weights: one per run, finite, not negative, not all 0; all 1 where None.
        k: rrf only: how much the first ranks are levelled; finite, not negative. The paper's is 60.
        normalization: weighted only, for each run and query apart. "min_max": (score - lowest) / (highest - lowest).
            "z_score": (score - mean) / standard deviation (of the population). "max": score / highest, which
            must be above 0. "none": the score. A document that a run does not have gets what a normalised lowest score
            is with "min_max" (0) and "z_score", and 0 with the others; a query that a run does not have adds nothing.
            Equal scores of a query are all 1 with "min_max" and all 0 with "z_score".
        depth: how many documents a query keeps at most, at least 1.
        threads: all cores where None. The answer does not depend on it.

    ranx 0.3.21 gives the same sums but where it makes equal scores 0 with min_max (a run's only document then counts
    for nothing), gives absent documents 0, the mean, with z_score, and needs each query in every run.

    Raises:
        DataError: a score that is NaN or infinite, a document that a run has twice for a query, a highest score not
            above 0 with "max"; with run, row, query and document.
        ValueError: no runs, a missing or null column, a wrong setting.
    """
    import polars as pl

    if not runs:
        raise ValueError("there are no runs to fuse")
    weights = [1.0] * len(runs) if weights is None else list(weights)
    depth = check_count("depth", depth)
    return pl.DataFrame(_core.fuse_runs(list(runs), method, weights, k, normalization, depth, check_threads(threads)))


def rank_documents(run: pl.DataFrame, depth: int | None = None, *, threads: int | None = None) -> pl.DataFrame:
    """Order a run, `query_id, doc_id, score`, and cut each query's ranking at `depth` documents (None: nowhere).

    Rows may come in any order. Queries keep the order in which they first appear; documents are ordered as trec_eval
    orders them: scores as float32, descending, ties by doc_id descending bytewise. Scores stay as they are.

    Raises:
        DataError: a score that is NaN or infinite, a document that a query has twice; with row, query and document.
        ValueError: a missing or null column, a wrong setting.
    """
    import polars as pl

    if depth is not None:
        check_count("depth", depth)
    return pl.DataFrame(_core.rank_documents(run, depth, check_threads(threads)))
