"""Builds the samples table of an evaluation block by block, when it is read.

Until then, the only cost is that the queries, references and answers stay in memory, and of the systems that only
retrieve the first documents of each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rageval_spec.data import tables
from rageval_spec.pipeline.answers import NOT_ANSWERED

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection

_OF_ANSWERS = (*tables.ANSWERS, *tables.LATER_ANSWERS, tables.UNFINISHED)
_KNOWN = ("references", "reference_contexts", "answerable", "group", "condition")


@dataclass(frozen=True)
class SampleParts:
    """The tables from which one system's samples on one dataset are built.

    Attributes:
        queries: `query_id, text` of the queries that were asked; `text` is null if the dataset has only judgements.
        references, qrels, columns: the dataset's references, qrels and other columns of its questions, or None.
        answers: the system's answers, with the columns `tables.ANSWERS`. Of a system that only retrieves, the ids,
            scores and texts of the first documents of its run, as contexts.
        ranks: `query_id, doc_id, rank` of the judged documents that the system retrieved or was given.
        retrieves: whether the system only retrieves.
    """

    dataset: str
    system: str
    queries: pl.DataFrame
    references: pl.DataFrame | None
    qrels: pl.DataFrame | None
    columns: pl.DataFrame | None
    answers: pl.DataFrame
    ranks: pl.DataFrame | None = None
    retrieves: bool = False

    @classmethod
    def of(cls, asked: Collection, system: str, answers: pl.DataFrame) -> SampleParts:
        """The parts of the samples of a system that answers; `asked` holds the queries that it was asked.

        The corpus is not kept.
        """
        assert asked.queries is not None, "queries_to_ask refuses a collection without queries"
        kept = answers.select(name for name in _OF_ANSWERS if name in answers.columns)
        return cls(asked.name, system, asked.queries, asked.references, asked.qrels, asked.columns, kept)

    @classmethod
    def of_run(cls, judged: Collection, system: str, run: pl.DataFrame, *, with_texts: bool) -> SampleParts:
        """The parts of the samples of a system that only retrieves; `judged` holds the judged queries.

        Args:
            judged: the dataset.
            system: the system's name.
            run: its run, best first.
            with_texts: take the texts of the documents from the corpus, if the dataset has one.
        """
        import polars as pl

        ranked = run.with_columns((pl.int_range(pl.len()) + 1).over("query_id").alias("rank"))
        first = ranked.filter(pl.col("rank") <= tables.SHOWN_DOCUMENTS)
        corpus = judged.corpus if with_texts else None
        if corpus is not None:
            first = _add_texts(first, corpus)
        answers = first.group_by("query_id", maintain_order=True).agg(
            pl.col("doc_id").alias("context_ids"),
            pl.col("score").alias("scores"),
            *([] if corpus is None else [pl.col("text").alias("contexts")]),
        )
        ranks = None if judged.qrels is None else ranked.join(judged.qrels, on=["query_id", "doc_id"], how="semi")
        parts = cls(
            judged.name, system, _list_queries(judged), judged.references, judged.qrels, judged.columns, answers
        )
        return replace(
            parts, ranks=None if ranks is None else ranks.select("query_id", "doc_id", "rank"), retrieves=True
        )

    def stream(self, traits: Traits) -> Iterator[pl.DataFrame]:
        """The samples in blocks: columns `tables.SAMPLES`, one row for each query, in the order of the dataset."""
        import polars as pl

        of_slices, of_causes = traits.slices.get(self.dataset), traits.causes.get((self.dataset, self.system))
        queries = self.queries.select("query_id", question="text")
        answers = self.answers.with_columns(pl.lit(True).alias("is_answered"))
        others = (answers, self._known(), self._relevant(), self.columns, of_slices, of_causes)
        for block in tables.join_blocks(queries, *others):
            yield self._complete(block)

    def _complete(self, block: pl.DataFrame) -> pl.DataFrame:
        """A block of joined rows with all columns and their types."""
        import polars as pl

        empty = tables.empty_samples()
        unfinished = pl.col(tables.UNFINISHED) if tables.UNFINISHED in block.columns else pl.lit(False)
        absent = (pl.lit(None).alias(name) for name in empty.columns if name not in block.columns)
        block = block.with_columns(*absent, unfinished.fill_null(False).alias(tables.UNFINISHED))
        if self.retrieves:
            block = block.with_columns(pl.lit("retrieved").alias("status"), *_fill_lists("context_ids", "scores"))
        else:
            error = pl.when(pl.col("is_answered").is_null()).then(pl.lit(NOT_ANSWERED)).otherwise("error")
            failed = pl.when(tables.UNFINISHED).then(pl.lit("unfinished")).otherwise(pl.lit("failed"))
            block = block.with_columns(error.alias("error")).with_columns(
                pl.when(pl.col("error").fill_null("") == "").then("answer").alias("answer"),
                pl.when(pl.col("error").fill_null("") != "").then(failed).otherwise(_told()).alias("status"),
            )
        named = block.with_columns(pl.lit(self.dataset).alias("dataset"), pl.lit(self.system).alias("system"))
        return named.select(empty.columns).cast(empty.schema).with_columns(_fill_lists("references", "slices"))

    def _known(self) -> pl.DataFrame | None:
        if self.references is None:
            return None
        columns = [name for name in _KNOWN if name in self.references.columns]
        return self.references.select("query_id", *columns).unique("query_id", keep="last")

    def _relevant(self) -> pl.DataFrame | None:
        """The judged documents of each query, with their places among those that the system retrieved."""
        import polars as pl

        if self.qrels is None:
            return None
        judged = tables.only_queries(self.qrels, self.queries)
        ranks = _rank_contexts(self.answers) if self.ranks is None else self.ranks
        placed = judged.join(ranks, on=["query_id", "doc_id"], how="left", maintain_order="left")
        documents = pl.struct("doc_id", pl.col("relevance").cast(pl.Int64), pl.col("rank").cast(pl.Int64))
        return placed.group_by("query_id", maintain_order=True).agg(documents.alias("relevant"))


@dataclass(frozen=True)
class Traits:
    """What an evaluation found out about samples.

    Attributes:
        slices: by dataset: `query_id, slices: list[str]`, the slices of each query.
        causes: by dataset and system: `query_id, cause: str`, why a query went wrong.
    """

    slices: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    causes: Mapping[tuple[str, str], pl.DataFrame] = field(default_factory=dict)


NO_TRAITS = Traits()


def stream_samples(parts: Sequence[SampleParts], traits: Traits = NO_TRAITS) -> Iterator[pl.DataFrame]:
    """The samples of all parts in blocks, in the order given: columns `tables.SAMPLES`."""
    for part in parts:
        yield from part.stream(traits)


def _list_queries(judged: Collection) -> pl.DataFrame:
    """The judged queries in the order of the qrels, with their texts as far as the dataset has them."""
    import polars as pl

    assert judged.qrels is not None, "nothing is retrieved without judgements"
    ids = judged.qrels.select("query_id").unique(maintain_order=True)
    if judged.queries is None:
        return ids.with_columns(pl.lit(None, dtype=pl.String).alias("text"))
    texts = judged.queries.select("query_id", "text").unique("query_id", keep="first")
    return ids.join(texts, on="query_id", how="left", maintain_order="left")


def _add_texts(first: pl.DataFrame, corpus: pl.DataFrame) -> pl.DataFrame:
    """Documents with their texts; "" for one that the corpus does not have."""
    import polars as pl

    wanted = corpus.join(first.select("doc_id").unique(), on="doc_id", how="semi").unique("doc_id", keep="first")
    texts = wanted.select("doc_id", tables.document_texts(wanted).alias("text"))
    return first.join(texts, on="doc_id", how="left", maintain_order="left").with_columns(pl.col("text").fill_null(""))


def _rank_contexts(answers: pl.DataFrame) -> pl.DataFrame:
    """The first place, from 1, of each document among the contexts of an answer."""
    import polars as pl

    placed = answers.select(
        "query_id", "context_ids", pl.int_ranges(1, pl.col("context_ids").list.len() + 1).alias("rank")
    )
    rows = placed.filter(pl.col("context_ids").list.len() > 0).explode("context_ids", "rank")
    return rows.rename({"context_ids": "doc_id"}).unique(["query_id", "doc_id"], keep="first", maintain_order=True)


def _told() -> pl.Expr:
    """The status of a row without an error: a retriever that is asked as systems that answer gives no text."""
    import polars as pl

    is_retrieval = pl.col("answer").is_null() & pl.col("context_ids").is_not_null()
    return pl.when(is_retrieval).then(pl.lit("retrieved")).otherwise(pl.lit("answered"))


def _fill_lists(*names: str) -> list[pl.Expr]:
    import polars as pl

    return [pl.col(name).fill_null(pl.lit([])) for name in names]
