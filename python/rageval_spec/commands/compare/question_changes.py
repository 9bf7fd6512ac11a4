"""Finds the questions that changed between two evaluations: broken, fixed, worse, better, or only another answer.

| kind | what happened |
|---|---|
| broken | a value that was right is now wrong, or the system no longer answers |
| fixed | a value that was wrong is now right, or the system answers now |
| worse, better | a value changed, but no value crossed that line |
| changed | the answer is another one, with the same values |

How bad a value is lies between 0 and 1 (`drawing/question_order.py` has the scale); a value is wrong from 0.5 up, or by
the threshold of the diagnosis if there is one. If several values of a question crossed the line, the largest change
decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from rageval_spec.commands.compare.metric_changes import MetricChange, list_edited_parts
from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import CELL
from rageval_spec.drawing import question_order
from rageval_spec.history.comparability import find_edits
from rageval_spec.libraries import pl

Kind: TypeAlias = Literal["broken", "fixed", "worse", "better", "changed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_WRONG_BELOW = 0.5


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question of one system, in both evaluations.

    Attributes:
        kind: see this module.
        size: how far the value moved on the scale from 0 to 1; 1 if an answer came or went, 0 for "changed".
        metric: the metric that decided; None if no value did.
        before, after: its values; None without a metric.
        question: the text, of the later evaluation; "" if it is not recorded.
        answer_before, answer: None if there is no answer, and both if one of the results does not hold its answer.
        error: why there is no answer now.
        edited: the parts of the question that were edited in between: `reference`, `relevance judgements`.
    """

    dataset: str
    system: str
    query_id: str
    kind: Kind
    size: float
    metric: str | None
    before: float | None
    after: float | None
    question: str = ""
    answer_before: str | None = None
    answer: str | None = None
    error: str | None = None
    edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionChanges:
    """The questions that changed, the largest changes first, kind by kind, and how many there are of each kind.

    `shared` is the number of questions of each system that are the same in both evaluations.
    """

    shown: tuple[QuestionChange, ...]
    counts: Mapping[Kind, int]
    shared: int


def find_changes(evaluation: Evaluation, earlier: Evaluation, wanted: question_order.Filter) -> QuestionChanges:
    """The questions that changed since `earlier`; the limit of the filter is for each kind.

    Systems are matched by name, or a single one with a single one. Errors are those of `complete_filter`.
    """
    wanted = question_order.complete_filter(evaluation, wanted)
    questions = _list_shared(evaluation, earlier, wanted)
    table = questions.join(
        _find_largest(evaluation, earlier, wanted), on=question_order.KEY, how="left", maintain_order="left"
    )
    table = _classify(table).sort("size", descending=True, maintain_order=True)
    found = Counter(table["kind"].to_list())
    kinds = (table.filter(kind=kind) for kind in KINDS)
    shown = [row for of in kinds for row in of.head(of.height if wanted.limit is None else wanted.limit).to_dicts()]
    changes = tuple(_describe(shown, evaluation, earlier))
    return QuestionChanges(changes, {kind: found[kind] for kind in KINDS}, questions.height)


def _list_shared(evaluation: Evaluation, earlier: Evaluation, wanted: question_order.Filter) -> pl.DataFrame:
    """The questions that are the same in both: `KEY`, whether each side failed, and whether the answer is another."""
    now = _list_answers(evaluation, {system: system for system in evaluation.systems})
    before = _list_answers(
        earlier, {old: new for new, old in question_order.match_systems(evaluation.systems, earlier.systems).items()}
    )
    table = now.join(before, on=question_order.KEY, suffix="_before", maintain_order="left")
    table = table.join(
        _list_changed(evaluation, earlier), on=["dataset", "query_id"], how="anti", maintain_order="left"
    )
    same = {"dataset": wanted.dataset, "system": wanted.system}
    table = table.filter(**{name: value for name, value in same.items() if value is not None})
    another = (pl.col("answer") != pl.col("answer_before")).fill_null(False)
    return table.select(*question_order.KEY, "failed", "failed_before", another.alias("is_another"))


def _list_changed(evaluation: Evaluation, earlier: Evaluation) -> pl.DataFrame:
    """`dataset, query_id` of the questions with another text: their answers are answers to something else."""
    edits = find_edits(evaluation, earlier)
    changed = [(dataset, query_id) for dataset, found in edits.items() for query_id in sorted(found.changed)]
    return pl.DataFrame(changed, schema=dict.fromkeys(("dataset", "query_id"), pl.String), orient="row")


def _list_answers(evaluation: Evaluation, names: Mapping[str, str]) -> pl.DataFrame:
    """Every question of the named systems, under their new names: `KEY`, `failed`, `answer`."""
    known = evaluation.select_samples(*question_order.KEY, "error", "status", "answer")
    samples = known.select(*question_order.KEY, question_order.is_failed(known).alias("failed"), "answer")
    valued = evaluation.values.select(question_order.KEY).unique(maintain_order=True)
    others = valued.join(samples.select(question_order.KEY), on=question_order.KEY, how="anti", maintain_order="left")
    table = pl.concat([samples, others.with_columns(pl.lit(False).alias("failed"))], how="diagonal")
    known = table.filter(pl.col("system").is_in(list(names)))
    return known.with_columns(pl.col("system").replace(dict(names)))


def _find_largest(evaluation: Evaluation, earlier: Evaluation, wanted: question_order.Filter) -> pl.DataFrame:
    """The change that decides for each question: `KEY`, `metric`, `before`, `after`, `fall`, `crosses`."""
    both = question_order.rate_values(evaluation, wanted.metric).join(
        question_order.find_base_values(evaluation, question_order.BaselineValues("before", earlier)),
        on=[*CELL, "query_id"],
        maintain_order="left",
    )
    diagnosis = evaluation.diagnosis
    wrong_from = 1.0 - (_WRONG_BELOW if diagnosis is None else diagnosis.wrong_below)
    badness_before = (pl.col("best") - pl.col("base")) * pl.col("scale")
    changes = both.with_columns(
        (pl.col("badness") - badness_before).alias("fall"),
        ((pl.col("badness") > wrong_from) != (badness_before > wrong_from)).alias("crosses"),
    ).filter(pl.col("fall").abs() > question_order.SMALLEST_CHANGE)
    ordered = changes.sort(["crosses", pl.col("fall").abs()], descending=True, maintain_order=True)
    return ordered.unique(question_order.KEY, keep="first", maintain_order=True).select(
        *question_order.KEY, "metric", pl.col("base").alias("before"), pl.col("value").alias("after"), "fall", "crosses"
    )


def _classify(table: pl.DataFrame) -> pl.DataFrame:
    """The table with `kind` (null for a question without a change) and `size`."""
    failed, before = pl.col("failed"), pl.col("failed_before")
    worse = pl.col("fall") > 0
    kind = (
        pl.when(failed & ~before)
        .then(pl.lit("broken"))
        .when(~failed & before)
        .then(pl.lit("fixed"))
        .when(pl.col("crosses"))
        .then(pl.when(worse).then(pl.lit("broken")).otherwise(pl.lit("fixed")))
        .when(pl.col("fall").is_not_null())
        .then(pl.when(worse).then(pl.lit("worse")).otherwise(pl.lit("better")))
        .when(pl.col("is_another"))
        .then(pl.lit("changed"))
    )
    size = pl.when(failed != before).then(pl.lit(1.0)).otherwise(pl.col("fall").abs().fill_null(0.0))
    return table.with_columns(kind.alias("kind"), size.alias("size"))


def _describe(
    rows: Sequence[Mapping[str, Any]], evaluation: Evaluation, earlier: Evaluation
) -> Iterator[QuestionChange]:
    """The changes, with the texts of the questions that are shown."""
    systems = question_order.match_systems(evaluation.systems, earlier.systems)
    now = _find_texts(evaluation, [(row["dataset"], row["system"], row["query_id"]) for row in rows])
    before = _find_texts(earlier, [(row["dataset"], systems[row["system"]], row["query_id"]) for row in rows])
    for row in rows:
        dataset, system, query_id = (row[name] for name in question_order.KEY)
        text = now.get((dataset, system, query_id), {})
        old = before.get((dataset, systems[system], query_id), {})
        is_kept = _holds_answer(text) and _holds_answer(old)
        yield QuestionChange(
            dataset,
            system,
            query_id,
            row["kind"],
            row["size"],
            row["metric"],
            row["before"],
            row["after"],
            question=text.get("question") or "",
            answer_before=old.get("answer") if is_kept else None,
            answer=text.get("answer") if is_kept else None,
            error=text.get("error"),
            edited=tuple(list_edited_parts(evaluation, earlier, dataset, query_id)),
        )


def _find_texts(evaluation: Evaluation, keys: Sequence[tuple[str, str, str]]) -> dict[tuple[str, ...], dict[str, Any]]:
    wanted = pl.DataFrame(keys, schema=dict.fromkeys(question_order.KEY, pl.String), orient="row")
    rows = evaluation.find_samples(wanted)
    rows = rows.select(
        *question_order.KEY, "question", "answer", "error", question_order.is_failed(rows).alias("is_failed")
    )
    return {tuple(row[name] for name in question_order.KEY): row for row in rows.to_dicts()}


def _holds_answer(text: Mapping[str, Any]) -> bool:
    """Whether what is recorded of a question tells what the system answered: a text, or that it gave none."""
    return text.get("answer") is not None or bool(text.get("is_failed"))


@dataclass(frozen=True)
class Compared:
    """What changed from one evaluation to another; `differences` says in sentences what else differs."""

    before: NamedResults
    after: NamedResults
    differences: tuple[str, ...]
    metrics: tuple[MetricChange, ...]
    questions: QuestionChanges
