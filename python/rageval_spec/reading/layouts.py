"""Known column names, the blocks of a spec that set other names, and the checks that turn records into tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rageval_spec.errors import DataError
from rageval_spec.reading.json_path import parse_path
from rageval_spec.reading.records import Column, Records

if TYPE_CHECKING:
    import polars as pl

QUERIES = (
    Column("query_id", ("query_id", "_id", "id"), "id"),
    Column("text", ("text", "query", "question", "user_input")),
)
CORPUS = (
    Column("doc_id", ("doc_id", "_id", "id"), "id"),
    Column("title", ("title",), required=False),
    Column("text", ("text", "contents")),
)
QRELS = (
    Column("query_id", ("query_id", "query-id", "qid"), "id"),
    Column("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    Column("relevance", ("relevance", "score", "label"), "number"),
)
RUN = (
    Column("query_id", ("query_id", "query-id", "qid"), "id"),
    Column("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    Column("score", ("score",), "number"),
)
QUESTION_IDS = ("query_id", "_id", "id", "question_id", "qid")
"""The names of the ids of questions that are in the same file as their gold answers."""
QUESTIONS = ("query", "question", "text", "user_input", "input", "prompt")
"""The names of the texts of such questions."""
LARGEST_EXACT = 2**53
"""Floats below this represent every integer exactly. This one can also be its rounded neighbour, so it is refused."""


def _names(columns: Sequence[Column], name: str) -> str:
    known = next(column.known for column in columns if column.name == name)
    return " or ".join(f"`{word}`" for word in known)


class _Mapping(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            parse_path(value)
        return value

    def over(self, columns: Sequence[Column], *setting: str) -> tuple[Column, ...]:
        """The columns; those that this block names are looked up only under that name.

        Args:
            setting: the keys that lead to this block in its node: `"columns", "corpus"`.
        """
        return tuple(self._named(column, setting) for column in columns)

    def _named(self, column: Column, setting: tuple[str, ...]) -> Column:
        name = getattr(self, column.name, None)
        if name is None:
            return column._replace(setting=setting)
        return column._replace(known=(name,), mapped=True, advice="", setting=setting)


class QueryColumns(_Mapping):
    """The names of the columns of the queries."""

    query_id: str | None = Field(default=None, description=f"The query's id. Default: {_names(QUERIES, 'query_id')}.")
    text: str | None = Field(default=None, description=f"The query's text. Default: {_names(QUERIES, 'text')}.")


class CorpusColumns(_Mapping):
    """The names of the columns of the documents."""

    doc_id: str | None = Field(default=None, description=f"The document's id. Default: {_names(CORPUS, 'doc_id')}.")
    title: str | None = Field(default=None, description="The document's title, optional. Default: `title`.")
    text: str | None = Field(default=None, description=f"The document's text. Default: {_names(CORPUS, 'text')}.")


class QrelsColumns(_Mapping):
    """The names of the columns of the relevance judgements."""

    query_id: str | None = Field(default=None, description=f"The query's id. Default: {_names(QRELS, 'query_id')}.")
    doc_id: str | None = Field(default=None, description=f"The document's id. Default: {_names(QRELS, 'doc_id')}.")
    relevance: str | None = Field(
        default=None, description=f"The relevance, an integer. Default: {_names(QRELS, 'relevance')}."
    )


class RunColumns(_Mapping):
    """The names of the columns of a run."""

    query_id: str | None = Field(default=None, description=f"The query's id. Default: {_names(RUN, 'query_id')}.")
    doc_id: str | None = Field(default=None, description=f"The document's id. Default: {_names(RUN, 'doc_id')}.")
    score: str | None = Field(default=None, description="The document's score. Default: `score`.")


def queries_table(records: Records) -> pl.DataFrame:
    """`query_id, text`. An empty text stays.

    Raises:
        DataError: a row without an id or text, an id twice.
    """
    import polars as pl

    _refuse_missing(records, "query_id")
    _refuse(records, pl.col("text").is_null(), "the query {query_id!r} has no text")
    _refuse_twice(records, ("query_id",), "the query {query_id!r} is listed twice")
    return records.frame.select("query_id", "text")


def corpus_table(records: Records) -> pl.DataFrame:
    """`doc_id, title, text`. A missing title is "", and so is a missing text if there is a title.

    Raises:
        DataError: a row without an id, with neither title nor text, an id twice.
    """
    import polars as pl

    _refuse_missing(records, "doc_id")
    bare = pl.col("title").is_null() & pl.col("text").is_null()
    _refuse(records, bare, "the document {doc_id!r} has neither title nor text")
    _refuse_twice(records, ("doc_id",), "the document {doc_id!r} is listed twice")
    return records.frame.select("doc_id", pl.col("title", "text").fill_null(""))


def qrels_table(records: Records) -> pl.DataFrame:
    """`query_id, doc_id, relevance`, in the order of the records. A relevance of `1.0` is 1.

    Raises:
        DataError: a row has no id, a relevance is not an integer, or a document is judged twice for a query.
    """
    for name in ("query_id", "doc_id"):
        _refuse_missing(records, name)
    qrels = records.frame.select("query_id", "doc_id", _integer("relevance"))
    message = "the relevance of document {doc_id!r} for query {query_id!r} must be an integer, not {relevance!r}"
    _refuse(records, qrels["relevance"].is_null(), message)
    message = "the document {doc_id!r} is judged twice for query {query_id!r}"
    _refuse_twice(records, ("query_id", "doc_id"), message)
    return qrels


def run_table(records: Records) -> pl.DataFrame:
    """`query_id, doc_id, score`, in the order of the records; a document twice for a query stays.

    Raises:
        DataError: a row has no id, or a score is NaN or not a number.
    """
    for name in ("query_id", "doc_id"):
        _refuse_missing(records, name)
    run = records.frame.select("query_id", "doc_id", _number("score"))
    message = "the score of document {doc_id!r} for query {query_id!r} must be a number, not {score!r}"
    _refuse(records, run["score"].is_null() | run["score"].is_nan(), message)
    return run


def _number(name: str) -> pl.Expr:
    import polars as pl

    text = pl.col(name).cast(pl.String).str.strip_chars()
    typed = pl.col(name).cast(pl.Float64, strict=False)
    return pl.coalesce(typed, text.cast(pl.Float64, strict=False))


def _integer(name: str) -> pl.Expr:
    import polars as pl

    number = _number(name)
    whole = (number.abs() < LARGEST_EXACT) & (number == number.floor())
    return pl.when(whole).then(number).cast(pl.Int64)


def _refuse_missing(records: Records, name: str) -> None:
    import polars as pl

    missing = pl.col(name).is_null() | (pl.col(name).str.strip_chars() == "")
    _refuse(records, missing, f"no {name}")


def _refuse(records: Records, wrong: pl.Expr | pl.Series, message: str) -> None:
    """Raise an error for the first row with a true `wrong`. The message can contain names of columns in braces."""
    import polars as pl

    flags = wrong if isinstance(wrong, pl.Series) else records.frame.select(wrong).to_series()
    rows = flags.arg_true()
    if len(rows):
        raise DataError(f"{records.locate(rows[0])}: {message.format_map(records.frame.row(rows[0], named=True))}")


def _refuse_twice(records: Records, keys: Sequence[str], message: str) -> None:
    import polars as pl

    key = pl.col(keys[0]) if len(keys) == 1 else pl.struct(keys)
    again = records.frame.select(~key.is_first_distinct()).to_series().arg_true()
    if not len(again):
        return
    values = records.frame.row(again[0], named=True)
    same = pl.all_horizontal(pl.col(name) == values[name] for name in keys)
    first = records.frame.select(same).to_series().arg_true()[0]
    place = f"{records.locate(again[0])}: {message.format_map(values)}"
    raise DataError(f"{place}, first at {records.locate(first)}")
