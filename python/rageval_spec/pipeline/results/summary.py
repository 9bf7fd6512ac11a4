"""Turns values into an evaluation: aggregates, paired tests, gates and notes, on all queries and on slices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, TypeAlias

from rageval_spec.data.datasets import DatasetOrigin, Design, Fingerprints, take_fingerprints
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, Provenance, SliceGap, SliceResult, Stability
from rageval_spec.data.outcomes import (
    BASE_ANSWERS,
    GateOutcome,
    Note,
    RankCounts,
    Stopping,
    collect_base_values,
    empty_base_answers,
    list_cells,
    split_cells,
)
from rageval_spec.data.tables import SampleTable
from rageval_spec.dataclass import dataclass, replace
from rageval_spec.history.saved_evaluations import compare_settings
from rageval_spec.kernels import version
from rageval_spec.libraries import pl
from rageval_spec.pipeline.execution.execution import Execution
from rageval_spec.pipeline.execution.question_clusters import Designed, find_designs
from rageval_spec.pipeline.gating.gate_outcomes import (
    GateBaseline,
    GateChecker,
    compare_baselines,
    find_missing,
    leave_undecided,
    relate,
)
from rageval_spec.pipeline.people_labels import LabelledValues, attach_again, attach_labels, digest_labels
from rageval_spec.pipeline.planning.plan import EvaluationPlan
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.pipeline.results import provenance
from rageval_spec.pipeline.results.diagnosis import diagnose
from rageval_spec.pipeline.results.sample_redaction import redact_failures, redact_notes, redact_samples, redact_values
from rageval_spec.pipeline.results.sequence_intervals import describe_interruption
from rageval_spec.pipeline.values.answer_values import aggregate_notes
from rageval_spec.pipeline.values.sample_tables import SampleParts, Traits, stream_samples
from rageval_spec.pipeline.values.slice_membership import Slice, find_memberships, find_slices
from rageval_spec.plugin import Metric
from rageval_spec.spec.blocks.spec_node import RedactedColumn, Spec
from rageval_spec.statistics.aggregation import adjust, adjust_table, aggregate, compare_systems, share_highest
from rageval_spec.statistics.weak_slices import find_gaps
from rageval_spec.statistics.weighted_clusters import split_variance
from rageval_spec.wording import describe_versions


def summarize_values(
    spec: Spec,
    parts: SpecPlugins,
    execution: Execution,
    earlier: Mapping[str, Evaluation],
    notes: Sequence[Note] = (),
    selection: Mapping[str, Any] | None = None,
    plan: EvaluationPlan | None = None,
) -> Evaluation:
    """Aggregate the values, compare every system with the first, and check the gates.

    `notes` come before the others. `selection` has settings of the command line, which are recorded beside those of
    the spec. The plan that was executed knows the digests of the corpora.
    """
    is_limited = (selection or {}).get("limit") is not None
    designed = find_designs(spec, execution.evaluated, is_limited=is_limited)
    designs = designed.designs
    draft = _draft(spec, parts, execution, selection, plan, designed)
    answered = replace(
        draft, values=execution.values, sample_table=SampleTable(partial(stream_samples, execution.samples))
    )
    labelled = attach_labels(parts, answered, spec.statistics.confidence)
    metrics, values = parts.metrics, labelled.values
    kept = redact_values(values, spec.redact)
    if execution.times:  # when the answers were asked that were not asked now
        asked = pl.concat(execution.times)
        kept = kept.join(asked, on=["dataset", "system", "query_id"], how="left", maintain_order="left")
    draft = replace(draft, values=kept)
    first = _find_first(spec, execution)
    related = relate(draft, earlier)
    related = {name: one.take(attach_again(labelled, parts, one.evaluation)) for name, one in related.items()}
    compared = compare_systems(values, first, metrics, spec.statistics, spec.limits.threads, designs=designs)
    compared = labelled.correct_comparisons(compared, values)
    baselines = compare_baselines(spec, values, related, metrics, labelled, designs)
    requested = share_highest({name: of.comparisons for name, of in baselines.items()})
    sliced = find_slices(spec.slices, execution.evaluated)
    numbers = evaluate_slices(spec, metrics, sliced.slices, values, first, related, labelled, designs)
    gated = [comparison for name, found in requested.items() if name not in earlier for comparison in found]
    aggregates = aggregate(values, metrics, spec.statistics, spec.limits.threads, designs)
    aggregates = labelled.correct_aggregates(aggregates, values)
    mixed = {(one.dataset, one.system): one.versions for one in execution.taken_over if one.versions}
    aggregates = _mark_versions(aggregates, mixed)
    memberships = find_memberships(sliced.slices) if sliced.slices else None
    diagnosed = diagnose(spec, execution, aggregates, memberships, designs)
    members = {}
    if memberships is not None:
        found = memberships.partition_by("dataset", as_dict=True, include_key=False, maintain_order=True)
        members = {str(dataset): table for (dataset,), table in found.items()}
    traits = Traits(members, diagnosed.causes)
    overlaps = tuple(overlap for one in related.values() for overlap in one.comparability.overlaps)
    checker = GateChecker(
        aggregates,
        metrics,
        {name: (*requested.get(name, ()), *numbers.gated.get(name, ())) for name in {**requested, **numbers.gated}},
        overlaps,
        spec.bands,
        numbers.results,
        find_missing(spec, earlier),
        earlier,
    )
    gates = checker.check_all(spec.gates)
    if spec.repeat > 1:
        rows = [values.filter(pl.col("query_id").str.ends_with(f"#{number + 1}")) for number in range(spec.repeat)]
        alone = [aggregate(own, metrics, spec.statistics, spec.limits.threads, designs) for own in rows]
        means = [labelled.correct_aggregates(found, own) for found, own in zip(alone, rows, strict=True)]
        gates = tuple(_count_flips(spec, checker, means))
    stopped = _list_stopped(execution, aggregates)
    evaluation = replace(
        draft,
        aggregates=aggregates,
        comparisons=adjust_table(compared.comparisons, gated),
        gates=_mark_gates(leave_undecided(spec.gates, gates, stopped), mixed),
        baselines=tuple(chain(*requested.values())),
        overlaps=overlaps,
        diagnosis=diagnosed.diagnosis,
        target_ranks=tuple(_count_ranks(draft.values, metrics)),
        slices=tuple(replace(one, aggregates=_mark_versions(one.aggregates, mixed)) for one in numbers.results),
        weakest=numbers.weakest,
        stability=tuple(_measure_stability(values)) if spec.repeat > 1 else (),
        sample_table=SampleTable(partial(_stream_samples, execution.samples, traits, spec)),
        load_base_answers=partial(_collect_base_answers, spec, related),
        load_base_values=partial(collect_base_values, values, {name: one.values for name, one in related.items()}),
    )
    untested = [note for comparisons in (compared, *baselines.values()) for note in comparisons.notes]
    unlike = [note for name, other in earlier.items() for note in compare_settings(evaluation, other, name)]
    changed = [note for one in related.values() for note in one.list_notes(spec)]
    coverage = [*aggregate_notes(aggregates, metrics), *designed.notes]
    told = [*notes, *provenance.note_models(parts), *changed, *execution.notes, *sliced.notes, *labelled.notes]
    told += [*coverage, *untested, *diagnosed.notes, *unlike]
    kept_notes = redact_notes(dict.fromkeys(told), spec.redact, execution.failures)
    return replace(evaluation, notes=tuple(kept_notes))


def _list_stopped(execution: Execution, aggregates: Sequence[Aggregate]) -> dict[tuple[str, str, str], str]:
    """Where the evaluation stopped, for each dataset, system and metric that lacks questions for that reason.

    Under `stopping:` the questions that were not drawn are no part of the numbers, so all of the dataset's count.
    """
    drawn = {one.dataset: describe_interruption(one) for one in execution.asked if one.ending == "interrupted"}
    left = {(note.dataset, note.system): note.message for note in execution.notes if note.code == "stopped"}
    return {
        (one.dataset, one.system, one.metric): drawn.get(one.dataset) or left[one.dataset, one.system]
        for one in aggregates
        if one.dataset in drawn or (one.scored < one.total and (one.dataset, one.system) in left)
    }


_Mixed: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""The versions of an application, for each dataset and system with answers of several."""


def _mark_versions(aggregates: Sequence[Aggregate], mixed: _Mixed) -> tuple[Aggregate, ...]:
    """Let each number say if it mixes answers of several versions of an application."""
    return tuple(replace(one, versions=mixed.get((one.dataset, one.system), ())) for one in aggregates)


def _mark_gates(gates: Sequence[GateOutcome], mixed: _Mixed) -> tuple[GateOutcome, ...]:
    """Let the reason of each gate say if its number mixes answers of several versions of an application."""
    return tuple(
        replace(one, reason=f"{one.reason}; {describe_versions(versions)}")
        if (versions := mixed.get((one.dataset, one.system)))
        else one
        for one in gates
    )


def _draft(
    spec: Spec,
    parts: SpecPlugins,
    execution: Execution,
    selection: Mapping[str, Any] | None,
    plan: EvaluationPlan | None,
    designed: Designed,
) -> Evaluation:
    """The evaluation without the numbers that are made of its values, and without gates."""
    metrics, stopping = parts.metrics, None
    if (node := spec.stopping) is not None:
        stopping = Stopping(node.confidence, node.first, node.batch, spec.statistics.seed, execution.asked)
    load_fingerprints = cache(partial(_take_fingerprints, execution))
    return Evaluation(
        name=spec.name,
        datasets=tuple(spec.datasets),
        systems=tuple(spec.systems),
        metrics=tuple(metrics),
        failures=tuple(map(str, redact_failures(execution.failures, spec.redact))),
        lower_is_better=tuple(name for name, metric in metrics.items() if metric.higher_is_better is False),
        units={name: metric.info.unit for name, metric in metrics.items() if metric.info.unit is not None},
        ranges={name: metric.bounds for name, metric in metrics.items() if math.isfinite(metric.bounds[0])},
        show_as={name: "percent" for name, metric in metrics.items() if metric.is_percent},
        bands=dict(spec.bands),
        summaries={name: metric.info.summary for name, metric in metrics.items()},
        stopping=stopping,
        designs=designed.summaries,
        provenance=Provenance(
            spec_digest=spec.digest,
            settings={
                "ranking": spec.ranking.model_dump(mode="json"),
                "statistics": spec.statistics.model_dump(mode="json"),
                **(selection or {}),
            },
            versions={"rageval-spec": version()},
            models={name: model.describe() for name, model in parts.asked_models.items()},
            digests=provenance.digest_data(load_fingerprints(), plan),
            judging=provenance.count_judging(parts),
            replies=provenance.count_replies(parts),
            prompts=provenance.digest_prompts(parts),
            calibrations=provenance.describe_calibrations(parts),
            implementations=provenance.digest_implementations(metrics),
            spec=provenance.describe_spec(spec, metrics),
            labels=digest_labels(parts),
            origins=_find_origins(spec, execution),
            taken_over=execution.taken_over,
        ),
        values=redact_values(execution.values, spec.redact),
        load_fingerprints=load_fingerprints,
        load_question_designs=lambda: dict(designed.designs),
    )


def _stream_samples(parts: Sequence[SampleParts], traits: Traits, spec: Spec) -> Iterator[pl.DataFrame]:
    """The samples as far as the spec keeps them."""
    if spec.samples == "none":
        return iter(())
    left_out: set[RedactedColumn] = {*spec.redact, *(("contexts",) if spec.samples == "texts" else ())}
    blocks = stream_samples(parts, traits)
    return redact_samples(blocks, sorted(left_out)) if left_out else blocks


def _take_fingerprints(execution: Execution) -> Fingerprints:
    """The fingerprints of all queries, also of those that were not asked: the data are the same without an answer."""
    evaluated = {one.collection.name: one for one in execution.evaluated}
    evaluated |= {one.dataset: one.evaluated for one in execution.rounds}
    return Fingerprints({name: take_fingerprints(one) for name, one in evaluated.items()})


def _find_origins(spec: Spec, execution: Execution) -> dict[str, DatasetOrigin]:
    """Where each dataset comes from, by name, as far as it says so."""
    opened = {one.collection.name: one.collection for one in execution.evaluated}
    opened |= {one.dataset: one.evaluated.collection for one in execution.rounds}
    names = [name for name in spec.datasets if name in opened]
    found = {name: provenance.find_dataset_origin(spec.datasets[name], opened[name]) for name in names}
    return {name: origin for name, origin in found.items() if origin is not None}


def _collect_base_answers(spec: Spec, related: Mapping[str, GateBaseline]) -> pl.DataFrame:
    """The answers of earlier evaluations to questions that are the same today, unless the spec keeps no answers."""
    if spec.samples == "none" or "answer" in spec.redact:
        return empty_base_answers()
    found = [empty_base_answers()]
    for name, one in related.items():
        answers = one.comparability.keep_same(one.evaluation.select_samples(*BASE_ANSWERS[1:])).drop_nulls("answer")
        found.append(answers.select(pl.lit(name).alias("baseline"), *BASE_ANSWERS[1:]))
    return pl.concat(found)


def _count_ranks(values: pl.DataFrame, metrics: Mapping[str, Metric[Any]]) -> Iterator[RankCounts]:
    for cell, rows in split_cells(values):
        ranks = metrics[cell.metric].find_ranks(rows)
        if ranks is not None and len(ranks):
            yield RankCounts.of(cell, ranks)


def _measure_stability(values: pl.DataFrame) -> Iterator[Stability]:
    """How far the values of each question's repeats differ, for each dataset, system and metric."""
    for cell, rows in split_cells(values.filter(status="scored")):
        groups = rows.group_by(Stability.drop_repeat(), maintain_order=True).agg("value")["value"].to_list()
        changing = [len({*group}) > 1 for group in groups if len(group) > 1]
        parts = split_variance(groups) or (None, None)
        yield Stability(cell.dataset, cell.system, cell.metric, len(changing), sum(changing), *parts)


def _count_flips(spec: Spec, checker: GateChecker, means: Sequence[tuple[Aggregate, ...]]) -> Iterator[GateOutcome]:
    """The gates with how many of the repeats, whose `means` these are, would alone give another outcome."""
    alone = [replace(checker, aggregates=own, comparisons={}, slices=()).check_all(spec.gates) for own in means]
    for one in checker.check_all(spec.gates):
        same = sum((one.gate, one.cell, one.outcome) in {(of.gate, of.cell, of.outcome) for of in own} for own in alone)
        can_tell = spec.gates[one.gate].baseline is None and spec.gates[one.gate].slice is None
        yield replace(one, flips=len(alone) - same) if can_tell else one


def _find_first(spec: Spec, execution: Execution) -> dict[str, str]:
    """For each metric, the first system of the spec that has it; retrievers do not have metrics of answers."""
    pairs = {(cell.metric, cell.system) for cell in list_cells(execution.values)}
    order = {system: place for place, system in enumerate(spec.systems)}
    return dict(sorted(pairs, key=lambda pair: order[pair[1]], reverse=True))


@dataclass(frozen=True)
class SliceNumbers:
    """The numbers of each slice, the slices where a system is significantly worse than elsewhere, and what gates ask.

    `gated` has the comparisons that gates on slices request, for each baseline.
    """

    results: tuple[SliceResult, ...]
    weakest: tuple[SliceGap, ...]
    gated: Mapping[str, tuple[Comparison, ...]]


def evaluate_slices(
    spec: Spec,
    metrics: Mapping[str, Metric[Any]],
    slices: Sequence[Slice],
    values: pl.DataFrame,
    first: Mapping[str, str],
    earlier: Mapping[str, GateBaseline],
    labelled: LabelledValues,
    designs: Mapping[str, Design] | None = None,
) -> SliceNumbers:
    """Aggregate and compare the values on each slice.

    No slice is tested against the rest on a metric whose numbers are `labelled`.
    """
    results, tables = [], []
    gated: dict[str, list[Comparison]] = {}
    for slice in slices:
        own = slice.select(values)
        aggregates = aggregate(own, metrics, spec.statistics, spec.limits.threads, designs)
        aggregates = labelled.correct_aggregates(aggregates, own)
        compared = compare_systems(own, first, metrics, spec.statistics, spec.limits.threads, designs=designs)
        tables += _label(labelled.correct_comparisons(compared, own).comparisons, slice)
        named = tuple(replace(one, slice=slice.name) for one in aggregates)
        results.append(
            SliceResult(slice.dataset, slice.name, slice.by, slice.description, len(slice.query_ids), named, ())
        )
        for baseline, found in compare_baselines(spec, own, earlier, metrics, labelled, designs, slice).items():
            gated.setdefault(baseline, []).extend(_label(found.comparisons, slice))
    adjusted = share_highest({baseline: adjust(found) for baseline, found in gated.items()})
    own_gates = [c for baseline, found in adjusted.items() if baseline not in earlier for c in found]
    by_slice: dict[tuple[str, str | None], list[Comparison]] = {}
    for comparison in adjust_table(tables, own_gates):
        by_slice.setdefault((comparison.dataset, comparison.slice), []).append(comparison)
    gaps = find_gaps(
        values,
        [(slice.dataset, slice.name, slice.query_ids) for slice in slices],
        labelled.keep_uncorrected(metrics),
        spec.statistics,
        spec.limits.threads,
        designs,
    )
    results = [replace(one, comparisons=tuple(by_slice.get((one.dataset, one.name), ()))) for one in results]
    return SliceNumbers(tuple(results), gaps, adjusted)


def _label(comparisons: Sequence[Comparison], slice: Slice) -> list[Comparison]:
    return [replace(comparison, slice=slice.name) for comparison in comparisons]
