"""Computes the metrics of answers, and writes the notes for readers of the numbers.

All metrics of a system are computed at the same time, because they mostly wait for models. Notes say what is missing,
what was excluded, and what the numbers do not cover.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec.data.chat import UnfinishedError
from rageval_spec.data.evaluation import Aggregate
from rageval_spec.data.outcomes import AnyNote, Note, join_notes, write_notes
from rageval_spec.data.tables import join_queries, share_repeats
from rageval_spec.data.traces import Document
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.errors import DataError, no_exit
from rageval_spec.libraries import compile_later, pl
from rageval_spec.pipeline.planning.plan import MeasuredPart, explain
from rageval_spec.plugin import AnswerMetric, Judge, Measured, Measurement, Metric, RankingMetric
from rageval_spec.statistics.mean_intervals import FREE_METHODS, RANGE_ADVICE, lacks_range
from rageval_spec.threads import map_in_threads
from rageval_spec.wording import agree, count_noun, format_percent

if TYPE_CHECKING:
    from rageval_spec.data import tables
    from rageval_spec.data.findings import Criterion
    from rageval_spec.data.samples import Part, Sample
    from rageval_spec.kernels import RankingValues
    from rageval_spec.spec.blocks.spec_node import RankingNode


MOST_METRICS_AT_ONCE = 16
_IDS_SHOWN = 3
_NUMBER = compile_later(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")
_NAMES: Mapping[Part, str] = {
    "answer": "no answer",
    "contexts": "no contexts",
    "context_ids": "no ids of its contexts",
    "reference": "no reference",
    "reference_contexts": "no reference contexts",
    "relevant": "no judged documents",
    "answerable": "nothing that shows whether it can be answered ('answerable')",
    "group": "no group of queries that ask the same ('group')",
    "condition": "no condition ('condition')",
    "nuggets": "no nuggets",
    "steps": "no recorded steps",
}


_ADVICE: Mapping[Part, str] = {
    "answer": "name the system's answers in 'columns.answer'",
    "contexts": "name them in 'columns.contexts' (file) or 'contexts' of the system",
    "context_ids": "name them in 'columns.context_ids' (file) or 'context_ids' of the system",
    "reference": "name the gold answers in 'columns.reference' of the dataset",
    "reference_contexts": "name them in 'columns.reference_contexts' of the dataset",
    "answerable": "name it in 'columns.answerable' of the dataset",
    "group": "name it in 'columns.group' of the dataset",
    "condition": "name it in 'columns.condition' of the dataset",
    "nuggets": "give the questions a column 'nuggets', or name a file with them in 'nuggets' of the dataset",
    "steps": "name what the agent did in 'columns.steps' (file) or 'steps' (http) of the system",
}
"""What to write in the spec if no query has a part."""


@dataclass(frozen=True)
class Computed:
    """The values of one metric: columns `query_id, value, status, reason, details`, sorted by `query_id`.

    Without values, it has the exception that the metric raised. A metric is broken if it returned values, but more than
    half of the queries it was given failed. `unfinished` are the ids of queries for which a limit allowed no call.
    """

    metric: str
    values: pl.DataFrame
    notes: tuple[Note, ...]
    error: Exception | None = None
    is_broken: bool = False
    unfinished: frozenset[str] = frozenset()


def brief_judges(metrics: Mapping[str, AnswerMetric[Any]]) -> None:
    wanted: dict[int, tuple[Judge[Any], list[Criterion]]] = {}
    for metric in metrics.values():
        for judge in metric.judges():
            _, criteria = wanted.setdefault(id(judge), (judge, []))
            criteria.extend(one for one in metric.criteria() if one not in criteria)
    for judge, criteria in wanted.values():
        judge.expect(criteria)


def measured_types() -> dict[str, Any]:
    """The columns of what a metric measured, and their types."""
    texts = dict.fromkeys(("query_id", "value", "status", "reason", "details"), pl.String())
    return texts | {"value": pl.Float64(), "is_asked": pl.Boolean(), "is_unfinished": pl.Boolean()}


def measure_all(metrics: Mapping[str, AnswerMetric[Any]], samples: Sequence[Sample]) -> dict[str, MeasuredPart]:
    """Measure samples with every metric, all of them at the same time."""
    unprepared: dict[str, Exception] = {}
    has_answers = any(sample.error is None for sample in samples)
    for name, metric in metrics.items():
        try:
            if has_answers or metric.counts_failures:
                metric.prepare()
        except Exception as failure:
            unprepared[name] = failure

    def measure_one(name: str) -> MeasuredPart:
        return measure_part(name, metrics[name], samples, unprepared.get(name))

    found = map_in_threads(measure_one, metrics, min(len(metrics), MOST_METRICS_AT_ONCE), "metric") if metrics else ()
    parts = dict(zip(metrics, found, strict=True))
    ids = [part.table["query_id"] for part in parts.values()][:1]  # the same for all, and so held once
    return {name: replace(part, table=part.table.with_columns(ids)) for name, part in parts.items()}


def measure_part(
    name: str, metric: AnswerMetric[Any], samples: Sequence[Sample], unprepared: Exception | None = None
) -> MeasuredPart:
    """Measure samples with one metric, as `measure` does."""
    measurements, places, notes, error = measure(name, metric, samples, unprepared)
    asked = frozenset(places)
    columns = {
        "query_id": [sample.query_id for sample in samples],
        "value": [one.value for one in measurements],
        "status": [one.status for one in measurements],
        "reason": [_write(one.reason) for one in measurements],
        "details": [None if one.details is None else _write(_dump(one.details)) for one in measurements],
        "is_asked": [place in asked for place in range(len(samples))],
        "is_unfinished": [one.is_unfinished for one in measurements],
    }
    table = share_repeats(pl.DataFrame(columns, schema=measured_types()))
    answered = [sample for sample in samples if sample.error is None]
    lacking = tuple(part for part in _list_advised(metric) if all(_lacks(sample, part) for sample in answered))
    return MeasuredPart(table, notes, lacking, error)


def join_measured(parts: Sequence[MeasuredPart]) -> MeasuredPart:
    """What one metric measured on all parts, as one part."""
    lacking = tuple(one for one in parts[0].lacking if all(one in part.lacking for part in parts))
    notes = join_notes([part.notes for part in parts])
    return MeasuredPart(pl.concat([part.table for part in parts]), notes, lacking, _find_error(parts))


def _find_error(parts: Sequence[MeasuredPart]) -> Exception | None:
    """What a metric raised; before what stopped the evaluation, an error of its own."""
    errors = [part.error for part in parts if part.error is not None]
    return next((one for one in errors if not isinstance(one, UnfinishedError)), errors[0] if errors else None)


def join(name: str, metric: AnswerMetric[Any], parts: Sequence[MeasuredPart], order: pl.DataFrame) -> Computed:
    """A metric's values, and the notes on them, from its measurements of all parts of the questions.

    `order` has the `query_id` of every question, in the order in which notes name them. An exception that the metric
    raised on a part is the error of every question, as if it had got all at once; what stops an evaluation is not.
    """
    table = pl.concat([part.table for part in parts])
    if len(parts) > 1 and not table["query_id"].equals(order["query_id"]):
        numbered = table.select("query_id").with_row_index("row")
        table = share_repeats(table, join_queries(order.select("query_id"), numbered)["row"].drop_nulls())
    error = _find_error(parts)
    if error is not None and not isinstance(error, UnfinishedError):
        table = _fail(table, explain(error))
    asked = table.filter("is_asked")
    failed = asked.filter((pl.col("status") == "error") & ~pl.col("is_unfinished"))
    notes: tuple[Note, ...] = ()
    if error is None:
        lacking = set(parts[0].lacking).intersection(*(part.lacking for part in parts[1:])) if parts else set()
        given = write_notes(join_notes([part.notes for part in parts]))
        notes = tuple(label(note, name) for note in (*given, *_remark(metric, table, failed, lacking)))
    stopped = [part.table.filter("is_asked")["query_id"] for part in parts if isinstance(part.error, UnfinishedError)]
    unfinished = frozenset(chain(asked.filter("is_unfinished")["query_id"], *stopped))
    is_broken = 2 * failed.height > asked.height > 0
    values = share_repeats(table.drop("is_asked", "is_unfinished"), table["query_id"].arg_sort())
    return Computed(name, values, notes, error, is_broken, unfinished)


def _fail(table: pl.DataFrame, reason: str) -> pl.DataFrame:
    """The measurements of a metric that raised an exception."""
    failed = {"value": None, "status": "error", "reason": reason, "details": None, "is_unfinished": False}
    return table.with_columns(
        pl.when("is_asked").then(pl.lit(value, dtype=table.schema[name])).otherwise(name).alias(name)
        for name, value in failed.items()
    )


def compute(name: str, metric: AnswerMetric[Any], samples: Sequence[Sample]) -> Computed:
    """One metric's values of samples."""
    part = measure_part(name, metric, samples)
    return join(name, metric, [part], part.table)


class Measuring(NamedTuple):
    """A measurement for each sample, the places of those that the metric got, its notes, and what it raised."""

    measurements: Sequence[Measurement]
    usable: Sequence[int]
    notes: tuple[AnyNote, ...]
    error: Exception | None


def measure(
    name: str, metric: AnswerMetric[Any], samples: Sequence[Sample], unprepared: Exception | None = None
) -> Measuring:
    """Measure samples with one metric. Those that it cannot score get their status without a call.

    If its `prepare` raised, the metric is not called, and the exception becomes the error of every query.
    """
    excluded = {index: found for index, sample in enumerate(samples) if (found := _exclude(metric, sample))}
    places = [index for index in range(len(samples)) if index not in excluded]
    usable = [samples[index] for index in places]
    begun = time.perf_counter()
    try:
        if unprepared is not None:
            raise unprepared
        with no_exit():
            measured = metric.compute(usable) if usable else Measured(())
        metric.context.budget.usage.time(name, len(usable), time.perf_counter() - begun)
        if len(measured.measurements) != len(usable):
            raise DataError(f"the metric returned {len(measured.measurements)} values for {len(usable)} queries")
        error = None
    except Exception as failure:
        measured, error = Measured([Measurement.error(explain(failure))] * len(usable)), failure
    given = iter(measured.measurements)
    all_of_them = [excluded.get(index) or _check(next(given)) for index in range(len(samples))]
    return Measuring(all_of_them, places, measured.notes, error)


def _dump(details: Mapping[str, Any]) -> str:
    return json.dumps(details, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def list_usable(metric: AnswerMetric[Any], samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if _exclude(metric, sample) is None]


def _exclude(metric: AnswerMetric[Any], sample: Sample) -> Measurement | None:
    if sample.is_unfinished:
        return Measurement.unfinished(sample.error or "")
    if sample.error is not None and not metric.counts_failures:
        return Measurement.error(sample.error)
    lacking = [_name_lacking(sample, part) for part in sorted(metric.needs) if _lacks(sample, part)]
    return Measurement.unscorable(f"the query has {' and '.join(lacking)}") if lacking else None


def _name_lacking(sample: Sample, part: Part) -> str:
    """What a sample lacks; of contexts also where the reply has something that could not be read as such."""
    from rageval_spec.recorded.questions_and_answers import UNREAD_KEYS

    unread = next((key for key in UNREAD_KEYS if key in (sample.answer_columns or {})), None)
    if part != "contexts" or unread is None:
        return _NAMES[part]
    return f"{_NAMES[part]}: '{unread}' has no texts that can be read as contexts"


def _lacks(sample: Sample, part: Part) -> bool:
    return sample.error is None and sample.lacks(part)


def _check(measurement: Measurement) -> Measurement:
    """Turn a missing or non-finite value into an error of that query, never into a 0."""
    value = measurement.value
    if measurement.status == "scored" and (value is None or not math.isfinite(value)):
        return Measurement.error("the value is not a finite number", measurement.details)
    return measurement if measurement.status == "scored" else replace(measurement, value=None)


def _remark(
    metric: AnswerMetric[Any], table: pl.DataFrame, failed: pl.DataFrame, lacking: Collection[Part]
) -> Iterator[Note]:
    """Notes on the queries without a value, with the most frequent reason."""
    queries = count_noun(table.height, "query", "queries")
    unfinished = table.filter(pl.col("is_asked") & pl.col("is_unfinished"))["reason"]
    yield from unfinished_notes(len(unfinished), table.height, "judged", unfinished[0] if len(unfinished) else None)
    if failed.height:
        yield failure_note(failed.height, table.height, failed["reason"][0])
    reasons: dict[str, list[tuple[str, str]]] = {}
    for query_id, told in table.filter(status="unscorable").select("query_id", "reason").iter_rows():
        reason = (told or "").partition(": '")[0]  # without what it quotes, reasons of a kind are the same
        reasons.setdefault(_NUMBER.sub("#", reason), []).append((reason, query_id))
    if reasons:
        count = sum(map(len, reasons.values()))
        told = "; ".join(
            _count_reason(found, len(reasons)) for found in sorted(reasons.values(), key=len, reverse=True)
        )
        message = f"{count} of {queries} could not be scored: {told}{_advise(metric, lacking)}"
        yield Note("unscorable_queries", message, count=count)


def failure_note(failed: int, total: int, reason: str | None) -> Note:
    """A note on the queries that a metric failed on, with the reason of the first."""
    message = f"{failed} of {count_noun(total, 'query', 'queries')} failed; the first: {reason}"
    return Note("failed_queries", message, count=failed)


def _count_reason(found: Sequence[tuple[str, str]], kinds: int) -> str:
    """`4 because the answer refuses (q07, q12, q31, ...)`; without the count if it is the only reason.

    Reasons that differ only in numbers are one: `similarity 0.18 to 0.32 is below 0.35`.
    """
    columns = zip(*(_NUMBER.findall(reason) for reason, _ in found), strict=True)
    ends = iter([(min(column, key=float), max(column, key=float)) for column in columns])
    reason = _NUMBER.sub(lambda _: " to ".join(dict.fromkeys(next(ends))), found[0][0])
    ids = [query_id for _, query_id in found]
    shown = ", ".join(ids[:_IDS_SHOWN]) + (", ..." if len(ids) > _IDS_SHOWN else "")
    return f"{reason} ({shown})" if kinds == 1 else f"{len(ids)} because {reason} ({shown})"


def _list_advised(metric: AnswerMetric[Any]) -> list[Part]:
    return [part for part in sorted(metric.needs) if part in _ADVICE]


def _advise(metric: AnswerMetric[Any], lacking: Collection[Part]) -> str:
    """What to write in the spec if no query has a part that the metric needs."""
    return next((f"; {_ADVICE[part]}" for part in _list_advised(metric) if part in lacking), "")


def label(note: Note, metric: str) -> Note:
    return replace(note, message=f"{metric}: {note.message}")


def _write(text: str | None) -> str | None:
    """The text with lone surrogates, which some replies contain, written as escapes."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


_NEGLIGIBLE = 1e-9
"""A share that is only a rounding error."""


def limit_notes(whole: tables.Collection, limited: tables.Collection) -> list[Note]:
    total, used = (0 if part.qrels is None else part.qrels["query_id"].n_unique() for part in (whole, limited))
    if used == total:
        return []
    message = f"only the first {used} of {count_noun(total, 'query', 'queries')} were evaluated"
    return [Note("limited", message, whole.name, count=used)]


def difference_notes(whole: tables.Collection) -> list[Note]:
    """A note for each way in which questions that were made are not as they were ordered."""
    return [Note("other_than_ordered", f"the generated questions: {told}", whole.name) for told in whole.differences]


def lacks_most(cell: Aggregate) -> bool:
    """Whether fewer than half of the queries have a value, mostly because the others are excused.

    Other reasons for missing values have their own notes, and count against the gate's `min_scored`.
    """
    return 0 < 2 * cell.scored < cell.total <= cell.scored + 2 * cell.excused


def aggregate_notes(aggregates: Sequence[Aggregate], metrics: Mapping[str, Metric[Any]]) -> Iterator[Note]:
    """What a reader of means must know: which cover few queries, have no range, or leave out a part of production."""

    def warn(cell: Aggregate, code: str, message: str, count: int | None = None) -> Note:
        return Note(code, f"{cell.metric}: {message}", cell.dataset, cell.system, count, "warning")

    for cell in aggregates:
        metric, of_seen = metrics[cell.metric], "the interval is only of the values seen"
        if lacks_most(cell) and not metric.is_partial:
            scored = f"only {cell.scored} of {count_noun(cell.total, 'query', 'queries')} could be scored"
            message = f"{scored}; the number does not cover the others"
            yield warn(cell, "mostly_unscored", message, cell.total - cell.scored)
        if cell.interval is not None and cell.interval.method in FREE_METHODS:
            low, high = metric.bounds
            if lacks_range(metric, cell.statistic):
                message = f"{cell.metric}: its lowest and highest value are not known, so {of_seen}"
                yield Note("no_range", f"{message}, and no gate passes by it; {RANGE_ADVICE}")
            if high is not None:
                told = f"values lie outside {low:g} to {high:g}, which the metric declares as its range; {of_seen}"
                yield warn(cell, "outside_range", told)
        if cell.design is not None and cell.design.uncovered > _NEGLIGIBLE:
            share = format_percent(cell.design.uncovered)
            message = f"{share} of production has no scored question; the mean is of the rest"
            yield warn(cell, "uncovered", message)


def unfinished_notes(count: int, total: int, done: str, reason: str | None) -> list[Note]:
    """A warning if queries were not `done` (for example "asked") because the evaluation stopped.

    `reason` says why, and after a semicolon what to do; the note has only its first part.
    """
    if not count:
        return []
    why = (reason or "the evaluation stopped").partition(";")[0]
    queries = f"{count} of {count_noun(total, 'query', 'queries')} {agree(count, 'was')} not {done}"
    same = f"not {done} "
    message = f"{queries} {why.removeprefix(same)}" if why.startswith(same) else f"{queries}: {why}"
    return [Note("stopped", message, count=count, level="warning")]


def context_notes(metrics: Iterable[AnswerMetric[Any]], contexts: Iterable[pl.Series]) -> list[Note]:
    """A warning if the system names contexts, but those of every answer are empty.

    `contexts` are blocks of the lists of texts of the answers without an error. There is no warning if no metric reads
    them.
    """
    if not any(metric.needs & {"contexts", "context_ids"} for metric in metrics):
        return []
    count = 0
    for block in contexts:
        given = block.drop_nulls()
        if (given.explode().drop_nulls().str.strip_chars() != "").any():
            return []
        count += len(given)
    if not count:
        return []
    empty = "its contexts are" if count == 1 else f"the contexts of all {count} answers are"
    advice = "check the field that the system's key 'contexts' names"
    message = f"{empty} empty, so metrics of contexts measure nothing; {advice}"
    return [Note("empty_contexts", message, count=len(given), level="warning")]


def leak_notes(samples: Iterable[Sample], prompt: str | None) -> list[Note]:
    """A warning if a system was given the nuggets; those that know them win (arXiv:2601.13227).

    A question counts if one text that the system got has two of its nuggets of four words and more, and half of them,
    word for word but for case and spaces. A passage may have those that name it as their source. The warning takes
    three such questions, or all if fewer have two such nuggets. `prompt` is the system's template; None if it fills in
    the nuggets.
    """
    found, checked = list[str](), 0
    for sample in samples:
        facts: dict[str, tuple[str, ...]] = {}
        with suppress(DataError):  # told where they are judged
            facts = {_fold(one.text).rstrip("."): one.documents for one in sample.nuggets or ()}
        facts = {text: sources for text, sources in facts.items() if text.count(" ") >= 3}
        if len(facts) < 2:
            continue
        checked += 1
        for one in [Document("\n".join(facts) if prompt is None else prompt), *_list_given(sample)]:
            text = _fold(one.text or "")
            held = sum(one.doc_id not in sources and fact in text for fact, sources in facts.items())
            if held >= max(2, len(facts) / 2):
                found.append(sample.query_id if one.doc_id is None else f"{sample.query_id}, in {one.doc_id}")
                break
    if not found or len(found) < min(3, checked):
        return []
    message = (
        f"{len(found)} of {count_noun(checked, 'question')} came with at least half of their nuggets, word for word in "
        f"one prompt or document (the first: {found[0]}), so a high share is no merit; take them out of what the "
        "system gets, or if they were made from such documents, name these in 'documents' of each nugget"
    )
    return [Note("leaked_nuggets", message, count=len(found), level="warning")]


def _list_given(sample: Sample) -> Iterator[Document]:
    """The texts that a system got for a question; of its prompts the first, for later ones can quote its answer."""
    yield from map(Document, sample.contexts or (), sample.context_ids or repeat(None))
    for step in sample.steps or ():
        yield from step.documents or ()
    yield Document(next((one.input for one in sample.steps or () if one.kind == "model"), None))


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def ranking_notes(ranking: RankingNode, ranked: RankingValues, dataset: str, system: str) -> list[Note]:
    """Notes on queries that are missing from the run, have no relevant document, or are not in the qrels."""

    def describe(count: int, lack: str, setting: str) -> str:
        treatment = f"{agree(count, 'is')} left out" if setting == "skip" else f"{agree(count, 'scores')} 0"
        return f"{count} of {count_noun(len(ranked.query_ids), 'query', 'queries')} {lack} and {treatment}"

    missing, no_relevant = int(ranked.missing.sum()), int(ranked.no_relevant.sum())
    notes = []
    if missing:
        message = describe(missing, f"{agree(missing, 'is')} not in the run", ranking.missing)
        notes.append(Note("missing_queries", message, dataset, system, missing))
    if no_relevant:
        message = describe(no_relevant, f"{agree(no_relevant, 'has')} no relevant document", ranking.no_relevant)
        notes.append(Note("no_relevant_documents", message, dataset, None, no_relevant))
    if count := ranked.unjudged_queries:
        are = agree(count, "is")
        message = f"{count_noun(count, 'query', 'queries')} of the run {are} not in the qrels and {are} ignored"
        notes.append(Note("unjudged_queries", message, dataset, system, count))
    return notes


def metric_notes(metric: RankingMetric[Any], name: str, table: pl.DataFrame, dataset: str, system: str) -> list[Note]:
    """A metric's own note on its values, prefixed with `name`."""
    note = metric.remark_on(table)
    return [] if note is None else [replace(label(note, name), dataset=dataset, system=system)]
