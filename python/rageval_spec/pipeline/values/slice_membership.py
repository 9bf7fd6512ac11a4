"""Divides the evaluated queries of each dataset into the slices that a spec declares.

Slices are named after the values of a query's columns. CSV files have only text, so text that is a number counts as
one, and text that is a JSON list is a list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from rageval_spec.data import arithmetic
from rageval_spec.data.outcomes import Note
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import compile_later, pl
from rageval_spec.spec.blocks.slices import BUILT_IN_COLUMNS, ConditionNode, Scalar, SliceNode
from rageval_spec.wording import agree, count_noun, list_some

if TYPE_CHECKING:
    from rageval_spec.data.datasets import EvaluatedQueries


_MOST_NAMES_SHOWN = 12


@dataclass(frozen=True)
class Slice:
    """Queries of one dataset that belong together. The attributes are those of `SliceResult`."""

    dataset: str
    name: str
    by: str | None
    description: str
    query_ids: tuple[str, ...] = field(repr=False)

    def matches(self, name: str) -> bool:
        """Whether a gate on the slice `name` means this one: by its own name, or by its column's."""
        return name in (self.name, self.by)

    def select(self, values: pl.DataFrame) -> pl.DataFrame:
        """The rows of a values table on its queries, in the order of the table."""
        wanted = pl.DataFrame({"query_id": self.query_ids}, schema={"query_id": pl.String})
        of_dataset = values.filter(pl.col("dataset") == self.dataset)
        return of_dataset.join(wanted, on="query_id", how="semi", maintain_order="left")


@dataclass(frozen=True)
class Sliced:
    """The slices of all datasets, in the order of datasets and of the spec, and notes on the queries in none."""

    slices: tuple[Slice, ...] = ()
    notes: tuple[Note, ...] = ()


def find_slices(nodes: Sequence[SliceNode], evaluated: Sequence[EvaluatedQueries]) -> Sliced:
    """The slices of every dataset that have any of its evaluated queries.

    The slices by a column are in the order of its values, numbers first. Nothing is read if the spec has no slices.
    """
    if not nodes:
        return Sliced()
    found = [_divide(nodes, one) for one in evaluated]
    return Sliced(tuple(chain(*(one.slices for one in found))), tuple(chain(*(one.notes for one in found))))


def find_memberships(slices: Sequence[Slice]) -> pl.DataFrame:
    """`dataset, query_id, slices: list[str]`: the slices of each query that is in any, in their order."""
    members = [
        pl.DataFrame({"query_id": slice.query_ids}, schema={"query_id": pl.String}).select(
            pl.lit(slice.dataset).alias("dataset"), "query_id", pl.lit(slice.name).alias("slices")
        )
        for slice in slices
    ]
    empty = pl.DataFrame(schema=dict.fromkeys(("dataset", "query_id", "slices"), pl.String))
    every = pl.concat([empty, *members])
    return every.group_by("dataset", "query_id", maintain_order=True).agg("slices")


class _Collected:
    """The queries of one entry of `slices:`, by the name of the slice."""

    def __init__(self, node: SliceNode) -> None:
        self.node = node
        self.members: dict[str, list[str]] = {}
        self.numbers: dict[str, float | None] = {}

    def add(self, query_id: str, row: Mapping[str, Any]) -> None:
        if self.node.by is None:
            if all(holds(condition, row.get(condition.column)) for condition in self.node.conditions):
                self.members.setdefault(str(self.node.name), []).append(query_id)
            return
        for value in {label(value): value for value in list_values(row.get(self.node.by))}.values():
            self.members.setdefault(label(value), []).append(query_id)
            self.numbers.setdefault(label(value), find_number(value))

    def slices(self, dataset: str) -> list[Slice]:
        """The slices in the order of their values: those with the most queries, if there are too many."""
        node, conditions = self.node, " and ".join(map(describe, self.node.conditions))
        by_size = sorted(self._large(), key=lambda value: (-len(self.members[value]), self._order(value)))
        return [
            Slice(dataset, value, None, conditions, tuple(self.members[value]))
            if node.by is None
            else Slice(dataset, f"{node.by}={value}", node.by, f"{node.by} is {value}", tuple(self.members[value]))
            for value in sorted(by_size[: node.max_slices], key=self._order)
        ]

    def remark(self, dataset: str) -> Iterator[Note]:
        node, large = self.node, self._large()
        small = len(self.members) - len(large)
        if node.by is None:
            if not large:
                reason = f"only {len(self.members[str(node.name)])}" if self.members else "no"
                message = f"{reason} queries are in the slice '{node.name}', so it has no numbers"
                yield Note("empty_slice", message, dataset)
            return
        if small:
            values = f"{count_noun(small, 'value')} of '{node.by}' {agree(small, 'has')}"
            message = f"{values} fewer than {node.min_queries} queries and no slice"
            yield Note("small_slices", message, dataset, count=small)
        if len(large) > node.max_slices:
            message = (
                f"'{node.by}' has {len(large)} values; only the {node.max_slices} with the most queries have slices "
                "('max_slices')"
            )
            yield Note("many_slices", message, dataset, count=len(large), level="warning")

    def _large(self) -> list[str]:
        return [value for value, members in self.members.items() if len(members) >= self.node.min_queries]

    def _order(self, value: str) -> tuple[bool, float, str]:
        number = self.numbers.get(value)
        return number is None, number or 0.0, value


def _divide(nodes: Sequence[SliceNode], evaluated: EvaluatedQueries) -> Sliced:
    columns = tuple(dict.fromkeys(column for node in nodes for column in node.columns))
    collected = [_Collected(node) for node in nodes]
    total, absent = 0, dict.fromkeys(columns, 0)
    for query_id, row in read_rows(evaluated, columns):
        total += 1
        for column in columns:
            absent[column] += not list_values(row.get(column))
        for one in collected:
            one.add(query_id, row)
    name = evaluated.collection.name
    slices = tuple(slice for one in collected for slice in one.slices(name))
    notes = [*_remark_on_absent(evaluated, absent, total), *(note for one in collected for note in one.remark(name))]
    return Sliced(slices, tuple(notes))


def _remark_on_absent(evaluated: EvaluatedQueries, absent: Mapping[str, int], total: int) -> Iterator[Note]:
    """Notes on the columns that some queries do not have; a warning if none has it."""
    dataset = evaluated.collection.name
    for column, count in absent.items():
        if count == total:
            message = f"no query has a value in '{column}', so there are no slices by it{describe_columns(evaluated)}"
            yield Note("no_slice_column", message, dataset, count=count, level="warning")
        elif count:
            queries = f"{count} of {count_noun(total, 'query', 'queries')} {agree(count, 'has')}"
            message = f"{queries} no value in '{column}', so no slice by it includes {agree(count, 'it')}"
            yield Note("no_slice_value", message, dataset, count=count)


def describe_columns(evaluated: EvaluatedQueries) -> str:
    """`; the columns are 'source', 'topic'`; "" if the questions have no other columns."""
    table = evaluated.collection.columns
    names = sorted({name for text in ([] if table is None else table["columns"]) for name in json.loads(text)})
    return f"; the columns are {list_some(names, _MOST_NAMES_SHOWN)}" if names else ""


def read_rows(evaluated: EvaluatedQueries, columns: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    collection, wanted = evaluated.collection, set(columns)
    table = pl.DataFrame({"query_id": evaluated.query_ids.unique(maintain_order=True)})
    parts = {
        "question": (collection.queries, pl.col("text").alias("question")) if "question" in wanted else None,
        "columns": (collection.columns, pl.col("columns")) if wanted.difference(BUILT_IN_COLUMNS) else None,
    }
    known = [name for name in ("answerable", "group", "condition") if name in wanted]
    if known:
        parts["known"] = (collection.references, pl.col(known))
    if "reference" in wanted:
        parts["reference"] = (collection.references, pl.col("references").list.first().alias("reference"))
    for part in parts.values():
        if part is not None and part[0] is not None:
            other = part[0].select("query_id", part[1]).unique("query_id", keep="first")
            table = table.join(other, on="query_id", how="left", maintain_order="left")
    for row in table.iter_rows(named=True):
        text = row.pop("columns", None)
        yield row.pop("query_id"), row if text is None else {**json.loads(text), **row}


_NUMBER = compile_later(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_EXACT = 1e15
"""Floats without a fraction are written without one up to here."""


def list_values(value: Any) -> list[Scalar]:
    """The values of a column: those of a list, or the one value. Null, empty text and objects are no values."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, list | tuple):
        return [found for item in value for found in list_values(item)]
    is_none = value is None or isinstance(value, Mapping) or (isinstance(value, str) and not value.strip())
    return [] if is_none else [value]


def label(value: Scalar) -> str:
    """The value in the name of a slice: `true`, `2` (also for 2.0), or the text on one line.

    Accents are composed (NFC): a letter that some programs write as one character and others as two is one letter.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return normalize("NFC", " ".join(value.split())) if isinstance(value, str) else str(value)


def find_number(value: Scalar) -> float | None:
    """The value as a finite number; None if it is none."""
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value.strip())):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def holds(condition: ConditionNode, value: Any) -> bool:
    """Whether one of a column's values passes all tests of a condition. Without a value none holds."""
    return any(_passes(condition, one) for one in list_values(value))


def _passes(condition: ConditionNode, value: Scalar) -> bool:
    if condition.equal is not None and not _equals(value, condition.equal):
        return False
    if condition.among is not None and not any(_equals(value, wanted) for wanted in condition.among):
        return False
    contained = condition.contains
    if contained is not None and normalize("NFC", contained).casefold() not in label(value).casefold():
        return False
    low, high, words = condition.min, condition.max, condition.words
    if (low, high) != (None, None) and not _is_within(find_number(value), low, high):
        return False
    return words is None or _is_within(len(str(value).split()), words.min, words.max)


def _equals(value: Scalar, wanted: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return label(value).lower() == label(wanted).lower()
    if isinstance(wanted, int | float):
        return find_number(value) == wanted
    return label(value) == label(wanted)


def _is_within(number: float | None, low: float | None, high: float | None) -> bool:
    if number is None:
        return False
    return (low is None or arithmetic.reaches(number, low)) and (high is None or arithmetic.reaches(high, number))


def describe(condition: ConditionNode) -> str:
    """A condition in words: `question has at least 12 words`."""
    tests = [
        f"is {label(condition.equal)}" if condition.equal is not None else "",
        f"is {' or '.join(map(label, condition.among))}" if condition.among is not None else "",
        _describe_bounds("is", condition.min, condition.max, ""),
        f"contains {condition.contains!r}" if condition.contains is not None else "",
        _describe_bounds("has", condition.words.min, condition.words.max, " words") if condition.words else "",
    ]
    return f"{condition.column} {' and '.join(filter(None, tests))}"


def _describe_bounds(verb: str, low: float | None, high: float | None, unit: str) -> str:
    bounds = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    told = " and ".join(filter(None, bounds))
    return f"{verb} {told}{unit}" if told else ""
