"""Finds the results of earlier evaluations of a spec, whose values tell more about its questions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rageval_spec.audit.measured import Measured, Outputs, combine, read_outputs
from rageval_spec.audit.size import Power
from rageval_spec.commands.console import PROGRAM
from rageval_spec.commands.power import measure_power
from rageval_spec.commands.results import Opened, is_results, open_results
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.history.finding import PREVIOUS, NoRecordYetError, Places, find_record
from rageval_spec.plugin import AnswerMetric, Metric
from rageval_spec.plugin.report import RESULTS_FOLDER
from rageval_spec.wording import list_choices

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.pipeline.parts import Parts
    from rageval_spec.spec.nodes import Spec


@dataclass(frozen=True)
class Found:
    """Results of earlier evaluations.

    Attributes:
        opened: the results, by the names that the user gave them.
        why_none: if there are none, why, and what to do.
    """

    opened: Sequence[Opened]
    why_none: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the results."""
        return [one.name for one in self.opened]


def find_results(spec: Spec, named: Sequence[str]) -> Found:
    """The results that are named; else the last results if they are of this spec, else its newest record.

    Raises:
        UsageError: there are no results of a name.
        DataError: results cannot be read.
    """
    if named:
        return Found([open_results(name) for name in _list_distinct(named)])
    if is_results(RESULTS_FOLDER):
        opened = open_results()
        if opened.evaluation.name == spec.name:
            return Found([opened])
    try:
        record = find_record(PREVIOUS, Places.of(spec))
    except NoRecordYetError:
        return Found([], f"'{spec.name}' has not been evaluated; evaluate it with: {PROGRAM} run {spec.path}")
    except RagevalError as error:
        return Found([], f"the history cannot be read: {error}")
    return Found([Opened(f"record {record.id[:8]}" if record.id else "the newest record", record.evaluation)])


def _list_distinct(names: Sequence[str]) -> list[str]:
    """The names without those of results that an earlier one names: their systems would count twice."""
    distinct: dict[str | Path, str] = {}
    for name in names:
        path = Path(name).expanduser().resolve() if is_results(name) else None
        distinct.setdefault(name if path is None else path.parent if path.is_file() else path, name)
    return [*distinct.values()]


def list_powers(spec: Spec, parts: Parts, found: Found, dataset: str) -> list[Power] | None:
    """What the questions of a dataset can show, from the first results.

    A drop that is larger than the range of the metric's values cannot be shown.

    Returns:
        None without results, or if the spec has clusters or weights of which the results know nothing.
    """
    if not found.opened:
        return None
    try:
        rows = measure_power(spec, found.opened[0])
    except UsageError:
        return None
    return [
        Power(
            row.system,
            row.metric,
            row.baseline,
            row.queries,
            row.sd,
            _keep_possible(row.smallest_drop, parts.metrics[row.metric]),
            row.max_drop,
            row.needed,
        )
        for row in rows
        if row.dataset == dataset
    ]


def _keep_possible(drop: float | None, metric: Metric[Any]) -> float | None:
    low, high = metric.bounds
    return None if drop is None or (high is not None and drop > high - low) else drop


def measure(spec: Spec, parts: Parts, found: Found, dataset: str, wanted: str | None) -> Measured | None:
    """The values of all systems on a dataset, of one metric.

    Args:
        spec: the spec.
        parts: its plugins.
        found: the results.
        dataset: the dataset's name.
        wanted: the metric; None for the first of the spec whose values have a best and a worst.

    Returns:
        None if no system has values of such a metric.

    Raises:
        UsageError: the spec has no such metric, or its values have no best and worst.
    """
    if wanted is not None and (wanted not in parts.metrics or not _has_ends(parts.metrics[wanted])):
        known = [name for name, metric in parts.metrics.items() if _has_ends(metric)]
        raise UsageError(f"--metric {wanted}: {suggest(wanted, known) or f'write one of {list_choices(known)}'}")
    names = [wanted] if wanted is not None else [name for name, one in parts.metrics.items() if _has_ends(one)]
    for name in names:
        columns = dict(_read_columns(found, dataset, name))
        if columns:
            return _orient(name, parts.metrics[name], columns, spec.diagnosis.wrong_below)
    return None


def _has_ends(metric: Metric[Any]) -> bool:
    return metric.higher_is_better is not None and metric.bounds[1] is not None


def _read_columns(found: Found, dataset: str, metric: str) -> Iterator[tuple[str, dict[str, float]]]:
    import polars as pl

    for opened, end in zip(found.opened, _list_ends(found), strict=True):
        values = opened.evaluation.values
        wanted = (pl.col("dataset") == dataset) & (pl.col("metric") == metric) & (pl.col("status") == "scored")
        rows = values.filter(wanted).select("system", "query_id", "value")
        for (system,), part in rows.group_by(["system"], maintain_order=True):
            yield f"{system}{end}", dict(part.select("query_id", "value").iter_rows())


def _list_ends(found: Found) -> list[str]:
    """What tells systems of several results apart: nothing if there is one."""
    return [f" ({name})" if len(found.opened) > 1 else "" for name in found.names]


def _orient(name: str, metric: Metric[Any], columns: dict[str, dict[str, float]], wrong_below: float) -> Measured:
    """The values so that high ones are good. An answer below `wrong_below` fails, and a ranking at the lowest value."""
    low, high = metric.bounds
    assert high is not None, "only metrics with a highest value are measured"
    sign = 1.0 if metric.higher_is_better else -1.0
    worst, best = (low, high) if sign > 0 else (-high, -low)
    fails_at = worst
    if isinstance(metric, AnswerMetric):
        fails_at = math.nextafter(worst + wrong_below * (best - worst), -math.inf)
    turned = {system: {query: sign * value for query, value in own.items()} for system, own in columns.items()}
    return combine(name, turned, best, fails_at)


def list_outputs(found: Found, dataset: str) -> Outputs | None:
    """What the systems made of each question of a dataset: none if the results hold no samples.

    Returns:
        None without results, or if they are of other datasets.
    """
    if not any(dataset in opened.evaluation.values["dataset"] for opened in found.opened):
        return None
    return read_outputs(_read_samples(found, dataset))


def _read_samples(found: Found, dataset: str) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    columns = ("dataset", "system", "query_id", "answer", "context_ids", "relevant")
    for opened, end in zip(found.opened, _list_ends(found), strict=True):
        rows = opened.evaluation.select_samples(*columns)
        yield end, rows.filter(pl.col("dataset") == dataset)
