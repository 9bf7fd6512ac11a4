"""Collects the numbers of many records into series, and finds where they break and where they change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from unicodedata import normalize

from rageval_spec.data import arithmetic
from rageval_spec.data.results import Break, LevelChange, Series, Trend, TrendPoint
from rageval_spec.dataclass import dataclass
from rageval_spec.diagnostics import suggest
from rageval_spec.errors import UsageError
from rageval_spec.history.database import History, Number, RecordFilter, RecordSummary
from rageval_spec.history.metric_definitions import WEIGHTS
from rageval_spec.statistics.sequential_analysis import ALPHA, find_changes
from rageval_spec.wording import count_noun

COST = "cost in dollars"
DURATION = "duration in seconds"
_LATENCY = "latency"
_WORDS = {
    "question": "the questions",
    "reference": "the references",
    "judgements": "the relevance judgements",
    WEIGHTS: "the weights of the questions",
    "definition": "the definition of the metric",
    "judge": "the judge",
}
"""The digests of a dataset and of a metric that decide whether two records can be compared, and what they are of."""
_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class TrendFilter:
    """Which numbers to follow; None does not restrict them.

    Attributes:
        slice: a slice; None for the numbers of all queries.
    """

    metric: str | None = None
    dataset: str | None = None
    system: str | None = None
    slice: str | None = None


def collect_trend(history: History, chosen: RecordFilter, wanted: TrendFilter) -> Trend:
    """The trend of the chosen records, or of those with the newest record's name if none is chosen.

    Latency, costs and durations are there beside any metric. Records without a number are skipped.
    """
    entries = history.entries(chosen)
    if not entries:
        raise UsageError(f"the history {history.connection.name} has no such records")
    name = chosen.name or entries[0].name
    of_name = [entry for entry in reversed(entries) if entry.name == name]
    rows = _collect_numbers(history, chosen, wanted, {entry.id for entry in of_name})
    if wanted != TrendFilter() and not any(wanted.metric in (None, metric) for metric, *_ in rows):
        raise _explain(history, chosen, wanted, {entry.id for entry in of_name})
    series = [_build_series(key, found, of_name) for key, found in rows.items()]
    series.sort(key=lambda one: one.metric != wanted.metric and one.metric.startswith(_LATENCY))
    return Trend(name, (*series, *_build_expenses(of_name)), ALPHA, _remark_on_costs(of_name))


def _collect_numbers(
    history: History, chosen: RecordFilter, wanted: TrendFilter, ids: set[str]
) -> dict[_Key, dict[str, Number]]:
    """The numbers by metric, dataset, system and slice, and then by record."""
    rows: dict[_Key, dict[str, Number]] = {}
    slice = normalize("NFC", wanted.slice or "")
    for one in _read_numbers(history, chosen, wanted):
        if one.record_id not in ids or one.mean is None or normalize("NFC", one.slice or "") != slice:
            continue
        if wanted.dataset in (None, one.dataset) and wanted.system in (None, one.system):
            rows.setdefault((one.metric, one.dataset, one.system, slice), {})[one.record_id] = one
    return dict(sorted(rows.items()))


def _read_numbers(history: History, chosen: RecordFilter, wanted: TrendFilter) -> Iterator[Number]:
    if wanted.metric is None:
        yield from history.numbers(None, chosen)
        return
    yield from history.numbers(wanted.metric, chosen)
    for metric in history.metrics():
        if metric.startswith(_LATENCY) and metric != wanted.metric:
            yield from history.numbers(metric, chosen)


def _explain(history: History, chosen: RecordFilter, wanted: TrendFilter, ids: set[str]) -> UsageError:
    """Why nothing matches: the first of the wanted names that no record has, with those that there are."""
    numbers = [one for one in history.numbers(None, chosen) if one.record_id in ids]
    for kind in ("metric", "dataset", "system", "slice"):
        name, known = getattr(wanted, kind), sorted({getattr(one, kind) for one in numbers} - {None})
        if name is not None and name not in known:
            hint = suggest(name, known) or (f"the {kind}s are {', '.join(known)}" if known else f"there are no {kind}s")
            return UsageError(f"no record has the {kind} '{name}'; {hint}")
    what = "no metric has" if wanted.metric is None else f"'{wanted.metric}' has no"
    return UsageError(f"{what} numbers for this dataset, system and slice")


def _build_series(key: _Key, numbers: Mapping[str, Number], entries: Sequence[RecordSummary]) -> Series:
    metric, dataset, system, name = key
    kept = [entry for entry in entries if entry.id in numbers]
    points = [_make_point(entry, one.mean, one.low, one.high) for entry in kept for one in [numbers[entry.id]]]
    breaks = list(_find_breaks(kept, metric, dataset))
    return Series(
        metric, dataset, system, name or None, tuple(points), tuple(breaks), tuple(_mark_changes(points, breaks)),
        _find_bounds(kept[-1].gates, key),
    )  # fmt: skip


def _make_point(
    entry: RecordSummary, value: float | None, low: float | None = None, high: float | None = None
) -> TrendPoint:
    assert value is not None, "records without a number are left out"
    return TrendPoint(entry.id, entry.time, value, low, high, entry.commit, entry.outcome)


def _find_bounds(gates: Sequence[Mapping[str, Any]], key: _Key) -> dict[str, float]:
    metric, dataset, system, name = key
    wanted = {"metric": metric, "dataset": dataset, "system": system, "slice": name or None}
    own = [gate for gate in gates if all(gate[word] == value for word, value in wanted.items())]
    return {bound: gate[bound] for gate in own for bound in ("min", "max", "target") if bound in gate}


def _find_breaks(entries: Sequence[RecordSummary], metric: str, dataset: str) -> Iterator[Break]:
    """Where the data, the definition of the metric or its judge changed. What is not known is not a change.

    A digest is compared with the last one that is known: records between that do not have it hide no change.
    """
    known: dict[str, str] = {}
    before: Any = None
    for index, entry in enumerate(entries):
        if entry.meaning is before:  # equal texts are parsed once
            continue
        before = entry.meaning
        own, of_metric = entry.meaning["data"].get(dataset, {}), entry.meaning["metrics"].get(metric, {})
        digests = {WEIGHTS: "", **own, **of_metric}  # without weights, all questions count the same
        changed = [word for key, word in _WORDS.items() if key in known and digests.get(key, known[key]) != known[key]]
        known.update(digests)
        if changed:
            yield Break(index, f"{' and '.join(changed)} changed")


def _mark_changes(points: Sequence[TrendPoint], breaks: Sequence[Break]) -> Iterator[LevelChange]:
    """The changes of level within each stretch between breaks."""
    edges = [0, *(one.index for one in breaks), len(points)]
    for start, end in pairwise(edges):
        values = [point.mean for point in points[start:end]]
        levels = [0, *find_changes(values), len(values)]
        for first, middle, last in zip(levels, levels[1:], levels[2:], strict=False):
            yield LevelChange(
                start + middle, arithmetic.average(values[first:middle]), arithmetic.average(values[middle:last])
            )


def _build_expenses(entries: Sequence[RecordSummary]) -> Iterator[Series]:
    for metric, name in ((COST, "cost"), (DURATION, "seconds")):
        points = [_make_point(one, getattr(one, name)) for one in entries if getattr(one, name) is not None]
        if points:
            yield Series(metric, "", "", None, tuple(points), changes=tuple(_mark_changes(points, ())))


def _remark_on_costs(entries: Sequence[RecordSummary]) -> tuple[str, ...]:
    """How many records have a cost that is not, or not wholly, known; () if none has."""
    counts = {status: sum(one.cost_status == status for one in entries) for status in ("unknown", "partly known")}
    told = [f"{status} for {count_noun(count, 'record')}" for status, count in counts.items() if count]
    return (f"the cost is {' and '.join(told)}",) if told else ()
