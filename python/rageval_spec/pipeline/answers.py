"""A system's answers on a dataset, as samples for metrics of answers and as a run for ranking metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rageval_spec.data import tables
from rageval_spec.data.note import Note
from rageval_spec.data.sample import Sample
from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, no_exit
from rageval_spec.pipeline.columns import ColumnsOf
from rageval_spec.pipeline.notes import unfinished_notes
from rageval_spec.pipeline.task import Made, Task
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.pipeline.materials import Materials

NOT_ANSWERED = "the system gave no answer to this query"


@dataclass(frozen=True)
class Answered:
    """The answers of one system on one dataset.

    Attributes:
        samples: one sample for each query that was asked, in the order of the dataset.
        run: `query_id, doc_id, score` of the contexts, best first; None if no answer names its documents.
        notes: notes on the queries without an answer.
    """

    samples: Sequence[Sample]
    run: pl.DataFrame | None
    notes: tuple[Note, ...]


def answer_queries(materials: Materials, task: Task) -> Made:
    """Ask a system all queries of its dataset, or read its stored answers: columns `tables.ANSWERS`.

    Raises:
        DataError: the system's table lacks a column, or answers a query twice.
        RagevalError: the system cannot answer any query.
    """
    dataset, system = str(task.step.dataset), materials.parts.systems[str(task.step.system)]
    opened = materials.open(dataset)
    with no_exit():
        if opened.is_drawn and not system.can_be_asked:
            answering = materials.read_answers(dataset, str(task.step.system))
        else:
            answering = system.answer(opened.asked)
    answers = answering.answers
    absent = [column for column in tables.ANSWERS if column not in answers.columns]
    if absent:
        raise DataError(f"the answers have no column {', '.join(map(repr, absent))}")
    if answers["query_id"].is_duplicated().any():
        twice = answers.filter(answers["query_id"].is_duplicated())["query_id"][0]
        raise DataError(f"the query {twice!r} is answered twice")
    if opened.is_drawn and opened.asked.queries is not None:
        answers = tables.only_queries(answers, opened.asked.queries)
    return Made(answers, answering.notes)


def describe_answers(answers: pl.DataFrame, asked: Collection, *, with_contexts: bool = True) -> Answered:
    """Turn a system's answers into samples and a run. Without contexts, the samples do not hold their texts."""
    samples = build_samples(asked, answers if with_contexts else answers.drop("contexts"))
    return Answered(samples, _rank_contexts(samples), tuple(_remark(samples)))


def build_samples(asked: Collection, answers: pl.DataFrame) -> list[Sample]:
    """A sample for each query; a query without an answer gets an error."""
    assert asked.queries is not None, "queries_to_ask refuses a collection without"
    queries = asked.queries.select("query_id", question="text")
    relevant = _read_relevant(asked)
    blocks = tables.join_blocks(queries, answers.with_columns(is_answered=True), asked.references)
    columns = ColumnsOf(asked) if asked.load_columns is not None else None
    rows = (row for block in blocks for row in block.iter_rows(named=True))
    return [_build(row, relevant.get(row["query_id"]), columns) for row in rows]


def _build(row: Mapping[str, Any], relevant: Mapping[str, int] | None, columns: ColumnsOf | None) -> Sample:
    """Build a sample from a joined row of query, references and answer; `is_answered` is null without an answer."""
    error = row.get("error") if row["is_answered"] else NOT_ANSWERED
    return Sample(
        row["query_id"],
        row["question"],
        answer=None if error else row.get("answer"),
        contexts=_as_tuple(row.get("contexts")),
        context_ids=_as_tuple(row.get("context_ids")),
        references=tuple(row.get("references") or ()),
        reference_contexts=_as_tuple(row.get("reference_contexts")),
        relevant=relevant,
        answerable=row.get("answerable"),
        group=row.get("group"),
        condition=row.get("condition"),
        error=error,
        is_unfinished=bool(error and row.get(tables.UNFINISHED)),
        seconds=row.get("seconds"),
        input_tokens=row.get("input_tokens"),
        output_tokens=row.get("output_tokens"),
        cost=row.get("cost"),
        columns=None if columns is None else columns.of(row["query_id"]),
    )


def _as_tuple(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _read_relevant(asked: Collection) -> dict[str, dict[str, int]]:
    relevant: dict[str, dict[str, int]] = {}
    if asked.qrels is not None:
        for query_id, doc_id, relevance in asked.qrels.select(tables.QRELS).iter_rows():
            relevant.setdefault(query_id, {})[doc_id] = relevance
    return relevant


def _rank_contexts(samples: Sequence[Sample]) -> pl.DataFrame | None:
    """The documents of the contexts as a run, each at its first place; scores count down to 1 at the last one."""
    import polars as pl

    if all(sample.context_ids is None for sample in samples):
        return None
    rows = [row for sample in samples for row in _rank(sample)]
    schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rank(sample: Sample) -> Iterator[tuple[str, str, float]]:
    ids = tuple(dict.fromkeys(sample.context_ids or ()))
    yield from ((sample.query_id, doc_id, float(len(ids) - place)) for place, doc_id in enumerate(ids))


def _remark(samples: Sequence[Sample]) -> Iterator[Note]:
    unfinished = [sample for sample in samples if sample.is_unfinished]
    yield from unfinished_notes(len(unfinished), len(samples), "asked", unfinished[0].error if unfinished else None)
    failed = [sample for sample in samples if sample.error is not None and not sample.is_unfinished]
    if failed:
        first = failed[0]
        queries = count_noun(len(samples), "query", "queries")
        message = f"{len(failed)} of {queries} got no answer; the first, {first.query_id}: {first.error}"
        yield Note("unanswered", message, count=len(failed))
