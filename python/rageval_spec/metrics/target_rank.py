from __future__ import annotations

from collections.abc import Sequence

from rageval_spec.data.outcomes import Note
from rageval_spec.libraries import pl
from rageval_spec.metrics.shared import ranking_metrics
from rageval_spec.plugin import MetricInfo

MISSED = "missed"
"""Why a query with one target has no value; the miss share is the share of such queries among those with one target."""
NO_TARGET = "no relevant document"
SEVERAL = "several relevant documents"


class TargetRank(ranking_metrics.KernelMetric[ranking_metrics.RelevantInRanking]):
    always = ("query in the qrels but not in the run: missed, or left out, depending on `ranking.missing`",)
    info = MetricInfo(
        summary="The rank of the one document that a query looks for, over the queries whose target was retrieved.",
        formula="target_rank = 1 + documents ranked before the target; match share = targets retrieved / queries with "
        "one target, miss share = 1 - match share",
        edge_cases=(
            "target not retrieved, or below the cutoff: no value, reason 'missed'; a mean of ranks says little without "
            "the share of misses, which a note gives",
            "no relevant document, or several: no value, because the query does not have exactly one target",
            "gate: queries without a value count as not scored, so that `min_scored` bounds the misses too",
            "ties: `tie_low` is the best rank over all orders, `tie_high` the worst; null where an order misses the "
            "target",
            ranking_metrics.NEGATIVE_RELEVANCE,
        ),
        source="Known-item search: Kantor and Voorhees, The TREC-5 confusion track: comparing retrieval methods for "
        "scanned text, Information Retrieval 2(2-3), 2000",
        higher_is_better=False,
        bounds=(1.0, None),
    )

    def companions(self) -> Sequence[str]:
        """The measure that counts relevant documents at the same relevance level."""
        return ("num_rel" if self.node.rel is None else f"num_rel(rel={self.node.rel})",)

    def unscorable(self, numbers: pl.DataFrame) -> pl.Series:
        (targets,) = (pl.col(name) for name in self.companions())
        reason = (
            pl.when(targets == 0)
            .then(pl.lit(NO_TARGET))
            .when(targets > 1)
            .then(pl.lit(SEVERAL))
            .when(pl.col(self.measure()) == 0)
            .then(pl.lit(MISSED))
        )
        return numbers.select(reason.otherwise(pl.lit(None, dtype=pl.String))).to_series()

    def find_ranks(self, values: pl.DataFrame) -> pl.Series:
        known = values.filter((pl.col("status") == "scored") | (pl.col("reason") == MISSED))
        return known.get_column("value").fill_null(0).cast(pl.Int64)

    def remark_on(self, values: pl.DataFrame) -> Note:
        scored, missed = pl.col("status") == "scored", pl.col("reason") == MISSED
        one_end = pl.col("tie_low").is_not_null() & pl.col("tie_high").is_null()
        found, lost = (values.filter(rows).height for rows in (scored, missed))
        if not found + lost:
            return Note("target_missed", "no query has exactly one relevant document", count=0)
        match = found / (found + lost)
        message = (
            f"the target was retrieved for {found} of {found + lost} queries with one target "
            f"(match share {match:.3f}, miss share {1 - match:.3f})"
        )
        decided = values.filter((scored | missed) & one_end).height
        if decided:
            message += f"; the order of tied documents decides this for {decided}"
        return Note("target_missed", message, count=lost)


PLUGIN = TargetRank
