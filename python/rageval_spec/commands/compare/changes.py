"""Compares two evaluations: their numbers, metric by metric, with a paired test, and their questions.

Metrics that people's labels correct are compared by the labels that both evaluations have of their own answers. What
else differs between the evaluations is listed too, because it can explain a change as well as the systems can.

| kind | what happened to a question |
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
from typing import Any, Literal, TypeAlias, get_args

from rageval_spec.commands.results_argument import NamedResults
from rageval_spec.data.datasets import Fingerprint
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation
from rageval_spec.data.labels import find_ends
from rageval_spec.data.outcomes import CELL, LABEL, has_unnamed
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.drawing import question_order
from rageval_spec.drawing.question_order import KEY, Filter, match_systems
from rageval_spec.errors import UsageError
from rageval_spec.history.comparability import (
    Comparability,
    describe_changes,
    describe_overlap,
    describe_unknown,
    find_comparability,
    find_edits,
)
from rageval_spec.history.metric_definitions import read_ranges
from rageval_spec.history.saved_evaluations import list_setting_changes
from rageval_spec.libraries import pl
from rageval_spec.spec.blocks.spec_node import StatisticsNode
from rageval_spec.statistics.aggregation import PairedTests, adjust_table, compare_systems, is_percentile
from rageval_spec.statistics.mean_intervals import ValueRange
from rageval_spec.statistics.raters.label_correction import Rule, correct_comparisons
from rageval_spec.wording import list_names


@dataclass(frozen=True, slots=True)
class MetricChange:
    """One metric of one system in both evaluations.

    Attributes:
        before, after: the aggregates over all questions of each evaluation.
        difference: of the questions that have a value in both, if there is a test; else of the aggregates. None
            without a number on both sides.
        comparison: the paired test; None for counts, for percentiles that no gate compares, for a metric without a good
            direction, and for fewer than two questions with a value in both.
        is_worse: whether the difference is for the worse; None without one, and if the two are not comparable.
    """

    dataset: str
    system: str
    metric: str
    before: Aggregate
    after: Aggregate
    difference: float | None
    comparison: Comparison | None
    is_worse: bool | None


@dataclass(frozen=True, slots=True)
class _Metric:
    """What the test must know of a metric."""

    statistic: str
    higher_is_better: bool
    bounds: ValueRange | None


def compare_metrics(evaluation: Evaluation, earlier: Evaluation, known: Comparability) -> list[MetricChange]:
    """Every metric of every system that both evaluations have, in the order of the later one, the first argument.

    The intervals, the tests and the families of Holm's correction are those of a spec's `baseline`: a comparison that a
    gate of the later evaluation made has the gate's p-value. Queries whose question changed are not compared.
    """
    systems = match_systems(evaluation.systems, earlier.systems)
    statistics = {one.metric: one.statistic for one in evaluation.aggregates}
    ranges = read_ranges(evaluation)
    metrics = {
        metric: _Metric(statistics.get(metric, "mean"), metric not in evaluation.lower_is_better, ranges.get(metric))
        for metric in evaluation.metrics
    }
    settings = StatisticsNode.model_validate(evaluation.provenance.settings.get("statistics") or {})
    names = {before: now for now, before in systems.items()}  # systems of one side only are left out
    same = known.keep_same(earlier.values).filter(pl.col("system").is_in([*names]))
    values = same.with_columns(pl.col("system").replace(names))
    asked = {one.metric for one in evaluation.baselines}
    unlike = find_unlike(evaluation, earlier)
    compared = {
        name: metric
        for name, metric in metrics.items()
        if name not in unlike and (name in asked or not is_percentile(metric))
    }
    every = (evaluation.values, known.baseline, compared, settings)
    designs = evaluation.question_designs
    judged = compare_systems(*every, earlier=values, has_percentiles=True, designs=designs)
    found = correct(judged, evaluation, values, settings.confidence).comparisons
    gated = _list_gated(evaluation, found)
    intervals = {one.cell: one.interval for one in gated}
    adjusted = [replace(one, interval=intervals.get(one.cell, one.interval)) for one in adjust_table(found, gated)]
    tests = {one.cell: one for one in known.mark(tuple(adjusted))}
    changes = []
    for after in evaluation.aggregates:
        before = earlier.aggregate(after.dataset, systems.get(after.system, after.system), after.metric)
        if before is not None:
            is_alike = after.metric not in unlike
            changes.append(_describe_metric(before, after, tests.get(after.cell), evaluation, is_alike=is_alike))
    return changes


def _list_gated(evaluation: Evaluation, found: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that gates of the evaluation have made already, whatever name they know the baseline by.

    They belong to the family of the gates, and have its p-value. Equal differences and p-values show that they are the
    same: both are computed from the values alone. The gates know more of the interval: where not all questions were
    asked, it is one that holds nevertheless.
    """
    numbers = [(one.cell, one.difference, one.p_value, one.queries) for one in found]
    return [
        replace(one, p_adjusted=gated.p_adjusted, interval=gated.interval)
        for one, own in zip(found, numbers, strict=True)
        for gated in evaluation.baselines
        if (gated.cell, gated.difference, gated.p_value, gated.queries) == own
    ]


def _describe_metric(
    before: Aggregate, after: Aggregate, test: Comparison | None, evaluation: Evaluation, *, is_alike: bool
) -> MetricChange:
    difference = test.difference if test is not None else None
    if is_alike and test is None and before.mean is not None and after.mean is not None:
        difference = after.mean - before.mean
    is_directed = bool(difference) and (test is None or test.is_comparable)
    worse = (
        None
        if not is_directed or difference is None
        else (difference > 0) == (after.metric in evaluation.lower_is_better)
    )
    return MetricChange(after.dataset, after.system, after.metric, before, after, difference, test, worse)


def find_unlike(evaluation: Evaluation, earlier: Evaluation) -> dict[str, str]:
    """The metrics whose numbers are not of one kind in both evaluations, and why, by name.

    A judge's mean and a corrected one are not compared. Nor are corrected ones by labels that do not name the answer's
    digest: the same label may count for the answers of both.
    """
    now, before = _list_corrected(evaluation), _list_corrected(earlier)
    unlike = {}
    for metric in evaluation.metrics:
        if metric in earlier.metrics and (metric in now) != (metric in before):
            unlike[metric] = f"people's labels correct it only {'after' if metric in now else 'before'}"
        elif metric in now and (has_unnamed(evaluation.notes, metric) or has_unnamed(earlier.notes, metric)):
            unlike[metric] = "its labels do not name the answers' digests"
    return unlike


def describe_unlike(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    """`not compared: faithfulness, because people's labels correct it only after`."""
    reasons: dict[str, list[str]] = {}
    for metric, reason in find_unlike(evaluation, earlier).items():
        reasons.setdefault(reason, []).append(metric)
    yield from (f"not compared: {list_names(names)}, because {reason}" for reason, names in reasons.items())


def correct(compared: PairedTests, evaluation: Evaluation, earlier: pl.DataFrame, confidence: float) -> PairedTests:
    """The comparisons, those of metrics with labels corrected by them; `earlier` has the earlier values."""
    ranges = read_ranges(evaluation)
    rules = {}
    for one in evaluation.aggregates:
        if one.correction is not None and one.metric in ranges:
            bounds = find_ends(*ranges[one.metric])
            rules[one.metric] = Rule(one.correction.source, bounds, one.correction.method)
    if not rules or LABEL not in earlier.columns:
        return compared
    designs = evaluation.question_designs
    return correct_comparisons(compared, evaluation.values, rules, confidence, earlier, designs)


def _list_corrected(evaluation: Evaluation) -> set[str]:
    return {one.metric for one in evaluation.aggregates if one.correction is not None}


_PARTS = {"question": "question", "reference": "reference", "judgements": "relevance judgements"}


def list_differences(evaluation: Evaluation, earlier: Evaluation, known: Comparability) -> list[str]:
    """One sentence for each difference: questions, what is not comparable, settings, models, prompts, versions."""
    now, before = evaluation.provenance, earlier.provenance
    return [
        *_list_data(evaluation, known),
        *_list_versions(evaluation, earlier),
        *describe_unlike(evaluation, earlier),
        *_list_systems(evaluation, earlier),
        *_list_absent("metric", evaluation.metrics, earlier.metrics),
        *_list_absent("dataset", evaluation.datasets, earlier.datasets),
        *(f"{key}: {old} before, {new} after" for key, new, old in list_setting_changes(evaluation, earlier)),
        *(f"the model {name} is not the same" for name in _find_changed(now.models, before.models)),
        *(f"the prompt {name} was edited" for name in _find_changed(now.prompts, before.prompts)),
        *(
            f"{name} {before.versions[name]} before, {now.versions[name]} after"
            for name in _find_changed(now.versions, before.versions)
        ),
    ]


def _list_data(evaluation: Evaluation, known: Comparability) -> Iterator[str]:
    """What differs in the data, and the metrics that are not comparable; metrics with the same changes share a line."""
    several = len(evaluation.datasets) > 1
    for overlap in known.overlaps:
        where = f"{overlap.dataset}: " if several else ""
        if told := describe_overlap(overlap, "question", "questions"):
            yield f"{where}{told}"
        metrics: dict[str, list[str]] = {}
        for metric in evaluation.metrics:
            if changes := known.list_changes(metric, overlap.dataset):
                metrics.setdefault(describe_changes(changes), []).append(metric)
        for told, names in metrics.items():
            yield f"{where}not comparable: {list_names(names)}, because {told}"
        if overlap.dataset in known.corpora:
            yield f"{where}the corpus is not the same"
        if overlap.dataset in known.nuggets:
            yield f"{where}the nuggets are not the same"
        if weights := known.reweighted.get(overlap.dataset):
            yield f"{where}means were weighted in another way ({weights}); differences weight both sides alike"
    if unknown := describe_unknown(known, "the earlier evaluation"):
        yield unknown


def _list_versions(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    """Versions of datasets that changed, and those that did not although the data did, or the other way round."""
    for dataset in evaluation.datasets:
        now, before = _find_version(evaluation, dataset), _find_version(earlier, dataset)
        if now is None and before is None:
            continue
        # The same questions are needed, because digests are of the evaluated ones.
        old = earlier.provenance.digests.get(dataset, {})
        new = evaluation.provenance.digests.get(dataset, {})
        parts = [part for part, digest in new.items() if old.get(part, digest) != digest]
        if now != before:
            same = "" if parts or not evaluation.provenance.digests.get(dataset) else "; its content is the same"
            yield f"the dataset {dataset} had version {before or 'unknown'} before and has {now or 'unknown'} now{same}"
        elif parts:
            yield f"the dataset {dataset} has version {now} before and after, but its {list_names(parts)} changed"


def _find_version(evaluation: Evaluation, dataset: str) -> str | None:
    origin = evaluation.provenance.origins.get(dataset)
    return None if origin is None else origin.version


def _list_systems(evaluation: Evaluation, earlier: Evaluation) -> Iterator[str]:
    matched = match_systems(evaluation.systems, earlier.systems)
    for now, before in matched.items():
        if now != before:
            yield f"the system {now} is compared with {before}"
    yield from _list_absent(
        "system",
        [name for name in evaluation.systems if name not in matched],
        [name for name in earlier.systems if name not in matched.values()],
    )


def _list_absent(noun: str, now: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    for side, here, there in (("before", before, now), ("after", now, before)):
        names = [name for name in here if name not in there]
        if names:
            yield f"only {side}: the {noun}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _find_changed(now: Mapping[str, object], before: Mapping[str, object]) -> list[str]:
    return sorted(name for name in now if name in before and now[name] != before[name])


def list_edited_parts(evaluation: Evaluation, earlier: Evaluation, dataset: str, query_id: str) -> list[str]:
    """The parts of one question that were edited: `question`, `reference`, `relevance judgements`."""
    now, before = (
        one.fingerprints.datasets.get(dataset, {}).get(query_id, Fingerprint()) for one in (evaluation, earlier)
    )
    pairs = {part: (getattr(now, part), getattr(before, part)) for part in _PARTS}
    return [_PARTS[part] for part, (new, old) in pairs.items() if new is not None and old is not None and new != old]


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


def find_changes(evaluation: Evaluation, earlier: Evaluation, wanted: Filter) -> QuestionChanges:
    """The questions that changed since `earlier`; the limit of the filter is for each kind.

    Systems are matched by name, or a single one with a single one. Errors are those of `complete_filter`.
    """
    wanted = question_order.complete_filter(evaluation, wanted)
    questions = _list_shared(evaluation, earlier, wanted)
    table = questions.join(_find_largest(evaluation, earlier, wanted), on=KEY, how="left", maintain_order="left")
    table = _classify(table).sort("size", descending=True, maintain_order=True)
    found = Counter(table["kind"].to_list())
    kinds = (table.filter(kind=kind) for kind in KINDS)
    shown = [row for of in kinds for row in of.head(of.height if wanted.limit is None else wanted.limit).to_dicts()]
    changes = tuple(_describe_questions(shown, evaluation, earlier))
    return QuestionChanges(changes, {kind: found[kind] for kind in KINDS}, questions.height)


def _list_shared(evaluation: Evaluation, earlier: Evaluation, wanted: Filter) -> pl.DataFrame:
    """The questions that are the same in both: `KEY`, whether each side failed, and whether the answer is another."""
    now = _list_answers(evaluation, {system: system for system in evaluation.systems})
    before = _list_answers(
        earlier, {old: new for new, old in match_systems(evaluation.systems, earlier.systems).items()}
    )
    table = now.join(before, on=KEY, suffix="_before", maintain_order="left")
    table = table.join(
        _list_changed(evaluation, earlier), on=["dataset", "query_id"], how="anti", maintain_order="left"
    )
    same = {"dataset": wanted.dataset, "system": wanted.system}
    table = table.filter(**{name: value for name, value in same.items() if value is not None})
    another = (pl.col("answer") != pl.col("answer_before")).fill_null(False)
    return table.select(*KEY, "failed", "failed_before", another.alias("is_another"))


def _list_changed(evaluation: Evaluation, earlier: Evaluation) -> pl.DataFrame:
    """`dataset, query_id` of the questions with another text: their answers are answers to something else."""
    edits = find_edits(evaluation, earlier)
    changed = [(dataset, query_id) for dataset, found in edits.items() for query_id in sorted(found.changed)]
    return pl.DataFrame(changed, schema=dict.fromkeys(("dataset", "query_id"), pl.String), orient="row")


def _list_answers(evaluation: Evaluation, names: Mapping[str, str]) -> pl.DataFrame:
    """Every question of the named systems, under their new names: `KEY`, `failed`, `answer`."""
    known = evaluation.select_samples(*KEY, "error", "status", "answer")
    samples = known.select(*KEY, question_order.is_failed(known).alias("failed"), "answer")
    valued = evaluation.values.select(KEY).unique(maintain_order=True)
    others = valued.join(samples.select(KEY), on=KEY, how="anti", maintain_order="left")
    table = pl.concat([samples, others.with_columns(pl.lit(False).alias("failed"))], how="diagonal")
    known = table.filter(pl.col("system").is_in(list(names)))
    return known.with_columns(pl.col("system").replace(dict(names)))


def _find_largest(evaluation: Evaluation, earlier: Evaluation, wanted: Filter) -> pl.DataFrame:
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
    return ordered.unique(KEY, keep="first", maintain_order=True).select(
        *KEY, "metric", pl.col("base").alias("before"), pl.col("value").alias("after"), "fall", "crosses"
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


def _describe_questions(
    rows: Sequence[Mapping[str, Any]], evaluation: Evaluation, earlier: Evaluation
) -> Iterator[QuestionChange]:
    """The changes, with the texts of the questions that are shown."""
    systems = match_systems(evaluation.systems, earlier.systems)
    now = _find_texts(evaluation, [(row["dataset"], row["system"], row["query_id"]) for row in rows])
    before = _find_texts(earlier, [(row["dataset"], systems[row["system"]], row["query_id"]) for row in rows])
    for row in rows:
        dataset, system, query_id = (row[name] for name in KEY)
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
    wanted = pl.DataFrame(keys, schema=dict.fromkeys(KEY, pl.String), orient="row")
    rows = evaluation.find_samples(wanted)
    rows = rows.select(*KEY, "question", "answer", "error", question_order.is_failed(rows).alias("is_failed"))
    return {tuple(row[name] for name in KEY): row for row in rows.to_dicts()}


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


def compare_results(before: NamedResults, after: NamedResults, wanted: Filter) -> Compared:
    """What differs; a UsageError if the two have no system or no dataset in common."""
    now, earlier = after.evaluation, before.evaluation
    for noun, common, here, there in (
        ("system", match_systems(now.systems, earlier.systems), now.systems, earlier.systems),
        ("dataset", {*now.datasets} & {*earlier.datasets}, now.datasets, earlier.datasets),
    ):
        if not common:
            raise UsageError(
                f"the results have no {noun} in common: {before.name} has {', '.join(there)}, "
                f"{after.name} has {', '.join(here)}"
            )
    known = find_comparability(now, earlier, before.name)
    metrics = [
        one
        for one in compare_metrics(now, earlier, known)
        if all(getattr(wanted, part) in (None, getattr(one, part)) for part in ("metric", "system", "dataset"))
    ]
    questions = find_changes(now, earlier, wanted)
    return Compared(before, after, tuple(list_differences(now, earlier, known)), tuple(metrics), questions)
