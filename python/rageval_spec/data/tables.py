"""The tables of an evaluation: their columns, and functions that build, filter and load them.

- queries: `query_id: str, text: str`
- corpus: `doc_id: str, title: str, text: str`
- qrels: `query_id: str, doc_id: str, relevance: i64`
- run: `query_id: str, doc_id: str, score: f64`, grouped by query, best first
- references: `query_id: str, references: list[str], reference_contexts: list[str] or null, answerable: bool or null,
  group: str or null, condition: str or null`
- columns: `query_id: str, columns: str`, a JSON object of the question's other columns
- answers: `query_id: str, answer: str or null, contexts: list[str] or null, context_ids: list[str] or null, scores:
  list[f64] or null, seconds: f64 or null, input_tokens: i64 or null, output_tokens: i64 or null, cost: f64 or null,
  error: str or null, trace: str or null, steps: str or null, cache_read_tokens, cache_write_tokens: i64 or null,
  truncated: bool or null, answer_columns, asked, context_places, citations: str or null` (`trace` on: may be absent)
- values: `dataset, system, metric, query_id: str, value: f64 or null, status: str, reason: str or null`
- samples: the columns `SAMPLE_COLUMNS`; `dataset, system, query_id, references, slices` and `status` are never null
- documents: `document: i64` (the document's number, from 0), `doc_id: str or null, text: str`

In the samples, `rank` is a judged document's place in the run or among the contexts, from 1; null if it is not there.
`columns` is a JSON object of the question's other columns, `status` a `SampleStatus`, `trace` a `TraceLink` as JSON.

Documents hold the texts of all contexts, each once. A text under two ids, or two texts under one id, are two documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice, repeat
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.libraries import np, pl
from rageval_spec.store.stored_tables import AnyTable, StoredTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.data.evidence.passages import PassageRelevance

Status = Literal["scored", "unscorable", "error"]
SampleStatus = Literal["answered", "failed", "unfinished", "retrieved"]
"""What became of a question; unfinished: it was not asked because the evaluation stopped."""

QUERIES = ("query_id", "text")
CORPUS = ("doc_id", "title", "text")
QRELS = ("query_id", "doc_id", "relevance")
RUN = ("query_id", "doc_id", "score")
REFERENCES = ("query_id", "references", "reference_contexts", "answerable", "group", "condition")
ANSWERS = (
    "query_id", "answer", "contexts", "context_ids", "scores", "seconds", "input_tokens", "output_tokens", "cost",
    "error",
)  # fmt: skip
STEPS = "steps"
"""What an agent did for an answer: a JSON list of rows of `data.traces.Step`."""
CACHE_TOKENS = ("cache_read_tokens", "cache_write_tokens")
"""The input tokens that came from the provider's cache, or went there."""
TRUNCATED = "truncated"
"""Whether the model stopped at its token limit; null if it did not, or does not say."""
ANSWER_COLUMNS = "answer_columns"
"""The other columns of a recorded answer, a JSON object."""
ASKED = "asked"
"""When an answer was asked that was not asked now: ISO 8601, in UTC; null if it was asked now, or is not known."""
# JSON: where each context is in its document, `[document, start, end]` or null; and what the answer cites.
CONTEXT_PLACES, CITATIONS = "context_places", "citations"
LATER_ANSWERS = ("trace", STEPS, *CACHE_TOKENS, TRUNCATED, ANSWER_COLUMNS, ASKED, CONTEXT_PLACES, CITATIONS)
"""Columns that answers can also have. A system's table may lack them."""
UNFINISHED = "is_unfinished"
"""An optional column beside `ANSWERS`: true if the evaluation stopped before the system was asked."""
VALUES = ("dataset", "system", "metric", "query_id", "value", "status", "reason")


Kind = Literal["text", "texts", "number", "numbers", "count", "flag", "judgements"]
"""What the values of a column are; `judgements` are structs of `doc_id, relevance, rank`."""


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """A column of samples: what files, reports, cards and redaction need to know of it.

    Attributes:
        is_later: whether files of earlier versions lack it.
        redact: the word of the spec's `redact:` that leaves it out; None if nothing does.
        readers: who reads its texts, so that reasons ("metrics") or errors and steps ("systems") can quote them.
        row: its place in the report `samples`; None if it is not there.
        label: how cards show a value that no other part of them shows: `finish reason: length`; None to leave it out.
    """

    name: str
    kind: Kind = "text"
    is_later: bool = False
    redact: str | None = None
    readers: tuple[Literal["metrics", "systems"], ...] = ()
    row: int | None = None
    label: str | None = None


_BOTH: tuple[Literal["metrics", "systems"], ...] = ("metrics", "systems")
SAMPLE_COLUMNS = (
    SampleColumn("dataset", row=1),
    SampleColumn("system", row=2),
    SampleColumn("query_id", row=3),
    SampleColumn("question", row=4, redact="question", readers=_BOTH),
    SampleColumn("answer", row=5, redact="answer", readers=_BOTH),
    SampleColumn("contexts", "texts", row=7, redact="contexts", readers=_BOTH),
    SampleColumn("context_ids", "texts", row=8),
    SampleColumn("references", "texts", row=6, redact="reference", readers=("metrics",)),
    SampleColumn("reference_contexts", "texts", redact="reference_contexts", readers=_BOTH),
    SampleColumn("relevant", "judgements"),
    SampleColumn("answerable", "flag"),
    SampleColumn("group", redact="group", readers=("metrics",)),
    SampleColumn("condition", redact="condition", readers=("metrics",)),
    SampleColumn("error", row=10, redact="error"),
    SampleColumn("seconds", "number"),
    SampleColumn("input_tokens", "count"),
    SampleColumn("output_tokens", "count"),
    SampleColumn("cost", "number"),
    SampleColumn("scores", "numbers", is_later=True),
    SampleColumn("columns", is_later=True, row=13, redact="columns", readers=("metrics",)),
    SampleColumn("slices", "texts", is_later=True, row=12),
    SampleColumn("status", is_later=True, row=9),
    SampleColumn("cause", is_later=True, row=11),
    SampleColumn("trace", is_later=True),
    SampleColumn(STEPS, is_later=True),
    SampleColumn(TRUNCATED, "flag", is_later=True),
    SampleColumn(ASKED, is_later=True),
    SampleColumn(CITATIONS, is_later=True, redact="answer"),
)
"""The columns of samples in the order of their files."""
SAMPLES = tuple(one.name for one in SAMPLE_COLUMNS)
FIRST_SAMPLES = tuple(one.name for one in SAMPLE_COLUMNS if not one.is_later)
"""The columns that a file of samples always had. The others are null in files of earlier versions."""
_ROWS_AT_ONCE = 4096
SHOWN_DOCUMENTS = 10
"""How many documents of its run are in the sample of a system that only retrieves."""


def empty_samples() -> pl.DataFrame:
    """A samples table without rows, with all columns of `SAMPLES` and their types."""
    return pl.DataFrame(schema={one.name: _find_type(one.kind) for one in SAMPLE_COLUMNS})


def _find_type(kind: Kind) -> pl.DataType:
    judged = pl.Struct({"doc_id": pl.String(), "relevance": pl.Int64(), "rank": pl.Int64()})
    types: dict[Kind, pl.DataType] = {
        "text": pl.String(), "texts": pl.List(pl.String()), "number": pl.Float64(), "numbers": pl.List(pl.Float64()),
        "count": pl.Int64(), "flag": pl.Boolean(), "judgements": pl.List(judged),
    }  # fmt: skip
    return types[kind]


def type_samples(samples: pl.DataFrame) -> pl.DataFrame:
    """Samples with their columns in order and of the right types, whose structs may lack later fields.

    Without a status, a row has failed if it has an error, and else it is answered.
    """
    empty = empty_samples()
    status = pl.when(pl.col("error").is_null()).then(pl.lit("answered")).otherwise(pl.lit("failed"))
    typed = samples.select(empty.columns).match_to_schema(
        empty.schema, missing_struct_fields="insert", integer_cast="upcast", float_cast="upcast"
    )
    no_texts = pl.lit([], dtype=pl.List(pl.String))
    return typed.with_columns(pl.col("references", "slices").fill_null(no_texts), pl.col("status").fill_null(status))


class SampleTable:
    """The samples of an evaluation, from a run or from files. Nothing is made or read before they are asked for."""

    def __init__(self, stream: Callable[[], Iterable[pl.DataFrame]] = tuple) -> None:
        """Take a function that gives the rows in blocks of any size."""
        self._stream = stream

    @cached_property
    def whole(self) -> pl.DataFrame:
        """All rows: columns `SAMPLES`."""
        return pl.concat([*self._stream()] or [empty_samples()])

    @property
    def is_held(self) -> bool:
        """Whether the whole table is in memory."""
        return "whole" in vars(self)

    def blocks(self) -> Iterator[pl.DataFrame]:
        """All rows in blocks. This takes less memory than the whole table."""
        for block in [self.whole] if self.is_held else self._stream():
            yield from block.iter_slices(_ROWS_AT_ONCE)

    def select(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some columns, as far as the table has them. The others are never all in memory."""
        parts = (block.select(name for name in columns if name in block.columns) for block in self.blocks())
        return pl.concat([*map(share_repeats, parts)] or [empty_samples().select(columns)])

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """The rows that share the columns of `wanted`, such as `dataset, system, query_id`."""
        found = (block.join(wanted, on=wanted.columns, how="semi", maintain_order="left") for block in self.blocks())
        return pl.concat([_separate(rows) for rows in found if rows.height] or [empty_samples()])


def _separate(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without the texts of the block that they were taken from, which Polars keeps with them."""
    from io import BytesIO

    buffer = BytesIO()
    rows.write_ipc(buffer)
    buffer.seek(0)
    return pl.read_ipc(buffer)


def dump_parquet(table: pl.DataFrame, metadata: Mapping[str, str] | None = None) -> bytes:
    """The table as the bytes of a Parquet file, with `metadata` in its footer. Equal content gives equal bytes."""
    from io import BytesIO

    buffer = BytesIO()
    table.write_parquet(buffer, metadata=dict(metadata) if metadata else None)
    return buffer.getvalue()


def answers_table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """An answers table with all columns of `ANSWERS` and `LATER_ANSWERS` and their types; absent keys become nulls."""
    kinds: dict[str, Kind] = {one.name: one.kind for one in SAMPLE_COLUMNS} | dict.fromkeys(CACHE_TOKENS, "count")
    schema = {name: _find_type(kinds.get(name, "text")) for name in (*ANSWERS, *LATER_ANSWERS)}
    complete = ({name: row.get(name) for name in schema} for row in rows)
    frames = [pl.DataFrame(schema=schema)]
    while part := list(islice(complete, _ROWS_AT_ONCE)):  # dicts of all rows would take several times the memory
        frames.append(pl.DataFrame(part, schema=schema))
    return pl.concat(frames)


def references_of(rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """A references table of rows with the values of `REFERENCES` in order."""
    return pl.DataFrame(list(rows), schema=empty_samples().select(REFERENCES).schema, orient="row")


_ROWS_IN_CHUNK = 2**14


def share_repeats(table: pl.DataFrame, rows: pl.Series | None = None) -> pl.DataFrame:
    """The same table in chunks of rows, in which a column that repeats one text, or nothing, takes no memory.

    All chunks of such a column are one. Each other text takes 16 bytes, however short it is, and so does a null.
    `rows` are the numbers of the wanted rows, in their order; by default all.
    """
    height = table.height if rows is None else len(rows)
    if height < _ROWS_AT_ONCE:
        return table if rows is None else table.select(pl.all().gather(rows))
    columns = {name: _find_repeated(table[name]) for name in table.columns}
    chunks = []
    for start in range(0, height, _ROWS_IN_CHUNK):
        size = min(_ROWS_IN_CHUNK, height - start)
        wanted = None if rows is None else rows.slice(start, size)
        parts = (
            _repeat(*one, size).alias(name)
            if isinstance(one, tuple)
            else one.slice(start, size).rechunk()
            if wanted is None
            else one.gather(wanted)
            for name, one in columns.items()
        )
        chunks.append(pl.DataFrame([*parts]))
    return pl.concat(chunks, rechunk=False)


def _find_repeated(column: pl.Series) -> pl.Series | tuple[str | None, pl.DataType]:
    """The only text of a column, or None if all are null, with its type; the column itself if it has other values."""
    if column.null_count() == len(column):
        return None, column.dtype
    is_text = column.dtype == pl.String and not column.has_nulls()
    return (column[0], column.dtype) if is_text and (column == column[0]).all() else column


@lru_cache(maxsize=64)
def _repeat(value: str | None, dtype: pl.DataType, rows: int) -> pl.Series:
    return pl.Series([value], dtype=dtype).new_from_index(0, rows)


T = TypeVar("T", bound=AnyTable)


def only_queries(table: T, wanted: pl.DataFrame) -> T:
    """The rows of `table` whose `query_id` is in `wanted`, in the order of `table`."""
    if isinstance(table, StoredTable):
        rows = only_queries(table.select("query_id").with_row_index("row"), wanted)
        return table.take(rows["row"])  # type: ignore[return-value]
    ids = wanted.select("query_id").unique()
    return table.join(ids, on="query_id", how="semi", maintain_order="left")  # type: ignore[return-value]


def join_queries(queries: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The rows of `queries`, each with that of the same query in `other`, or nulls.

    A join needs far more memory than tables of the same queries, which only have to be set side by side.
    """
    ids, others = queries["query_id"], other["query_id"]
    if ids.equals(others) and holds_each_once(ids):
        return queries.with_columns(other.drop("query_id").get_columns())
    if other.height > queries.height:
        other = other.join(queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
    return queries.join(other, on="query_id", how="left", maintain_order="left")


def holds_each_once(ids: pl.Series) -> bool:
    """Whether no id is there twice. Two ids of one hash count as one, which costs a join and changes nothing.

    To find repeated ids themselves takes five times the memory.
    """
    hashes = ids.hash().sort()
    return not (hashes == hashes.shift(1)).any()


def join_blocks(queries: pl.DataFrame, *others: AnyTable | None) -> Iterator[pl.DataFrame]:
    """The rows of `queries` in blocks, each row with that of the same query in every other table, or nulls.

    Only the numbers of the rows are joined; the rows are gathered block by block. A join of whole tables would hold a
    copy of all texts. A column that several tables have is taken from the first.
    """
    places = queries.select("query_id").with_row_index("place_0")
    columns: dict[str, AnyTable] = {"place_0": queries}
    known = set(queries.columns)
    for number, other in enumerate((table for table in others if table is not None), 1):
        places = join_queries(places, other.select("query_id").with_row_index(f"place_{number}"))
        columns[f"place_{number}"] = other.drop(name for name in other.columns if name in known)
        known.update(other.columns)
    for block in places.iter_slices(_ROWS_AT_ONCE):
        gathered = [_gather(table, block[place]) for place, table in columns.items() if table.width]
        yield pl.concat(gathered, how="horizontal")


BATCH = 2**25
"""About the most bytes of documents in a batch; a single document can be longer."""


@dataclass(frozen=True, slots=True)
class CorpusSize:
    """How large a corpus is: the documents, and the bytes (UTF-8) of their ids, titles and texts.

    `is_exact` is False if both are estimated from the size of the file and its first documents.
    """

    documents: int
    content: int
    is_exact: bool


class CorpusReader:
    """The documents of a corpus, `doc_id: str, title: str, text: str`, in the order of their file.

    Nothing is read before it is asked for.
    """

    def __init__(
        self, stream: Callable[[], Iterator[pl.DataFrame]], measure: Callable[[], CorpusSize] | None = None
    ) -> None:
        """Take functions that give the documents in batches from the start, and that find the size without that."""
        self._stream, self._measure = stream, measure
        self._loading, self._counted = Lock(), -1

    @cached_property
    def _table(self) -> pl.DataFrame:
        return pl.concat(self._stream())

    @property
    def table(self) -> pl.DataFrame:
        """All documents, read once for all threads. Raises DataError: one cannot be read."""
        with self._loading:
            return self._table

    def batches(self) -> Iterator[pl.DataFrame]:
        """The documents from the start in batches of at most `BATCH` bytes; of the table if it is in memory.

        Raises DataError, as the last thing, where a document cannot be read or an id is there twice.
        """
        if "_table" in vars(self):
            yield from bound_batches(self.table)
            return
        count, size, held = 0, 0, list[pl.DataFrame]()
        for frame in self._stream():
            yield from bound_batches(frame)
            count, size = count + frame.height, size + int(frame.estimated_size())
            held = [*held, frame] if size <= BATCH else []
        self._counted = count
        if held:  # small enough to be kept for who reads next
            vars(self)["_table"] = pl.concat(held)

    def count(self) -> int:
        """How many documents there are. They are read for that only if they were not read to the end before."""
        if "_table" in vars(self):
            return self.table.height
        if self._counted < 0:
            self._counted = sum(batch.height for batch in self.batches())
        return self._counted

    @cached_property
    def size(self) -> CorpusSize:
        """The number of documents and the bytes of their content, estimated where all would have to be read."""
        if self._measure is None or "_table" in vars(self):
            content = self.table.select(pl.sum_horizontal(pl.col(pl.String).str.len_bytes().sum())).item()
            return CorpusSize(self.table.height, int(content), is_exact=True)
        return self._measure()


def hold_corpus(table: pl.DataFrame) -> CorpusReader:
    """The reader of a corpus that is in memory."""
    return CorpusReader(lambda: iter([table]))


def bound_batches(frame: pl.DataFrame, most: int = BATCH) -> Iterator[pl.DataFrame]:
    """The frame in slices of at most about `most` bytes each, by the mean size of its rows."""
    parts = max(1, -(-int(frame.estimated_size()) // most))
    yield from frame.iter_slices(max(1, -(-frame.height // parts)))


def _gather(table: AnyTable, places: pl.Series) -> pl.DataFrame:
    return table.gather(places) if isinstance(table, StoredTable) else table.select(pl.all().gather(places))


@dataclass(frozen=True)
class Collection:
    """One dataset. Its large parts are loaded when they are first read.

    Attributes:
        name: the key under `datasets:`.
        load_queries, load_corpus, load_qrels, load_references, load_columns: return the table (columns: see this
            module) or raise `DataError`; None if the dataset has no such part. The last three can also return None, if
            that shows only when the files are read. `load_corpus` can return a reader of the table in batches.
        why_no_qrels: if judgements were expected and not found, the reason and what to do.
        load_about: returns what the dataset's file says about itself; None if its format has no place for that.
        differences: what is not as it was ordered, for questions that were made for this evaluation: a sentence each.
        identify: returns a hash of what the corpus is read from, for what is kept of it; None if nothing may be kept.
        load_passages: returns the passages from which the judgements of a ranking follow, or None.
        repeat: how often each question is asked; if more than once, its ids are `q1#1`, `q1#2` and so on.
        drops_self_retrieval: True if the benchmark's rules drop a document whose id is the query's (BEIR).
    """

    name: str
    load_qrels: Callable[[], pl.DataFrame | None] | None = None
    load_queries: Callable[[], pl.DataFrame] | None = None
    load_corpus: Callable[[], pl.DataFrame | CorpusReader] | None = None
    drops_self_retrieval: bool = False
    load_references: Callable[[], pl.DataFrame | None] | None = None
    why_no_qrels: str | None = None
    load_columns: Callable[[], pl.DataFrame | None] | None = None
    load_about: Callable[[], Mapping[str, Any]] | None = None
    differences: tuple[str, ...] = ()
    identify: Callable[[], str] | None = None
    load_passages: Callable[[], PassageRelevance | None] | None = None
    repeat: int = 1

    def __post_init__(self) -> None:
        """Make sure that each part is loaded once, also for copies made with `dataclasses.replace`."""
        for part in ("qrels", "queries", "corpus", "references", "columns", "about", "passages"):
            name = f"load_{part}"
            load = getattr(self, name)
            if load is not None and not hasattr(load, "cache_info"):
                object.__setattr__(self, name, cache(load))

    @cached_property
    def qrels(self) -> pl.DataFrame | None:
        """Relevance judgements, or None."""
        return self.load_qrels() if self.load_qrels else None

    @cached_property
    def passages(self) -> PassageRelevance | None:
        """The passages of the questions, or None."""
        return self.load_passages() if self.load_passages else None

    @cached_property
    def queries(self) -> pl.DataFrame | None:
        """Query texts, or None."""
        return self.load_queries() if self.load_queries else None

    @property
    def questions(self) -> pl.DataFrame | None:
        """The table that says which questions there are: the queries, or else the judgements."""
        return self.qrels if self.queries is None else self.queries

    @cached_property
    def corpus(self) -> pl.DataFrame | None:
        """All documents, or None. `stream_corpus` takes less memory."""
        return None if self.documents is None else self.documents.table

    @cached_property
    def documents(self) -> CorpusReader | None:
        """The corpus before any of it is read; None if there is none."""
        loaded = self.load_corpus() if self.load_corpus else None
        return loaded if loaded is None or isinstance(loaded, CorpusReader) else hold_corpus(loaded)

    @property
    def corpus_size(self) -> CorpusSize | None:
        """How large the corpus is, found without reading all of it; None if there is none.

        Raises:
            DataError: its first documents cannot be read.
        """
        return None if self.documents is None else self.documents.size

    def find_documents(self, ids: pl.Series, reader: str = "retrieval") -> pl.DataFrame:
        """The documents with these ids, in the order of the corpus; others are not kept in memory.

        Raises:
            DataError: the dataset has no corpus, or a document cannot be read.
        """
        wanted = pl.DataFrame({"doc_id": ids.unique()})
        parts = self.stream_corpus(reader)
        return pl.concat(part.join(wanted, on="doc_id", how="semi", maintain_order="left") for part in parts)

    def stream_corpus(self, reader: str = "retrieval") -> Iterator[pl.DataFrame]:
        """The documents in the order of their file, in batches of about `BATCH` bytes at most.

        Each call reads from the start, unless all documents are in memory already. What is wrong with a document, also
        an id that an earlier batch has, raises when its batch is read; `reader` names who reads, as in `require`.

        Raises:
            DataError: the dataset has no corpus (at once), or a document cannot be read (on the way).
        """
        if self.documents is None:
            raise self._lacks("corpus", reader)
        return self.documents.batches()

    @cached_property
    def references(self) -> pl.DataFrame | None:
        """Gold answers and the other columns of `REFERENCES`, or None."""
        return self.load_references() if self.load_references else None

    @cached_property
    def columns(self) -> pl.DataFrame | None:
        """The columns of the question file that no part is read from, such as `difficulty`; None if there are none.

        Each query's are a JSON object with sorted keys; text, numbers, booleans, lists and objects are as in the file.
        """
        return self.load_columns() if self.load_columns else None

    @cached_property
    def about(self) -> Mapping[str, Any]:
        """What the file of questions says about itself, such as `version`, `created` or `metadata`, as in the file.

        Values that are longer than 10,000 characters as JSON are left out. Empty if the file says nothing.
        """
        return self.load_about() if self.load_about else {}

    @cached_property
    def repeats_queries(self) -> bool | None:
        """Whether documents that share a query's id also share its text, in at least half of the cases.

        None if this cannot be decided: there are no queries, there is no corpus, or no id is in both.
        """
        if self.queries is None or self.documents is None:
            return None
        documents = self.find_documents(self.queries["query_id"])
        shared = self.queries.join(documents, left_on="query_id", right_on="doc_id", suffix="_of_document")
        if not shared.height:
            return None
        query, title, text = (
            pl.col(name).str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
            for name in ("text", "title", "text_of_document")
        )
        document, holds = pl.concat_str(title, pl.lit(" "), text), (text != "") & query.str.contains(text, literal=True)
        agrees = (query != "") & (document.str.contains(query, literal=True) | holds)
        return bool(2 * shared.select(agrees.sum()).item() >= shared.height)

    def require(self, part: Literal["queries", "corpus"], reader: str) -> pl.DataFrame:
        """The queries or the corpus; `reader` names the part of the program that needs them, for the message.

        Raises:
            DataError: the dataset has no such part.
        """
        table = self.queries if part == "queries" else self.corpus
        if table is None:
            raise self._lacks(part, reader)
        return table

    def _lacks(self, part: str, reader: str) -> DataError:
        wanted = "a corpus" if part == "corpus" else part
        return DataError(f"{reader} needs {wanted}, but the dataset '{self.name}' has none")


def document_texts(corpus: pl.DataFrame) -> pl.Series:
    """The text that retrieval reads of each document: title and text joined by a space, stripped of white space."""
    return corpus.select(pl.concat_str("title", "text", separator=" ").str.strip_chars()).to_series()


DOCUMENTS = ("document", "doc_id", "text")
NUMBERS = "documents"
"""The column of a file of samples that holds the numbers of the contexts, in place of their texts."""
_DIGEST_SIZE = 16


def empty_documents() -> pl.DataFrame:
    """A documents table without rows, with all columns of `DOCUMENTS` and their types."""
    return pl.DataFrame(schema={"document": pl.Int64, "doc_id": pl.String, "text": pl.String})


class DocumentNumbers:
    """Numbers the documents of samples, in the order in which they first appear. It keeps digests, not texts."""

    def __init__(self) -> None:
        """Start with no documents."""
        self._recent: dict[bytes, int] = {}
        self._settled: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] | None = None
        """The digests of all others, as pairs of numbers sorted by the first one, and the documents' numbers.

        They are in parts, because sorting needs several times the memory of what is sorted.
        """
        self._count = 0

    def take(self, samples: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
        """The numbers of each sample's contexts (null if it has none), and the documents that are new."""
        rows = samples.select("contexts", "context_ids").with_row_index("row")
        texts = pl.col("contexts").list.len()
        inside = rows.with_columns(pl.col("context_ids").list.head(texts)).filter(texts > 0)
        shown = explode_contexts(inside)
        distinct = shown.select("doc_id", "text").unique(maintain_order=True)
        before = self._count
        numbers = self._find([_digest(doc_id, text) for doc_id, text in distinct.iter_rows()])
        numbered = distinct.select(pl.Series("document", numbers, dtype=pl.Int64), "doc_id", "text")
        found = shown.join(numbered, on=["doc_id", "text"], how="left", nulls_equal=True, maintain_order="left")
        lists = found.group_by("row", maintain_order=True).agg(pl.col("document").alias(NUMBERS))
        none = pl.when(pl.col("contexts").is_not_null()).then(pl.lit([], pl.List(pl.Int64)))
        column = rows.select("row", none=none).join(lists, on="row", how="left", maintain_order="left")
        new = numbered.filter(pl.col("document") >= before)
        return column.select(pl.coalesce(NUMBERS, "none")).to_series(), new

    def _find(self, digests: Sequence[bytes]) -> list[int]:
        """The number of each digest; a new one gets the next."""
        if len(self._recent) > _MOST_RECENT:
            self._settle()
        numbers = []
        for digest, settled in zip(digests, self._find_settled(digests), strict=True):
            number = self._recent.setdefault(digest, self._count) if settled is None else settled
            self._count += number == self._count
            numbers.append(number)
        return numbers

    def _find_settled(self, digests: Sequence[bytes]) -> Iterable[int | None]:
        """The numbers of those of the digests that are among the sorted ones."""
        if self._settled is None:  # most evaluations are small, and need no numpy
            return repeat(None, len(digests))
        pairs = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
        found: list[int | None] = [None] * len(digests)
        for part, (known, numbers) in enumerate(self._settled):
            inside = np.flatnonzero(pairs[:, 0] % _PARTS == part) if len(known) else np.empty(0, np.int64)
            wanted = pairs[inside]
            places = np.searchsorted(known[:, 0], wanted[:, 0])
            places[places == len(known)] = 0
            is_known = (known[places] == wanted).all(axis=1)
            for place, number in zip(inside[is_known].tolist(), numbers[places[is_known]].tolist(), strict=True):
                found[place] = number
        return found

    def _settle(self) -> None:
        """Move the recent digests to the sorted ones, which take a tenth of the memory."""
        added = np.frombuffer(b"".join(self._recent), dtype=np.uint64).reshape(-1, 2)
        numbers = np.fromiter(self._recent.values(), np.int64)
        self._recent = {}
        settled = self._settled or [(added[:0], numbers[:0])] * _PARTS
        for part, (known, before) in enumerate(settled):
            inside = added[:, 0] % _PARTS == part
            merged = np.concatenate([known, added[inside]])
            order = np.argsort(merged[:, 0], kind="stable")
            settled[part] = merged[order], np.concatenate([before, numbers[inside]])[order]
        self._settled = settled


_MOST_RECENT = 100_000
_PARTS = 16


def explode_contexts(rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each context of samples: `row, doc_id, text`; its id, or its text, can be null."""
    lists = rows.select("row", doc_id="context_ids", text="contexts")
    ids, texts = (pl.col(name).list.len().fill_null(0) for name in ("doc_id", "text"))
    lacking = pl.max_horizontal(ids, texts)
    padded = lists.with_columns(
        pl.when(length == lacking)
        .then(name)
        .otherwise(pl.concat_list(pl.col(name).fill_null([]), pl.lit(None, pl.String).repeat_by(lacking - length)))
        .alias(name)
        for name, length in (("doc_id", ids), ("text", texts))
    )
    return padded.filter(lacking > 0).explode("doc_id", "text")


def restore_contexts(samples: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Samples of a file with the column `contexts` instead of the numbers of documents.

    Raises:
        LookupError: a context is none of the documents.
    """
    texts: Mapping[int, Any] = dict(documents.select("document", "text").iter_rows())
    lacking = set(samples[NUMBERS].explode().drop_nulls()) - texts.keys()
    if lacking:
        raise LookupError(f"a context is document {min(lacking)}, which the table of documents lacks")
    contexts = [None if found is None else [texts[number] for number in found] for found in samples[NUMBERS]]
    return samples.with_columns(pl.Series("contexts", contexts, dtype=pl.List(pl.String))).drop(NUMBERS)


def _digest(doc_id: str | None, text: str) -> bytes:
    content = f"{'' if doc_id is None else len(doc_id)}:{doc_id or ''}:{text}"
    return hashlib.blake2b(content.encode("utf-8", "backslashreplace"), digest_size=_DIGEST_SIZE).digest()
