"""`trec`: TREC qrels, topics, or both, with or without documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rageval_spec import kernels
from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.row_dataset import NUGGETS_FILE, FileDataset
from rageval_spec.plugin import DatasetNode
from rageval_spec.reading.column_names import CORPUS, QUERIES, CorpusColumns, QueryColumns, RecordColumn
from rageval_spec.reading.formats.delimited import read_pairs
from rageval_spec.reading.formats.records import queries_table
from rageval_spec.reading.formats.text_files import format_of

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part


class TrecColumns(BaseModel):
    """The names of the keys in the JSON Lines files, by file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queries: QueryColumns = Field(default_factory=QueryColumns, description="The names of the keys in `queries`.")
    corpus: CorpusColumns = Field(default_factory=CorpusColumns, description="The names of the keys in `corpus`.")


class TrecNode(DatasetNode):
    """TREC qrels, four columns `query iteration document relevance`, or topics, or both."""

    qrels: str | None = Field(
        default=None, description="The relevance judgements; plain, `.gz` or `.zst`. Needed without `queries`."
    )
    queries: str | None = Field(
        default=None,
        description="The topics: lines of id, tab, text without a header, or a `.jsonl` file, also in the layouts of "
        "the tracks RAG, RAGTIME, NeuCLIR and DRAGUN. Plain, `.gz` or `.zst`.",
    )
    corpus: str | None = Field(default=None, description="The documents, a JSON Lines file; plain, `.gz` or `.zst`.")
    nuggets: str | None = NUGGETS_FILE
    former_columns: ClassVar[Mapping[str, str]] = {"corpus_fields": "corpus"}

    columns: TrecColumns = Field(
        default_factory=TrecColumns, description="The names of the keys in the JSON Lines files, by file."
    )

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if self.qrels is None and self.queries is None:
            raise ValueError("name the judgements in 'qrels', the topics in 'queries', or both")
        return self


class Trec(FileDataset[TrecNode]):
    """Reads TREC qrels. Queries and documents are optional: only systems that search need them."""

    known_as = ("qrels", "msmarco")

    def open(self) -> Collection:
        """The collection. Its queries and corpus are None if the node does not name them."""
        collection = Collection(
            name=self.context.name,
            load_qrels=self.loader("qrels", lambda: kernels.read_qrels(self.path_of("qrels"))),
            load_queries=self.loader("queries", self._load_queries),
            load_corpus=self.loader("corpus", self.read_corpus),
        )
        return self.add_nuggets(collection)

    def has_columns(self, key: str) -> bool:
        """Whether a file is JSON Lines."""
        return key == "corpus" or (key == "queries" and format_of(self.path_of(key)) == "jsonl")

    def columns_of(self, key: str) -> Sequence[RecordColumn]:
        known = QUERIES if key == "queries" else CORPUS
        found: Sequence[RecordColumn] = self.named(key).over(known, "columns", key)
        return found

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The documents' columns under the key that named them before."""
        queries, corpus = named.pop("queries"), named.pop("corpus")
        former = {"corpus_fields": corpus}
        return former | {"columns": {"queries": queries}} if any(queries.values()) else former

    def find_parts(self) -> frozenset[Part]:
        parts: dict[Part, str | None] = {"relevant": self.node.qrels, "nuggets": self.node.nuggets}
        return frozenset(part for part, file in parts.items() if file is not None)

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
        """The place, the id and the text of each query, or the values of its line; None without a file of queries."""
        if "queries" not in self.files:
            return None
        if self.has_columns("queries"):
            return self.source("queries").read()
        records = read_pairs(self.path_of("queries"))
        rows = records.frame.iter_rows(named=True)
        return ((records.locate(number), row) for number, row in enumerate(rows))

    def _load_queries(self) -> pl.DataFrame:
        if self.has_columns("queries"):
            return self.load("queries", queries_table)
        return queries_table(read_pairs(self.path_of("queries")))


PLUGIN = Trec
