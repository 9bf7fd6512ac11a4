"""What datasets share whose node names a file for each of their parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError
from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.reading.column_names import find_absent, list_columns
from rageval_spec.reading.layouts import (
    CORPUS,
    QRELS,
    QUERIES,
    CorpusColumns,
    QrelsColumns,
    corpus_table,
    qrels_table,
    queries_table,
)
from rageval_spec.reading.questions import (
    QUESTION_IDS,
    QUESTIONS,
    QuestionColumns,
    QuestionRow,
    references_table,
)
from rageval_spec.reading.records import Column, Records

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.diagnostics import FileFault

N = TypeVar("N", bound=DatasetNode)
T = TypeVar("T", bound="TabularNode")


class FileDataset(Dataset[N]):
    """A dataset of files that its node names, some of which may be left out."""

    file_keys: ClassVar[tuple[str, ...]]
    """The node's keys that hold a path or None."""
    column_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The node's keys that name columns, and those of the file that has them, the first that names one."""

    def inputs(self) -> Sequence[InputFile]:
        """All files that the node names."""
        named = ((key, getattr(self.node, key)) for key in self.file_keys)
        return [InputFile(self.context.resolve(name), (key,)) for key, name in named if name is not None]

    def check_files(self) -> Iterator[FileFault]:
        """The names of columns that no file has."""
        for key, file_keys in self.column_keys.items():
            file = next(filter(None, (getattr(self.node, file_key) for file_key in file_keys)), None)
            columns = getattr(self.node, key)
            if file is not None and columns.model_dump(exclude_none=True):
                yield from find_absent(key, columns, self.list_columns(self.context.resolve(file)), file)

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None where they are not known in a moment."""
        return list_columns(path, "json")

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose key names a file; a part without a key of its own is in another file."""
        return frozenset(part for part in ("queries", "corpus") if getattr(self.node, part, part) is not None)

    def loader(self, name: str | None, load: Callable[[Path], pl.DataFrame]) -> Callable[[], pl.DataFrame] | None:
        """`load` for the file of that name; None where the node does not name one."""
        return None if name is None else partial(load, self.context.resolve(name))


class TabularNode(DatasetNode):
    """Relevance judgements, one a row, and where wanted queries and documents; or questions with their gold answers."""

    path: str = Field(
        description=(
            "The relevance judgements: columns `query_id`, `doc_id`, `relevance`. Or, where it has no `doc_id`, the "
            "questions, one a row, with their gold answers."
        )
    )
    columns: QrelsColumns = Field(default_factory=QrelsColumns, description="What the columns of `path` are called.")
    queries: str | None = Field(
        default=None, description="The queries: columns `query_id`, `text` and maybe those of gold answers."
    )
    query_columns: QuestionColumns = Field(
        default_factory=QuestionColumns,
        description="What the columns of `queries` are called, or those of `path` where it has the questions.",
    )
    ids: Literal["auto", "field", "row"] = Field(
        default="auto",
        description=(
            "Of questions in `path`; field: each row has an id; row: the row's number, from 1, is its id; auto: the id "
            "where there is such a column, else the number."
        ),
    )
    corpus: str | None = Field(default=None, description="The documents: columns `doc_id`, `text` and maybe `title`.")
    corpus_columns: CorpusColumns = Field(
        default_factory=CorpusColumns, description="What the columns of `corpus` are called."
    )


class TabularDataset(FileDataset[T]):
    """A dataset of tables of one file format."""

    file_keys = ("path", "queries", "corpus")
    column_keys: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "columns": ("path",),
        "query_columns": ("queries", "path"),
        "corpus_columns": ("corpus",),
    }

    @abstractmethod
    def read(self, path: Path, columns: Sequence[Column]) -> Records:
        """The columns of one file."""

    @abstractmethod
    def header(self, path: Path) -> Sequence[str]:
        """The names of a file's columns."""

    @abstractmethod
    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """The place and the values by name of each row."""

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None where it is not there, or cannot be read."""
        try:
            return self.header(path) if path.is_file() else None
        except DataError:
            return None

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose key names a file; the queries also where `path` has them, or is not there to tell."""
        if self.node.queries is None and (not self._path.is_file() or self._holds_questions):
            return super().parts | {"queries"}
        return super().parts

    def open(self) -> Collection:
        """The collection; its queries and corpus are None where the node does not name them."""
        corpus = self.loader(self.node.corpus, self._load_corpus)
        if self.node.queries is None and self._holds_questions:
            why = f"{self._path}: the file has questions, and no column of documents that are relevant for them"
            return Collection(
                name=self.context.name,
                load_queries=self._load_questions,
                load_corpus=corpus,
                load_references=self._load_own_references,
                why_no_qrels=why,
            )
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.path, self._load_qrels),
            load_queries=self.loader(self.node.queries, self._load_queries),
            load_corpus=corpus,
            load_references=self._references_loader(),
        )

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)

    @cached_property
    def _holds_questions(self) -> bool:
        """Whether `path` has questions, and no judgements."""
        try:
            present = self.header(self._path)
        except DataError:
            return False
        documents = self.node.columns.over(QRELS, "columns")[1]
        texts = self._question_columns()[1]
        return not any(name in present for name in documents.known) and any(name in present for name in texts.known)

    def _question_columns(self) -> tuple[Column, ...]:
        columns = (Column("query_id", QUESTION_IDS, "id"), Column("text", QUESTIONS))
        return self.node.query_columns.over(columns, "query_columns")

    @cached_property
    def _numbers_rows(self) -> bool:
        """Whether the number of a row is its question's id."""
        if self.node.ids != "auto":
            return self.node.ids == "row"
        query_id = self._question_columns()[0]
        present = self.header(self._path)
        return not query_id.mapped and not any(name in present for name in query_id.known)

    def _load_qrels(self, path: Path) -> pl.DataFrame:
        return qrels_table(self.read(path, self.node.columns.over(QRELS, "columns")))

    def _load_queries(self, path: Path) -> pl.DataFrame:
        known = (*QUERIES[1].known, *(name for name in QUESTIONS if name not in QUERIES[1].known))
        columns = (Column("query_id", QUESTION_IDS, "id"), Column("text", known))
        return queries_table(self.read(path, self.node.query_columns.over(columns, "query_columns")))

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return corpus_table(self.read(path, self.node.corpus_columns.over(CORPUS, "corpus_columns")))

    def _load_questions(self) -> pl.DataFrame:
        import polars as pl

        query_id, text = self._question_columns()
        if not self._numbers_rows:
            return queries_table(self.read(self._path, (query_id, text)))
        records = self.read(self._path, (text,))
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).alias("query_id")
        return queries_table(Records(records.frame.with_columns(numbers), records.locate))

    def _load_own_references(self) -> pl.DataFrame | None:
        """Gold answers beside the questions of `path`; the questions' ids are checked when these are read."""
        ids = self._load_questions()["query_id"]
        return self._references(self._path, ids)

    def _references_loader(self) -> Callable[[], pl.DataFrame | None] | None:
        if self.node.queries is None:
            return None
        path = self.context.resolve(self.node.queries)
        return lambda: self._references(path, self._load_queries(path)["query_id"])

    def _references(self, path: Path, ids: pl.Series) -> pl.DataFrame | None:
        rows = zip(ids, self.rows(path), strict=True)
        questions = (QuestionRow(place, query_id, values) for query_id, (place, values) in rows)
        return references_table(path, questions, self.node.query_columns, "query_columns")
