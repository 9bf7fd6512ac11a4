"""Base classes for datasets of tables: judgements, questions and documents in rows and columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field

from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.row_dataset import FileDataset
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import DatasetNode, InputFile
from rageval_spec.plugin.plugin import FileReading
from rageval_spec.reading import question_files
from rageval_spec.reading.formats import column_layouts
from rageval_spec.reading.formats.text_files import ForeignFileError
from rageval_spec.reading.row_sources import RowFile
from rageval_spec.recorded.tool_layouts import Layout

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part

T = TypeVar("T", bound="TabularNode")
_ROWS_LOOKED_AT = 20
_JUDGED: frozenset[Part] = frozenset({"relevant"})


class TabularColumns(question_files.QuestionColumns):
    """The column names of `path`; those of the other files are under `queries` and `corpus`."""

    doc_id: str | None = Field(default=None, description=column_layouts.QrelsColumns.model_fields["doc_id"].description)
    relevance: str | None = Field(
        default=None, description=column_layouts.QrelsColumns.model_fields["relevance"].description
    )
    queries: question_files.QuestionColumns = Field(
        default_factory=question_files.QuestionColumns, description="The column names of `queries`."
    )
    corpus: column_layouts.CorpusColumns = Field(
        default_factory=column_layouts.CorpusColumns, description="The column names of `corpus`."
    )


class TabularNode(DatasetNode):
    """Relevance judgements, one per row, with optional queries and documents; or questions with gold answers."""

    former_columns: ClassVar[Mapping[str, str]] = {"query_columns": "queries", "corpus_columns": "corpus"}

    path: str = Field(
        description=(
            "The relevance judgements: columns `query_id`, `doc_id`, `relevance`. Or, if it has no `doc_id`, the "
            "questions, one per row, with their gold answers."
        )
    )
    columns: TabularColumns = Field(
        default_factory=TabularColumns,
        description="The column names of `path`; those of other files are under `queries` and `corpus`.",
    )
    queries: str | None = Field(
        default=None, description="The queries: columns `query_id`, `text` and optionally those of gold answers."
    )
    ids: Literal["auto", "field", "row"] = Field(
        default="auto",
        description=(
            "The ids of questions in `path`; field: each row has an id; row: the row's number, from 1, is its id; "
            "auto: the id if there is such a column, else the number."
        ),
    )
    layout: Layout = Field(
        default="auto",
        description=(
            "The tool whose layout the file of questions has. auto: recognised by the names of the columns, as "
            "`validate` shows; none: no tool's, so the columns are read by their names."
        ),
    )
    corpus: str | None = Field(
        default=None, description="The documents: columns `doc_id`, `text` and optionally `title`."
    )


class TabularDataset(FileDataset[T]):
    """A dataset of tables in one file format."""

    file_keys = ("path", "queries", "corpus")

    later_keys = frozenset({"layout"})

    def inputs(self) -> Sequence[InputFile]:
        """Also the files that values in the rows are in."""
        found = self._question_file()
        further = () if found is None else self.source(found[0]).further_files
        return [*super().inputs(), *(InputFile(path, ("path",)) for path in further)]

    @abstractmethod
    def find_source(self, path: Path) -> RowFile:
        """A file with its format."""

    @abstractmethod
    def read_whole(self, path: Path, columns: Sequence[column_layouts.RecordColumn]) -> column_layouts.Records:
        """Read columns of a file at once."""

    def read(self, path: Path, columns: Sequence[column_layouts.RecordColumn]) -> column_layouts.Records:
        """The columns of a file."""
        source, named = self.source(path), self.named(path)
        found = self.read_whole(path, columns) if source.is_direct(named) else None
        return source.records(named, columns) if found is None or source.holds_turns(found) else found

    def header(self, path: Path) -> Sequence[str]:
        """The names of a file's columns, with those that its layout and JSONPaths in the spec add."""
        return self.source(path).unfold_names(self.named(path))

    def rows(self, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the location and the named values of each row."""
        return self.source(path).rows(self.named(path))

    def source(self, path: Path) -> RowFile:
        """A file with its format; what was found out about it is kept."""
        if path not in self._sources:
            self._sources[path] = self.find_source(path)
        return self._sources[path]

    def named(self, path: Path) -> Any:
        """The block that names the columns of a file, with those that the layout of a tool gives."""
        if path not in self._named:
            blocks = {
                "corpus": self.node.columns.corpus,
                "queries": self.node.columns.queries,
                "path": self.node.columns,
            }
            keys = [key for key in blocks if self.node_path(key) == path]
            self._named[path] = self.source(path).resolve(blocks[keys[-1]])
        return self._named[path]

    def node_path(self, key: str) -> Path | None:
        """The file of a key."""
        name = getattr(self.node, key)
        return None if name is None else self.context.resolve(name)

    @cached_property
    def _sources(self) -> dict[Path, RowFile]:
        return {}

    @cached_property
    def _named(self) -> dict[Path, Any]:
        return {}

    def content(self) -> dict[str, Any]:
        """Also the tool whose layout changes what the rows mean, and the names that columns stand for."""
        content = super().content()
        key = "path" if self.node.queries is None else "queries"
        source = self.source(self.node_path(key) or self._path)
        named = self.node.columns if key == "path" else self.node.columns.queries
        try:
            alters = source.alters(named)
        except DataError:
            return content  # told when the file is read
        if source.tool is not None and alters:
            content["layout"] = source.tool.word
        if spellings := source.list_spellings(named):
            content["spellings"] = spellings
        return content

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None if the file is missing or cannot be read."""
        try:
            return self.header(path) if path.is_file() else None
        except ForeignFileError:
            raise
        except DataError:
            return None

    def columns_of(self, key: str) -> tuple[BaseModel, Sequence[column_layouts.RecordColumn]]:
        """The block that names the columns of a file, and the columns that are read from it."""
        if key == "queries":
            return self.node.columns.queries, self._query_columns()
        if key == "corpus":
            return self.node.columns.corpus, self._corpus_columns()
        if not self._holds_questions or self.node.queries is not None:
            return self.node.columns, self._qrels_columns()
        return self.node.columns, self._question_columns()[1 if self._numbers_rows else 0 :]

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Also report column names of the questions that are written where those of the judgements belong."""
        misplaced = [] if key != "path" or self.node.queries is None else self._find_misplaced(present)
        for part, name in misplaced:
            mapping = column_layouts.write_mapping(("columns", "queries"), {part: name})
            message = f"{file} has the judgements but no column {name!r}"
            yield FileFault(("columns", part), message, f"for the columns of {self.node.queries} write {mapping}")
        if key == "path" and self._is_unknown(present):
            yield FileFault((key,), *self._explain_unknown(file, present))
        else:
            told = {("columns", part) for part, _ in misplaced}
            yield from (f for f in super().check_columns(key, file, present) if f.key not in told)
        if (found := self._question_file()) is not None and found[0] == self.context.resolve(file):
            yield from self.check_rivals(key, file, found[1], present)

    def _find_misplaced(self, present: Sequence[str]) -> list[tuple[str, str]]:
        parts = [part for part in question_files.QuestionColumns.model_fields if part != "query_id"]
        named = [(part, getattr(self.node.columns, part)) for part in parts]
        return [(part, name) for part, name in named if name is not None and name not in present]

    def _is_unknown(self, present: Sequence[str]) -> bool:
        """Whether `path` has neither judgements nor questions under a known or mapped name."""
        texts, documents = self._question_columns()[1], self._qrels_columns()[1]
        named = texts.mapped or documents.mapped or self.node.queries is not None
        return not named and not any(name in present for name in (*texts.known, *documents.known))

    def _explain_unknown(self, file: str, present: Sequence[str]) -> tuple[str, str]:
        """What the file seems to contain, judged by its first rows, and the mapping to write."""
        message = f"{file} has neither questions nor judgements under a known name; its columns are "
        rows = [row for _, row in islice(self.rows(self._path), _ROWS_LOOKED_AT)]
        question = column_layouts.guess_question(rows, present)
        names = {} if question is None else {"text": question}
        names |= column_layouts.guess_names(
            [part for part in ("text", "reference") if part not in names], present, names.values()
        )
        advice = (
            [f"for questions with gold answers write {column_layouts.write_mapping(('columns',), names)}"]
            if names
            else []
        )
        judged = (
            {}
            if question is not None
            else column_layouts.guess_names([column.name for column in column_layouts.QRELS], present)
        )
        if len(judged) == len(column_layouts.QRELS):
            advice.append(f"for judgements write {column_layouts.write_mapping(('columns',), judged)}")
        return message + column_layouts.list_names(present), "; ".join(advice)

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The content of `columns:` under its three former keys."""
        queries, corpus = named.pop("queries"), named.pop("corpus")
        judged = {part: named.pop(part) for part in ("doc_id", "relevance")}
        if self.node.queries is None and self._path.is_file() and self._holds_questions:
            return {"columns": {"query_id": None, **judged}, "query_columns": named, "corpus_columns": corpus}
        columns = {"query_id": named.pop("query_id"), **judged}
        return {"columns": columns, "query_columns": queries, "corpus_columns": corpus}

    @property
    def parts(self) -> frozenset[str]:
        """The parts whose key names a file, plus the queries if `path` has them or does not exist."""
        if self.node.queries is None and (not self._path.is_file() or self._holds_questions):
            return super().parts | {"queries"}
        return super().parts

    def open(self) -> Collection:
        """The collection; its queries and corpus are None if the node does not name them."""
        corpus = self.loader(self.node.corpus, self._load_corpus)
        if self.node.queries is None and self._holds_questions:
            why = f"{self._path}: the file has questions but no column of relevant documents"
            if listed := next((name for name in question_files.RELEVANT if name in self.header(self._path)), None):
                why = f"{self._path}: write use: golden to read the relevant documents in '{listed}'"
            return Collection(
                name=self.context.name,
                load_queries=self._load_questions,
                load_corpus=corpus,
                load_references=self._load_own_references,
                load_columns=self._load_columns,
                why_no_qrels=why,
            )
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.path, self._load_qrels),
            load_queries=self.loader(self.node.queries, self._load_queries),
            load_corpus=corpus,
            load_references=self._references_loader(),
            load_columns=None if self.node.queries is None else self._load_columns,
        )

    def list_other_columns(self) -> Sequence[str] | None:
        """The columns of the question file that no part is read from; () if there is no question file."""
        found = self._question_file()
        return () if found is None else self._other_names(*found)

    def describe_files(self) -> Iterator[FileReading]:
        """How the file with the questions is read."""
        found = self._question_file()
        if found is None or not found[0].is_file():
            return
        path, columns, read = found
        present, source = self.header(path), self.source(path)
        wanted = {column.name: column.known for column in read} | question_files.find_question_names(columns, present)
        first = {part: next((name for name in names if name in present), None) for part, names in wanted.items()}
        originals = source.find_originals(columns)
        shown = {part: originals.get(name, name) for part, name in first.items() if name is not None}
        details = (*source.list_details(), *(() if "query_id" in wanted else ("ids are row numbers",)))
        others = tuple(name for name in self._other_names(path, columns, read) if name not in originals.values())
        yield FileReading(str(self.node.queries or self.node.path), details, shown, others)

    def find_parts(self) -> frozenset[Part] | None:
        """The parts that any row of the questions has, with the judgements; None for a long or missing file."""
        judged: frozenset[Part] = frozenset() if self.node.queries is None and self._holds_questions else _JUDGED
        if (found := self._question_file()) is None:
            return judged if self._path.is_file() else None
        path, columns, _ = found
        if not path.is_file() or self.source(path).is_long:
            return None
        names = question_files.find_question_names(columns, self.header(path))
        return question_files.find_filled((row for _, row in self.rows(path)), names) | judged

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
        """The place and the values of each row of the question file; None without one."""
        found = self._question_file()
        return None if found is None else self.rows(found[0])

    def rows_with(self, path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The values of some columns in each row."""
        return ({name: row[name] for name in names} for _, row in self.rows(path))

    def _question_file(
        self,
    ) -> tuple[Path, question_files.QuestionColumns, tuple[column_layouts.RecordColumn, ...]] | None:
        """The file with the questions, the names of its columns, and the columns of ids and texts; None without one."""
        if self.node.queries is not None:
            return self.context.resolve(self.node.queries), self._block("queries"), self._query_columns()
        if not self._holds_questions:
            return None
        return self._path, self._block("path"), self._question_columns()[1 if self._numbers_rows else 0 :]

    def _other_names(
        self, path: Path, columns: question_files.QuestionColumns, read: Iterable[column_layouts.RecordColumn]
    ) -> list[str]:
        present = self.header(path)
        return question_files.list_other_names(
            [name for name in present if name], columns, column_layouts.chosen_names(read, present)
        )

    def _load_columns(self) -> pl.DataFrame | None:
        found = self._question_file()
        if found is None or not (names := self._other_names(*found)):
            return None
        path = found[0]
        questions = self._load_questions() if self.node.queries is None else self._load_queries(path)
        return question_files.other_columns_table(
            zip(questions["query_id"], self.rows_with(path, names), strict=True), names
        )

    def ids_of_queries(self) -> tuple[str, column_layouts.RecordColumn] | None:
        """The key of the file with the queries, and the column of their ids; None if row numbers are the ids."""
        if self.node.queries is not None:
            return "queries", self._query_columns()[0]
        if not self._holds_questions or self._numbers_rows:
            return None
        return "path", self._question_columns()[0]

    def _block(self, key: str) -> Any:
        """The names of the columns of a key's file; as the spec has them if there is no such file."""
        path = self.node_path(key)
        if path is not None:
            return self.named(path)
        return getattr(self.node.columns, key)

    @property
    def _path(self) -> Path:
        return self.context.resolve(self.node.path)

    @cached_property
    def _holds_questions(self) -> bool:
        """Whether `path` has questions but no judgements."""
        try:
            present = self.header(self._path)
        except DataError:
            return False
        documents = self._qrels_columns()[1]
        texts = self._question_columns()[1]
        return not any(name in present for name in documents.known) and any(name in present for name in texts.known)

    def _question_columns(self) -> tuple[column_layouts.RecordColumn, ...]:
        columns = (
            column_layouts.RecordColumn("query_id", column_layouts.QUESTION_IDS, "id"),
            column_layouts.RecordColumn("text", column_layouts.QUESTIONS),
        )
        found: tuple[column_layouts.RecordColumn, ...] = self._block("path").over(columns, "columns")
        return found

    def _qrels_columns(self) -> tuple[column_layouts.RecordColumn, ...]:
        found: tuple[column_layouts.RecordColumn, ...] = self._block("path").over(column_layouts.QRELS, "columns")
        return found

    def _query_columns(self) -> tuple[column_layouts.RecordColumn, ...]:
        known = (
            *column_layouts.QUERIES[1].known,
            *(name for name in column_layouts.QUESTIONS if name not in column_layouts.QUERIES[1].known),
        )
        columns = (
            column_layouts.RecordColumn("query_id", column_layouts.QUESTION_IDS, "id"),
            column_layouts.RecordColumn("text", known),
        )
        found: tuple[column_layouts.RecordColumn, ...] = self._block("queries").over(columns, "columns", "queries")
        return found

    def _corpus_columns(self) -> tuple[column_layouts.RecordColumn, ...]:
        found: tuple[column_layouts.RecordColumn, ...] = self._block("corpus").over(
            column_layouts.CORPUS, "columns", "corpus"
        )
        return found

    @cached_property
    def _numbers_rows(self) -> bool:
        """Whether a question's id is its row number."""
        if self.node.ids != "auto":
            return self.node.ids == "row"
        query_id = self._question_columns()[0]
        present = self.header(self._path)
        return not query_id.mapped and not any(name in present for name in query_id.known)

    def _load_qrels(self, path: Path) -> pl.DataFrame:
        return column_layouts.qrels_table(self.read(path, self._qrels_columns()))

    def _load_queries(self, path: Path) -> pl.DataFrame:
        return column_layouts.queries_table(self.read(path, self._query_columns()))

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return column_layouts.corpus_table(self.read(path, self._corpus_columns()))

    def _load_questions(self) -> pl.DataFrame:
        import polars as pl

        query_id, text = self._question_columns()
        if not self._numbers_rows:
            return column_layouts.queries_table(self.read(self._path, (query_id, text)))
        records = self.read(self._path, (text,))
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).alias("query_id")
        return column_layouts.queries_table(column_layouts.Records(records.frame.with_columns(numbers), records.locate))

    def _load_own_references(self) -> pl.DataFrame | None:
        """Gold answers from the question file `path`. The questions' ids are checked when the questions are read."""
        ids = self._load_questions()["query_id"]
        return self._references(self._path, ids, self._block("path"), "columns")

    def _references_loader(self) -> Callable[[], pl.DataFrame | None] | None:
        if self.node.queries is None:
            return None
        path = self.context.resolve(self.node.queries)
        columns = self._block("queries")
        return lambda: self._references(path, self._load_queries(path)["query_id"], columns, "columns.queries")

    def _references(
        self, path: Path, ids: pl.Series, columns: question_files.QuestionColumns, setting: str
    ) -> pl.DataFrame | None:
        rows = zip(ids, self.rows(path), strict=True)
        questions = (question_files.QuestionRow(place, query_id, values) for query_id, (place, values) in rows)
        return question_files.references_table(path, questions, columns, setting)
