"""Base classes for datasets whose files the spec block names.

`QuestionsDataset` has one file with a row for each question, and `FileDataset` a file for each part.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field

from rageval_spec import kernels
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import Dataset, DatasetNode, InputFile
from rageval_spec.plugin.plugin import FileReading
from rageval_spec.reading import question_files
from rageval_spec.reading.formats import column_layouts
from rageval_spec.reading.formats.delimited import choose_separator, read_delimited
from rageval_spec.reading.formats.json_files import VARIABLES, read_json_lines, text_of
from rageval_spec.reading.formats.text_files import ForeignFileError
from rageval_spec.reading.row_sources import RowFile
from rageval_spec.reading.rows import find_absent, list_columns, split_ids
from rageval_spec.recorded.tool_layouts import Layout

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.samples import Part


N = TypeVar("N", bound=DatasetNode)


class FileDataset(Dataset[N]):
    """A dataset of files named in its node. Some files may be left out."""

    file_keys: ClassVar[tuple[str, ...]]
    """The node's keys whose value is a path or None."""

    def inputs(self) -> Sequence[InputFile]:
        """All files that the node names."""
        named = ((key, getattr(self.node, key)) for key in self.file_keys)
        return [InputFile(self.context.resolve(name), (key,)) for key, name in named if name is not None]

    def check_files(self) -> Iterator[FileFault]:
        """Report mapped columns that a file does not have, and required columns without a known name."""
        for key in self.file_keys:
            file = getattr(self.node, key)
            if file is None or not self.has_columns(key):
                continue
            try:
                present = self.list_columns(self.context.resolve(file))
            except ForeignFileError as error:
                yield FileFault((key,), error.finding, error.hint)
                continue
            if present is not None:
                yield from self.check_columns(key, file, present)

    def check_ids(
        self, key: str, rows: Iterable[tuple[str, Mapping[str, Any]]], column: column_layouts.RecordColumn
    ) -> Iterator[FileFault]:
        """Report a query that a file lists twice."""
        twice = question_files.find_twice(self.context.resolve(getattr(self.node, key)), rows, column.known)
        if twice is not None:
            yield FileFault((key,), twice, "give each query its own id")

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Do what `check_files` does for one file.

        Args:
            key: the node's key that names the file.
            file: its name, as written in the node.
            present: the names of its columns.
        """
        columns, required = self.columns_of(key)
        setting = ("columns",) if columns is self.node.columns else ("columns", key)  # type: ignore[attr-defined]
        yield from find_absent(setting, columns, present, file)
        absent = [c for c in required if c.required and not c.mapped and not any(name in present for name in c.known)]
        if absent:
            taken = {name for column in required for name in column.known}
            message, hint = column_layouts.explain_absent(absent, present, taken)
            yield FileFault((key,), f"{file}: {message}", hint)

    def check_rivals(
        self, key: str, file: str, columns: question_files.QuestionColumns, present: Sequence[str]
    ) -> Iterator[FileFault]:
        """Report a file of questions in which `answer` or another column may have the gold answers.

        Args:
            key: the node's key that names the file.
            file: its name, as written in the node.
            columns: the names of its columns, with those that the layout of a tool gives.
            present: the names of its columns.
        """
        if columns.reference is None and (rivals := question_files.find_rivals(present)):
            setting = "columns.queries" if key == "queries" else "columns"
            message, hint = question_files.explain_rivals(rivals, "reference", setting)
            yield FileFault((key,), f"{file}: {message}", hint)

    def has_columns(self, key: str) -> bool:  # noqa: ARG002
        """Whether the columns of a key's file have names. Those of TREC qrels do not."""
        return True

    @abstractmethod
    def columns_of(self, key: str) -> tuple[BaseModel, Sequence[column_layouts.RecordColumn]]:
        """The block that names the columns of a file, and the columns that are read from it."""

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None if they cannot be found quickly.

        Raises:
            ForeignFileError: the file is in another format.
        """
        return list_columns(path, "json")

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
        """The parts whose key names a file. A part without a key is in another file."""
        return frozenset(part for part in ("queries", "corpus") if getattr(self.node, part, part) is not None)

    def loader(self, name: str | None, load: Callable[[Path], pl.DataFrame]) -> Callable[[], pl.DataFrame] | None:
        """`load` bound to the file of that name; None if the name is None."""
        return None if name is None else partial(load, self.context.resolve(name))


QUERY_ID = column_layouts.RecordColumn(
    "query_id",
    column_layouts.QUESTION_IDS,
    "id",
    advice="number the rows with 'ids: row'",
)
TEXT = column_layouts.RecordColumn("text", column_layouts.QUESTIONS)
_RELEVANT = column_layouts.RecordColumn("relevant", question_files.RELEVANT, "id")
_ROWS_LOOKED_AT = 20
_MOST_DESCRIBED = 1000
"""How many rows of a long file show what its columns are."""


class RowColumns(question_files.QuestionColumns):
    """The names of the columns of a row, and under `corpus` those of the documents."""

    relevant: str | None = Field(
        default=None,
        description=(
            "The relevant documents: an id, a list of ids (relevance 1 each) or a map of ids to integers. Default: "
            "`relevant`, `relevant_doc_ids`, `reference_context_ids` or `qrels`."
        ),
    )
    corpus: column_layouts.CorpusColumns = Field(
        default_factory=column_layouts.CorpusColumns, description="The names of the keys in `corpus`."
    )


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


Q = TypeVar("Q", bound=QuestionsNode)


class QuestionsDataset(FileDataset[Q]):
    """Reads a file with one question per row."""

    file_keys = ("path", "qrels", "corpus")
    later_keys = frozenset({"layout"})

    def inputs(self) -> Sequence[InputFile]:
        """Also the files that the rows, or values in them, are in."""
        return [*super().inputs(), *(InputFile(path, ("path",)) for path in self.source.further_files)]

    def find_source(self, path: Path) -> RowFile:
        """The file with its format."""
        return RowFile(path, layout=self.node.layout)

    def open(self) -> Collection:
        """The collection. A row without relevant documents is a query without judgements.

        If no row has relevant documents, there are no judgements; if no row has a gold answer, no references.
        """
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.qrels, kernels.read_qrels) or self._load_qrels,
            load_queries=self._load_queries,
            load_corpus=self.loader(self.node.corpus, self._load_corpus),
            load_references=self._load_references,
            load_columns=self._load_columns,
            load_about=lambda: self.source.remarks,
            why_no_qrels=None if self.node.qrels else self._explain_no_qrels(),
        )

    def content(self) -> dict[str, Any]:
        """Also the tool whose layout changes what the rows mean, and the names that columns stand for."""
        content, tool = super().content(), self.source.tool
        if tool is not None and self._alters:
            content["layout"] = tool.word
        if spellings := self.source.list_spellings(self.node.columns):
            content["spellings"] = spellings
        return content

    def has_columns(self, key: str) -> bool:
        """Whether a file has named columns: every file except the qrels."""
        return key != "qrels"

    def columns_of(self, key: str) -> tuple[BaseModel, Sequence[column_layouts.RecordColumn]]:
        """The block that names the columns of a file, and the columns that are read from it."""
        if key == "corpus":
            return self.node.columns.corpus, self.node.columns.corpus.over(column_layouts.CORPUS, "columns", "corpus")
        query_id, text, _ = self._wanted
        return self.node.columns, [text] if self._numbers_rows else [query_id, text]

    def list_columns(self, path: Path) -> Sequence[str] | None:
        """The names of a file's columns; None if that takes long, or if the file is missing.

        Raises:
            DataError: the file with the questions cannot be read.
        """
        if path != self.source.path:
            return super().list_columns(path)
        columns = self.node.columns if self.source.is_long else self.columns
        return self.source.list_names(columns) if path.is_file() else None

    def check_columns(self, key: str, file: str, present: Sequence[str]) -> Iterator[FileFault]:
        """Also guess the column of the gold answers if that of the questions is unknown."""
        wanted = self.columns_of(key)[1]
        is_unknown = key == "path" and not any(name in present for name in self._wanted[1].known)
        for fault in super().check_columns(key, file, present):
            is_about_text = is_unknown and len(wanted) == 1 and fault.key == (key,) and not self._wanted[1].mapped
            yield fault._replace(hint=self._guess_columns(present) or fault.hint) if is_about_text else fault
        if key == "path":
            yield from self.check_rivals(key, file, self.columns, present)

    def _guess_columns(self, present: Sequence[str]) -> str | None:
        rows = [row for _, row in islice(self._rows(), _ROWS_LOOKED_AT)]
        question = column_layouts.guess_question(rows, present)
        names = {} if question is None else {"text": question}
        has_reference = bool(question_files.find_question_names(self.columns, present)["reference"])
        parts = [
            part for part in ("text", "reference") if part not in names and not (part == "reference" and has_reference)
        ]
        names |= column_layouts.guess_names(parts, present, names.values())
        return f"write {column_layouts.write_mapping(('columns',), names)}" if names else None

    def check_files(self) -> Iterator[FileFault]:
        """Check the files, and report a query that is listed twice."""
        path = self.source.path
        try:
            faults = [*super().check_files()]
            yield from faults
            if not faults and path.is_file() and (self.source.tool is None or not self.source.is_long):
                rows = () if self.node.ids == "row" else self._rows()
                yield from self.check_ids("path", rows, self._wanted[0])
        except DataError as error:
            yield FileFault(("path",), str(error), code="data")

    def describe_files(self) -> Iterator[FileReading]:
        """How the file with the questions is read; a long one by its first rows."""
        source = self.source
        if not source.path.is_file():
            return
        columns = source.resolve(self.node.columns, _MOST_DESCRIBED) if source.is_long else self.columns
        present, originals = source.unfold_names(columns), source.find_originals(columns)
        ids, text, relevant = columns.over((QUERY_ID, TEXT, _RELEVANT), "columns")
        is_numbered = self.node.ids == "row" or not (self.node.ids == "field" or {*ids.known} & {*present})
        wanted = {"query_id": () if is_numbered else ids.known, "text": text.known}
        wanted |= question_files.find_question_names(columns, present)
        wanted |= {"relevant": () if self.node.qrels is not None else relevant.known}
        found = {
            part: name for part, names in wanted.items() if (name := next((n for n in names if n in present), None))
        }
        details = [*source.list_details(), *(("ids are row numbers",) if is_numbered else ())]
        remarks = {} if source.is_long else source.remarks
        said = {question_files.normalise(key).removesuffix("_at"): value for key, value in remarks.items()}
        details += [f"{key} {said[key]}" for key in ("version", "created") if key in said]
        others = question_files.list_other_names(present, columns, {*found.values(), VARIABLES})
        shown = {part: originals.get(name, name) for part, name in found.items()}
        kept = (name for name in others if name and name not in originals.values())
        yield FileReading(self.node.path, tuple(details), shown, tuple(kept))

    def list_other_columns(self) -> Sequence[str] | None:
        """The columns that no part is read from; None if the file is too long to find them quickly."""
        present = self.list_columns(self.source.path)
        return None if present is None else self._other_names(present)

    def find_parts(self) -> frozenset[Part] | None:
        """The parts that any row has a value for; None for a long or missing file."""
        if self.source.is_long or not self.source.path.is_file():
            return None
        names = {
            **question_files.find_question_names(self.columns, list(self.source.list_names(self.columns) or ())),
            "relevant": self._wanted[2].known,
        }
        filled = question_files.find_filled((row for _, row in self._rows()), names)
        return filled if self.node.qrels is None else filled | {"relevant"}

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The place and the values of each row."""
        return self._rows()

    @cached_property
    def source(self) -> RowFile:
        """The file with the questions."""
        return self.find_source(self.context.resolve(self.node.path))

    @cached_property
    def columns(self) -> RowColumns:
        """The names of the columns, with those that the layout of a tool gives."""
        return self.source.resolve(self.node.columns)

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return self.source.rows(self.columns)

    def _load_queries(self) -> pl.DataFrame:
        import polars as pl

        query_id, text, _ = self._wanted
        if not self._numbers_rows:
            return column_layouts.queries_table(self._read((query_id, text)))
        records = self._read((text,))
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).alias("query_id")
        return column_layouts.queries_table(column_layouts.Records(records.frame.with_columns(numbers), records.locate))

    def _read(self, wanted: Sequence[column_layouts.RecordColumn]) -> column_layouts.Records:
        """Columns of the file, at once where that finds the same as reading row by row."""
        source = self.source
        if source.form == "json" and source.is_direct(self.columns):
            return read_json_lines(source.path, wanted)
        if source.form == "csv" and source.is_direct(self.columns):
            found = read_delimited(source.path, wanted, source.separator or choose_separator(source.path))
            return source.records(self.columns, wanted) if source.holds_turns(found) else found
        return source.records(self.columns, wanted)

    def _load_references(self) -> pl.DataFrame | None:
        rows = (question_files.QuestionRow(place, query_id, row) for place, query_id, row in self._questions())
        return question_files.references_table(self.source.path, rows, self.columns, "columns")

    def _load_columns(self) -> pl.DataFrame | None:
        names = self._other_names(list(dict.fromkeys(name for _, row in self._rows() for name in row)))
        return question_files.other_columns_table(((query_id, row) for _, query_id, row in self._questions()), names)

    def _other_names(self, present: Sequence[str]) -> list[str]:
        query_id, text, relevant = self._wanted
        first = next(self._rows())[1]
        read = column_layouts.chosen_names([text] if self._numbers_rows else [query_id, text], first)
        if self.node.qrels is None:
            read |= column_layouts.chosen_names([relevant], present)
        if isinstance(first.get(VARIABLES), Mapping):
            read.add(VARIABLES)
        return question_files.list_other_names(present, self.columns, read)

    def _load_qrels(self) -> pl.DataFrame | None:
        import polars as pl

        relevant = self._wanted[2]
        key, places, judgements = None, list[str](), list[tuple[str, str, str]]()
        for place, query_id, row in self._questions():
            key = key or next((name for name in relevant.known if name in row), None)
            value = row.get(key) if key else None
            listed = split_ids(place, "the list of relevant documents", value) if self._is_table else value
            for doc_id, grade in _judgements(place, listed):
                places.append(place)
                judgements.append((query_id, doc_id, grade))
        if not judgements and relevant.mapped:
            raise DataError(f"{self.source.path}: {self._explain_no_qrels()}")
        if not judgements:
            return None
        names = ("query_id", "doc_id", "relevance")
        frame = pl.DataFrame(judgements, schema=dict.fromkeys(names, pl.String), orient="row")
        return column_layouts.qrels_table(column_layouts.Records(frame, lambda index: places[index]))

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return column_layouts.corpus_table(
            read_json_lines(path, self.node.columns.corpus.over(column_layouts.CORPUS, "columns", "corpus"))
        )

    def _explain_no_qrels(self) -> str:
        relevant = self.node.columns.over((_RELEVANT,), "columns")[0]
        known = " or ".join(f"'{name}'" for name in relevant.known)
        advice = f"correct '{relevant.key}'" if relevant.mapped else f"name it in '{relevant.key}'"
        return f"no row has relevant documents in {known}; {advice}, or give 'qrels'"

    @cached_property
    def _alters(self) -> bool:
        try:
            return self.source.alters(self.node.columns)
        except DataError:
            return False  # told when the file is read

    @property
    def _is_table(self) -> bool:
        """Whether a list is one text in a cell."""
        return self.source.form in ("csv", "xlsx")

    @cached_property
    def _numbers_rows(self) -> bool:
        """Whether the number of a row is its query's id."""
        if self.node.ids != "auto" or self.node.qrels is not None or self.columns.query_id is not None:
            return self.node.ids == "row"
        return not any(key in row for _, row in self._rows() for key in column_layouts.QUESTION_IDS)

    @cached_property
    def _wanted(self) -> tuple[column_layouts.RecordColumn, ...]:
        return self.columns.over((QUERY_ID, TEXT, _RELEVANT), "columns")

    def _questions(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Place, query id and content of each row. Raises if an id is repeated."""
        column, is_numbered = self._wanted[0], self._numbers_rows
        key, seen = "", dict[str, str]()
        for number, (place, row) in enumerate(self._rows(), 1):
            query_id: str | None = str(number)
            if not is_numbered:
                key = key or column_layouts.choose_keys(place, (column,), list(row))[column]
                query_id = text_of(place, f"'{key}'", "id", row.get(key))
            if not query_id:
                raise DataError(f"{place}: no query_id")
            if query_id in seen:
                raise DataError(f"{place}: the query {query_id!r} is listed twice, first at {seen[query_id]}")
            seen[query_id] = place
            yield place, query_id, row


def _judgements(place: str, value: object) -> Iterator[tuple[str, str]]:
    """The document and grade, as text, of each relevant document of a row."""
    if isinstance(value, dict):
        grades = [(document, json.dumps(grade)) for document, grade in value.items()]
    elif value is None:
        grades = []
    else:
        grades = [(document, "1") for document in (value if isinstance(value, list) else [value])]
    for document, grade in grades:
        yield text_of(place, "the id of a relevant document", "id", document) or "", grade
