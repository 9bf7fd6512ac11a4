"""Known column names, the blocks of a spec that set other names, and the checks that turn records into tables.

Records are a file's rows with this package's column names and the location of each row. A `columns:` block that a
spec needs for a file is written ready to copy. Users name columns for parts of rows as `value=rating`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rageval_spec.diagnostics import suggest
from rageval_spec.errors import DataError, UsageError
from rageval_spec.recorded.json_path import parse_path
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    import polars as pl


Kind = Literal["id", "text", "number"]


class RecordColumn(NamedTuple):
    """A column to read.

    Attributes:
        name: what it is called in the records.
        known: the names it may have in the file; the first one present is used.
        kind: an id is text or an integer.
        required: whether a file without it is refused. If not, the column is all null.
        advice: what else helps if the column is missing; for messages.
        mapped: whether the spec gives its name.
        setting: the keys of the spec that lead to its name: `("columns", "queries")`.
    """

    name: str
    known: tuple[str, ...]
    kind: Kind = "text"
    required: bool = True
    advice: str = ""
    mapped: bool = False
    setting: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the spec that gives its name: `columns.queries.text`."""
        return ".".join((*self.setting, self.name))


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes:
        frame: one column for each requested column; for text formats, all are String.
        locate: gives the location of a row: `file:line`, or `file: row 7` if the format has no lines.
    """

    frame: pl.DataFrame
    locate: Callable[[int], str]


def choose_keys(place: str, columns: Iterable[RecordColumn], present: Sequence[str]) -> dict[RecordColumn, str]:
    """The name of each column in a file whose keys are `present`. Absent optional columns are left out.

    Raises:
        DataError: a required or mapped column is missing, or its name is listed twice.
    """
    keys: dict[RecordColumn, str] = {}
    absent: list[RecordColumn] = []
    for column in columns:
        key = next((name for name in column.known if name in present), None)
        if key is not None and present.count(key) > 1:
            raise DataError(f"{place}: '{key}' is listed twice")
        if key is not None:
            keys[column] = key
        elif column.required or column.mapped:
            absent.append(column)
    if absent:
        message, hint = explain_absent(absent, present, keys.values())
        raise DataError(f"{place}: {message}" + (f"; {hint}" if hint else ""))
    return keys


def chosen_names(columns: Iterable[RecordColumn], present: Collection[str]) -> set[str]:
    """The names that `choose_keys` gives to the columns that the file has."""
    found = (next((name for name in column.known if name in present), None) for column in columns)
    return {name for name in found if name is not None}


def explain_absent(
    absent: Sequence[RecordColumn], present: Sequence[str], taken: Collection[str] = ()
) -> tuple[str, str | None]:
    """A message (which columns are missing, and which exist) and a hint (the mapping to write, or what to correct)."""
    wrong = [column for column in absent if column.mapped]
    there = f"the columns are {list_names(present)}" if len(present) != 1 else f"the only column is {present[0]!r}"
    there = there if present else "the file has no columns"
    message = f"no column {_list_known(wrong or absent)}; {there}"
    if wrong:
        return message, f"correct {' and '.join(repr(column.key) for column in wrong)}"
    setting = absent[0].setting
    names = guess_names([column.name for column in absent], present, taken)
    advice = [_advise(absent, names)] if setting else []
    advice += dict.fromkeys(column.advice for column in absent if column.advice)
    return message, ", or ".join(advice) or None


def with_absent(frame: pl.DataFrame, columns: Sequence[RecordColumn]) -> pl.DataFrame:
    """The frame with the columns in the requested order; columns that the file lacks are all null."""
    import polars as pl

    return frame.select(
        pl.col(column.name) if column.name in frame.columns else pl.lit(None, pl.String).alias(column.name)
        for column in columns
    )


def _advise(absent: Sequence[RecordColumn], names: Mapping[str, str]) -> str:
    if len(names) == len(absent):
        return f"write {write_mapping(absent[0].setting, names)}"
    return f"name {'it' if len(absent) == 1 else 'them'} in {' and '.join(repr(column.key) for column in absent)}"


def _list_known(columns: Iterable[RecordColumn]) -> str:
    return " and no column ".join(list_choices([f"'{name}'" for name in column.known]) for column in columns)


QUERIES = (
    RecordColumn("query_id", ("query_id", "_id", "id"), "id"),
    RecordColumn("text", ("text", "query", "question", "user_input")),
)
CORPUS = (
    RecordColumn("doc_id", ("doc_id", "_id", "id"), "id"),
    RecordColumn("title", ("title",), required=False),
    RecordColumn("text", ("text", "contents")),
)
QRELS = (
    RecordColumn("query_id", ("query_id", "query-id", "qid"), "id"),
    RecordColumn("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    RecordColumn("relevance", ("relevance", "score", "label"), "number"),
)
RUN = (
    RecordColumn("query_id", ("query_id", "query-id", "qid"), "id"),
    RecordColumn("doc_id", ("doc_id", "corpus-id", "docid"), "id"),
    RecordColumn("score", ("score",), "number"),
)
QUESTION_IDS = ("query_id", "_id", "id", "question_id", "qid")
"""The names of the ids of questions that are in the same file as their gold answers."""
QUESTIONS = ("query", "question", "text", "user_input", "input", "prompt")
"""The names of the texts of such questions."""
LARGEST_EXACT = 2**53
"""Floats below this represent every integer exactly. This one can also be its rounded neighbour, so it is refused."""


def _names(columns: Sequence[RecordColumn], name: str) -> str:
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

    def over(self, columns: Sequence[RecordColumn], *setting: str) -> tuple[RecordColumn, ...]:
        """The columns; those that this block names are looked up only under that name.

        Args:
            setting: the keys that lead to this block in its node: `"columns", "corpus"`.
        """
        return tuple(self._named(column, setting) for column in columns)

    def _named(self, column: RecordColumn, setting: tuple[str, ...]) -> RecordColumn:
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


MOST_SHOWN = 12
"""The most columns that a message lists."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "query_id": ("query", "qid", "topic", "nr", "number", "key", "id"),
    "doc_id": ("doc", "document", "page", "passage", "corpus", "chunk", "file", "url", "source"),
    "relevance": ("relevance", "grade", "label", "judgement", "rating", "rel"),
    "score": ("score", "similarity", "distance", "value"),
    "title": ("title", "head", "heading"),
    "text": (
        *("text", "question", "query", "ask", "words", "body", "content"),
        *("frage", "pregunta", "domanda", "pergunta"),
    ),
    "reference": (
        *("reference", "answer", "gold", "truth", "expected", "target", "solution"),
        *("antwort", "respuesta", "r\u00e9ponse", "reponse", "risposta", "resposta"),
    ),
    "answer": (
        *("answer", "response", "output", "reply", "completion", "prediction"),
        *("antwort", "respuesta", "reponse", "text"),
    ),
}
"""Words that column names often contain, by the content of the column."""
GOLD_WORDS = _WORDS["reference"]
_LIKE = 0.6
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")


def write_mapping(setting: Sequence[str], names: Mapping[str, str]) -> str:
    """The block as YAML on one line: `columns: {queries: {text: Frage}}`; `setting` has the keys that lead to it."""
    import yaml

    content: object = dict(names)
    for key in reversed(setting):
        content = {key: content}
    text: str = yaml.safe_dump(content, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6)
    return text.strip()[1:-1]


def list_names(present: Sequence[str]) -> str:
    """The names of a file's columns, the first dozen: `'a', 'b', ...`."""
    shown = ", ".join(map(repr, present[:MOST_SHOWN]))
    return (shown or "nothing") + (", ..." if len(present) > MOST_SHOWN else "")


def guess_names(wanted: Iterable[str], present: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Guess a different column of the file for each wanted part. Parts for which no column is left are omitted.

    Columns whose name resembles the part's, or contains one of its usual words, come first. The remaining columns go
    to the other parts in file order, except columns that resemble a part that was not requested. For gold answers, no
    column is guessed that has what a system said, and none of several that resemble them; for a system's answers, none
    that has what people said. With the same column as both, every answer would be right.
    """
    free = [name for name in dict.fromkeys(present) if name and name not in taken]
    guessed: dict[str, str] = {}
    parts = [*wanted]
    likely = [name for name in free if _likeness("reference", name) >= _LIKE and not _is_of_system(name)]
    sure = [name for name in likely if says_gold(name)]
    if len(likely) > 1 and len(sure) != 1:
        parts = [part for part in parts if part != "reference"]
    gold = sure if len(likely) > 1 else [name for name in free if not _is_of_system(name)]
    for part in parts:
        pool = [name for name in free if part != "reference" or name in gold]
        pool = [name for name in pool if part != "answer" or not says_gold(name)]
        near = max(pool, key=lambda name, part=part: _likeness(part, name), default=None)  # type: ignore[misc]
        if near is not None and _likeness(part, near) >= _LIKE:
            guessed[part] = near
            free.remove(near)
    free = [name for name in free if all(_likeness(other, name) < _LIKE for other in _WORDS)]
    for part in parts:
        left = [name for name in free if part != "reference" or name in gold]
        left = [name for name in left if part != "answer" or not says_gold(name)]
        if part not in guessed and left:
            guessed[part] = left[0]
            free.remove(left[0])
    return {part: guessed[part] for part in parts if part in guessed}


_OF_SYSTEMS = frozenset(
    {"bot", "chatbot", "llm", "model", "modell", "gpt", "ai", "ki", "rag", "system", "assistant", "agent", "generated",
     "predicted", "prediction", "response", "output", "completion", "actual", "reply"}
)  # fmt: skip
"""Words of columns that have what a system said."""
_WANTED = frozenset(
    {"expected", "gold", "golden", "ideal", "reference", "truth", "correct", "target", "expert", "human", "annotator"}
)
"""Words of columns that have what a system should have said, or what people said: `expected_output`."""
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def says_gold(name: str) -> bool:
    """Whether a column's name says that it has what a system should have said."""
    return not _WANTED.isdisjoint(_split(name))


def _is_of_system(name: str) -> bool:
    return not _OF_SYSTEMS.isdisjoint(_split(name)) and not says_gold(name)


def _split(name: str) -> set[str]:
    words: list[str] = re.findall(r"[^\W\d_]+", _HUMPS.sub(" ", name).casefold())
    return {word.removesuffix("s") for word in words}


def guess_question(rows: Sequence[Mapping[str, object]], present: Sequence[str]) -> str | None:
    """The column in which more than half of the values end in a question mark; None if there is none."""
    counts = {name: sum(str(row.get(name, "")).rstrip().endswith(_QUESTION_MARKS) for row in rows) for name in present}
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and 2 * counts[best] > len(rows) else None


def _likeness(part: str, name: str) -> float:
    from difflib import SequenceMatcher

    folded = name.casefold().replace("-", "_").replace(" ", "_")
    if folded.endswith("_id") and not part.endswith("_id"):
        return 0.0
    words = _WORDS.get(part, ())
    for place, word in enumerate(words):
        if word in folded.split("_"):
            return 2 - place / 100
        if len(word) > 3 and word in folded:
            return 1 - place / 100
    return SequenceMatcher(None, part, folded).ratio()


def read_parts(columns: Sequence[str], parts: Collection[str], noun: str, example: str) -> dict[str, str]:
    """The columns that a command line names as `part=name`, by part.

    Args:
        columns: what the command line says.
        parts: the parts that a row can have.
        noun: what a row is, for messages: `a label`.
        example: what to write, for messages: `value=rating`.

    Raises:
        UsageError: there is no such part, or no name.
    """
    named: dict[str, str] = {}
    for column in columns:
        part, equals, name = column.partition("=")
        if not equals or not name:
            raise UsageError(f"--column {column}: write PART=NAME, such as {example}")
        if part not in parts:
            hint = suggest(part, [*parts]) or f"write one of {', '.join(parts)}"
            raise UsageError(f"--column {column}: {noun} has no '{part}'; {hint}")
        named[part] = name
    return named


def require_columns(path: Path, columns: Mapping[str, str], present: Sequence[str]) -> None:
    """Check that a file has the columns that are named for parts.

    Raises:
        DataError: it lacks one.
    """
    for part, name in columns.items():
        if name not in present:
            raise DataError(f"{path}: there is no column '{name}' for {part}; the columns are {list_names(present)}")
