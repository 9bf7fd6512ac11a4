"""`dense`: exact search for the documents whose embeddings are nearest to the query's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.outcomes import Note
from rageval_spec.data.remarks import AnyNote, Remark, remark, writes_notes
from rageval_spec.data.tables import Collection, document_texts
from rageval_spec.errors import DataError, ModelWarning
from rageval_spec.libraries import np, pl
from rageval_spec.plugin import (
    EmbeddingModel,
    Embeddings,
    ModelName,
    Retrieval,
    Role,
    System,
    SystemNode,
    note_truncated,
)
from rageval_spec.wording import count_noun, format_percent

Similarity = Literal["cosine", "dot"]
_UNREAD = 0.4
"""If the vocabulary lacks words for this share of the letters, the model does not know the script."""
_NAMED_ROW = re.compile(r"row (\d+) of (queries|corpus) (.*)", re.DOTALL)


class DenseNode(SystemNode):
    """Exact nearest-neighbour search with an embedding model, over each document's title and text joined by a space."""

    model: ModelName = Field(default="minilm", description="The embedding model: a name under `models:`.")
    similarity: Literal["auto", "cosine", "dot"] = Field(
        default="auto", description="How to compare embeddings. auto: as in the model's configuration."
    )
    depth: int = Field(default=1000, ge=1, description="How many documents to retrieve for a query.")


class Dense(System[DenseNode]):
    """Ranks documents by the cosine or dot product of their embedding and the query's, in float32.

    Every document with a text is scored, so each query gets `depth` documents if the corpus has as many. Equal texts
    have equal scores. Ties are ordered as in trec_eval, by document id in descending byte order, so a lower `depth`
    gives the beginning of the same ranking, and the order of the corpus does not matter. A document without text is
    never retrieved, and a query without text gets no rows. Notes count both, and the texts that the model truncated.
    """

    is_separable = True
    known_as = (
        "embedding", "embeddings", "vector", "semantic", "bi_encoder", "knn", "faiss", "chroma", "qdrant",
        "pinecone", "weaviate",
    )  # fmt: skip
    needs = frozenset({"queries", "corpus"})

    def check(self) -> str | None:
        return self.context.explain_model(
            self.node.model, EmbeddingModel, "is not an embedding model; name one that embeds texts"
        )

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:  # noqa: ARG002
        reader = f"systems.{self.context.name}: dense"
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        table = collection.require("queries", reader)
        queries = _Texts.select("query", table["query_id"], table["text"])
        corpus = collection.require("corpus", reader).sort("doc_id", descending=True)
        documents = _Texts.select("document", corpus["doc_id"], document_texts(corpus))
        notes: tuple[AnyNote, ...] = (documents.remark_on_blank(), queries.remark_on_blank())
        if not (len(queries.ids) and len(documents.ids)):
            return Retrieval(
                pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}), notes
            )
        notes += tuple(self._remark_on_script(model, documents))
        asked, known = queries.embed(model), documents.embed(model)
        notes += (documents.remark_on_cut(known, self.node.model), queries.remark_on_cut(asked, self.node.model))
        similarity = model.similarity if self.node.similarity == "auto" else self.node.similarity
        found = self._search(queries, asked, documents, known, similarity)
        return Retrieval(_run(queries.ids, documents.ids, found), notes, asked.reused + known.reused)

    def _remark_on_script(self, model: EmbeddingModel[Any], documents: _Texts) -> Iterator[Note]:
        """Note and warn of an unknown script before embedding starts, because embedding can take an hour."""
        share = model.unread_share(documents.texts.to_list())
        if share is not None and share >= _UNREAD:
            message = (
                f"{self.node.model} has no words for {format_percent(share)} of the letters in the documents: it was "
                "not trained on their script, so rankings will be poor; name a model for their language under 'models:'"
            )
            warnings.warn(f"{self.context.name}: {message}", ModelWarning, 2)
            yield Note("unread_script", message)

    def _search(
        self, queries: _Texts, asked: Embeddings, documents: _Texts, known: Embeddings, similarity: Similarity
    ) -> kernels.Neighbours:
        try:
            return kernels.top_k(
                asked.vectors, known.vectors, self.node.depth, metric=similarity, threads=self.context.threads
            )
        except ValueError as error:
            message = str(error)
            if row := _NAMED_ROW.fullmatch(message):
                side = queries if row[2] == "queries" else documents
                message = f"the vector of {side.role} {side.ids[int(row[1])]!r} {row[3]}"
            raise DataError(f"models.{self.node.model}: {message}") from error


@dataclass(frozen=True, slots=True)
class _Texts:
    """The non-blank texts of one role, their ids, and the number of texts including blank ones."""

    role: Role
    ids: pl.Series
    texts: pl.Series
    total: int

    @classmethod
    def select(cls, role: Role, ids: pl.Series, texts: pl.Series) -> _Texts:
        written = texts.str.strip_chars() != ""
        return cls(role, ids.filter(written), texts.filter(written), len(texts))

    def embed(self, model: EmbeddingModel[Any]) -> Embeddings:
        return model.embed(self.texts.to_list(), self.role)

    def remark_on_blank(self) -> Remark:
        return self._remark(remark(_write_blank, [(self.total - len(self.texts), self.total)], *self._noun))

    def remark_on_cut(self, embeddings: Embeddings, model: str) -> Remark:
        (told,) = note_truncated(int(embeddings.truncated.sum()), len(self.texts), model, *self._noun)
        return self._remark(told)

    def _remark(self, told: Remark) -> Remark:
        """Every part of a retrieval reads all documents, so their numbers are not added up as those of queries are."""
        return replace(told, is_same=self.role == "document")

    @property
    def _noun(self) -> tuple[str, str]:
        return self.role, "queries" if self.role == "query" else "documents"


def _run(query_ids: pl.Series, doc_ids: pl.Series, found: kernels.Neighbours) -> pl.DataFrame:
    queries = np.repeat(np.arange(len(query_ids)), found.indices.shape[1])
    return pl.DataFrame(
        {
            "query_id": query_ids.gather(queries),
            "doc_id": doc_ids.gather(found.indices.ravel()),
            "score": pl.Series(found.scores.ravel()).cast(pl.Float64),
        }
    )


@writes_notes
def _write_blank(counts: Iterable[tuple[int, int]], noun: str, nouns: str) -> Iterator[Note]:
    blank, total = (sum(side) for side in zip((0, 0), *counts, strict=True))
    if blank:
        has, is_, gets = ("has", "is", "gets") if blank == 1 else ("have", "are", "get")
        fate = f"{is_} never retrieved" if noun == "document" else f"{gets} no documents"
        message = f"{blank} of {count_noun(total, noun, nouns)} {has} no text and {fate}"
        yield Note(f"{nouns}_without_text", message, count=blank)


PLUGIN = Dense
