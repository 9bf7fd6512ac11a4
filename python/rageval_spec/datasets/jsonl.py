"""`jsonl`: one query per line, with its gold answer, the ids of its relevant documents, or both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from rageval_spec import kernels
from rageval_spec.data.tables import Collection
from rageval_spec.datasets.shared.files import FileDataset
from rageval_spec.diagnostics import FileFault
from rageval_spec.errors import DataError
from rageval_spec.plugin import DatasetNode
from rageval_spec.reading.json_lines import VARIABLES, json_objects, read_json_lines, read_remarks, text_of
from rageval_spec.reading.layouts import (
    CORPUS,
    QUESTION_IDS,
    QUESTIONS,
    CorpusColumns,
    corpus_table,
    qrels_table,
    queries_table,
)
from rageval_spec.reading.other_columns import other_columns_table
from rageval_spec.reading.questions import (
    QuestionColumns,
    QuestionRow,
    list_other_names,
    references_table,
)
from rageval_spec.reading.records import Column, Records, choose_keys, chosen_names

if TYPE_CHECKING:
    import polars as pl

QUERY_ID = Column(
    "query_id",
    QUESTION_IDS,
    "id",
    advice="number the rows with 'ids: row'",
)
TEXT = Column("text", QUESTIONS)
RELEVANT = Column("relevant", ("relevant", "relevant_doc_ids", "reference_context_ids", "qrels"), "id")


class JsonlColumns(QuestionColumns):
    """The names of the keys in a row, and under `corpus` those of the documents."""

    relevant: str | None = Field(
        default=None,
        description=(
            "The relevant documents: an id, a list of ids (relevance 1 each) or a map of ids to integers. Default: "
            "`relevant`, `relevant_doc_ids`, `reference_context_ids` or `qrels`."
        ),
    )
    corpus: CorpusColumns = Field(default_factory=CorpusColumns, description="The names of the keys in `corpus`.")


class JsonlNode(DatasetNode):
    """A JSON Lines file with one query per line, or a `.json` file with a list of queries. Plain, `.gz` or `.zst`."""

    former_columns: ClassVar[Mapping[str, str]] = {"fields": "", "corpus_fields": "corpus"}

    path: str = Field(description="The queries with their gold answers, their relevant documents, or both.")
    columns: JsonlColumns = Field(default_factory=JsonlColumns, description="The names of the keys in a row.")
    ids: Literal["auto", "field", "row"] = Field(
        default="auto",
        description=(
            "field: each row has an id; row: the row's number, from 1, is its id; auto: field if any row has an id or "
            "'qrels' names a file, otherwise row."
        ),
    )
    qrels: str | None = Field(
        default=None,
        description="The relevance judgements, if the rows do not have them: TREC qrels or a BEIR `.tsv` file.",
    )
    corpus: str | None = Field(default=None, description="The documents, a JSON Lines file; plain, `.gz` or `.zst`.")


class Jsonl(FileDataset[JsonlNode]):
    """Reads a JSON Lines file of queries."""

    node_type = JsonlNode
    known_as = ("json", "ndjson", "ragas", "deepeval", "golden")
    file_keys = ("path", "qrels", "corpus")

    def open(self) -> Collection:
        """The collection. A row without relevant documents is a query without judgements.

        If no row has relevant documents, there are no judgements; if no row has a gold answer, no references.
        """
        return Collection(
            name=self.context.name,
            load_qrels=self.loader(self.node.qrels, kernels.read_qrels)
            or partial(self._load_qrels, self.context.resolve(self.node.path)),
            load_queries=self.loader(self.node.path, self._load_queries),
            load_corpus=self.loader(self.node.corpus, self._load_corpus),
            load_references=partial(self._load_references, self.context.resolve(self.node.path)),
            load_columns=partial(self._load_columns, self.context.resolve(self.node.path)),
            load_about=partial(read_remarks, self.context.resolve(self.node.path)),
            why_no_qrels=None if self.node.qrels else self._explain_no_qrels(),
        )

    def has_columns(self, key: str) -> bool:
        """Whether a file has named columns: every file except the qrels."""
        return key != "qrels"

    def columns_of(self, key: str) -> tuple[BaseModel, Sequence[Column]]:
        """The block that names the keys of a file, and the keys that are read from it."""
        if key == "corpus":
            return self.node.columns.corpus, self.node.columns.corpus.over(CORPUS, "columns", "corpus")
        is_numbered = self._numbers_rows(self.context.resolve(self.node.path))
        query_id, text, _ = self._columns()
        return self.node.columns, [text] if is_numbered else [query_id, text]

    def former_content(self, named: dict[str, Any]) -> dict[str, Any]:
        """The contents of `columns:` under the two keys that preceded it."""
        corpus = named.pop("corpus")
        return {"fields": named, "corpus_fields": corpus}

    def check_files(self) -> Iterator[FileFault]:
        """Check the files, and report a query that is listed twice."""
        faults = [*super().check_files()]
        yield from faults
        path = self.context.resolve(self.node.path)
        if not faults and path.is_file():
            rows = ((f"{path}:{line}", row) for line, row in json_objects(path))
            yield from self.check_ids("path", () if self.node.ids == "row" else rows, self._columns()[0])

    def list_other_columns(self) -> Sequence[str] | None:
        """The keys of the rows that no part is read from; None if the file is too long to find them quickly."""
        path = self.context.resolve(self.node.path)
        present = self.list_columns(path)
        return None if present is None else self._other_names(path, present)

    def iterate_questions(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The place and the values of each line."""
        path = self.context.resolve(self.node.path)
        return ((f"{path}:{line}", row) for line, row in json_objects(path))

    def _load_queries(self, path: Path) -> pl.DataFrame:
        import polars as pl

        query_id, text, _ = self._columns()
        if not self._numbers_rows(path):
            return queries_table(read_json_lines(path, (query_id, text)))
        records = read_json_lines(path, (text,))
        numbers = pl.int_range(1, pl.len() + 1).cast(pl.String).alias("query_id")
        return queries_table(Records(records.frame.with_columns(numbers), records.locate))

    def _load_references(self, path: Path) -> pl.DataFrame | None:
        rows = (QuestionRow(f"{path}:{line}", query_id, row) for line, query_id, row in self._rows(path))
        return references_table(path, rows, self.node.columns, "columns")

    def _load_columns(self, path: Path) -> pl.DataFrame | None:
        names = self._other_names(path, list(dict.fromkeys(name for _, row in json_objects(path) for name in row)))
        return other_columns_table(((query_id, row) for _, query_id, row in self._rows(path)), names)

    def _other_names(self, path: Path, present: Sequence[str]) -> list[str]:
        query_id, text, relevant = self._columns()
        first = next(json_objects(path))[1]
        read = chosen_names([text] if self._numbers_rows(path) else [query_id, text], first)
        if self.node.qrels is None:
            read |= chosen_names([relevant], present)
        if isinstance(first.get(VARIABLES), Mapping):
            read.add(VARIABLES)
        return list_other_names(present, self.node.columns, read)

    def _load_qrels(self, path: Path) -> pl.DataFrame | None:
        import polars as pl

        relevant = self._columns()[2]
        key, lines, judgements = None, list[int](), list[tuple[str, str, str]]()
        for line, query_id, row in self._rows(path):
            key = key or next((name for name in relevant.known if name in row), None)
            for doc_id, grade in _judgements(f"{path}:{line}", row.get(key) if key else None):
                lines.append(line)
                judgements.append((query_id, doc_id, grade))
        if not judgements and relevant.mapped:
            raise DataError(f"{path}: {self._explain_no_qrels()}")
        if not judgements:
            return None
        names = ("query_id", "doc_id", "relevance")
        frame = pl.DataFrame(judgements, schema=dict.fromkeys(names, pl.String), orient="row")
        return qrels_table(Records(frame, lambda index: f"{path}:{lines[index]}"))

    def _load_corpus(self, path: Path) -> pl.DataFrame:
        return corpus_table(read_json_lines(path, self.node.columns.corpus.over(CORPUS, "columns", "corpus")))

    def _explain_no_qrels(self) -> str:
        relevant = self._columns()[2]
        known = " or ".join(f"'{name}'" for name in relevant.known)
        advice = f"correct '{relevant.key}'" if relevant.mapped else f"name it in '{relevant.key}'"
        return f"no row has relevant documents in {known}; {advice}, or give 'qrels'"

    def _numbers_rows(self, path: Path) -> bool:
        """Whether the number of a row is its query's id."""
        if self.node.ids != "auto" or self.node.qrels is not None or self.node.columns.query_id is not None:
            return self.node.ids == "row"
        return not any(key in row for _, row in json_objects(path) for key in QUESTION_IDS)

    def _columns(self) -> tuple[Column, ...]:
        return self.node.columns.over((QUERY_ID, TEXT, RELEVANT), "columns")

    def _rows(self, path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Line number, query id and content of each row. Raises if an id is repeated."""
        column, is_numbered = self._columns()[0], self._numbers_rows(path)
        key, seen = "", dict[str, int]()
        for number, (line, row) in enumerate(json_objects(path), 1):
            place = f"{path}:{line}"
            query_id: str | None = str(number)
            if not is_numbered:
                key = key or choose_keys(place, (column,), list(row))[column]
                query_id = text_of(place, f"'{key}'", "id", row.get(key))
            if not query_id:
                raise DataError(f"{place}: no query_id")
            if seen.setdefault(query_id, line) != line:
                raise DataError(f"{place}: the query {query_id!r} is listed twice, first at {path}:{seen[query_id]}")
            yield line, query_id, row


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


PLUGIN = Jsonl
