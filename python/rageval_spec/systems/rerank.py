"""`rerank`: reorders another system's best documents with a cross-encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note, add_counts, remark, writes_notes
from rageval_spec.data.tables import Collection, CorpusSize, document_texts
from rageval_spec.errors import DataError, UsageError
from rageval_spec.libraries import np, pl
from rageval_spec.plugin import (
    ModelName,
    PairModel,
    PairScores,
    Retrieval,
    System,
    SystemName,
    SystemNode,
    note_truncated,
)
from rageval_spec.plugin.system import Amount
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RerankNode(SystemNode):
    """Reorders the best documents of another system with a cross-encoder, which reads query and document together."""

    system: SystemName = Field(description="The system whose documents to rerank: a name under `systems:`.")
    model: ModelName = Field(description="The cross-encoder, a model with one label: a name under `models:`.")
    top: int = Field(default=100, ge=1, description="How many of the system's documents to rerank for a query.")
    keep_rest: bool = Field(
        default=False,
        description="Whether to keep the documents below `top`, in their old order. Otherwise they are dropped.",
    )


class Rerank(System[RerankNode]):
    """Scores pairs of a query and a document's title and text, joined by a space, with the model's only logit.

    The `top` documents are the first in trec_eval's order. The result has the same order: by score descending, ties
    by document id in descending byte order. With `keep_rest`, each document below them gets the next lower float32
    number, so that every reader of the run keeps the old order. Empty texts are scored too.
    """

    is_separable = True
    known_as = ("cross_encoder", "reranker", "reranking")
    needs = frozenset({"queries", "corpus"})

    def check(self) -> str | None:
        return self.context.explain_model(
            self.node.model, PairModel, "is not a cross-encoder; name a model that reads pairs of texts"
        )

    def estimate_needs(self, corpus: CorpusSize) -> tuple[Amount, Amount, str]:
        """The texts of the documents that are reranked: none to all of the corpus, which is read in batches."""
        return Amount(0, corpus.content), Amount(), ""

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:
        model = self._model()
        run = self._rank(runs[self.node.system])
        is_read = pl.int_range(pl.len()).over("query_id") < self.node.top
        top = run.filter(is_read)
        if top.is_empty():
            return Retrieval(top)
        pairs = self._pairs(collection, top)
        answer = model.score(pairs)
        reranked = top.with_columns(score=self._scores(answer, top))
        if self.node.keep_rest:
            reranked = pl.concat([reranked, _lower(run.filter(~is_read), reranked)])
        cut = note_truncated(int(answer.truncated.sum()), len(pairs), self.node.model, "pair")
        blank = sum(not (query.strip() and document) for query, document in pairs)
        notes = (remark(_write_blank, [(blank, len(pairs))]), *cut)
        return Retrieval(kernels.rank_documents(reranked, threads=self.context.threads), notes, answer.reused)

    def _model(self) -> PairModel[Any]:
        model = self.context.model(self.node.model, PairModel)  # type: ignore[type-abstract]
        if len(model.labels) != 1:
            where, labels = f"systems.{self.context.name}.model", ", ".join(model.labels) or "none"
            raise UsageError(f"{where}: a reranker has one label, but the model '{self.node.model}' has {labels}")
        return model

    def _rank(self, run: pl.DataFrame) -> pl.DataFrame:
        try:
            return kernels.rank_documents(run, threads=self.context.threads)
        except DataError as error:
            raise DataError(f"the {error}".replace("run", f"run of '{self.node.system}'", 1)) from error

    def _pairs(self, collection: Collection, top: pl.DataFrame) -> list[tuple[str, str]]:
        """The query and document of each row. A repeated text is one string in memory."""
        reader = f"systems.{self.context.name}: rerank"
        asked = collection.require("queries", reader)
        corpus = collection.find_documents(top["doc_id"], reader)
        queries = dict(zip(asked["query_id"], asked["text"], strict=True))
        documents = dict(zip(corpus["doc_id"], document_texts(corpus), strict=True))
        pairs = []
        for query_id, doc_id in zip(top["query_id"], top["doc_id"], strict=True):
            if query_id not in queries or doc_id not in documents:
                document = f"the document {doc_id!r} for query {query_id!r}, which is not in the corpus"
                query = f"the query {query_id!r}, which is not in the queries"
                has = f"the run of '{self.node.system}' has {document if query_id in queries else query}"
                where = f"systems.{self.context.name}"
                raise DataError(f"{where}: {has} of '{collection.name}'; was it made on other data?")
            pairs.append((queries[query_id], documents[doc_id]))
        return pairs

    def _scores(self, answer: PairScores, top: pl.DataFrame) -> pl.Series:
        scores = answer.logits[:, 0]
        finite = np.isfinite(scores)
        if not finite.all():
            row = int(np.argmin(finite))
            query_id, doc_id, _ = top.row(row)
            pair = f"the query {query_id!r} and the document {doc_id!r}"
            raise DataError(f"models.{self.node.model}: gives {pair} the score {scores[row]}; it must be finite")
        return pl.Series(scores).cast(pl.Float64)


@writes_notes
def _write_blank(counts: Iterable[tuple[int, int]]) -> Iterator[Note]:
    blank, total = add_counts(counts)
    if blank:
        has, was = ("has", "was") if blank == 1 else ("have", "were")
        message = f"{blank} of {count_noun(total, 'pair')} {has} a query or document without text and {was} scored so"
        yield Note("pairs_without_text", message, count=blank)


def _lower(rest: pl.DataFrame, reranked: pl.DataFrame) -> pl.DataFrame:
    """`rest` with new scores: in each query, descending float32 numbers directly below the query's lowest score."""
    lowest = reranked.group_by("query_id").agg(lowest=pl.col("score").min())
    found = rest.join(lowest, on="query_id", how="left", maintain_order="left")
    steps = found.select(pl.int_range(1, pl.len() + 1).over("query_id")).to_series().to_numpy()
    scores = _step_down(found["lowest"].cast(pl.Float32).to_numpy(), steps)
    return rest.with_columns(score=pl.Series(scores).cast(pl.Float64))


def _step_down(values: NDArray[np.float32], steps: NDArray[np.int64]) -> NDArray[np.float32]:
    """The float32 numbers that are `steps` representable numbers below `values`.

    The bits of a number that is not negative, read as an integer, count the numbers between 0 and it.
    """
    bits = values.view(np.int32).astype(np.int64)
    place = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) - steps
    return np.where(place < 0, -place | 0x80000000, place).astype(np.uint32).view(np.float32)


PLUGIN = Rerank
