"""The questions of one dataset, with all that the dataset says about them and what systems made of them.

Each question has the place where it is written. What systems made of it are the values, rankings and answers of one
or more evaluations. Words of questions and gold answers are compared without case, accents of form, and punctuation.
"""

from __future__ import annotations

import json
import math
import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.audit.audit_findings import AuditedRow
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import compile_later, np, pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rageval_spec.data.tables import Collection
    from rageval_spec.plugin import Dataset


_LONGEST = 300
"""Characters of a question that findings quote."""


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
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
    def row(self) -> AuditedRow:
        """The row as findings name it."""
        return AuditedRow(self.query_id, self.place, shorten(self.text.strip(), _LONGEST))

    @property
    def relevant_ids(self) -> frozenset[str]:
        """The documents that are judged as relevant."""
        return frozenset(doc_id for doc_id, grade in (self.relevant or {}).items() if grade > 0)

    def read_columns(self) -> dict[str, Any]:
        """Its other columns by name."""
        found: dict[str, Any] = {} if self.columns is None else json.loads(self.columns)
        return found


@dataclass(frozen=True)
class AuditedQuestions:
    """The questions of a dataset that are evaluated.

    `lost` are the queries that have judgements and no text.
    """

    name: str
    questions: tuple[AuditedQuestion, ...]
    collection: Collection
    has_references: bool
    has_judgements: bool
    lost: tuple[str, ...] = field(default=())

    @cached_property
    def by_id(self) -> Mapping[str, AuditedQuestion]:
        return {question.query_id: question for question in self.questions}


def read_questions(dataset: Dataset[Any], collection: Collection, asked: Sequence[str]) -> AuditedQuestions:
    """The questions of a dataset with these ids; `collection` is what it opened."""
    places = _find_places(dataset, collection)
    judged: dict[str, dict[str, int]] = {}
    for query_id, doc_id, relevance in () if collection.qrels is None else collection.qrels.iter_rows():
        judged.setdefault(query_id, {})[doc_id] = relevance
    table = collection.references
    references = {} if table is None else {row["query_id"]: row for row in table.iter_rows(named=True)}
    columns = {} if collection.columns is None else dict(collection.columns.select("query_id", "columns").iter_rows())
    known = {} if collection.queries is None else dict(collection.queries.select("query_id", "text").iter_rows())
    questions = tuple(
        AuditedQuestion(
            query_id,
            known.get(query_id) or "",
            places.get(query_id, ""),
            tuple(row.get("references") or ()),
            judged.get(query_id),
            row.get("answerable"),
            row.get("group"),
            tuple(row.get("reference_contexts") or ()),
            columns.get(query_id),
        )
        for query_id in asked
        for row in (references.get(query_id, {}),)
    )
    lost = tuple(query_id for query_id in judged if query_id not in known) if known else ()
    has_references = any(question.references for question in questions)
    return AuditedQuestions(collection.name, questions, collection, has_references, bool(judged), lost)


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


_ROUNDING = 1e-9
NO_SAMPLES = (
    "these results hold values, but not what systems found; name a results folder that a run wrote: --results FOLDER"
)
"""Why there are no findings about what systems retrieved: records in the history database have no samples."""


@dataclass(frozen=True)
class MetricValues:
    """The values of one metric.

    Attributes:
        query_ids: the questions that every system has a value for, one for each row.
        values: shape (questions, systems); high values are good.
        best: the highest possible value; None if there is none.
        fails_at: a system fails a question if its value is at most this.
    """

    metric: str
    systems: tuple[str, ...]
    query_ids: tuple[str, ...]
    values: NDArray[np.float64]
    best: float | None
    fails_at: float

    @property
    def failed(self) -> list[int]:
        """The rows of the questions that every system fails."""
        return [row for row, own in enumerate(self.values) if (own <= self.fails_at).all()]

    @property
    def solved(self) -> list[int]:
        """The rows of the questions that every system solves: all have the highest possible value."""
        best = math.inf if self.best is None else self.best - _ROUNDING
        return [row for row, own in enumerate(self.values) if (own >= best).all()]


@dataclass(frozen=True, slots=True)
class Output:
    """What one system made of one question.

    Attributes:
        doc_ids: the first documents that it found or was given, best first; None if it does not say.
        answer: its answer; None if it only retrieves or failed.
        ranks: the rank of each judged document that it found, by id, from 1.
        relevant: the judged documents, as they were when it was evaluated.
    """

    system: str
    doc_ids: tuple[str, ...] | None
    answer: str | None
    ranks: Mapping[str, int] = field(default_factory=dict)
    relevant: Mapping[str, int] = field(default_factory=dict)


Outputs = Mapping[str, Sequence[Output]]
"""What the systems made of each question, by query id."""


def read_outputs(samples: Iterable[tuple[str, pl.DataFrame]]) -> dict[str, list[Output]]:
    """The outputs in samples of one dataset: ends of systems' names, and rows of what the systems made."""
    found: dict[str, list[Output]] = {}
    for end, block in samples:
        columns = ("system", "query_id", "answer", "context_ids", "relevant")
        for system, query_id, answer, doc_ids, judged in block.select(columns).iter_rows():
            ranks = {one["doc_id"]: one["rank"] for one in judged or () if one["rank"] is not None}
            relevant = {one["doc_id"]: one["relevance"] for one in judged or ()}
            ids = None if doc_ids is None else tuple(doc_ids)
            found.setdefault(query_id, []).append(Output(f"{system}{end}", ids, answer, ranks, relevant))
    return found


def count_rejudged(outputs: Outputs, judged: Mapping[str, Mapping[str, int]]) -> int:
    """The number of questions whose judgements, `judged` by query id, are no longer those of the evaluation."""
    return sum(
        any(output.relevant and output.relevant != judged[query_id] for output in given)
        for query_id, given in outputs.items()
        if query_id in judged
    )


def combine(
    metric: str, columns: Mapping[str, Mapping[str, float]], best: float | None, fails_at: float
) -> MetricValues:
    """The values of the questions that every system has one for; `columns` are each system's, by query id."""
    shared = set.intersection(*(set(column) for column in columns.values())) if columns else set()
    first = next(iter(columns.values()), {})
    ids = tuple(query_id for query_id in first if query_id in shared)
    values = np.array([[column[query_id] for column in columns.values()] for query_id in ids], dtype=float)
    return MetricValues(metric, tuple(columns), ids, values.reshape(len(ids), len(columns)), best, fails_at)


_WORD = compile_later(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"  # scripts without spaces: each sign
    r"|\d+(?:[.,:]\d+)*%?"
    r"|(?:[^\W\d_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff][\u0300-\u036f\u0900-\u0dff]*)+"
    r"(?:['\u2019](?=\w)(?:[^\W\d_])+)?"
)
_CONTRACTED = compile_later(r"\b(what|who|where|when|how|it|that|there)['\u2019]s\b")
_GROUPED = compile_later(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?%?")
_ARTICLES = (
    "a an the please pls kindly der die das den dem des ein eine einen einem einer eines bitte le la les un une des "
    "el los las una unos unas il lo gli o os um uma uns umas de het een"
)
FILLERS = frozenset(_ARTICLES.split())
"""Articles and courtesies, which a question can have or lack and stay the same."""
_TRUTHS = (
    "yes no true false ja nein wahr falsch oui non vrai faux si sì sí sim não nee tak nie evet hayır да нет 是 否 是的"
)
_YES_NO = frozenset(_TRUTHS.split())
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_NUMBERS.split())}


@lru_cache(maxsize=200_000)
def split_compared_words(text: str) -> tuple[str, ...]:
    """The words of a text, in lower case and without punctuation. Numbers keep their value: `1,200` is `1200`."""
    folded = _CONTRACTED.sub(r"\1 is", unicodedata.normalize("NFKC", text).casefold())
    return tuple(_tidy(found) for found in _WORD.findall(folded))


def _tidy(word: str) -> str:
    if word[0].isdigit():
        return word.replace(",", "") if _GROUPED.fullmatch(word) else word
    return word[:-2] if word.endswith(("'s", "\u2019s")) and len(word) > 2 else word


def shorten(text: str, longest: int = 60) -> str:
    """A text as findings show it: of a long one, the beginning."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def drop_fillers(words: Sequence[str]) -> tuple[str, ...]:
    """The words without articles and courtesies; all of them if nothing else is there."""
    return tuple(word for word in words if word not in FILLERS) or tuple(words)


def find_numbers(words: Sequence[str]) -> frozenset[str]:
    """The numbers among words; small ones can be written as English words."""
    return frozenset(word for word in write_digits(words) if word[0].isdigit())


def write_digits(words: Sequence[str]) -> tuple[str, ...]:
    """The words, with small English numbers in digits."""
    return tuple(_NUMBER_WORDS.get(word, word) for word in words)


def is_yes_or_no(words: Sequence[str]) -> bool:
    """Whether a text begins with yes or no, or true or false."""
    return bool(words) and words[0] in _YES_NO


def contains(words: Sequence[str], part: Sequence[str]) -> bool:
    """Whether `part` stands in `words`, in order and without gaps. An empty part stands nowhere."""
    length = len(part)
    first = part[0] if part else None
    return any(
        word == first and tuple(words[at : at + length]) == tuple(part) for at, word in enumerate(words)
    )  # fmt: skip


def find_overlap(first: Sequence[str], second: Sequence[str]) -> float:
    """The F1 score of the words that two texts share, each counted as often as it occurs; 0 if either is empty."""
    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if shared else 0.0
