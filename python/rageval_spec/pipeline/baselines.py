"""The baselines that gates compare with: systems of the spec, and earlier evaluations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.history.comparability import Comparability, find_comparability, list_notes
from rageval_spec.history.finding import NoRecordYetError, Places, find_record
from rageval_spec.statistics.aggregate import Comparisons, compare_evaluations, compare_systems
from rageval_spec.statistics.families import share_highest

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.design import Design
    from rageval_spec.data.note import Note
    from rageval_spec.pipeline.labels import Labelled
    from rageval_spec.plugin import Metric
    from rageval_spec.spec.nodes import Spec


@dataclass(frozen=True)
class Baseline:
    """An earlier evaluation that gates compare with, and what else than the systems differs from it."""

    evaluation: Evaluation
    comparability: Comparability

    @cached_property
    def values(self) -> pl.DataFrame:
        """Its values, without those of queries whose question changed since then."""
        return self.comparability.keep_same(self.evaluation.values)

    def take(self, values: pl.DataFrame) -> Baseline:
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
    places = Places.of(spec)
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


def relate(evaluation: Evaluation, earlier: Mapping[str, Evaluation]) -> dict[str, Baseline]:
    """Find what differs between an evaluation and each earlier one, by its name."""
    return {name: Baseline(other, find_comparability(evaluation, other, name)) for name, other in earlier.items()}


def compare_baselines(
    spec: Spec,
    values: pl.DataFrame,
    earlier: Mapping[str, Baseline],
    metrics: Mapping[str, Metric[Any]],
    labelled: Labelled,
    designs: Mapping[str, Design] | None = None,
) -> dict[str, Comparisons]:
    """Compare every system with each baseline of a gate on all queries.

    Holm's correction is over the metrics that gates request with this baseline. It is not over the whole table: a
    gate's outcome must not depend on which system comes first, or on metrics without a gate. The clusters and weights
    of `designs`, today's, count for both sides.
    """
    found = {}
    for baseline in dict.fromkeys(gate.baseline for gate in spec.gates):
        if baseline is None or (baseline not in earlier and baseline not in spec.systems):
            continue
        asked = {
            gate.metric: metrics[gate.metric] for gate in spec.gates if gate.baseline == baseline and gate.slice is None
        }
        settings = (baseline, asked, spec.statistics, spec.limits.threads)
        if baseline in earlier:
            before = earlier[baseline].values
            compared = compare_evaluations(values, before, *settings, has_percentiles=True, designs=designs)
            compared = labelled.correct_comparisons(compared, values, before)
            found[baseline] = replace(compared, comparisons=earlier[baseline].comparability.mark(compared.comparisons))
        else:
            compared = compare_systems(values, *settings, has_percentiles=True, designs=designs)
            found[baseline] = labelled.correct_comparisons(compared, values)
    shared = share_highest({name: of.comparisons for name, of in found.items()})
    return {name: replace(of, comparisons=shared[name]) for name, of in found.items()}
