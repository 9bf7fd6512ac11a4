"""Computes the metrics of answers: all of a system's at the same time, because they wait for models most of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rageval_spec.errors import DataError
from rageval_spec.plugin import AnswerMetric, Measured, Measurement
from rageval_spec.result import Note
from rageval_spec.runs import explain
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.assessment import Criterion
    from rageval_spec.plugin import Judge
    from rageval_spec.samples import Part, Sample

MOST_METRICS_AT_ONCE = 16
PATIENCE = 0.5
"""Seconds after which the main thread looks whether it was interrupted."""
_NAMES: Mapping[Part, str] = {
    "answer": "no answer",
    "contexts": "no contexts",
    "context_ids": "no ids of its contexts",
    "reference": "no reference",
    "reference_contexts": "no reference contexts",
    "relevant": "no judged documents",
    "answerable": "nothing that says whether it can be answered ('answerable')",
    "group": "no group of queries that ask the same ('group')",
    "condition": "no condition ('condition')",
}


@dataclass(frozen=True)
class Computed:
    """One metric of one system on one dataset: `query_id, value, status, reason, details`, by `query_id`."""

    metric: str
    values: pl.DataFrame
    notes: tuple[Note, ...]
    error: Exception | None = None


def brief_judges(metrics: Mapping[str, AnswerMetric[Any]]) -> None:
    """Tell every judge all criteria that it will be asked for."""
    wanted: dict[int, tuple[Judge[Any], list[Criterion]]] = {}
    for metric in metrics.values():
        for judge in metric.judges():
            _, criteria = wanted.setdefault(id(judge), (judge, []))
            criteria.extend(one for one in metric.criteria() if one not in criteria)
    for judge, criteria in wanted.values():
        judge.expect(criteria)


def compute_all(metrics: Mapping[str, AnswerMetric[Any]], samples: Sequence[Sample]) -> Iterator[Computed]:
    """Every metric, in the order given; one that fails as a whole gives every query the status "error"."""
    if not metrics:
        return
    pool = ThreadPoolExecutor(min(len(metrics), MOST_METRICS_AT_ONCE), thread_name_prefix="metric")
    try:
        futures = {name: pool.submit(compute, name, metric, samples) for name, metric in metrics.items()}
        for future in futures.values():
            while not wait([future], timeout=PATIENCE).done:
                pass  # an interrupt that comes just before a wait does not end it: it is seen before the next
            yield future.result()
    finally:
        # Whoever leaves early, as after Ctrl-C, does not wait for calls that may take a minute.
        pool.shutdown(wait=False, cancel_futures=True)


def compute(name: str, metric: AnswerMetric[Any], samples: Sequence[Sample]) -> Computed:
    """One metric; samples that it cannot be asked of have their status without it."""
    excluded = {index: found for index, sample in enumerate(samples) if (found := _exclude(metric, sample))}
    usable = [sample for index, sample in enumerate(samples) if index not in excluded]
    try:
        measured = metric.compute(usable) if usable else Measured(())
        if len(measured.measurements) != len(usable):
            raise DataError(f"the metric gave {len(measured.measurements)} values to {len(usable)} queries")
        error = None
    except Exception as failure:
        measured, error = Measured([Measurement.error(explain(failure))] * len(usable)), failure
    given = iter(measured.measurements)
    all_of_them = [excluded.get(index) or _check(next(given)) for index in range(len(samples))]
    notes = (*measured.notes, *(_remark(all_of_them, samples) if error is None else ()))
    return Computed(name, _tabulate(samples, all_of_them), tuple(_label(note, name) for note in notes), error)


def list_usable(metric: AnswerMetric[Any], samples: Sequence[Sample]) -> list[Sample]:
    """The samples that a metric is asked of."""
    return [sample for sample in samples if _exclude(metric, sample) is None]


def _exclude(metric: AnswerMetric[Any], sample: Sample) -> Measurement | None:
    if sample.error is not None and not metric.counts_failures:
        return Measurement.error(sample.error)
    lacking = [_NAMES[part] for part in sorted(metric.needs) if _lacks(sample, part)]
    return Measurement.unscorable(f"the query has {' and '.join(lacking)}") if lacking else None


def _lacks(sample: Sample, part: Part) -> bool:
    return sample.error is None and sample.lacks(part)


def _check(measurement: Measurement) -> Measurement:
    """A value that is none is an error of that query, never a 0."""
    value = measurement.value
    if measurement.status == "scored" and (value is None or not math.isfinite(value)):
        return Measurement.error("the value is not a finite number", measurement.details)
    return measurement if measurement.status == "scored" else replace(measurement, value=None)


def _remark(measurements: Sequence[Measurement], samples: Sequence[Sample]) -> Iterator[Note]:
    own = [m for m, sample in zip(measurements, samples, strict=True) if m.status == "error" and sample.error is None]
    if own:
        message = f"{len(own)} of {count_noun(len(samples), 'query', 'queries')} failed; the first: {own[0].reason}"
        yield Note("failed_queries", message, count=len(own))


def _label(note: Note, metric: str) -> Note:
    return replace(note, message=f"{metric}: {note.message}")


def _tabulate(samples: Sequence[Sample], measurements: Sequence[Measurement]) -> pl.DataFrame:
    import polars as pl

    columns: dict[str, tuple[Any, Callable[[Measurement], Any]]] = {
        "value": (pl.Float64, lambda m: m.value),
        "status": (pl.String, lambda m: m.status),
        "reason": (pl.String, lambda m: None if m.reason is None else _writable(m.reason)),
        "details": (pl.String, _dump_details),
    }
    table = pl.DataFrame(
        {
            "query_id": pl.Series([sample.query_id for sample in samples], dtype=pl.String),
            **{
                name: pl.Series([read(one) for one in measurements], dtype=kind)
                for name, (kind, read) in columns.items()
            },
        }
    )
    return table.sort("query_id")


def _dump_details(measurement: Measurement) -> str | None:
    if measurement.details is None:
        return None
    return _writable(json.dumps(measurement.details, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _writable(text: str) -> str:
    """The text with halves of characters, which some replies hold, written out."""
    return text.encode("utf-8", "backslashreplace").decode()
