"""`dense`: exact search for the documents whose embeddings are nearest to the query's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from pydantic import Field, model_validator

from rageval_spec import kernels
from rageval_spec.data.outcomes import AnyNote, Note, Remark, add_counts, remark, writes_notes
from rageval_spec.data.tables import Collection, CorpusSize, document_texts
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import DataError, ModelWarning
from rageval_spec.libraries import compile_later, np, pl
from rageval_spec.plugin import (
    Context,
    EmbeddingModel,
    Embeddings,
    ModelName,
    Retrieval,
    Role,
    System,
    SystemNode,
    note_truncated,
)
from rageval_spec.plugin.system import Amount
from rageval_spec.store.vectors import UnusableVectorError, VectorFile, VectorForm
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

Similarity = Literal["cosine", "dot"]
_UNREAD = 0.4
"""If the vocabulary lacks words for this share of the letters, the model does not know the script."""
_NAMED_ROW = compile_later(r"row (\d+) of (queries|corpus) (.*)", re.DOTALL)
_SIGNS = "signs"
"""The column of a part's run with the scores of signs."""
_CANDIDATES = 4
"""How many times `depth` documents the binary scores select, unless the spec says how many."""


class DenseNode(SystemNode):
    """Exact nearest-neighbour search with an embedding model, over each document's title and text joined by a space."""

    model: ModelName = Field(
        default="minilm",
        description="The embedding model: a name under `models:`. If it is left out, minilm, or multilingual for "
        "documents whose words minilm does not know.",
    )
    similarity: Literal["auto", "cosine", "dot"] = Field(
        default="auto", description="How to compare embeddings. auto: as in the model's configuration."
    )
    depth: int = Field(default=1000, ge=1, description="How many documents to retrieve for a query.")
    vectors: VectorForm = Field(
        default="float32",
        description="How the documents' embeddings are kept: float32, float16 (half the size), int8 (a quarter, with a "
        "scale for each) or binary (int8 with a sign for each value, by which documents are selected first).",
    )
    candidates: int | None = Field(
        default=None,
        ge=1,
        description="With `vectors: binary`, how many documents the signs select for a query before int8 ranks them, "
        "at least `depth`; by default four times `depth`.",
    )

    @model_validator(mode="after")
    def _check_candidates(self) -> DenseNode:
        if self.candidates is not None and self.vectors != "binary":
            raise ValueError("'candidates' are for 'vectors: binary'; remove it, or write 'vectors: binary'")
        if self.candidates is not None and self.candidates < self.depth:
            raise ValueError(
                f"'candidates: {self.candidates}' is less than 'depth: {self.depth}'; raise it to at least that"
            )
        return self


class Dense(System[DenseNode]):
    """Ranks documents by the cosine or dot product of their embedding and the query's, in float32.

    Every document with a text is scored, so each query gets `depth` documents if the corpus has as many. Equal texts
    have equal scores. Ties are ordered as in trec_eval, by document id in descending byte order, so a lower `depth`
    gives the beginning of the same ranking, and the order of the corpus does not matter. A document without text is
    never retrieved, and a query without text gets no rows. Notes count both, and the texts that the model truncated.

    Documents are read in batches. Their embeddings go into a file of the store and are searched there, so neither all
    texts nor all embeddings are in memory. With `vectors: binary`, signs select `candidates` documents, and their int8
    embeddings rank them; with the others, scores of all documents in that form are exact.
    """

    is_separable = True
    known_as = (
        "embedding", "embeddings", "vector", "semantic", "bi_encoder", "knn", "faiss", "chroma", "qdrant",
        "pinecone", "weaviate",
    )  # fmt: skip
    needs = frozenset({"queries", "corpus"})
    later_keys = frozenset({"vectors", "candidates"})

    def check(self) -> str | None:
        return self.context.explain_model(
            self.node.model, EmbeddingModel, "is not an embedding model; name one that embeds texts"
        )

    def estimate_needs(self, corpus: CorpusSize) -> tuple[Amount, Amount, str]:
        """Ids and a batch in memory, and a vector of 384 values on disk, as minilm's; equal texts share one."""
        width = {"float16": 2, "int8": 1, "binary": 1.125}.get(getattr(self.node, "vectors", "float32"), 4)
        memory = Amount(20 * corpus.documents, 60 * corpus.documents + 250 * 10**6)
        disk = Amount(int(corpus.documents * 32 * width), int(corpus.documents * (384 * width + 32)) + 100_000)
        return memory, disk, "write 'vectors: int8'" if width > 2 else ""

    @property
    def search_width(self) -> int:
        return self._candidates if self.node.vectors == "binary" else self.node.depth

    @property
    def _candidates(self) -> int:
        return self.node.candidates or _CANDIDATES * self.node.depth

    def embed_part(self, collection: Collection, place: int, count: int) -> None:
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        for batch in collection.stream_corpus(f"systems.{self.context.name}: dense"):
            documents = _Texts.select("document", batch["doc_id"], document_texts(batch))
            model.embed(documents.take_part(place, count).texts.to_list(), "document")

    def search_part(self, collection: Collection, place: int, count: int) -> Retrieval:
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        with model.lock:  # the file grows while another part is embedded
            return self._retrieve(collection, place, count)

    def join_parts(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The best of all parts. Signs select `candidates` documents of all parts first."""
        table = pl.concat(parts, how="diagonal_relaxed")
        if _SIGNS in table.columns:
            table = _take_best(table, _SIGNS, self._candidates).drop(_SIGNS)
        return _take_best(table, "score", self.node.depth)

    def retrieve(self, collection: Collection, runs: Mapping[str, pl.DataFrame]) -> Retrieval:  # noqa: ARG002
        return self._retrieve(collection)

    def _retrieve(self, collection: Collection, place: int = 0, count: int = 1) -> Retrieval:
        reader = f"systems.{self.context.name}: dense"
        model = self.context.model(self.node.model, EmbeddingModel)  # type: ignore[type-abstract]
        table = collection.require("queries", reader)
        queries = _Texts.select("query", table["query_id"], table["text"])
        batches = (
            _Texts.select("document", batch["doc_id"], document_texts(batch))
            for batch in collection.stream_corpus(reader)
        )
        file = self.context.answers.open_vectors(model.key, self.node.vectors)
        documents, asked = _Documents(), None
        on_script: tuple[Note, ...] = ()
        for batch in batches:
            if asked is None and len(queries.ids) and len(batch.ids):
                on_script = tuple(self._remark_on_script(model, batch)) if place == 0 else ()
                asked = self._embed(model, queries)
            part = batch.take_part(place, count)
            has_vectors = asked is not None and len(part.ids)
            documents.add(part, self._embed(model, part, file, is_part=count > 1) if has_vectors else None)
        of_documents, of_queries = (_keep, _make_same) if count > 1 else (_make_same, _keep)
        notes: tuple[AnyNote, ...] = (
            of_documents(_remark_on_blank("document", documents.blank, documents.total)),
            of_queries(queries.remark_on_blank()),
            *on_script,
        )
        if asked is None or not documents.has_vectors:
            return Retrieval(
                pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}), notes
            )
        file.seal()
        cut, of = documents.cut, documents.total - documents.blank
        notes += (
            *map(of_documents, note_truncated(cut, of, self.node.model, *_NOUNS["document"])),
            *map(
                of_queries,
                note_truncated(int(asked.truncated.sum()), len(queries.ids), self.node.model, *_NOUNS["query"]),
            ),
        )
        similarity = model.similarity if self.node.similarity == "auto" else self.node.similarity
        ranked = documents.rank(len(file))
        with self._named_vectors(queries.ids, ranked.ids):
            search = _Search(asked.vectors, ranked, file, self.node, similarity, self.context)
            if self.node.vectors == "binary":
                selected = search.scan(self._candidates, "binary")
                found = search.rescore(selected.indices, self.node.depth if count == 1 else self._candidates)
            else:
                found = search.scan(self.node.depth, self.node.vectors)
        run = _run(queries.ids, ranked.ids, found)
        if count > 1 and self.node.vectors == "binary":
            signs = _run(queries.ids, ranked.ids, selected).rename({"score": _SIGNS})
            run = run.join(signs, on=["query_id", "doc_id"])
        return Retrieval(run, notes, asked.reused + documents.reused)

    def _embed(
        self, model: EmbeddingModel[Any], texts: _Texts, file: VectorFile | None = None, *, is_part: bool = False
    ) -> Embeddings:
        """Vectors of texts, or with a file their rows in it; the file of a part ends with its process."""
        from rageval_spec.inference.stored_outputs import embed_into

        if file is None:
            return model.embed(texts.texts.to_list(), texts.role)
        try:
            return embed_into(model, texts.texts.to_list(), texts.role, file, keeps_answers=is_part)
        except UnusableVectorError as error:
            name = f"the vector of {texts.role} {texts.ids[error.row]!r}"
            raise DataError(f"models.{self.node.model}: {name} {error.complaint}") from error

    def _remark_on_script(self, model: EmbeddingModel[Any], documents: _Texts) -> Iterator[Note]:
        """Note and warn of an unknown script before embedding starts, because embedding can take an hour.

        The first batch of documents shows it.
        """
        share = model.unread_share(documents.texts.to_list())
        if share is not None and share >= _UNREAD:
            message = (
                f"{self.node.model} has no words for {format_percent(share)} of the letters in the documents: it was "
                "not trained on their script, so rankings will be poor; name a model for their language under 'models:'"
            )
            warnings.warn(f"{self.context.name}: {message}", ModelWarning, 2)
            yield Note("unread_script", message)

    @contextmanager
    def _named_vectors(self, query_ids: pl.Series, doc_ids: pl.Series) -> Iterator[None]:
        """Turn a kernel's complaint about a row into one about a query or a document, whose number is its rank."""
        try:
            yield
        except ValueError as error:
            message = str(error)
            if row := _NAMED_ROW.fullmatch(message):
                role, ids = ("query", query_ids) if row[2] == "queries" else ("document", doc_ids)
                message = f"the vector of {role} {ids[int(row[1])]!r} {row[3]}"
            raise DataError(f"models.{self.node.model}: {message}") from error


_NOUNS: Mapping[Role, tuple[str, str]] = {"query": ("query", "queries"), "document": ("document", "documents")}


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

    def take_part(self, place: int, count: int) -> _Texts:
        """The texts of one of `count` parts, with equal texts in the same one; the first part counts blank ones."""
        if count == 1:
            return self
        dealt = pl.Series([crc32(text.encode()) % count == place for text in self.texts], dtype=pl.Boolean)
        texts = self.texts.filter(dealt)
        blank = self.total - len(self.texts) if place == 0 else 0
        return _Texts(self.role, self.ids.filter(dealt), texts, len(texts) + blank)

    def remark_on_blank(self) -> Remark:
        return _remark_on_blank(self.role, self.total - len(self.texts), self.total)


def _remark_on_blank(role: Role, blank: int, total: int) -> Remark:
    return remark(_write_blank, [(blank, total)], *_NOUNS[role])


def _keep(told: Remark) -> Remark:
    """Numbers that each part of a retrieval has of its own are added up."""
    return told


def _make_same(told: Remark) -> Remark:
    """Parts of the questions read all documents, and parts of the documents all queries: their numbers are the same."""
    return replace(told, is_same=True)


class _Documents:
    """What is kept of the documents that were read: ids, rows of vectors, and counts."""

    def __init__(self) -> None:
        self.total = self.blank = self.cut = self.reused = 0
        self._ids: list[pl.Series] = []
        self._rows: list[NDArray[np.uint32]] = []

    @property
    def has_vectors(self) -> bool:
        return bool(self._ids)

    def add(self, batch: _Texts, embedded: Embeddings | None) -> None:
        self.total += batch.total
        self.blank += batch.total - len(batch.ids)
        if embedded is not None:
            assert embedded.rows is not None  # `embed_into` gives them
            self.cut += int(embedded.truncated.sum())
            self.reused += embedded.reused
            self._ids.append(batch.ids)
            self._rows.append(embedded.rows.astype(np.uint32))

    def rank(self, rows: int) -> _Ranked:
        """The documents as ties order them; the file has so many rows."""
        ids = pl.concat(self._ids, rechunk=True)
        order = ids.arg_sort(descending=True)
        of_rank = np.concatenate(self._rows)[order.to_numpy()]
        ranks = np.full(rows, kernels.UNRANKED, np.uint32)
        ranks[of_rank[::-1]] = np.arange(len(of_rank), dtype=np.uint32)[
            ::-1
        ]  # the lowest rank of a row is written last
        following = None
        if np.count_nonzero(ranks != kernels.UNRANKED) < len(of_rank):
            by_row = np.argsort(of_rank, kind="stable")
            repeats = of_rank[by_row[1:]] == of_rank[by_row[:-1]]
            following = np.full(len(of_rank), kernels.UNRANKED, np.uint32)
            following[by_row[:-1][repeats]] = by_row[1:][repeats]
        return _Ranked(ids.gather(order), of_rank, ranks, following)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Documents in descending order of their ids: a document's rank is its number.

    Attributes:
        rows: the row of each document's vector.
        ranks: the lowest rank that each row has, or `UNRANKED`.
        following: the next rank that shares a row, or `UNRANKED`; None if no text occurs twice.
    """

    ids: pl.Series
    rows: NDArray[np.uint32]
    ranks: NDArray[np.uint32]
    following: NDArray[np.uint32] | None


@dataclass(frozen=True, slots=True)
class _Search:
    """One search through a file of vectors."""

    queries: NDArray[np.float32]
    documents: _Ranked
    file: VectorFile
    node: DenseNode
    similarity: Similarity
    context: Context

    def scan(self, depth: int, form: VectorForm) -> kernels.Neighbours:
        """The nearest documents among all, block by block, so that progress shows and Ctrl-C ends it."""
        search = self._begin(self.queries, depth, form)
        for start, values, scales, signs in self.file.blocks():
            ranks = self.documents.ranks[start : start + len(values)]
            if (ranks != kernels.UNRANKED).any():
                with _ranks_in_errors(ranks):
                    if signs is not None and form == "binary":
                        search.scan(signs, None, ranks)
                    else:
                        search.scan(values, scales, ranks)
            self.context.progress(start + len(values), len(self.file), "vectors")
        return search.finish(self.documents.following)

    def rescore(self, selected: NDArray[np.int64], depth: int) -> kernels.Neighbours:
        """Each query's nearest documents among those that were selected for it."""
        found = []
        for number, ranks in enumerate(selected):
            values, scales = self.file.take(self.documents.rows[ranks].astype(np.int64))
            with _ranks_in_errors(ranks := ranks.astype(np.uint32)):
                search = self._begin(self.queries[number : number + 1], depth, "int8")
                search.scan(values, scales, ranks)
            found.append(search.finish())
            self.context.progress(number + 1, len(selected), "queries")
        return kernels.Neighbours(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _begin(self, queries: NDArray[np.float32], depth: int, form: VectorForm) -> kernels.NearestSearch:
        if queries.shape[1] != self.file.dimension:
            raise ValueError(
                f"vectors of queries have {queries.shape[1]} dimensions, those of corpus have {self.file.dimension}; "
                "use the same model for both"
            )
        return kernels.NearestSearch(queries, depth, form, metric=self.similarity, threads=self.context.threads)


@contextmanager
def _ranks_in_errors(ranks: NDArray[np.uint32]) -> Iterator[None]:
    """Name a document by its rank where a kernel's complaint names a row of a block."""
    try:
        yield
    except ValueError as error:
        if (row := _NAMED_ROW.fullmatch(str(error))) is None or row[2] == "queries":
            raise
        raise ValueError(f"row {ranks[int(row[1])]} of corpus {row[3]}") from error


def _take_best(table: pl.DataFrame, score: str, depth: int) -> pl.DataFrame:
    """The `depth` best documents of each query; of equal scores, that of the higher id is better."""
    best = table.sort(score, "doc_id", descending=True)
    return best.filter(pl.int_range(pl.len()).over("query_id") < depth)


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
    blank, total = add_counts(counts)
    if blank:
        has, is_, gets = ("has", "is", "gets") if blank == 1 else ("have", "are", "get")
        fate = f"{is_} never retrieved" if noun == "document" else f"{gets} no documents"
        message = f"{blank} of {count_noun(total, noun, nouns)} {has} no text and {fate}"
        yield Note(f"{nouns}_without_text", message, count=blank)


PLUGIN = Dense
