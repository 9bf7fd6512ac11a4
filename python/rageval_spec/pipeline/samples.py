"""Builds the samples table of an evaluation when it is first read, from tables that exist anyway.

Until then, the only cost is that the queries, references and answers stay in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rageval_spec.data import tables
from rageval_spec.pipeline.answers import NOT_ANSWERED

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection

_KNOWN = ("references", "reference_contexts", "answerable", "group", "condition")


@dataclass(frozen=True)
class SampleParts:
    """The tables from which one system's samples on one dataset are built.

    Attributes:
        queries: `query_id, text` of the queries that were asked.
        references, qrels: the dataset's references and qrels, or None.
        answers: the system's answers, with the columns `tables.ANSWERS` except `scores`.
    """

    dataset: str
    system: str
    queries: pl.DataFrame
    references: pl.DataFrame | None
    qrels: pl.DataFrame | None
    answers: pl.DataFrame

    @classmethod
    def of(cls, asked: Collection, system: str, answers: pl.DataFrame) -> SampleParts:
        """The parts of a system's samples; `asked` holds the queries that it was asked. The corpus is not kept."""
        assert asked.queries is not None, "queries_to_ask refuses a collection without queries"
        kept = answers.select(column for column in tables.ANSWERS if column != "scores")
        return cls(asked.name, system, asked.queries, asked.references, asked.qrels, kept)

    def tabulate(self) -> pl.DataFrame:
        """The samples: columns `tables.SAMPLES`, one row for each query, in the order of the dataset."""
        import polars as pl

        empty = tables.empty_samples()
        answers = self.answers.with_columns(pl.lit(True).alias("is_answered"))
        table = self.queries.select("query_id", question="text")
        for other in (answers, self._known(), self._relevant()):
            if other is not None:
                table = table.join(other, on="query_id", how="left", maintain_order="left")
        error = pl.when(pl.col("is_answered").is_null()).then(pl.lit(NOT_ANSWERED)).otherwise("error").alias("error")
        absent = (pl.lit(None).alias(name) for name in empty.columns if name not in (*table.columns, "error"))
        table = table.with_columns(error, *absent).with_columns(
            pl.lit(self.dataset).alias("dataset"),
            pl.lit(self.system).alias("system"),
            pl.when(pl.col("error").fill_null("") == "").then("answer").alias("answer"),
        )
        typed = table.select(empty.columns).cast(empty.schema)
        return typed.with_columns(pl.col("references").fill_null(pl.lit([], dtype=pl.List(pl.String))))

    def _known(self) -> pl.DataFrame | None:
        if self.references is None:
            return None
        columns = [name for name in _KNOWN if name in self.references.columns]
        return self.references.select("query_id", *columns).unique("query_id", keep="last")

    def _relevant(self) -> pl.DataFrame | None:
        import polars as pl

        if self.qrels is None:
            return None
        judged = tables.only_queries(self.qrels, self.queries)
        documents = pl.struct("doc_id", pl.col("relevance").cast(pl.Int64)).alias("relevant")
        return judged.group_by("query_id", maintain_order=True).agg(documents)


def tabulate_samples(parts: Sequence[SampleParts]) -> pl.DataFrame:
    """One table of all samples, in the order given. It has all columns even if there are no rows."""
    import polars as pl

    return pl.concat([tables.empty_samples(), *(part.tabulate() for part in parts)])
