"""Checks gates against aggregates and baselines, and writes the sentences that explain each outcome.

Baselines are systems of the spec, and earlier evaluations. Numbers are compared without rounding; a sentence shows
enough digits to see the difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from rageval_spec.data.bands import BandScale
from rageval_spec.data.datasets import Design
from rageval_spec.data.evaluation import Aggregate, Comparison, Evaluation, SliceResult
from rageval_spec.data.outcomes import GateOutcome, Note, Overlap, rank_outcome
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.history.comparability import Comparability, describe_overlap, find_comparability, list_notes
from rageval_spec.history.evaluation_lookup import NoRecordYetError, SearchPlaces, find_record
from rageval_spec.libraries import pl
from rageval_spec.pipeline.gating import gate_bounds
from rageval_spec.pipeline.people_labels import LabelledValues
from rageval_spec.pipeline.values.slice_membership import Slice
from rageval_spec.plugin import Metric
from rageval_spec.spec.blocks.gates import GateNode
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.statistics.aggregation import PairedTests, compare_systems
from rageval_spec.wording import ALL_DIGITS, count_noun, format_percent, format_share

_MOST_NAMES_SHOWN = 12
_FEWEST_SHARED = 2
"""A comparison needs as many questions as an interval does."""


@dataclass(frozen=True)
class GateChecker:
    """Checks gates on every dataset and system that they name; a gate that names none is checked on all of them.

    Every gate has an outcome: a gate that finds nothing to check fails and says so. `observed` is the mean, or the end
    of the interval, that the bounds look at; for a gate that only checks a drop it is the difference from the baseline.

    Attributes:
        comparisons: those of every system with each `gate.baseline`.
        overlaps: how many queries of each dataset are the same as in each earlier evaluation.
        bands: the scales of metrics for `at_least`.
        missing: the baselines of which there is no evaluation yet.
    """

    aggregates: Sequence[Aggregate]
    metrics: Mapping[str, gate_bounds.Directed]
    comparisons: Mapping[str, Sequence[Comparison]] = field(default_factory=dict)
    overlaps: Sequence[Overlap] = ()
    bands: Mapping[str, BandScale] = field(default_factory=dict)
    slices: Sequence[SliceResult] = ()
    missing: Collection[str] = ()
    earlier: Mapping[str, Evaluation] = field(default_factory=dict)

    @cached_property
    def many_datasets(self) -> bool:
        return len({aggregate.dataset for aggregate in self.aggregates}) > 1

    def check_all(self, gates: Sequence[GateNode]) -> tuple[GateOutcome, ...]:
        return tuple(outcome for index, gate in enumerate(gates) for outcome in self._check(index, gate))

    def _check(self, index: int, gate: GateNode) -> Iterable[GateOutcome]:
        """The outcomes on the cells of all queries, or on those of the slices that the gate names."""
        named = [one for one in self.slices if gate.slice in (one.name, one.by)]
        aggregates = self.aggregates if gate.slice is None else [cell for one in named for cell in one.aggregates]
        cells = [aggregate for aggregate in aggregates if _concerns(gate, aggregate)]
        if not cells:
            yield self._nothing_to_check(index, gate)
        for cell in cells:
            yield self._outcome(index, gate, cell)

    def _nothing_to_check(self, index: int, gate: GateNode) -> GateOutcome:
        where = f" of {gate.system}" if gate.system else ""
        where += f" on {gate.dataset}" if gate.dataset else ""
        reason = f"the evaluation has no {gate.metric}{where}, so the gate could not be checked"
        if gate.system is not None and gate.system == gate.baseline:
            reason = f"the gate on {gate.metric} compares {gate.system} with itself"
        elif gate.slice is not None:
            slices = [one for one in self.slices if gate.dataset in (None, one.dataset)]
            if not any(gate.slice in (one.name, one.by) for one in slices):
                reason = _explain_no_slice(gate, slices)
        where_to = (gate.dataset or "", gate.system or "", gate.metric)
        is_percent = gate.metric in self.metrics and self.metrics[gate.metric].is_percent
        bound = describe_bound(gate, is_percent=is_percent)
        return GateOutcome(index, *where_to, "fail", bound, None, reason, gate.slice)

    def _outcome(self, index: int, gate: GateNode, cell: Aggregate) -> GateOutcome:
        check = gate_bounds.CellCheck(gate, cell, self._cell_name(cell), self.metrics[cell.metric])
        scored = gate_bounds.BoundResult("pass", f"{gate_bounds.describe_scored(cell)} for {check.name}")
        findings = [*self._findings(check)] or [scored]
        worst = min(findings, key=lambda finding: rank_outcome(finding.outcome, finding.counts_as))
        reason = _join(finding for finding in findings if finding.outcome == worst.outcome)
        reason += check.describe_weights()
        if cell.slice is None:
            told = map(describe_overlap, self._find_overlaps(gate.baseline, cell))
            reason += "".join(f"; {text}" for text in told if text)
        observed = next((finding.observed for finding in findings if finding.observed is not None), None)
        drop = next((finding for finding in findings if finding.max_drop is not None), scored)
        where = (index, cell.dataset, cell.system, cell.metric)
        bound = describe_bound(gate, is_percent=check.metric.is_percent)
        found = GateOutcome(*where, worst.outcome, bound, observed, reason, cell.slice, worst.counts_as)
        return replace(found, baseline=gate.baseline, max_drop=drop.max_drop, severity=drop.severity)

    def _findings(self, check: gate_bounds.CellCheck) -> Iterable[gate_bounds.BoundResult]:
        gate, cell = check.gate, check.cell
        if cell.mean is None:
            why = gate_bounds.describe_scored(cell)
            if cell.correction is not None and cell.correction.reason is not None:
                why = f"the labels '{cell.correction.source}' cannot correct it: {cell.correction.reason}"
            yield gate_bounds.BoundResult("fail", f"{check.name} has no value: {why}")
            return
        yield from check.check_scored()
        yield from check.check_covered()
        yield from check.check_half()
        yield from check.check_bounds(self.bands.get(cell.metric))
        if gate.baseline is not None:
            found = self.comparisons.get(gate.baseline, ())
            comparison = next((one for one in found if one.cell == cell.cell), None)
            lack = self._find_lack(gate.baseline, cell, is_compared=comparison is not None)
            yield check.check_drop(comparison) if lack is None else check.wait(lack)

    def _find_lack(self, baseline: str, cell: Aggregate, *, is_compared: bool) -> str | None:
        """Why a cell can be compared with no baseline that there is now; None if it can."""
        if baseline in self.missing:
            branch = baseline.partition(":")[2]
            absent = f"no evaluation on the branch {branch} has passed" if branch else "there is no earlier evaluation"
            return f"has nothing to be compared with yet: {absent}"
        earlier = self.earlier.get(baseline)
        for kind in ("dataset", "system", "metric") if earlier is not None else ():
            if (name := getattr(cell, kind)) not in getattr(earlier, f"{kind}s"):
                return f"has nothing to be compared with yet: {baseline} has no {kind} '{name}'"
        shares_few = any(one.same < _FEWEST_SHARED for one in self._find_overlaps(baseline, cell))
        if not is_compared and cell.statistic != "sum" and shares_few:
            return f"cannot be compared with {baseline}: the questions are not the same"
        return None

    def _find_overlaps(self, baseline: str | None, cell: Aggregate) -> Iterator[Overlap]:
        return (one for one in self.overlaps if (one.baseline, one.dataset) == (baseline, cell.dataset))

    def _cell_name(self, cell: Aggregate) -> str:
        where = f" on {cell.dataset}" if self.many_datasets else ""
        where += f" in the slice {cell.slice}" if cell.slice else ""
        if cell.correction is not None and cell.mean is not None:
            where += f" (corrected by {count_noun(cell.correction.labels, 'label')})"
        return f"{cell.metric} of {cell.system}{where}"


def leave_undecided(
    gates: Sequence[GateNode], outcomes: Sequence[GateOutcome], stopped: Mapping[tuple[str, str, str], str]
) -> tuple[GateOutcome, ...]:
    """The outcomes, after those that passed on a part of the questions became inconclusive.

    `stopped` says where the evaluation stopped, for each dataset, system and metric whose numbers lack questions for
    that reason: the questions left could turn the number.
    """
    return tuple(
        replace(
            one,
            outcome="inconclusive",
            counts_as=gate_bounds.weigh(gates[one.gate]),
            reason=f"{one.reason}; undecided, because {stopped[cell]}",
        )
        if one.outcome == "pass" and (cell := (one.dataset, one.system, one.metric)) in stopped
        else one
        for one in outcomes
    )


def describe_bound(gate: GateNode, *, is_percent: bool = False) -> str:
    """A gate's bounds in short: `≥ 0.4, target 0.55`, `lower end ≥ 0.85`, `drop from main ≤ 0.02 (p < 0.05)`."""

    def write(bound: float) -> str:
        return format_share(bound, ALL_DIGITS) if is_percent else repr(bound)

    end = "" if gate.on == "mean" else f"{gate.on} end "
    end = "whole interval " if gate.decide == "certain" else end
    parts = [
        f"{end}≥ {write(gate.min)}" if gate.min is not None else "",
        f"{end}≤ {write(gate.max)}" if gate.max is not None else "",
        f"{end}target {write(gate.target)}" if gate.target is not None else "",
        f"{end}at least {gate.at_least}" if gate.at_least is not None else "",
        gate_bounds.describe_drop(gate, is_percent=is_percent) if gate.baseline is not None else "",
    ]
    return ", ".join(part for part in parts if part) or f"scored ≥ {format_percent(gate.min_scored)}"


def _join(findings: Iterable[gate_bounds.BoundResult]) -> str:
    """Join all findings into one sentence; findings with the same beginning share it."""
    relations: dict[str, list[str]] = {}
    for finding in findings:
        relations.setdefault(finding.sentence, []).append(finding.relation)
    sentences = ((sentence, " and ".join(filter(None, said))) for sentence, said in relations.items())
    return "; ".join(f"{sentence}, {relation}" if relation else sentence for sentence, relation in sentences)


def _explain_no_slice(gate: GateNode, slices: Iterable[SliceResult]) -> str:
    column = str(gate.slice).partition("=")[0]
    where = f" of {gate.dataset}" if gate.dataset else ""
    names = [*dict.fromkeys(one.name for one in slices if one.by == column)]
    known = names[:_MOST_NAMES_SHOWN] + (["..."] if len(names) > _MOST_NAMES_SHOWN else [])
    there = f"; the slices by '{column}' are {', '.join(known)}" if known else ""
    return f"the evaluation has no slice {gate.slice}{where}, so the gate on {gate.metric} could not be checked{there}"


def _concerns(gate: GateNode, cell: Aggregate) -> bool:
    return (
        cell.metric == gate.metric
        and gate.system in (None, cell.system)
        and gate.dataset in (None, cell.dataset)
        and cell.system != gate.baseline
    )


@dataclass(frozen=True)
class GateBaseline:
    """An earlier evaluation that gates compare with, and what else than the systems differs from it."""

    evaluation: Evaluation
    comparability: Comparability

    @cached_property
    def values(self) -> pl.DataFrame:
        """Its values, without those of queries whose question changed since then."""
        return self.comparability.keep_same(self.evaluation.values)

    def take(self, values: pl.DataFrame) -> GateBaseline:
        """This baseline with other values, such as the same ones with labels."""
        return replace(self, evaluation=replace(self.evaluation, values=values))

    def list_notes(self, spec: Spec) -> Iterator[Note]:
        """What a reader of the comparisons that gates ask for must know."""
        name = self.comparability.baseline
        accepted: dict[str, set[str]] = {}
        for gate in spec.gates:
            if gate.baseline == name:
                parts: set[str] = {*(gate.accept_changes or ())}
                accepted[gate.metric] = accepted.get(gate.metric, parts) & parts
        yield from list_notes(self.comparability, accepted)


def find_baselines(spec: Spec) -> dict[str, Evaluation]:
    """The earlier evaluations that gates compare with, by the names that the gates use.

    Those that `previous` and `branch:` mean can be absent: then this evaluation is the first, and has to be able to
    pass.

    Raises:
        DataError: a baseline does not exist, or cannot be read.
    """
    places = SearchPlaces.of(spec)
    found = {}
    for name in _list_named(spec):
        with suppress(NoRecordYetError):
            found[name] = find_record(name, places).evaluation
    return found


def find_missing(spec: Spec, earlier: Collection[str]) -> frozenset[str]:
    """The baselines of gates of which there is no evaluation yet; `earlier` has the names of the others."""
    return frozenset(_list_named(spec)).difference(earlier)


def _list_named(spec: Spec) -> list[str]:
    """The baselines of gates that are not systems of the spec, in the order of the gates."""
    names = dict.fromkeys(gate.baseline for gate in spec.gates if gate.baseline is not None)
    return [name for name in names if name not in spec.systems]


def relate(evaluation: Evaluation, earlier: Mapping[str, Evaluation]) -> dict[str, GateBaseline]:
    """Find what differs between an evaluation and each earlier one, by its name."""
    return {name: GateBaseline(other, find_comparability(evaluation, other, name)) for name, other in earlier.items()}


def compare_baselines(
    spec: Spec,
    values: pl.DataFrame,
    earlier: Mapping[str, GateBaseline],
    metrics: Mapping[str, Metric[Any]],
    labelled: LabelledValues,
    designs: Mapping[str, Design] | None = None,
    slice: Slice | None = None,
) -> dict[str, PairedTests]:
    """Compare every system with each baseline of a gate, on all queries or on those of a slice, whose `values` are.

    Holm's correction is over the metrics that gates request with this baseline. It is not over the whole table: a
    gate's outcome must not depend on which system comes first, or on metrics without a gate. The clusters and weights
    of `designs`, today's, count for both sides. Which queries belong to a slice is decided by today's data too.
    """
    found = {}
    for baseline, asked in _list_asked(spec, earlier, metrics, slice).items():
        settings = (baseline, asked, spec.statistics, spec.limits.threads)
        if baseline in earlier:
            before = earlier[baseline].values if slice is None else slice.select(earlier[baseline].values)
            compared = compare_systems(values, *settings, earlier=before, has_percentiles=True, designs=designs)
            compared = labelled.correct_comparisons(compared, values, before)
            members = None if slice is None else slice.query_ids
            marked = earlier[baseline].comparability.mark(compared.comparisons, members)
            found[baseline] = replace(compared, comparisons=marked)
        else:
            compared = compare_systems(values, *settings, has_percentiles=True, designs=designs)
            found[baseline] = labelled.correct_comparisons(compared, values)
    return found


def _list_asked(
    spec: Spec, earlier: Collection[str], metrics: Mapping[str, Metric[Any]], slice: Slice | None
) -> dict[str, dict[str, Metric[Any]]]:
    """The metrics that gates compare, on all queries or on a slice, by baseline; of those that there are."""
    asked: dict[str, dict[str, Metric[Any]]] = {}
    for gate in spec.gates:
        if gate.baseline is None or (gate.baseline not in earlier and gate.baseline not in spec.systems):
            continue
        is_of_slice = slice is not None and gate.slice is not None and slice.matches(gate.slice)
        if gate.slice is None if slice is None else is_of_slice and gate.dataset in (None, slice.dataset):
            asked.setdefault(gate.baseline, {})[gate.metric] = metrics[gate.metric]
    return asked
