"""`trec`: TREC qrels, with or without queries and documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.files import FileDataset
from rageval_spec.plugin import DatasetNode
from rageval_spec.reading.files import format_of
from rageval_spec.reading.json_lines import read_json_lines
from rageval_spec.reading.layouts import CORPUS, QUERIES, CorpusColumns, corpus_table, queries_table
from rageval_spec.reading.pairs import read_pairs

if TYPE_CHECKING:
    import polars as pl


class TrecNode(DatasetNode):
    """TREC qrels: four columns, `query iteration document relevance`."""

    qrels: str = Field(description="The relevance judgements; plain, `.gz` or `.zst`.")
    queries: str | None = Field(
        default=None,
        description="The queries: a line each, id, tab, text, no header; or a `.jsonl` file. Plain, `.gz` or `.zst`.",
    )
    corpus: str | None = Field(default=None, description="The documents, a JSON Lines file; plain, `.gz` or `.zst`.")
    corpus_fields: CorpusColumns = Field(
        default_factory=CorpusColumns, description="What the keys of the documents are called."
    )


class Trec(FileDataset[TrecNode]):
    """Reads TREC files."""

    node_type = TrecNode
    file_keys = ("qrels", "queries", "corpus")

    def open(self) -> Collection:
        """The collection; its queries and corpus are None where the node does not name them."""
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.qrels, kernels.read_qrels),
            load_queries=self.loader(self.node.queries, _load_queries),
            load_corpus=self.loader(self.node.corpus, self._load_corpus),
        )

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return corpus_table(read_json_lines(path, self.node.corpus_fields.over(CORPUS, "corpus_fields")))


def _load_queries(path: Path) -> pl.DataFrame:
    return queries_table(read_json_lines(path, QUERIES) if format_of(path) == "jsonl" else read_pairs(path))


PLUGIN = Trec
