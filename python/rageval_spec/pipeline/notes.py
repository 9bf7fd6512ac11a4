"""Notes for readers of the numbers: what is missing, what was excluded, and what the numbers do not cover."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.note import Note
from rageval_spec.data.tables import Collection
from rageval_spec.wording import count_noun, format_percent

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.sample import Sample
    from rageval_spec.kernels import RankingValues
    from rageval_spec.plugin import AnswerMetric, Metric, RankingMetric
    from rageval_spec.spec.nodes import RankingNode


_NEGLIGIBLE = 1e-9
"""A share that is only a rounding error."""


def limit_notes(whole: Collection, limited: Collection) -> list[Note]:
    """A note if only the first queries were evaluated."""
    total, used = (0 if part.qrels is None else part.qrels["query_id"].n_unique() for part in (whole, limited))
    if used == total:
        return []
    message = f"only the first {used} of {count_noun(total, 'query', 'queries')} were evaluated"
    return [Note("limited", message, whole.name, count=used)]


def difference_notes(whole: Collection) -> list[Note]:
    """A note for each way in which questions that were made are not as they were ordered."""
    return [Note("other_than_ordered", f"the generated questions: {told}", whole.name) for told in whole.differences]


def lacks_most(cell: Aggregate) -> bool:
    """Whether fewer than half of the queries have a value, mostly because the others are excused.

    Other reasons for missing values have their own notes, and count against the gate's `min_scored`.
    """
    return 0 < 2 * cell.scored < cell.total <= cell.scored + 2 * cell.excused


def coverage_notes(aggregates: Sequence[Aggregate], metrics: Mapping[str, Metric[Any]]) -> list[Note]:
    """A warning for each mean that covers fewer than half of the queries."""
    return [
        Note(
            "mostly_unscored",
            f"{cell.metric}: only {cell.scored} of {count_noun(cell.total, 'query', 'queries')} could be scored; "
            "the number says nothing about the others",
            cell.dataset,
            cell.system,
            cell.total - cell.scored,
            "warning",
        )
        for cell in aggregates
        if lacks_most(cell) and not metrics[cell.metric].is_partial
    ]


def uncovered_notes(aggregates: Sequence[Aggregate]) -> list[Note]:
    """A warning for each weighted mean that leaves out a part of production, because none of it could be scored."""
    return [
        Note(
            "uncovered",
            f"{cell.metric}: {format_percent(cell.design.uncovered)} of production has no scored question; the mean is "
            "of the rest",
            cell.dataset,
            cell.system,
            level="warning",
        )
        for cell in aggregates
        if cell.design is not None and cell.design.uncovered > _NEGLIGIBLE
    ]


def unfinished_notes(count: int, total: int, done: str, reason: str | None) -> list[Note]:
    """A warning if queries were not `done` (for example "asked") because the evaluation stopped.

    `reason` says why, and after a semicolon what to do; the note has only its first part.
    """
    if not count:
        return []
    why = (reason or "the evaluation stopped").partition(";")[0]
    queries = f"{count} of {count_noun(total, 'query', 'queries')} {_verb(count, 'was')} not {done}"
    same = f"not {done} "
    message = f"{queries} {why.removeprefix(same)}" if why.startswith(same) else f"{queries}: {why}"
    return [Note("stopped", message, count=count, level="warning")]


def context_notes(metrics: Iterable[AnswerMetric[Any]], samples: Sequence[Sample]) -> list[Note]:
    """A warning if the system names contexts, but those of every answer are empty.

    There is no warning if no metric reads contexts.
    """
    given = [sample for sample in samples if sample.error is None and sample.contexts is not None]
    if not given or any(text.strip() for sample in given for text in sample.contexts or ()):
        return []
    if not any(metric.needs & {"contexts", "context_ids"} for metric in metrics):
        return []
    empty = "its contexts are" if len(given) == 1 else f"the contexts of all {len(given)} answers are"
    message = (
        f"{empty} empty, so metrics of contexts measure nothing; check the field that the system's key 'contexts' names"
    )
    return [Note("empty_contexts", message, count=len(given), level="warning")]


def ranking_notes(ranking: RankingNode, ranked: RankingValues, dataset: str, system: str) -> list[Note]:
    """Notes on queries that are missing from the run, have no relevant document, or are not in the qrels."""
    queries = count_noun(len(ranked.query_ids), "query", "queries")
    missing, no_relevant = int(ranked.missing.sum()), int(ranked.no_relevant.sum())
    notes = []
    if missing:
        message = (
            f"{missing} of {queries} {_verb(missing, 'is')} not in the run and {_treatment(ranking.missing, missing)}"
        )
        notes.append(Note("missing_queries", message, dataset, system, missing))
    if no_relevant:
        message = f"{no_relevant} of {queries} {_verb(no_relevant, 'has')} no relevant document and "
        message += _treatment(ranking.no_relevant, no_relevant)
        notes.append(Note("no_relevant_documents", message, dataset, None, no_relevant))
    if ranked.unjudged_queries:
        notes.append(_unjudged_note(dataset, system, ranked.unjudged_queries))
    return notes


def metric_notes(metric: RankingMetric[Any], name: str, table: pl.DataFrame, dataset: str, system: str) -> list[Note]:
    """A metric's own note on its values, prefixed with `name`."""
    note = metric.remark_on(table)
    return [] if note is None else [replace(note, message=f"{name}: {note.message}", dataset=dataset, system=system)]


def _unjudged_note(dataset: str, system: str, count: int) -> Note:
    verb = _verb(count, "is")
    message = f"{count_noun(count, 'query', 'queries')} of the run {verb} not in the qrels and {verb} ignored"
    return Note("unjudged_queries", message, dataset, system, count)


def _treatment(setting: str, count: int) -> str:
    return f"{_verb(count, 'is')} left out" if setting == "skip" else _verb(count, "scores") + " 0"


def _verb(count: int, singular: str) -> str:
    plural = {"is": "are", "was": "were", "has": "have", "scores": "score"}
    return singular if count == 1 else plural[singular]
