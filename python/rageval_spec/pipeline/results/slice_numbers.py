"""The numbers of slices: aggregates, comparisons, and the comparisons that gates on slices request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Aggregate, Comparison, SliceGap, SliceResult
from rageval_spec.libraries import pl
from rageval_spec.pipeline.gating.gate_outcomes import GateBaseline
from rageval_spec.pipeline.people_labels import LabelledValues
from rageval_spec.pipeline.values.slice_membership import Slice
from rageval_spec.plugin import Metric
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.statistics import aggregation
from rageval_spec.statistics.weak_slices import find_gaps


@dataclass(frozen=True)
class SliceNumbers:
    """What is known of the slices of an evaluation.

    Attributes:
        results: the numbers of each slice, in the order given.
        weakest: the slices on which a system is significantly worse than on the other queries.
        gated: for each baseline of a gate, the comparisons that gates on slices request.
    """

    results: tuple[SliceResult, ...] = ()
    weakest: tuple[SliceGap, ...] = ()
    gated: Mapping[str, tuple[Comparison, ...]] = field(default_factory=dict)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates of all slices."""
        return tuple(aggregate for result in self.results for aggregate in result.aggregates)


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

    Args:
        spec: its gates, and the settings of intervals and tests.
        metrics: the metrics by name.
        slices: the slices, from `find_slices`.
        values: the values of all queries.
        first: for each metric, the system with which the others are compared.
        earlier: the earlier evaluations that gates compare with, by name.
        labelled: corrects the numbers of metrics that have labels. For these, no slice is tested against the rest.
        designs: the clusters and weights of each dataset's questions, if the spec has any.
    """
    if not slices:
        return SliceNumbers()
    results, tables = [], []
    gated: dict[str, list[Comparison]] = {}
    for slice in slices:
        own = slice.select(values)
        aggregates = aggregation.aggregate(own, metrics, spec.statistics, spec.limits.threads, designs)
        aggregates = labelled.correct_aggregates(aggregates, own)
        compared = aggregation.compare_systems(
            own, first, metrics, spec.statistics, spec.limits.threads, designs=designs
        )
        tables += _label(labelled.correct_comparisons(compared, own).comparisons, slice)
        named = tuple(replace(one, slice=slice.name) for one in aggregates)
        results.append(
            SliceResult(slice.dataset, slice.name, slice.by, slice.description, len(slice.query_ids), named, ())
        )
        for baseline, found in _compare_baselines(spec, metrics, slice, own, earlier, labelled, designs).items():
            gated.setdefault(baseline, []).extend(found)
    adjusted = aggregation.share_highest({baseline: aggregation.adjust(found) for baseline, found in gated.items()})
    own_gates = [c for baseline, found in adjusted.items() if baseline not in earlier for c in found]
    comparisons = _by_slice(aggregation.adjust_table(tables, own_gates))
    gaps = find_gaps(
        values,
        [(slice.dataset, slice.name, slice.query_ids) for slice in slices],
        labelled.keep_uncorrected(metrics),
        spec.statistics,
        spec.limits.threads,
        designs,
    )
    return SliceNumbers(
        tuple(replace(one, comparisons=comparisons.get((one.dataset, one.name), ())) for one in results),
        gaps,
        adjusted,
    )


def _by_slice(comparisons: Sequence[Comparison]) -> dict[tuple[str, str | None], tuple[Comparison, ...]]:
    found: dict[tuple[str, str | None], list[Comparison]] = {}
    for comparison in comparisons:
        found.setdefault((comparison.dataset, comparison.slice), []).append(comparison)
    return {key: tuple(of) for key, of in found.items()}


def _label(comparisons: Sequence[Comparison], slice: Slice) -> list[Comparison]:
    return [replace(comparison, slice=slice.name) for comparison in comparisons]


def _compare_baselines(
    spec: Spec,
    metrics: Mapping[str, Metric[Any]],
    slice: Slice,
    values: pl.DataFrame,
    earlier: Mapping[str, GateBaseline],
    labelled: LabelledValues,
    designs: Mapping[str, Design] | None,
) -> dict[str, list[Comparison]]:
    """The comparisons that gates on this slice request, by baseline. An earlier evaluation's values are those of the
    same queries: which of them belong to the slice is decided by today's data.
    """
    asked: dict[str, dict[str, Metric[Any]]] = {}
    for gate in spec.gates:
        if gate.slice is None or gate.baseline is None or not slice.matches(gate.slice):
            continue
        if gate.baseline not in earlier and gate.baseline not in spec.systems:
            continue  # there is no such evaluation yet
        if gate.dataset in (None, slice.dataset):
            asked.setdefault(gate.baseline, {})[gate.metric] = metrics[gate.metric]
    found = {}
    for baseline, wanted in asked.items():
        settings = (baseline, wanted, spec.statistics, spec.limits.threads)
        if baseline in earlier:
            before = slice.select(earlier[baseline].values)
            compared = aggregation.compare_evaluations(values, before, *settings, has_percentiles=True, designs=designs)
            compared = labelled.correct_comparisons(compared, values, before)
            marked = earlier[baseline].comparability.mark(compared.comparisons, slice.query_ids)
        else:
            compared = aggregation.compare_systems(values, *settings, has_percentiles=True, designs=designs)
            marked = labelled.correct_comparisons(compared, values).comparisons
        found[baseline] = _label(marked, slice)
    return found
