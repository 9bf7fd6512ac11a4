"""Rows of files as tables: records under this package's names with their places, and the checks of each table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from rageval_spec.data.tables import bound_batches
from rageval_spec.dataclass import dataclass
from rageval_spec.errors import DataError
from rageval_spec.libraries import compile_later, pl
from rageval_spec.reading.column_names import RecordColumn
from rageval_spec.reading.formats.text_files import BLOCK, text_lines

PEOPLE = "people"
BLANK, NOBODY = compile_later(r"[ \t\n\r\v\f]+"), compile_later(r"[Qq]?[\d.-]+")
"""What separates the columns of TREC qrels, and what the second one says where it names nobody: `0` or `Q0`."""


@dataclass(frozen=True)
class Records:
    """Rows of a file, all String for text formats; `locate` gives a row's place: `file:line`, or `file: row 7`."""

    frame: pl.DataFrame
    locate: Callable[[int], str]


def join_records(batches: Sequence[Records]) -> Records:
    """Batches of one file as a whole."""
    if len(batches) == 1:
        return batches[0]
    starts = [0, *accumulate(batch.frame.height for batch in batches)]

    def locate(row: int) -> str:
        place = bisect_right(starts, row) - 1
        return batches[place].locate(row - starts[place])

    return Records(pl.concat([batch.frame for batch in batches]), locate)


def collect_batches(scan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a scan in their order, in batches of one to twice `BLOCK` bytes if they are not fewer.

    Raises PolarsError or OSError: a row cannot be read.
    """
    held: list[pl.DataFrame] = []
    for found in scan.collect_batches(maintain_order=True, lazy=True):
        for frame in bound_batches(found, BLOCK):
            held.append(frame)
            if sum(one.estimated_size() for one in held) >= BLOCK:
                yield pl.concat(held)
                held = []
    if held:
        yield pl.concat(held)


def with_absent(frame: pl.DataFrame, columns: Sequence[RecordColumn]) -> pl.DataFrame:
    """The frame with the columns in the requested order; columns that the file lacks are all null."""
    return frame.select(
        pl.col(column.name) if column.name in frame.columns else pl.lit(None, pl.String).alias(column.name)
        for column in columns
    )


def queries_table(records: Records) -> pl.DataFrame:
    """`query_id, text`. An empty text stays. Raises DataError: a row without an id or text, an id twice."""
    refuse_missing(records, "query_id")
    refuse(records, pl.col("text").is_null(), "the query {query_id!r} has no text")
    refuse_twice(records, ("query_id",), "the query {query_id!r} is listed twice")
    return records.frame.select("query_id", "text")


def find_judges(path: Path) -> dict[tuple[str, str], str]:
    """The judge of each pair of TREC qrels whose second column names one that is not people; else empty."""
    lines = (BLANK.split(line.strip(" \t")) for _, line in text_lines(path))
    named = ((one[0], one[2], one[1]) for one in lines if len(one) == 4 and not NOBODY.fullmatch(one[1]))
    return {(query_id, doc_id): judge for query_id, doc_id, judge in named if judge != PEOPLE}


def qrels_table(records: Records) -> pl.DataFrame:
    """`query_id, doc_id, relevance`, in their order. Raises DataError: no id, no whole number, or a pair twice."""
    for name in ("query_id", "doc_id"):
        refuse_missing(records, name)
    qrels = records.frame.select("query_id", "doc_id", _integer("relevance"))
    message = "the relevance of document {doc_id!r} for query {query_id!r} must be an integer, not {relevance!r}"
    refuse(records, qrels["relevance"].is_null(), message)
    message = "the document {doc_id!r} is judged twice for query {query_id!r}"
    refuse_twice(records, ("query_id", "doc_id"), message)
    return qrels


LARGEST_EXACT = 2**53
"""Floats below this represent every integer exactly. This one can also be its rounded neighbour, so it is refused."""


def run_table(records: Records) -> pl.DataFrame:
    """`query_id, doc_id, score`, in the order of the records. Raises DataError: no id, or a score that is no number."""
    for name in ("query_id", "doc_id"):
        refuse_missing(records, name)
    run = records.frame.select("query_id", "doc_id", _number("score"))
    message = "the score of document {doc_id!r} for query {query_id!r} must be a number, not {score!r}"
    refuse(records, run["score"].is_null() | run["score"].is_nan(), message)
    return run


def _number(name: str) -> pl.Expr:
    text = pl.col(name).cast(pl.String).str.strip_chars()
    typed = pl.col(name).cast(pl.Float64, strict=False)
    return pl.coalesce(typed, text.cast(pl.Float64, strict=False))


def _integer(name: str) -> pl.Expr:
    number = _number(name)
    whole = (number.abs() < LARGEST_EXACT) & (number == number.floor())
    return pl.when(whole).then(number).cast(pl.Int64)


def refuse_missing(records: Records, name: str) -> None:
    """Raise an error for the first row without an id in a column."""
    missing = pl.col(name).is_null() | (pl.col(name).str.strip_chars() == "")
    refuse(records, missing, f"no {name}")


def refuse(records: Records, wrong: pl.Expr | pl.Series, message: str) -> None:
    """Raise an error for the first row with a true `wrong`. The message can contain names of columns in braces."""
    flags = wrong if isinstance(wrong, pl.Series) else records.frame.select(wrong).to_series()
    rows = flags.arg_true()
    if len(rows):
        raise DataError(f"{records.locate(rows[0])}: {message.format_map(records.frame.row(rows[0], named=True))}")


def refuse_twice(records: Records, keys: Sequence[str], message: str) -> None:
    """Raise an error for the first row whose keys an earlier one has, and say where that is."""
    key = pl.col(keys[0]) if len(keys) == 1 else pl.struct(keys)
    again = records.frame.select(~key.is_first_distinct()).to_series().arg_true()
    if not len(again):
        return
    values = records.frame.row(again[0], named=True)
    same = pl.all_horizontal(pl.col(name) == values[name] for name in keys)
    first = records.frame.select(same).to_series().arg_true()[0]
    place = f"{records.locate(again[0])}: {message.format_map(values)}"
    raise DataError(f"{place}, first at {records.locate(first)}")
