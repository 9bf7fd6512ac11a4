"""What datasets share whose node names a file for each of their parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pydantic import Field

from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.reading.layouts import (
    CORPUS,
    QRELS,
    QUERIES,
    CorpusColumns,
    QrelsColumns,
    QueryColumns,
    corpus_table,
    qrels_table,
    queries_table,
)
from rageval_spec.reading.records import Column, Records
from rageval_spec.tables import Collection

if TYPE_CHECKING:
    import polars as pl

N = TypeVar("N", bound=DatasetNode)
T = TypeVar("T", bound="TabularNode")


class FileDataset(Dataset[N]):
    """A dataset of files that its node names, some of which may be left out."""

    file_keys: ClassVar[tuple[str, ...]]
    """The node's keys that hold a path or None."""

    def inputs(self) -> Sequence[InputFile]:
        """All files that the node names."""
        named = ((key, getattr(self.node, key)) for key in self.file_keys)
        return [InputFile(self.context.resolve(name), (key,)) for key, name in named if name is not None]

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose key names a file; a part without a key of its own is in another file."""
        return frozenset(part for part in ("queries", "corpus") if getattr(self.node, part, part) is not None)

    def loader(self, name: str | None, load: Callable[[Path], pl.DataFrame]) -> Callable[[], pl.DataFrame] | None:
        """`load` for the file of that name; None where the node does not name one."""
        return None if name is None else partial(load, self.context.resolve(name))


class TabularNode(DatasetNode):
    """Relevance judgements, one a row, and where wanted queries and documents."""

    path: str = Field(description="The relevance judgements: columns `query_id`, `doc_id`, `relevance`.")
    columns: QrelsColumns = Field(default_factory=QrelsColumns, description="What the columns of `path` are called.")
    queries: str | None = Field(default=None, description="The queries: columns `query_id` and `text`.")
    query_columns: QueryColumns = Field(
        default_factory=QueryColumns, description="What the columns of `queries` are called."
    )
    corpus: str | None = Field(default=None, description="The documents: columns `doc_id`, `text` and maybe `title`.")
    corpus_columns: CorpusColumns = Field(
        default_factory=CorpusColumns, description="What the columns of `corpus` are called."
    )


class TabularDataset(FileDataset[T]):
    """A dataset of tables of one file format."""

    file_keys = ("path", "queries", "corpus")

    @abstractmethod
    def read(self, path: Path, columns: Sequence[Column]) -> Records:
        """The columns of one file."""

    def open(self) -> Collection:
        """The collection; its queries and corpus are None where the node does not name them."""
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.path, self._load_qrels),
            load_queries=self.loader(self.node.queries, self._load_queries),
            load_corpus=self.loader(self.node.corpus, self._load_corpus),
        )

    def _load_qrels(self, path: Path) -> pl.DataFrame:
        return qrels_table(self.read(path, self.node.columns.over(QRELS, "columns")))

    def _load_queries(self, path: Path) -> pl.DataFrame:
        return queries_table(self.read(path, self.node.query_columns.over(QUERIES, "query_columns")))

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return corpus_table(self.read(path, self.node.corpus_columns.over(CORPUS, "corpus_columns")))
