"""What production is compared with: the days before, or an evaluation of the history.

Answers of an earlier evaluation are of the same kind as those of production only if metric, judge, prompts and models
are the same. Where one of these changed, the metric is not comparable, and the reason is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rageval_spec.data.evaluation import Provenance
from rageval_spec.dataclass import dataclass, field, replace
from rageval_spec.errors import UsageError
from rageval_spec.history.comparability import describe_changes
from rageval_spec.history.database import locate, open_history
from rageval_spec.history.evaluation_lookup import SearchPlaces, find_record
from rageval_spec.history.evaluation_records import load_stored
from rageval_spec.history.metric_definitions import list_changes, read_definitions
from rageval_spec.libraries import np, pl
from rageval_spec.monitoring.looks.detectors import LEAST_BASELINE, FixedBaseline
from rageval_spec.pipeline.results import provenance
from rageval_spec.spec.blocks.monitor import BaselineNode, seconds_of
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Evaluation
    from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
    from rageval_spec.spec.blocks.spec_node import Spec

_DAY = 86_400


@dataclass(frozen=True)
class BaselineChoice:
    """What each metric is compared with.

    Attributes:
        days: so many days before, for metrics that no evaluation has; 0 if an evaluation is the baseline.
        name: how people know the evaluation; "" without one.
        values: its values, by metric.
        reasons: why a metric cannot be compared with it, by metric.
    """

    days: float
    name: str = ""
    values: Mapping[str, FixedBaseline] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def find(self, metric: str) -> float | FixedBaseline | str:
        """The days before, or the values of the evaluation, or why there is nothing to compare with."""
        if not self.name:
            return self.days
        missing = f"{metric} cannot be compared with {self.name}: it has no values of {metric}"
        return self.values.get(metric, self.reasons.get(metric, missing))


def choose_baseline(spec: Spec, parts: SpecPlugins, chosen: str | BaselineNode) -> BaselineChoice:
    """The baseline of a monitor.

    Raises:
        UsageError: no record of the history has the dataset.
        DataError: there is no record of this name.
    """
    if isinstance(chosen, BaselineNode) and chosen.window is not None:
        return BaselineChoice(seconds_of(chosen.window) / _DAY)
    if isinstance(chosen, str):
        name, dataset, found = chosen, None, find_record(chosen, SearchPlaces.of(spec)).evaluation
    else:
        name, dataset = f"the newest record of {chosen.dataset}", str(chosen.dataset)
        found = _find_newest(spec, dataset)
    values: dict[str, FixedBaseline] = {}
    reasons: dict[str, str] = {}
    definitions, live = read_definitions(found) or {}, _define_live(spec, parts, found)
    for metric in parts.answer_metrics:
        kept = _choose_rows(found, metric, dataset, [*parts.systems])
        changes = list(list_changes(live[metric], definitions[metric])) if metric in definitions else []
        if changes:
            reasons[metric] = f"{metric} is not comparable with {name}: {describe_changes(changes)}"
        elif 0 < len(kept) < LEAST_BASELINE:
            few = count_noun(len(kept), "value")
            reasons[metric] = f"{metric} cannot be compared with {name}: it has {few}, and {LEAST_BASELINE} are needed"
        elif len(kept):
            values[metric] = FixedBaseline(name, np.array(kept, dtype=np.float64), np.ones(len(kept)))
    return BaselineChoice(0.0, name, values, reasons)


def _find_newest(spec: Spec, dataset: str) -> Evaluation:
    """The newest evaluation of the history that has a dataset."""
    place = locate(spec.history, spec.folder)
    if place is not None:
        with open_history(place) as history:
            for entry in history.entries():
                if any(one.dataset == dataset for one in history.numbers_of(entry.id)):
                    return load_stored(history, entry.id).evaluation
    raise UsageError(
        f"{spec.path}: monitor.baseline: no record of the history has the dataset '{dataset}'; "
        "evaluate it once with 'rageval-spec run', or write {window: 7d}"
    )


def _choose_rows(found: Evaluation, metric: str, dataset: str | None, systems: list[str]) -> list[float]:
    """The values of a metric, of the system that is watched if the evaluation has it, else of its first one."""
    system = next((name for name in systems if name in found.systems), found.systems[0])
    chosen = (pl.col("metric") == metric) & (pl.col("status") == "scored") & (pl.col("system") == system)
    rows = found.values.filter(chosen if dataset is None else chosen & (pl.col("dataset") == dataset))
    return [float(value) for value in rows["value"].to_list()]


def _define_live(spec: Spec, parts: SpecPlugins, earlier: Evaluation) -> dict[str, Any]:
    """What the numbers of the spec's metrics mean, in the terms of an evaluation."""
    metrics = parts.answer_metrics
    told = Provenance(
        models={name: {} for name in earlier.provenance.models},
        prompts=provenance.digest_prompts(parts),
        calibrations=provenance.describe_calibrations(parts),
        implementations=provenance.digest_implementations(metrics),
        spec=provenance.describe_spec(spec, metrics),
    )
    return read_definitions(replace(earlier, metrics=tuple(metrics), provenance=told)) or {}
