"""Datasets whose files the spec block names: a file for each part, and rows of questions in any format."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.evidence.nuggets import NUGGETS
from rageval_spec.data.evidence.passages import Passage, PassageRelevance
from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.passage_relevance import CoverageShare, PassageSources, list_originals, read_relevant
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.plugin.plugin import FileReading
from rageval_spec.reading import question_files
from rageval_spec.reading.column_meanings import chosen_names, find_question_names, find_rivals, list_other_names
from rageval_spec.reading.column_names import (
    CHUNK,
    CORPUS,
    QRELS,
    QUERIES,
    QUESTION_IDS,
    QUESTIONS,
    RELEVANT,
    CorpusColumns,
    QrelsColumns,
    QuestionColumns,
    RecordColumn,
    normalise,
)
from rageval_spec.reading.corpus_files import open_corpus
from rageval_spec.reading.formats.json_files import VARIABLES, text_of
from rageval_spec.reading.formats.records import Records, qrels_table, queries_table
from rageval_spec.reading.formats.text_files import ForeignFileError
from rageval_spec.reading.missing_columns import (
    choose_keys,
    explain_absent,
    explain_rivals,
    find_absent,
    guess_names,
    guess_question,
    write_mapping,
)
from rageval_spec.reading.nugget_banks import attach_banks, check_banks, check_row
from rageval_spec.reading.row_sources import RowFile
from rageval_spec.reading.rows import RowFormat, recognise_format
from rageval_spec.recorded.json_path import list_keys
from rageval_spec.recorded.tool_layouts import Layout

if TYPE_CHECKING:
    from rageval_spec.data.samples import Part
    from rageval_spec.data.tables import CorpusReader


N = TypeVar("N", bound=DatasetNode)
L = TypeVar("L")
_KEYS = ("path", "qrels", "queries", "corpus", NUGGETS)
NUGGETS_FILE = Field(
    default=None,
    exclude_if=lambda name: name is None,
    description="The nuggets of the questions, JSON Lines of nuggetizer or of TREC AutoJudge; plain, `.gz` or `.zst`. "
    "Without it, the questions' own column `nuggets` counts.",
)


class FileDataset(Dataset[N]):
    """A dataset of files named in its node. Some files may be left out."""

    @property
    def files(self) -> dict[str, str]:
        """The files that the node names, by key."""
        return {key: name for key in _KEYS if (name := getattr(self.node, key, None)) is not None}

    def inputs(self) -> Sequence[InputFile]:
        return [InputFile(self.context.resolve(name), (key,)) for key, name in self.files.items()]

    def check_files(self) -> Iterator[FileFault]:
        """Report mapped columns that a file does not have, and required columns without a known name."""
        for key, file in self.files.items():
            if not self.has_columns(key):
                yield from check_banks(self.path_of(key)) if key == NUGGETS else ()
                continue
            try:
                present = self.list_columns(key)
            except ForeignFileError as error:
                yield FileFault((key,), error.finding, error.hint)
                continue
            except DataError as error:
                yield FileFault((key,), str(error), code="unreadable-data")
                continue
            if present is not None:
                yield from self.check_columns(key, file, present)

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Do what `check_files` does for one file; `present` has the names of its columns."""
        yield from find_absent(_setting_of(key), self.block(key), present, file)
        required = self.columns_of(key)
        absent = [c for c in required if c.required and not c.mapped and not any(name in present for name in c.known)]
        if absent:
            taken = {name for column in required for name in column.known}
            message, hint = explain_absent(absent, present, taken)
            yield FileFault((key,), f"{file}: {message}", hint)

    def has_columns(self, key: str) -> bool:
        """Whether the columns of a key's file have names. Those of TREC qrels do not."""
        return key not in ("qrels", NUGGETS)

    def block(self, key: str) -> Any:
        """The block that names the columns of a key's file."""
        columns = self.node.columns  # type: ignore[attr-defined]
        return columns if key == "path" else getattr(columns, key)

    @abstractmethod
    def columns_of(self, key: str) -> Sequence[RecordColumn]:
        """The columns that are read from a key's file."""

    def path_of(self, key: str) -> Path:
        """The file of a key."""
        return self.context.resolve(self.files[key])

    def form_of(self, key: str) -> RowFormat:  # noqa: ARG002 - most files are JSON Lines
        """The format of a key's file."""
        return "json"

    def source(self, key: str) -> RowFile:
        """The file of a key; what was found out about it is kept."""
        if key not in self._sources:
            layout = "auto" if key == "queries" else "none"
            self._sources[key] = RowFile(self.path_of(key), self.form_of(key), layout=layout)
        return self._sources[key]

    @cached_property
    def _sources(self) -> dict[str, RowFile]:
        return {}

    def named(self, key: str) -> Any:
        """The names of the columns of a key's file; those of topics also by the layout of a TREC track."""
        return self.source(key).resolve(self.block(key)) if key == "queries" else self.block(key)

    def list_columns(self, key: str) -> Sequence[str] | None:
        """The names of the columns of a key's file; None if it is missing, or if that takes long.

        Raises:
            DataError: the file cannot be read, or is in another format.
        """
        source = self.source(key)
        if not source.path.is_file():
            return None
        return source.list_names(self.block(key) if source.is_long else self.named(key))

    def content(self) -> dict[str, Any]:
        """The content in its format from before `columns:` covered all files, so that existing stores stay usable."""
        content = super().content()
        node = content["node"]
        named = node.pop("columns")
        node.update(self.former_content(named))
        return content

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The content of `columns:` under its former key."""
        return {"columns": named}

    @property
    def parts(self) -> frozenset[str]:
        return frozenset({"queries", "corpus"} & self.files.keys())

    def loader(self, key: str, load: Callable[[], L]) -> Callable[[], L] | None:
        """`load`; None if the node does not name the file of the key."""
        return load if key in self.files else None

    def load(self, key: str, make_table: Callable[[Records], pl.DataFrame]) -> pl.DataFrame:
        """The table of a key's file."""
        return make_table(self.source(key).records(self.named(key), self.columns_of(key)))

    def add_nuggets(self, collection: Collection) -> Collection:
        """The collection, whose questions also have the nuggets of the file that the node names."""
        return attach_banks(collection, self.path_of(NUGGETS)) if NUGGETS in self.files else collection

    def read_corpus(self) -> CorpusReader:
        """The reader of the file of documents."""
        source, columns, wanted = self.source("corpus"), self.named("corpus"), self.columns_of("corpus")
        return open_corpus(source.path, source.form, partial(source.batches, columns, wanted))


def _setting_of(key: str) -> tuple[str, ...]:
    """The keys of a spec that lead to the names of the columns of a key's file."""
    return ("columns",) if key == "path" else ("columns", key)


_ID = RecordColumn("query_id", QUESTION_IDS, "id")
_TEXT = RecordColumn("text", QUESTIONS)
_RELEVANT = RecordColumn("relevant", RELEVANT, "id")
_QUERIES = (
    _ID,
    _TEXT._replace(known=tuple(dict.fromkeys((*QUERIES[1].known, *QUESTIONS)))),
)
_ROWS_LOOKED_AT = 20
_MOST_DESCRIBED = 1000
"""How many rows of a long file show what its columns are."""


class RowColumns(QuestionColumns):
    """The names of the columns of a row, and under `corpus` those of the documents."""

    relevant: str | None = Field(
        default=None,
        description=(
            "The relevant documents: an id, a list of ids (relevance 1 each), a map of ids to integers, or a list of "
            "passages, `{document: guide.md, quote: ...}` or `{document, start, end}`, each with an optional `grade`. "
            "Default: `relevant`, `relevant_doc_ids`, `reference_context_ids` or `qrels`."
        ),
    )
    corpus: CorpusColumns = Field(default_factory=CorpusColumns, description="The names of the keys in `corpus`.")


class QuestionsNode(DatasetNode):
    """A file with one question per row."""

    path: str = Field(description="The queries with their gold answers, their relevant documents, or both.")
    columns: RowColumns = Field(
        default_factory=RowColumns,
        description="The names of the columns of a row. A name that begins with `$` is a JSONPath: `$.inputs.q`.",
    )
    ids: Literal["auto", "field", "row"] = Field(
        default="auto",
        description=(
            "field: each row has an id; row: the row's number, from 1, is its id; auto: field if any row has an id or "
            "'qrels' names a file, otherwise row."
        ),
    )
    layout: Layout = Field(
        default="auto",
        description=(
            "The tool whose layout the file has. auto: recognised by the names of the columns, as `validate` shows; "
            "none: no tool's, so the columns are read by their names."
        ),
    )
    qrels: str | None = Field(
        default=None,
        description="The relevance judgements, if the rows do not have them: TREC qrels or a BEIR `.tsv` file.",
    )
    corpus: str | None = Field(default=None, description="The documents, a JSON Lines file; plain, `.gz` or `.zst`.")
    documents: str | None = Field(
        default=None,
        description=(
            "The documents from which the corpus and the systems have their chunks, for passages: a folder, a file or "
            "a JSON Lines corpus. Without it, quotes are looked for in the chunks."
        ),
    )
    coverage: Literal["graded"] | CoverageShare = Field(
        default=CoverageShare(),
        description=(
            "When chunks are relevant by passages. `at_least: 0.5`: the chunk at which half of a passage's characters "
            "have been seen finds it; graded: each chunk counts by the share that it adds, in tenths."
        ),
    )
    nuggets: str | None = NUGGETS_FILE


class TabularColumns(QuestionColumns):
    """The column names of `path`; those of the other files are under `queries` and `corpus`."""

    doc_id: str | None = Field(default=None, description=QrelsColumns.model_fields["doc_id"].description)
    relevance: str | None = Field(default=None, description=QrelsColumns.model_fields["relevance"].description)
    queries: QuestionColumns = Field(default_factory=QuestionColumns, description="The column names of `queries`.")
    corpus: CorpusColumns = Field(default_factory=CorpusColumns, description="The column names of `corpus`.")


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
    nuggets: str | None = NUGGETS_FILE


R = TypeVar("R", bound=QuestionsNode | TabularNode)


class RowDataset(FileDataset[R]):
    """Questions in a file of rows: `path`, or `queries` where `path` has the judgements.

    With a `QuestionsNode`, the judgements are in the rows or in a file of TREC qrels, and the documents in JSON Lines.
    With a `TabularNode`, all files have the format of the rows.
    """

    later_keys = frozenset({"layout", "documents", "coverage"})
    form: ClassVar[RowFormat | None]
    """The format of the rows; None for the one that the file's content shows."""

    def inputs(self) -> Sequence[InputFile]:
        """Also the files that the rows, or values in them, are in."""
        further = () if (key := self._question_key) is None else self.source(key).further_files
        return [*super().inputs(), *(InputFile(path, ("path",)) for path in further), *self._document_files]

    @cached_property
    def _document_files(self) -> Sequence[InputFile]:
        """The files of `documents`; the folder if it is missing or has none."""
        named = getattr(self.node, "documents", None)
        return () if named is None else list_originals(self.context.resolve(named))

    @property
    def parts(self) -> frozenset[str]:
        """Also the queries, if `path` has them or does not exist."""
        may_ask = self._question_key == "path" or ("queries" not in self.files and not self.path_of("path").is_file())
        return super().parts | {"queries"} if may_ask else super().parts

    def open(self) -> Collection:
        """The collection. A row without relevant documents is a query without judgements.

        If no row has relevant documents, there are no judgements; if no row has a gold answer, no references.
        """
        load_qrels: Callable[[], pl.DataFrame | None] | None
        key, why, load_passages = self._question_key, None, None
        if not self._is_tabular:
            load_qrels = self.loader("qrels", lambda: kernels.read_qrels(self.path_of("qrels"))) or self._load_relevant
            load_passages = self._load_passages if self._reads_relevant else None
            why = None if "qrels" in self.files else self._explain_no_relevant()
        elif key == "path":
            load_qrels, why = None, self._explain_no_judgements()
        else:
            load_qrels = partial(self.load, "path", qrels_table)
        collection = Collection(
            name=self.context.name,
            load_qrels=load_qrels,
            load_queries=None if key is None else self._load_queries,
            load_corpus=self.loader("corpus", self.read_corpus),
            load_references=None if key is None else self._load_references,
            load_columns=None if key is None else self._load_columns,
            load_about=None if key is None else lambda: self.source(key).remarks,
            why_no_qrels=why,
            load_passages=load_passages,
        )
        return self.add_nuggets(collection)

    def content(self) -> dict[str, Any]:
        """Also the tool whose layout changes what the rows mean, and the names that columns stand for."""
        content = super().content()
        key = "queries" if "queries" in self.files else "path"
        source, columns = self.source(key), self.block(key)
        if source.tool is not None and self._alters:
            content["layout"] = source.tool.word
        if spellings := source.list_spellings(columns):
            content["spellings"] = spellings
        if isinstance(self.node, QuestionsNode) and self.node.documents is not None:  # paths are parts of ids
            root = self.context.resolve(self.node.documents)
            content["documents"] = [os.path.relpath(file.path, root) for file in self._document_files]
        return content

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The content of a table's `columns:` under its three former keys."""
        if not self._is_tabular:
            return super().former_content(named)
        queries, corpus = named.pop("queries"), named.pop("corpus")
        judged = {part: named.pop(part) for part in ("doc_id", "relevance")}
        if self._question_key == "path" and self.path_of("path").is_file():
            return {"columns": {"query_id": None, **judged}, "query_columns": named, "corpus_columns": corpus}
        columns = {"query_id": named.pop("query_id"), **judged}
        return {"columns": columns, "query_columns": queries, "corpus_columns": corpus}

    def columns_of(self, key: str) -> Sequence[RecordColumn]:
        if key == "path" and self._question_key != "path":
            return self._named_of(key, QRELS)
        if key == "path":
            return self._named_of(key, self._asked_in(key))[1 if self._numbers_rows else 0 :]
        return self._named_of(key, _QUERIES if key == "queries" else CORPUS)

    def check_files(self) -> Iterator[FileFault]:
        """Check the files, and report a query that is listed twice."""
        try:
            faults = [*super().check_files()]
            yield from faults
            key = self._question_key
            if faults or key is None or (key == "path" and self.node.ids == "row") or not self.path_of(key).is_file():
                return
            source, (column, *_) = self.source(key), self.columns_of(key)
            if column.kind == "id" and (source.tool is None or not source.is_long):
                twice = question_files.find_twice(source.path, self._rows(), column.known)
                if twice is not None:
                    yield FileFault((key,), twice, "give each query its own id")
        except DataError as error:
            yield FileFault(("path",), str(error), code="unreadable-data")

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Also guess the columns of a file without known names."""
        if is_unknown := key == "path" and self._is_unknown(present):
            yield FileFault((key,), *self._explain_unknown(file, present))
        for fault in super().check_columns(key, file, present):
            if not is_unknown or fault.key != (key,):
                yield fault
        if key != self._question_key or self.named(key).reference is not None:
            return
        if rivals := find_rivals(present):
            message, advice = explain_rivals(rivals, "reference", ".".join(_setting_of(key)))
            yield FileFault((key,), f"{file}: {message}", advice)

    def _is_unknown(self, present: Sequence[str]) -> bool:
        """Whether `path` has neither judgements nor questions under a known or mapped name."""
        columns = self._named_of("path", (_TEXT, QRELS[1]) if self._is_tabular else (_TEXT,))
        named = "queries" in self.files or any(column.mapped for column in columns)
        return not named and not any(name in present for column in columns for name in column.known)

    def _explain_unknown(self, file: str, present: Sequence[str]) -> tuple[str, str]:
        """What the file seems to contain, judged by its first rows, and the mapping to write."""
        rows = self.source("path").rows(self.named("path"))
        question = guess_question([row for _, row in islice(rows, _ROWS_LOOKED_AT)], present)
        names = {} if question is None else {"text": question}
        has_reference = find_question_names(self.named("path"), present)["reference"]
        wanted = [part for part in ("text", *(() if has_reference else ("reference",))) if part not in names]
        names |= guess_names(wanted, present, names.values())
        told = [f"for questions with gold answers write {write_mapping(('columns',), names)}"] if names else []
        judged = guess_names([column.name for column in QRELS], present) if self._is_tabular and not question else {}
        if len(judged) == len(QRELS):
            told.append(f"for judgements write {write_mapping(('columns',), judged)}")
        what = "neither questions nor judgements" if self._is_tabular else "no questions"
        hint = "; ".join(told) or "name the column of the questions in 'columns.text'"
        return f"{file} has {what} under a known name; its columns are {list_keys(present)}", hint

    def describe_files(self) -> Iterator[FileReading]:
        if (key := self._question_key) is None or not (source := self.source(key)).path.is_file():
            return
        columns = source.resolve(self.block(key), _MOST_DESCRIBED) if source.is_long else self.named(key)
        present, originals = source.unfold_names(columns), source.find_originals(columns)
        ids, text, relevant = columns.over((*self._asked_in(key), _RELEVANT), *_setting_of(key))
        has_id = self.node.ids == "field" or not {*ids.known}.isdisjoint(present)
        is_numbered = key == "path" and (self.node.ids == "row" or not has_id)
        wanted = {"query_id": () if is_numbered else ids.known, "text": text.known}
        wanted |= find_question_names(columns, present)
        wanted |= {"relevant": relevant.known if self._reads_relevant else ()}
        found = {
            part: name for part, names in wanted.items() if (name := next((n for n in names if n in present), None))
        }
        details = [*source.list_details(), *(("ids are row numbers",) if is_numbered else ())]
        remarks = {} if source.is_long else source.remarks
        said = {normalise(key).removesuffix("_at"): value for key, value in remarks.items()}
        details += [f"{key} {said[key]}" for key in ("version", "created") if key in said]
        others = list_other_names(present, columns, {*found.values(), *(() if self._is_tabular else (VARIABLES,))})
        shown = {part: originals.get(name, name) for part, name in found.items()}
        yield FileReading(self.files[key], tuple(details), shown, tuple(filter(None, others)))

    def list_other_columns(self) -> Sequence[str] | None:
        if (key := self._question_key) is None:
            return ()
        present = self.list_columns(key)
        return None if present is None else self._other_names(present)

    def find_parts(self) -> frozenset[Part] | None:
        key = self._question_key
        source = self.source(key or "path")
        if not source.path.is_file() or (key is not None and source.is_long):
            return None
        judged: frozenset[Part] = frozenset({"relevant", *(("nuggets",) if NUGGETS in self.files else ())})
        if key is None:
            return judged
        names = find_question_names(self.named(key), source.list_names(self.named(key)) or ())
        names["relevant"] = self._relevant.known if self._reads_relevant else ()
        names[NUGGETS] = (NUGGETS,)
        filled = question_files.find_filled((row for _, row in self._rows()), names)
        filled |= {"nuggets"} & self.files.keys()  # type: ignore[operator]
        return filled | judged if key == "queries" or "qrels" in self.files else filled

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
        return None if self._question_key is None else self._rows()

    @property
    def _is_tabular(self) -> bool:
        return isinstance(self.node, TabularNode)

    @property
    def _reads_relevant(self) -> bool:
        """Whether the rows say which documents are relevant."""
        return not self._is_tabular and "qrels" not in self.files

    @cached_property
    def _question_key(self) -> str | None:
        """The key of the file with the questions; None if there are only judgements, or no file can be read."""
        if not self._is_tabular or "queries" in self.files:
            return "queries" if "queries" in self.files else "path"
        try:
            present = self._header("path")
        except DataError:
            return None
        texts, documents = self._named_of("path", (_TEXT, QRELS[1]))
        is_judged = any(name in present for name in documents.known)
        return "path" if not is_judged and any(name in present for name in texts.known) else None

    @cached_property
    def _numbers_rows(self) -> bool:
        """Whether the number of a row of `path` is its query's id."""
        columns = self.named("path")
        if self.node.ids != "auto" or "qrels" in self.files or columns.query_id is not None:
            return self.node.ids == "row"
        if self._is_tabular:
            return not any(name in self._header("path") for name in QUESTION_IDS)
        return not any(name in row for _, row in self._rows() for name in QUESTION_IDS)

    def _asked_in(self, key: str) -> tuple[RecordColumn, ...]:
        """The columns of ids and of texts in a file of questions."""
        if key == "queries":
            return _QUERIES
        return (_ID if self._is_tabular else _ID._replace(advice="number the rows with 'ids: row'"), _TEXT)

    @property
    def _relevant(self) -> RecordColumn:
        return self._named_of("path", (_RELEVANT,))[0]

    def _named_of(self, key: str, columns: Sequence[RecordColumn]) -> tuple[RecordColumn, ...]:
        """Columns of a key's file, under the names that the spec or a tool's layout gives."""
        found: tuple[RecordColumn, ...] = self.named(key).over(columns, *_setting_of(key))
        return found

    def form_of(self, key: str) -> RowFormat:
        if key == "corpus" and not self._is_tabular:
            return "json"
        return recognise_format(self.path_of(key)) if self.form is None else self.form

    def source(self, key: str) -> RowFile:
        """Also in the layout of a tool, if it has questions or judgements."""
        if key not in self._sources and key != "corpus":
            node = self.node
            separator, sheet = getattr(node, "separator", None), getattr(node, "sheet", None)
            path, form = self.path_of(key), self.form_of(key)
            self._sources[key] = RowFile(path, form, separator, sheet, node.layout, is_typed=self._is_tabular)
        return super().source(key)

    def named(self, key: str) -> Any:
        """Also those that the layout of a tool gives."""
        if key not in self._resolved:
            block = self.block(key)
            self._resolved[key] = self.source(key).resolve(block) if key in self.files else block
        return self._resolved[key]

    @cached_property
    def _resolved(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _alters(self) -> bool:
        key = "queries" if "queries" in self.files else "path"
        try:
            return self.source(key).alters(self.block(key))
        except DataError:
            return False  # told when the file is read

    def _header(self, key: str) -> Sequence[str]:
        """The names of the columns of the first rows, with those that the layout and JSONPaths in the spec add."""
        return self.source(key).unfold_names(self.named(key))

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The place and the values of each question's row."""
        key = self._question_key or "path"
        return self.source(key).rows(self.named(key))

    def _load_queries(self) -> pl.DataFrame:
        key = self._question_key or "path"
        if key == "queries" or not self._numbers_rows:
            return self.load(key, queries_table)
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).alias("query_id")
        return self.load(
            key,
            lambda found: queries_table(Records(found.frame.with_columns(numbers), found.locate)),
        )

    def _load_references(self) -> pl.DataFrame | None:
        key = self._question_key or "path"
        setting = ".".join(_setting_of(key))

        def read_rows() -> Iterator[question_files.QuestionRow]:
            return starmap(question_files.QuestionRow, self._questions())

        return question_files.references_table(self.path_of(key), read_rows, self.named(key), setting)

    def _load_columns(self) -> pl.DataFrame | None:
        key = self._question_key or "path"
        present = (
            self._header(key) if self._is_tabular else dict.fromkeys(name for _, row in self._rows() for name in row)
        )
        names = self._other_names([*present])
        rows = ((query_id, check_row(place, row)) for place, query_id, row in self._questions(names))
        return question_files.other_columns_table(rows, names)

    def _other_names(self, present: Sequence[str]) -> list[str]:
        """The columns among those of the question file that no part is read from."""
        key = self._question_key or "path"
        first = dict.fromkeys(present) if self._is_tabular else next(self._rows())[1]
        read = chosen_names(self.columns_of(key), first)
        if self._reads_relevant:
            read |= chosen_names([self._relevant], present)
        if isinstance(first.get(VARIABLES), Mapping):
            read.add(VARIABLES)
        return list_other_names([name for name in present if name], self.named(key), read)

    def _load_relevant(self) -> pl.DataFrame | None:
        passages = self._load_passages()
        return self._relevant_rows[0] if passages is None else passages.judge()

    @cached_property
    def _relevant_rows(self) -> tuple[pl.DataFrame | None, Mapping[str, Sequence[Passage]]]:
        is_table = self.source("path").form in ("csv", "xlsx")
        judged, passages = read_relevant(self._questions(), self._relevant.known, is_table=is_table)
        if judged is None and not passages and self._relevant.mapped:
            raise DataError(f"{self.path_of('path')}: {self._explain_no_relevant()}")
        return judged, passages

    def _load_passages(self) -> PassageRelevance | None:
        """The passages that rows call relevant, found in the documents and the corpus; None without any."""
        judged, passages = self._relevant_rows
        if passages and self._passages is None and isinstance(self.node, QuestionsNode):
            columns, wanted = self.named("corpus"), self._named_of("corpus", CHUNK)
            read = self.loader("corpus", lambda: self.source("corpus").batches(columns, wanted))
            path = None if self.node.documents is None else self.context.resolve(self.node.documents)
            at_least = None if self.node.coverage == "graded" else self.node.coverage.at_least
            self._passages = PassageSources(path, read, at_least).relate(passages, judged)
        return self._passages

    _passages: PassageRelevance | None = None

    def _explain_no_relevant(self) -> str:
        relevant = self.node.columns.over((_RELEVANT,), "columns")[0]
        known = " or ".join(f"'{name}'" for name in relevant.known)
        advice = f"correct '{relevant.key}'" if relevant.mapped else f"name it in '{relevant.key}'"
        return f"no row has relevant documents in {known}; {advice}, or give 'qrels'"

    def _explain_no_judgements(self) -> str:
        path, present = self.path_of("path"), self._header("path")
        if listed := next((name for name in RELEVANT if name in present), None):
            return f"{path}: write use: golden to read the relevant documents in '{listed}'"
        return f"{path}: the file has questions but no column of relevant documents"

    def _questions(self, names: Sequence[str] | None = None) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Place, query id and values of each row; of the values at least `names`. Raises if an id is repeated."""
        key = self._question_key or "path"
        is_numbered = key == "path" and self._numbers_rows
        column = self._named_of(key, self._asked_in(key))[0]
        wanted = (*column.known, *names) if names is not None and self._is_tabular else None
        id_key, seen = "", set[str]()
        for number, (place, row) in enumerate(self.source(key).rows(self.named(key), wanted), 1):
            query_id: str | None = str(number)
            if not is_numbered:
                id_key = id_key or choose_keys(place, (column,), list(row))[column]
                query_id = text_of(place, f"'{id_key}'", "id", row.get(id_key))
            if not query_id:
                raise DataError(f"{place}: no query_id")
            if query_id in seen:
                first = next(earlier for earlier, known, _ in self._questions(names) if known == query_id)
                raise DataError(f"{place}: the query {query_id!r} is listed twice, first at {first}")
            seen.add(query_id)
            yield place, query_id, row
