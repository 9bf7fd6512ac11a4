"""The questions of one dataset with everything that the dataset says about them, and where each is written."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.audit.finding import Row

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin import Dataset

_LONGEST = 300
"""Characters of a question that findings quote."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        text: "" if the dataset has only judgements.
        place: where it is written, from the working directory if it is below; "" if the dataset does not say.
        references: its gold answers, each correct by itself.
        relevant: relevance by document id; None without judgements.
        answerable: whether the documents contain an answer; None if the dataset does not say.
        group: the group of variants of one question under several conditions.
        reference_contexts: the texts that contain the gold answer.
        columns: its other columns, a JSON object as text; None without any.
    """

    query_id: str
    text: str
    place: str
    references: tuple[str, ...] = ()
    relevant: Mapping[str, int] | None = None
    answerable: bool | None = None
    group: str | None = None
    reference_contexts: tuple[str, ...] = ()
    columns: str | None = None

    @property
    def row(self) -> Row:
        """The row as findings name it."""
        text = self.text.strip()
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        return Row(self.query_id, self.place, text)

    @property
    def relevant_ids(self) -> frozenset[str]:
        """The documents that are judged as relevant."""
        return frozenset(doc_id for doc_id, grade in (self.relevant or {}).items() if grade > 0)

    def read_columns(self) -> dict[str, Any]:
        """Its other columns by name."""
        found: dict[str, Any] = {} if self.columns is None else json.loads(self.columns)
        return found


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a dataset that are evaluated.

    Attributes:
        name: the dataset's name in the spec.
        collection: the tables that they were read from.
        has_references, has_judgements: whether the dataset has any gold answers, and any judgements.
        lost: the queries that have judgements and no text.
    """

    name: str
    questions: tuple[Question, ...]
    collection: Collection
    has_references: bool
    has_judgements: bool
    lost: tuple[str, ...] = field(default=())

    @cached_property
    def by_id(self) -> Mapping[str, Question]:
        """The questions by their ids."""
        return {question.query_id: question for question in self.questions}


def read_questions(dataset: Dataset[Any], collection: Collection, asked: Sequence[str]) -> QuestionSet:
    """Some questions of a dataset.

    Args:
        dataset: the dataset.
        collection: what it opened.
        asked: the ids of the questions.

    Raises:
        DataError: the dataset cannot be read.
    """
    places = _find_places(dataset, collection)
    judged = _group_judgements(collection.qrels)
    references = {} if collection.references is None else dict(_read_references(collection.references))
    columns = {} if collection.columns is None else dict(collection.columns.select("query_id", "columns").iter_rows())
    known = {} if collection.queries is None else dict(collection.queries.select("query_id", "text").iter_rows())
    questions = tuple(
        Question(
            query_id,
            known.get(query_id) or "",
            places.get(query_id, ""),
            relevant=judged.get(query_id),
            columns=columns.get(query_id),
            **references.get(query_id, {}),
        )
        for query_id in asked
    )
    lost = tuple(query_id for query_id in judged if query_id not in known) if known else ()
    has_references = any(question.references for question in questions)
    return QuestionSet(collection.name, questions, collection, has_references, bool(judged), lost)


def _find_places(dataset: Dataset[Any], collection: Collection) -> dict[str, str]:
    rows = dataset.iterate_questions()
    if rows is None or collection.queries is None:
        return {}
    here = f"{Path.cwd()}{os.sep}"
    places = [place.removeprefix(here) for place, _ in rows]
    shared = {place for place, count in Counter(places).items() if count > 1}  # a list of columns is on one line
    return {
        query_id: f"{place} (query {query_id})" if place in shared else place
        for query_id, place in zip(collection.queries["query_id"], places, strict=False)
    }


def _group_judgements(qrels: pl.DataFrame | None) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in () if qrels is None else qrels.iter_rows():
        found.setdefault(query_id, {})[doc_id] = relevance
    return found


def _read_references(references: pl.DataFrame) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in references.iter_rows(named=True):
        yield (
            row["query_id"],
            {
                "references": tuple(row["references"] or ()),
                "reference_contexts": tuple(row["reference_contexts"] or ()),
                "answerable": row["answerable"],
                "group": row["group"],
            },
        )
