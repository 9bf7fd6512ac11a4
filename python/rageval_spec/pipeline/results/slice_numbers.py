"""The numbers of slices: aggregates, comparisons, and the comparisons that gates on slices request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Comparison, SliceGap, SliceResult
from rageval_spec.libraries import pl
from rageval_spec.pipeline.gating.gate_outcomes import GateBaseline, compare_baselines
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
        for baseline, found in compare_baselines(spec, own, earlier, metrics, labelled, designs, slice).items():
            gated.setdefault(baseline, []).extend(_label(found.comparisons, slice))
    adjusted = aggregation.share_highest({baseline: aggregation.adjust(found) for baseline, found in gated.items()})
    own_gates = [c for baseline, found in adjusted.items() if baseline not in earlier for c in found]
    by_slice: dict[tuple[str, str | None], list[Comparison]] = {}
    for comparison in aggregation.adjust_table(tables, own_gates):
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
